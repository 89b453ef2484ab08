#include "query/projection_tree.h"

#include "expr/writer.h"

#include <stdalign.h>
#include <stddef.h>
#include <string.h>

enum {
    STORAGE_BYTES = 4096, /* on the stack, for computed values */
};

/* One document's way through the tree. */
struct apply {
    const struct projection *projection;
    struct bdoc root;
    const struct filter_match *match;
    struct arena scratch;
    size_t start; /* of the result in its buffer */
    struct err *err;
};

static bool apply_document(struct apply *a, const struct projection_node *node, struct bdoc doc, struct buf *out);
static bool apply_nested(struct apply *a, const struct projection_node *node, const struct belem *elem,
                         struct buf *out);

static const struct projection_node *child_of(const struct projection_node *node, const struct belem *elem)
{
    if (node->by_name == NULL) {
        for (uint32_t i = 0; i < node->child_count; i++)
            if (node->children[i]->name_len == elem->key_len &&
                memcmp(node->children[i]->name, elem->key, elem->key_len) == 0)
                return node->children[i];
        return NULL;
    }
    uint32_t low = 0;
    uint32_t high = node->child_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(elem->key, node->by_name[middle]->name);
        if (order == 0)
            return node->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static bool write_computed(struct apply *a, const struct projection_node *node, struct buf *out)
{
    struct bval value;
    const struct expr_meta *meta = a->match != NULL ? a->match->meta : NULL;
    if (!expr_eval_meta(node->expr, a->root, meta, &a->scratch, &value, a->err))
        return false;
    /* Each value is within the limit; some hundreds of them together need not be. */
    if (out->len - a->start + value.len > BDOC_MAX_INTERNAL_BYTES)
        return err_set(a->err, ERR_BSONObjectTooLarge, "a computed document is larger than %d bytes",
                       BDOC_MAX_INTERNAL_BYTES);
    write_value(out, node->name, node->name_len, &value);
    return true;
}

/* A document of the computed values below, where the original has none. */
static bool write_computed_below(struct apply *a, const struct projection_node *node, struct buf *out)
{
    if (node->action == PROJECT_COMPUTE)
        return write_computed(a, node, out);
    size_t start = write_begin_field(out, node->name, node->name_len, BT_DOCUMENT);
    for (uint32_t i = 0; i < node->child_count; i++)
        if (node->children[i]->computes && !write_computed_below(a, node->children[i], out))
            return false;
    write_end(out, start);
    return true;
}

static void write_slice(const struct projection_node *node, const struct belem *elem, struct buf *out)
{
    int64_t count = bdoc_count(bval_doc(&elem->val));
    int64_t skip = node->slice_skip;
    if (skip < 0)
        skip = skip > -count ? count + skip : 0;
    int64_t place = 0;
    uint32_t written = 0;
    struct biter iter;
    struct belem item;
    size_t start = write_begin_field(out, elem->key, elem->key_len, BT_ARRAY);
    biter_init(&iter, bval_doc(&elem->val));
    while (biter_next(&iter, &item)) {
        if (place++ < skip)
            continue;
        if (written >= node->slice_limit)
            break;
        write_item(out, written++, &item.val);
    }
    write_end(out, start);
}

/* The n-th element alone, as an array of one. */
static bool write_single(const struct belem *elem, int64_t index, struct buf *out)
{
    struct biter iter;
    struct belem item;
    biter_init(&iter, bval_doc(&elem->val));
    for (int64_t i = 0; biter_next(&iter, &item); i++) {
        if (i != index)
            continue;
        size_t start = write_begin_field(out, elem->key, elem->key_len, BT_ARRAY);
        write_item(out, 0, &item.val);
        write_end(out, start);
        return true;
    }
    return false;
}

static bool write_elem_match(struct apply *a, const struct projection_node *node, const struct belem *elem,
                             struct buf *out)
{
    if (elem->val.type != BT_ARRAY)
        return true;
    struct filter_match match;
    bool matched;
    struct buf wrapper = BUF_INIT;
    size_t start = write_begin(&wrapper);
    write_elem(&wrapper, elem);
    write_end(&wrapper, start);
    bool ok = filter_eval(node->elem_filter, write_view(&wrapper, start), &match, &matched, a->err);
    buf_deinit(&wrapper);
    if (ok && matched)
        write_single(elem, match.array_index, out);
    return ok;
}

/* An array below a nested name: each document in it goes through the names, arrays in arrays too. */
static bool apply_array(struct apply *a, const struct projection_node *node, struct bdoc array, struct buf *out)
{
    bool keeps = a->projection->excludes || a->projection->adds;
    struct biter iter;
    struct belem item;
    uint32_t index = 0;
    biter_init(&iter, array);
    while (biter_next(&iter, &item)) {
        char name[WRITER_INDEX_BYTES];
        item.key_len = (uint32_t)write_index_name(name, index);
        item.key = name;
        bool container = item.val.type == BT_DOCUMENT || item.val.type == BT_ARRAY;
        if (!container && !keeps)
            continue;
        index++;
        if (container || (a->projection->adds && node->computes)) {
            if (!apply_nested(a, node, &item, out))
                return false;
        } else {
            write_elem(out, &item);
        }
    }
    return true;
}

/* A value under a name that has names below. */
static bool apply_nested(struct apply *a, const struct projection_node *node, const struct belem *elem, struct buf *out)
{
    if (elem->val.type == BT_DOCUMENT || elem->val.type == BT_ARRAY) {
        size_t start = write_begin_field(out, elem->key, elem->key_len, elem->val.type);
        bool ok = elem->val.type == BT_ARRAY ? apply_array(a, node, bval_doc(&elem->val), out)
                                             : apply_document(a, node, bval_doc(&elem->val), out);
        write_end(out, start);
        return ok;
    }
    if (a->projection->adds && node->computes) {
        struct projection_node renamed = *node;
        renamed.name = elem->key;
        renamed.name_len = elem->key_len;
        return write_computed_below(a, &renamed, out);
    }
    if (a->projection->excludes || a->projection->adds)
        write_elem(out, elem);
    return true;
}

/* A field that the tree names. Computed values of an inclusion are written at the end, those of $addFields in place. */
static bool apply_named(struct apply *a, const struct projection_node *child, const struct belem *elem, struct buf *out)
{
    switch (child->action) {
    case PROJECT_INCLUDE:
        write_elem(out, elem);
        return true;
    case PROJECT_EXCLUDE:
        return true;
    case PROJECT_COMPUTE:
        return !a->projection->adds || write_computed(a, child, out);
    case PROJECT_SLICE:
        if (elem->val.type == BT_ARRAY)
            write_slice(child, elem, out);
        else
            write_elem(out, elem);
        return true;
    case PROJECT_ELEM_MATCH:
        return true;
    case PROJECT_NESTED:
        return apply_nested(a, child, elem, out);
    }
    return true;
}

/* Is the place for the computed part below `child` already taken by something that apply_named wrote? */
static bool already_written(const struct apply *a, const struct projection_node *child, struct bdoc doc)
{
    struct bval val;
    if (!bdoc_find_n(doc, child->name, child->name_len, &val))
        return false;
    if (child->action == PROJECT_COMPUTE)
        return a->projection->adds;
    return val.type == BT_DOCUMENT || val.type == BT_ARRAY || a->projection->adds;
}

static bool add_at_end(struct apply *a, const struct projection_node *node, struct bdoc doc, struct buf *out)
{
    for (uint32_t i = 0; i < node->child_count; i++) {
        const struct projection_node *child = node->children[i];
        struct belem elem = {.key = child->name, .key_len = child->name_len};
        if (child->action == PROJECT_ELEM_MATCH) {
            if (bdoc_find_n(doc, child->name, child->name_len, &elem.val) && !write_elem_match(a, child, &elem, out))
                return false;
        } else if (child->computes && !already_written(a, child, doc)) {
            if (!write_computed_below(a, child, out))
                return false;
        }
    }
    return true;
}

static bool apply_document(struct apply *a, const struct projection_node *node, struct bdoc doc, struct buf *out)
{
    bool keeps = a->projection->excludes || a->projection->adds;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        const struct projection_node *child = child_of(node, &elem);
        if (child == NULL) {
            if (keeps)
                write_elem(out, &elem);
        } else if (!apply_named(a, child, &elem, out)) {
            return false;
        }
    }
    return add_at_end(a, node, doc, out);
}

/* Copies `doc` with the first array on `path` cut to one element. */
static bool cut_array(struct apply *a, struct bdoc doc, const char *path, struct buf *out)
{
    size_t len = strcspn(path, ".");
    const char *rest = path[len] == '.' ? path + len + 1 : NULL;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        bool named = elem.key_len == len && memcmp(elem.key, path, len) == 0;
        if (named && elem.val.type == BT_ARRAY) {
            if (a->match == NULL || a->match->array_index < 0)
                return err_set(a->err, 51246,
                               "Executor error during find command :: caused by :: positional operator '.$' "
                               "couldn't find a matching element in the array");
            if (!write_single(&elem, a->match->array_index, out))
                return err_set(a->err, 51247,
                               "Executor error during find command :: caused by :: positional operator '.$' "
                               "element mismatch");
        } else if (named && rest != NULL && elem.val.type == BT_DOCUMENT) {
            size_t start = write_begin_field(out, elem.key, elem.key_len, BT_DOCUMENT);
            if (!cut_array(a, bval_doc(&elem.val), rest, out))
                return false;
            write_end(out, start);
        } else {
            write_elem(out, &elem);
        }
    }
    return true;
}

static bool cut_positional(struct apply *a, size_t start, struct buf *out)
{
    struct buf whole = BUF_INIT;
    buf_append(&whole, out->data + start, out->len - start);
    out->len = start;
    size_t again = write_begin(out);
    bool ok = cut_array(a, (struct bdoc){whole.data, (uint32_t)whole.len}, a->projection->positional, out);
    write_end(out, again);
    buf_deinit(&whole);
    return ok;
}

bool projection_apply(const struct projection *projection, struct bdoc doc, const struct filter_match *match,
                      struct buf *out, struct err *err)
{
    alignas(max_align_t) unsigned char storage[STORAGE_BYTES];
    struct apply a = {.projection = projection, .root = doc, .match = match, .start = out->len, .err = err};
    size_t start = write_begin(out);
    arena_init_in(&a.scratch, storage, sizeof storage);
    bool ok = apply_document(&a, projection->root, doc, out);
    arena_deinit(&a.scratch);
    write_end(out, start);
    if (ok && projection->positional != NULL)
        ok = cut_positional(&a, start, out);
    if (!ok)
        out->len = start;
    return ok;
}
