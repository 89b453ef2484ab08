#include "storage/index_keys.h"

#include "base/mem.h"
#include "bson/hash.h"
#include "bson/keyenc.h"
#include "bson/keygen.h"
#include "bson/keytypes.h"
#include "storage/snapshot.h"

enum {
    CANNOT_BUILD_INDEX_KEYS = 201,
    WILDCARD_ARRAY = 7246301,
};

void index_keys_deinit(struct index_keys *keys)
{
    buf_deinit(&keys->bytes);
    mem_free(keys->keys);
    *keys = (struct index_keys){0};
}

static struct index_key *add_key(struct index_keys *out)
{
    if (out->count == out->cap) {
        out->cap = out->cap == 0 ? 4 : out->cap * 2;
        out->keys = mem_realloc(out->keys, out->cap * sizeof *out->keys);
    }
    struct index_key *key = &out->keys[out->count++];
    *key = (struct index_key){.offset = (uint32_t)out->bytes.len};
    return key;
}

/* One component for each value: those of the fields, a wildcard field having two. */
static void encode_values(const struct index_def *index, const struct bval *values, struct buf *out)
{
    for (uint32_t i = 0; i < index->field_count; i++) {
        const struct index_field *field = &index->fields[i];
        if (field->wildcard)
            keyenc_append(out, values++, field->descending);
        if (field->hashed)
            keyenc_append_i64(out, bval_hash_ordered(values++, index->order), false);
        else
            keyenc_append_ordered(out, values++, field->descending, index->order);
    }
}

static uint32_t append_types(const struct index_def *index, const struct bval *values, struct buf *out)
{
    struct keytypes types;
    keytypes_begin(&types, out);
    if (index->hashed || index->wildcard)
        keytypes_lose(&types);
    for (uint32_t i = 0; i < index->field_count && !types.lost; i++)
        keytypes_add(&types, &values[i], index->order);
    return keytypes_end(&types);
}

static void put_key(const struct index_def *index, const struct bval *values, struct index_keys *out)
{
    struct index_key *key = add_key(out);
    encode_values(index, values, &out->bytes);
    key->len = (uint32_t)(out->bytes.len - key->offset);
    key->types_len = append_types(index, values, &out->bytes);
}

/* False, and an error, when a document has too many. */
static bool check_room(const struct index_def *index, const struct index_keys *out, struct err *err)
{
    if (out->count < INDEX_KEYS_MAX && out->bytes.len <= INDEX_KEYS_MAX_BYTES)
        return true;
    return err_set(err, CANNOT_BUILD_INDEX_KEYS, "Generated too many keys for a single document in index %.100s",
                   index->name);
}

/* ---- order ---- */

static int compare_keys(const struct index_key *left, const struct index_key *right, const uint8_t *base)
{
    return keyenc_compare(base + left->offset, left->len, base + right->offset, right->len);
}

/* Equal keys by their types: which one is kept must not depend on the sort. */
static int compare_all(const void *a, const void *b, void *bytes)
{
    const struct index_key *left = a;
    const struct index_key *right = b;
    const uint8_t *base = bytes;
    int order = compare_keys(left, right, base);
    return order != 0 ? order
                      : keyenc_compare(base + left->offset + left->len, left->types_len,
                                       base + right->offset + right->len, right->types_len);
}

static void sort_unique(struct index_keys *out)
{
    if (out->count < 2)
        return;
    qsort_r(out->keys, out->count, sizeof *out->keys, compare_all, out->bytes.data);
    size_t kept = 1;
    for (size_t i = 1; i < out->count; i++)
        if (compare_keys(&out->keys[kept - 1], &out->keys[i], out->bytes.data) != 0)
            out->keys[kept++] = out->keys[i];
    out->count = kept;
}

/* ---- the common case: fields at the top level, no array ---- */

/* False when the document needs the general way (an array is on a path). */
static bool simple_key(const struct index_def *index, struct bdoc doc, struct index_keys *out)
{
    struct bval values[CATALOG_INDEX_FIELDS_MAX];
    uint32_t missing = 0;
    for (uint32_t i = 0; i < index->field_count; i++) {
        const struct index_field *field = &index->fields[i];
        if (!bdoc_find_n(doc, field->path, field->path_len, &values[i]))
            missing++;
        else if (values[i].type == BT_ARRAY)
            return false;
    }
    if (!index->sparse || missing < index->field_count)
        put_key(index, values, out);
    return true;
}

/* ---- hashed indexes: one key, no arrays ---- */

static bool array_on_path(struct bdoc doc, const struct path *path)
{
    struct bval val = bval_from_doc(doc);
    for (uint32_t i = 0; i < path->count; i++) {
        if (val.type != BT_DOCUMENT || !bdoc_find_n(bval_doc(&val), path->parts[i].name, path->parts[i].len, &val))
            return false;
        if (val.type == BT_ARRAY)
            return true;
    }
    return false;
}

static bool hashed_key(const struct index_object *index, struct bdoc doc, struct index_keys *out, struct err *err)
{
    struct bval values[CATALOG_INDEX_FIELDS_MAX];
    uint32_t missing = 0;
    for (uint32_t i = 0; i < index->def.field_count; i++) {
        if (array_on_path(doc, &index->gen.paths[i]))
            return err_set(err, 16766, "hashed indexes do not currently support array values. Index: %s, path: %.100s",
                           index->def.name, index->def.fields[i].path);
        if (!path_get(&index->gen.paths[i], doc, &values[i]))
            missing++;
    }
    if (!index->def.sparse || missing < index->def.field_count)
        put_key(&index->def, values, out);
    return true;
}

/* ---- wildcard indexes ---- */

enum { WILDCARD_DEPTH_MAX = BDOC_MAX_WIRE_DEPTH };

struct wildcard_walk {
    const struct index_object *index;
    struct index_keys *out;
    struct bval values[CATALOG_INDEX_FIELDS_MAX + 1]; /* of a key; path and value are filled in for each */
    struct buf path;                                  /* as a string's payload: length, text, NUL */
    struct err *err;
};

enum { PATH_HEAD = 4 };

static bool put_wildcard(struct wildcard_walk *walk, const struct bval *val)
{
    if (!check_room(&walk->index->def, walk->out, walk->err))
        return false;
    struct bval *place = &walk->values[walk->index->def.wildcard_field];
    *buf_reserve(&walk->path, 1) = 0;
    store_le32(walk->path.data, (uint32_t)(walk->path.len - PATH_HEAD + 1));
    place[0] = (struct bval){.type = BT_STRING, .len = (uint32_t)walk->path.len + 1, .data = walk->path.data};
    place[1] = *val;
    put_key(&walk->index->def, walk->values, walk->out);
    return true;
}

static bool walk_fields(struct wildcard_walk *walk, struct bdoc doc, int depth);

/* What stands at the walk's path, or is an element of the array there. */
static bool walk_value(struct wildcard_walk *walk, const struct bval *val, enum wildcard_state state, bool in_array,
                       int depth);

static bool walk_array(struct wildcard_walk *walk, struct bdoc array, enum wildcard_state state, int depth)
{
    const struct bval undefined = {.type = BT_UNDEFINED};
    struct biter iter;
    struct belem elem;
    walk->out->multikey = true;
    walk->out->paths[walk->index->def.wildcard_field] |= 1;
    if (bdoc_is_empty(array))
        return state == WILDCARD_ON_WAY || put_wildcard(walk, &undefined);
    biter_init(&iter, array);
    while (biter_next(&iter, &elem)) {
        if (!walk_value(walk, &elem.val, state, true, depth))
            return false;
    }
    return true;
}

static bool walk_value(struct wildcard_walk *walk, const struct bval *val, enum wildcard_state state, bool in_array,
                       int depth)
{
    if (val->type == BT_DOCUMENT && !bdoc_is_empty(bval_doc(val)))
        return depth == 0 || walk_fields(walk, bval_doc(val), depth - 1);
    if (val->type == BT_ARRAY && !in_array)
        return depth == 0 || walk_array(walk, bval_doc(val), state, depth - 1);
    return state == WILDCARD_ON_WAY || put_wildcard(walk, val);
}

static bool walk_fields(struct wildcard_walk *walk, struct bdoc doc, int depth)
{
    size_t before = walk->path.len;
    bool ok = true;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (ok && biter_next(&iter, &elem)) {
        if (memchr(elem.key, '.', elem.key_len) != NULL)
            continue; /* no filter can name it */
        if (depth < WILDCARD_DEPTH_MAX) /* not by the path: a name may be empty */
            buf_append_u8(&walk->path, '.');
        buf_append(&walk->path, elem.key, elem.key_len);
        enum wildcard_state state = wildcard_state_of(&walk->index->wildcard, (const char *)walk->path.data + PATH_HEAD,
                                                      (uint32_t)(walk->path.len - PATH_HEAD));
        if (state != WILDCARD_OUT)
            ok = walk_value(walk, &elem.val, state, false, depth);
        walk->path.len = before;
    }
    return ok;
}

/* The other fields of a compound one; false for an array. */
static bool wildcard_others(struct wildcard_walk *walk, struct bdoc doc)
{
    const struct index_object *index = walk->index;
    struct bval *value = walk->values;
    for (uint32_t i = 0; i < index->def.field_count; i++) {
        if (index->def.fields[i].wildcard) {
            *value++ = BVAL_MIN_KEY;
            *value++ = BVAL_MIN_KEY;
            continue;
        }
        if (array_on_path(doc, &index->gen.paths[i]))
            return err_set(
                walk->err, WILDCARD_ARRAY,
                "The fields beside the wildcard of a compound wildcard index can't be arrays. Index: %.100s, "
                "path: %.100s",
                index->def.name, index->def.fields[i].path);
        path_get(&index->gen.paths[i], doc, value++);
    }
    return true;
}

static bool wildcard_keys(const struct index_object *index, struct bdoc doc, struct index_keys *out, struct err *err)
{
    struct wildcard_walk walk = {.index = index, .out = out, .err = err};
    if (!wildcard_others(&walk, doc))
        return false;
    if (index->def.field_count > 1)
        put_key(&index->def, walk.values, out);
    buf_append_le32(&walk.path, 0);
    bool ok = walk_fields(&walk, doc, WILDCARD_DEPTH_MAX);
    buf_deinit(&walk.path);
    sort_unique(out);
    return ok;
}

/* ---- the general case ---- */

struct collect {
    const struct index_def *index;
    struct index_keys *out;
    struct err *err;
    bool failed;
};

static bool collect_tuple(void *arg, const struct keygen_tuple *tuple)
{
    struct collect *collect = arg;
    struct index_keys *out = collect->out;
    uint32_t missing = 0;
    for (uint32_t i = 0; i < tuple->count; i++)
        missing += tuple->values[i].type == BT_EOO;
    out->multikey |= tuple->multikey;
    if (tuple->multikey)
        memcpy(out->paths, tuple->paths, tuple->count * sizeof *out->paths);
    if (collect->index->sparse && missing == tuple->count)
        return true;
    collect->failed = !check_room(collect->index, out, collect->err);
    if (!collect->failed)
        put_key(collect->index, tuple->values, out);
    return !collect->failed;
}

static bool general_keys(const struct index_object *index, struct bdoc doc, struct index_keys *out, struct err *err)
{
    struct collect collect = {.index = &index->def, .out = out, .err = err};
    if (!keygen_each(&index->gen, doc, collect_tuple, &collect, err) || collect.failed)
        return false;
    sort_unique(out);
    return true;
}

bool index_keys_generate(const struct index_def *index, struct bdoc doc, struct index_keys *out, struct err *err)
{
    const struct index_object *object = index_object_of(index);
    out->count = 0;
    out->multikey = false;
    memset(out->paths, 0, index->field_count * sizeof *out->paths);
    buf_clear(&out->bytes);
    if (index->filter != NULL && !object->store->hooks.matches(index->filter, doc))
        return true;
    if (index->hashed)
        return hashed_key(object, doc, out, err);
    if (index->wildcard)
        return wildcard_keys(object, doc, out, err);
    if (object->simple && simple_key(index, doc, out))
        return true;
    return general_keys(object, doc, out, err);
}

/* ---- the values of one key ---- */

struct show {
    const struct index_def *index;
    const uint8_t *key;
    uint32_t key_len;
    struct buf encoded;
    bson_t *out;
    bool found;
};

static void append_value(bson_t *out, const struct index_field *field, const struct bval *val)
{
    bval_append(out, field->path, (int)field->path_len, val->type == BT_EOO ? &BVAL_NULL : val);
}

static bool show_tuple(void *arg, const struct keygen_tuple *tuple)
{
    struct show *show = arg;
    buf_clear(&show->encoded);
    encode_values(show->index, tuple->values, &show->encoded);
    if (show->encoded.len != show->key_len || memcmp(show->encoded.data, show->key, show->key_len) != 0)
        return true;
    for (uint32_t i = 0; i < tuple->count; i++)
        append_value(show->out, &show->index->fields[i], &tuple->values[i]);
    show->found = true;
    return false;
}

void index_key_value(const struct index_def *index, struct bdoc doc, const uint8_t *key, uint32_t key_len, bson_t *out)
{
    const struct index_object *object = index_object_of(index);
    struct show show = {.index = index, .key = key, .key_len = key_len, .out = out};
    struct err ignored;
    bool ok = !index->wildcard && keygen_each(&object->gen, doc, show_tuple, &show, &ignored);
    buf_deinit(&show.encoded);
    for (uint32_t i = 0; (!ok || !show.found) && i < index->field_count; i++) {
        struct bval val;
        path_get(&object->gen.paths[i], doc, &val);
        append_value(out, &index->fields[i], &val);
    }
}

/* ---- what an entry stands for ---- */

bool index_entry_values(const struct index_def *index, const struct index_entry *entry, bool missing_as_null,
                        bson_t *out)
{
    struct keytypes_reader reader;
    if (entry->types == NULL || index->hashed || index->wildcard ||
        !keytypes_reader_init(&reader, entry->key, entry->key_len, entry->types, entry->types_len))
        return false;
    for (uint32_t i = 0; i < index->field_count; i++) {
        const struct index_field *field = &index->fields[i];
        bool missing;
        if (!keytypes_take(&reader, field->descending, field->path, out, &missing))
            return false;
        if (!missing)
            continue;
        if (missing_as_null)
            bson_append_null(out, field->path, (int)field->path_len);
        else if (field->dotted)
            return false; /* {}, {a: {}} and {a: 1} all lack "a.b" */
    }
    return true;
}

static bool has_number_part(const char *path, uint32_t len)
{
    bool digits = true;
    for (uint32_t i = 0; i <= len; i++) {
        if (i == len || path[i] == '.') {
            if (digits)
                return true;
            digits = true;
        } else if (path[i] < '0' || path[i] > '9') {
            digits = false;
        }
    }
    return false;
}

bool index_wildcard_covers(const struct index_def *index, const char *path, uint32_t path_len)
{
    if (!index->wildcard || has_number_part(path, path_len))
        return false;
    return wildcard_state_of(&index_object_of(index)->wildcard, path, path_len) == WILDCARD_INSIDE;
}
