#include "storage/index_keys.h"

#include "base/mem.h"
#include "bson/hash.h"
#include "bson/keyenc.h"
#include "bson/keygen.h"
#include "storage/snapshot.h"

enum { CANNOT_BUILD_INDEX_KEYS = 201 };

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
    key->offset = (uint32_t)out->bytes.len;
    return key;
}

/* ---- the common case: fields at the top level, no array ---- */

/* False when the document needs the general way (an array is on a path). */
static bool simple_key(const struct index_def *index, struct bdoc doc, struct index_keys *out)
{
    struct index_key *key = add_key(out);
    uint32_t missing = 0;
    for (uint32_t i = 0; i < index->field_count; i++) {
        struct bval val;
        const struct index_field *field = &index->fields[i];
        if (!bdoc_find_n(doc, field->path, field->path_len, &val))
            missing++;
        else if (val.type == BT_ARRAY)
            return false;
        keyenc_append(&out->bytes, &val, field->descending);
    }
    key->len = (uint32_t)(out->bytes.len - key->offset);
    if (index->sparse && missing == index->field_count)
        out->count = 0;
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
    struct index_key *key = add_key(out);
    uint32_t missing = 0;
    for (uint32_t i = 0; i < index->def.field_count; i++) {
        const struct index_field *field = &index->def.fields[i];
        struct bval val;
        if (array_on_path(doc, &index->gen.paths[i]))
            return err_set(err, 16766, "hashed indexes do not currently support array values. Index: %s, path: %.100s",
                           index->def.name, field->path);
        if (!path_get(&index->gen.paths[i], doc, &val))
            missing++;
        if (field->hashed)
            keyenc_append_i64(&out->bytes, bval_hash(&val), false);
        else
            keyenc_append(&out->bytes, &val, field->descending);
    }
    key->len = (uint32_t)(out->bytes.len - key->offset);
    if (index->def.sparse && missing == index->def.field_count)
        out->count = 0;
    return true;
}

/* ---- the general case ---- */

struct collect {
    const struct index_def *index;
    struct index_keys *out;
    bool too_many;
};

static bool collect_tuple(void *arg, const struct keygen_tuple *tuple)
{
    struct collect *collect = arg;
    struct index_keys *out = collect->out;
    uint32_t missing = 0;
    for (uint32_t i = 0; i < tuple->count; i++)
        missing += tuple->values[i].type == BT_EOO;
    out->multikey |= tuple->multikey;
    if (collect->index->sparse && missing == tuple->count)
        return true;
    if (out->count >= INDEX_KEYS_MAX || out->bytes.len > INDEX_KEYS_MAX_BYTES) {
        collect->too_many = true;
        return false;
    }
    struct index_key *key = add_key(out);
    for (uint32_t i = 0; i < tuple->count; i++)
        keyenc_append(&out->bytes, &tuple->values[i], collect->index->fields[i].descending);
    key->len = (uint32_t)(out->bytes.len - key->offset);
    return true;
}

static int compare_keys(const void *a, const void *b, void *bytes)
{
    const struct index_key *left = a;
    const struct index_key *right = b;
    const uint8_t *base = bytes;
    return keyenc_compare(base + left->offset, left->len, base + right->offset, right->len);
}

static void sort_unique(struct index_keys *out)
{
    if (out->count < 2)
        return;
    qsort_r(out->keys, out->count, sizeof *out->keys, compare_keys, out->bytes.data);
    size_t kept = 1;
    for (size_t i = 1; i < out->count; i++)
        if (compare_keys(&out->keys[kept - 1], &out->keys[i], out->bytes.data) != 0)
            out->keys[kept++] = out->keys[i];
    out->count = kept;
}

static bool general_keys(const struct index_object *index, struct bdoc doc, struct index_keys *out, struct err *err)
{
    struct collect collect = {.index = &index->def, .out = out};
    if (!keygen_each(&index->gen, doc, collect_tuple, &collect, err))
        return false;
    if (collect.too_many)
        return err_set(err, CANNOT_BUILD_INDEX_KEYS, "Generated too many keys for a single document in index %s",
                       index->def.name);
    sort_unique(out);
    return true;
}

bool index_keys_generate(const struct index_def *index, struct bdoc doc, struct index_keys *out, struct err *err)
{
    const struct index_object *object = index_object_of(index);
    out->count = 0;
    out->multikey = false;
    buf_clear(&out->bytes);
    if (index->filter != NULL && !object->store->hooks.matches(index->filter, doc))
        return true;
    if (index->hashed)
        return hashed_key(object, doc, out, err);
    if (object->simple) {
        if (simple_key(index, doc, out))
            return true;
        out->count = 0;
        buf_clear(&out->bytes);
    }
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
    for (uint32_t i = 0; i < tuple->count; i++)
        keyenc_append(&show->encoded, &tuple->values[i], show->index->fields[i].descending);
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
    bool ok = keygen_each(&object->gen, doc, show_tuple, &show, &ignored);
    buf_deinit(&show.encoded);
    for (uint32_t i = 0; (!ok || !show.found) && i < index->field_count; i++) {
        struct bval val;
        path_get(&object->gen.paths[i], doc, &val);
        append_value(out, &index->fields[i], &val);
    }
}
