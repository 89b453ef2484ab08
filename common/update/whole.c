/* Whole-document work: update_apply, replacements, pipelines, upserts and inserts. */
#include "bson/compare.h"
#include "update/update_tree.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEVEL_MIN_BYTES = 7, /* of one level of nesting: type, empty name, length, end */
};

static bool too_deep(struct bdoc doc, int depth)
{
    struct biter iter;
    struct belem elem;
    if (depth > BDOC_MAX_DEPTH)
        return true;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        bool container = elem.val.type == BT_DOCUMENT || elem.val.type == BT_ARRAY;
        if (container && too_deep(bval_doc(&elem.val), depth + 1))
            return true;
    }
    return false;
}

static bool check_id(const struct bval *id, struct err *err)
{
    if (id->type == BT_ARRAY || id->type == BT_REGEX || id->type == BT_UNDEFINED)
        return err_set(err, ERR_InvalidIdField, "The '_id' value cannot be of type %s", bval_type_name(id->type));
    if (id->type != BT_DOCUMENT)
        return true;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, bval_doc(id));
    while (biter_next(&iter, &elem))
        if (elem.key[0] == '$')
            return err_set(err, ERR_DollarPrefixedFieldName,
                           "_id fields may not contain '$'-prefixed fields: %s is not valid for storage.", elem.key);
    return true;
}

bool update_check_dollar_name(const struct update *update, struct err *err)
{
    const char *name = update->dollar_name;
    return name == NULL ||
           err_set(err, ERR_DollarPrefixedFieldName,
                   "The dollar ($) prefixed field '%.*s' in '%s' is not allowed in the context of an update's "
                   "replacement document. Consider using an aggregation pipeline with $replaceWith.",
                   (int)strcspn(name, "."), name, name);
}

bool update_check_result(struct bdoc doc, int32_t too_large_code, struct err *err)
{
    struct bval id;
    if (doc.len > BDOC_MAX_BYTES)
        return err_set(err, too_large_code, "Resulting document after update is larger than %d (%u bytes)",
                       BDOC_MAX_BYTES, doc.len);
    if (doc.len > BDOC_MAX_DEPTH * LEVEL_MIN_BYTES && too_deep(doc, 1))
        return err_set(err, ERR_Overflow, "Document exceeds maximum nesting depth of %d", BDOC_MAX_DEPTH);
    return !bdoc_find(doc, "_id", &id) || check_id(&id, err);
}

bool update_apply_replacement(struct applier *a, struct buf *out)
{
    struct bval old_id;
    struct bval new_id;
    bool has_old = bdoc_find(a->doc, "_id", &old_id);
    bool has_new = bdoc_find(a->update->source, "_id", &new_id);
    if (has_old && has_new && !bval_equal(&old_id, &new_id))
        return err_set(a->err, ERR_ImmutableField,
                       "After applying the update, the (immutable) field '_id' was found to have been altered (%s)",
                       update_id_text(a));
    struct biter iter;
    struct belem elem;
    size_t start = write_begin(out);
    if (has_old || has_new)
        write_value(out, "_id", 3, has_old ? &old_id : &new_id);
    biter_init(&iter, a->update->source);
    while (biter_next(&iter, &elem))
        if (strcmp(elem.key, "_id") != 0)
            write_elem(out, &elem);
    write_end(out, start);
    return true;
}

static bool apply_kind(struct applier *a, struct buf *out)
{
    if (a->update->kind == UPDATE_REPLACEMENT)
        return update_apply_replacement(a, out);
    if (a->update->kind == UPDATE_PIPELINE)
        return update_apply_pipeline(a, out);
    size_t start = write_begin(out);
    if (!update_apply_tree(a, a->doc, out))
        return false;
    write_end(out, start);
    return true;
}

/* An _id that was there stays as it was. */
static bool check_same_id(struct applier *a, struct bdoc result)
{
    struct bval old_id;
    struct bval new_id;
    if (!bdoc_find(a->doc, "_id", &old_id))
        return true;
    if (bdoc_find(result, "_id", &new_id) && bval_equal(&old_id, &new_id))
        return true;
    return err_set(a->err, ERR_ImmutableField,
                   "Performing an update on the path '_id' would modify the immutable field '_id'");
}

bool update_apply(const struct update *update, struct bdoc doc, const struct filter_match *match, struct buf *out,
                  struct update_result *result, struct err *err)
{
    struct applier a = {.update = update, .doc = doc, .match = match, .err = err};
    size_t start = out->len;
    arena_init(&a.scratch);
    bool ok = apply_kind(&a, out);
    struct bdoc after = ok ? (struct bdoc){out->data + start, (uint32_t)(out->len - start)} : (struct bdoc){0};
    ok = ok && check_same_id(&a, after);
    /* A replacement without _id counts as a change even when it says what the document holds. */
    struct bdoc same_as = update->kind == UPDATE_REPLACEMENT ? update->source : after;
    bool modified =
        ok && (update->kind == UPDATE_OPERATORS ? a.modified : !bdoc_same(doc, same_as) || !bdoc_same(doc, after));
    if (modified || update->kind == UPDATE_REPLACEMENT)
        ok = ok && update_check_dollar_name(update, err);
    ok = ok && (!modified || update_check_result(after, 17419, err));
    arena_deinit(&a.scratch);
    if (!ok)
        out->len = start;
    *result = (struct update_result){.modified = modified};
    return ok;
}

/* The equalities of an upsert's filter. */
struct seeds {
    struct arena arena;
    struct seed {
        const char *path;
        struct bval val;
    } * items;
    size_t count;
    size_t capacity;
};

static bool add_seed(void *arg, const char *path, const struct bval *value, struct err *err)
{
    struct seeds *seeds = arg;
    size_t len = strlen(path);
    for (size_t i = 0; i < seeds->count; i++) {
        const char *other = seeds->items[i].path;
        size_t other_len = strlen(other);
        size_t common = len < other_len ? len : other_len;
        if (memcmp(path, other, common) != 0)
            continue;
        if (len == other_len)
            return err_set(err, ERR_NotSingleValueField, "cannot infer query fields to set, path '%s' is matched twice",
                           path);
        if ((len > common && path[common] == '.') || (other_len > common && other[common] == '.'))
            return err_set(err, ERR_NotSingleValueField,
                           "cannot infer query fields to set, both paths '%s' and '%s' are "
                           "matched",
                           path, other);
    }
    if (seeds->count == seeds->capacity) {
        size_t capacity = seeds->capacity == 0 ? 8 : seeds->capacity * 2;
        struct seed *items = arena_alloc(&seeds->arena, capacity * sizeof *items);
        if (seeds->count > 0)
            memcpy(items, seeds->items, seeds->count * sizeof *items);
        seeds->items = items;
        seeds->capacity = capacity;
    }
    seeds->items[seeds->count++] = (struct seed){path, *value};
    return true;
}

static int compare_seeds(const void *a, const void *b)
{
    const struct seed *x = a;
    const struct seed *y = b;
    return strcmp(x->path, y->path);
}

/* Writes the fields of sorted seeds whose paths share their first `depth` bytes; dotted ones become documents. */
static void write_seeds(const struct seed *seeds, size_t count, size_t depth, struct buf *out)
{
    for (size_t i = 0; i < count;) {
        const char *name = seeds[i].path + depth;
        size_t len = strcspn(name, ".");
        size_t same = i + 1;
        while (same < count && strncmp(seeds[same].path + depth, name, len) == 0 &&
               (seeds[same].path[depth + len] == '.' || seeds[same].path[depth + len] == 0))
            same++;
        if (name[len] == 0) {
            write_value(out, name, len, &seeds[i].val);
            i++;
            continue;
        }
        size_t start = write_begin_field(out, name, len, BT_DOCUMENT);
        write_seeds(seeds + i, same - i, depth + len + 1, out);
        write_end(out, start);
        i = same;
    }
}

/* _id first, made from `id` when there is none. */
static bool write_with_id(struct bdoc doc, const bson_oid_t *id, struct buf *out)
{
    struct bval found;
    struct biter iter;
    struct belem elem;
    size_t start = write_begin(out);
    if (!bdoc_find(doc, "_id", &found))
        found = (struct bval){.type = BT_OBJECT_ID, .len = 12, .data = id->bytes};
    write_value(out, "_id", 3, &found);
    biter_init(&iter, doc);
    bool first_id = true;
    while (biter_next(&iter, &elem)) {
        bool is_id = strcmp(elem.key, "_id") == 0;
        if (!is_id || !first_id)
            write_elem(out, &elem);
        first_id = first_id && !is_id;
    }
    write_end(out, start);
    return true;
}

/* What the filter gives to the new document: everything for operators, only _id for a replacement. */
static void write_seed_document(const struct update *update, struct seeds *seeds, struct buf *out)
{
    size_t start = write_begin(out);
    if (update->kind == UPDATE_REPLACEMENT) {
        for (size_t i = 0; i < seeds->count; i++)
            if (strcmp(seeds->items[i].path, "_id") == 0)
                write_value(out, "_id", 3, &seeds->items[i].val);
    } else if (seeds->count > 0) {
        qsort(seeds->items, seeds->count, sizeof *seeds->items, compare_seeds);
        write_seeds(seeds->items, seeds->count, 0, out);
    }
    write_end(out, start);
}

bool update_build_upsert(const struct update *update, const struct filter *filter, const bson_oid_t *id,
                         struct buf *out, struct err *err)
{
    struct seeds seeds = {0};
    struct buf base = BUF_INIT;
    struct buf changed = BUF_INIT;
    struct filter_equality_visitor visitor = {.add = add_seed, .arg = &seeds};
    size_t start = out->len;
    arena_init(&seeds.arena);
    bool ok = filter_each_equality(filter, &visitor, err);
    if (!ok)
        goto out;
    write_seed_document(update, &seeds, &base);
    struct applier a = {.update = update, .doc = {base.data, (uint32_t)base.len}, .err = err, .insert = true};
    arena_init(&a.scratch);
    ok = apply_kind(&a, &changed);
    struct bdoc after = {changed.data, (uint32_t)changed.len};
    ok = ok && check_same_id(&a, after) && write_with_id(after, id, out);
    arena_deinit(&a.scratch);
    ok = ok && update_check_result((struct bdoc){out->data + start, (uint32_t)(out->len - start)}, 17420, err);
out:
    if (!ok)
        out->len = start;
    buf_deinit(&base);
    buf_deinit(&changed);
    arena_deinit(&seeds.arena);
    return ok;
}

bool update_prepare_insert(struct bdoc doc, const bson_oid_t *id, struct buf *out, struct err *err)
{
    size_t start = out->len;
    if (doc.len > BDOC_MAX_BYTES)
        return err_set(err, ERR_BadValue, "object to insert too large. size in bytes: %u, max size: %d", doc.len,
                       BDOC_MAX_BYTES);
    bool ok = write_with_id(doc, id, out) &&
              update_check_result((struct bdoc){out->data + start, (uint32_t)(out->len - start)},
                                  ERR_BSONObjectTooLarge, err);
    if (!ok)
        out->len = start;
    return ok;
}
