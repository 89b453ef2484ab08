#include "cluster/shardkey.h"

#include "base/check.h"
#include "base/mem.h"
#include "bson/hash.h"
#include "bson/keyenc.h"

#include <stdatomic.h>
#include <string.h>

struct shardkey {
    atomic_int refs;
    size_t count;
    size_t hashed; /* index of the hashed field, or SIZE_MAX */
    struct bdoc pattern;
    const char *paths[SHARDKEY_MAX_FIELDS]; /* into the pattern */
    uint8_t bytes[];                        /* the pattern's own copy */
};

static bool check_path(const char *path, uint32_t len, struct err *err)
{
    if (len == 0 || strlen(path) != len) {
        return err_set(err, ERR_BadValue, "Shard key field name is empty or holds a NUL");
    }
    const char *part = path;
    for (;;) {
        const char *dot = strchrnul(part, '.');
        if (dot == part) {
            return err_set(err, ERR_BadValue, "Field %s contains illegal empty part", path);
        }
        if (*part == '$') {
            return err_set(err, ERR_BadValue, "Field %s contains parts that start with '$'", path);
        }
        if (*dot == '\0') {
            return true;
        }
        part = dot + 1;
    }
}

/* True when one path leads to or through the other: both could not be in one index. */
static bool paths_conflict(const char *a, const char *b)
{
    size_t common = 0;
    while (a[common] != '\0' && a[common] == b[common]) {
        common++;
    }
    return (a[common] == '\0' || a[common] == '.') && (b[common] == '\0' || b[common] == '.') &&
           (a[common] == '\0' || b[common] == '\0');
}

static bool add_field(struct shardkey *key, const struct belem *elem, struct err *err)
{
    if (!check_path(elem->key, elem->key_len, err)) {
        return false;
    }
    bool hashed = bval_is_str(&elem->val, "hashed");
    int64_t number = 0;
    if (!hashed && !(bval_is_number(&elem->val) && bval_to_i64(&elem->val, &number) && number == 1)) {
        return err_set(err, ERR_BadValue, "Field %s can only be 1 or 'hashed'", elem->key);
    }
    if (hashed && key->hashed != SIZE_MAX) {
        return err_set(err, ERR_BadValue, "Shard key can contain at most one 'hashed' field, but found 2 or more.");
    }
    for (size_t i = 0; i < key->count; i++) {
        if (paths_conflict(key->paths[i], elem->key)) {
            return err_set(err, ERR_BadValue, "Shard key fields %s and %s overlap", key->paths[i], elem->key);
        }
    }
    if (hashed) {
        key->hashed = key->count;
    }
    key->paths[key->count++] = elem->key;
    return true;
}

bool shardkey_parse(struct bdoc pattern, struct shardkey **out, struct err *err)
{
    uint32_t count = bdoc_count(pattern);
    if (count == 0) {
        return err_set(err, ERR_BadValue, "Shard key is empty");
    }
    if (count > SHARDKEY_MAX_FIELDS || pattern.len > SHARDKEY_MAX_PATTERN_BYTES) {
        return err_set(err, ERR_BadValue, "Shard key has more than %d fields or is longer than %d bytes",
                       SHARDKEY_MAX_FIELDS, SHARDKEY_MAX_PATTERN_BYTES);
    }
    struct shardkey *key = mem_alloc(sizeof *key + pattern.len);
    key->refs = 1;
    key->hashed = SIZE_MAX;
    memcpy(key->bytes, pattern.data, pattern.len);
    key->pattern = (struct bdoc){.data = key->bytes, .len = pattern.len};
    struct biter iter;
    struct belem elem;
    for (biter_init(&iter, key->pattern); biter_next(&iter, &elem);) {
        if (!add_field(key, &elem, err)) {
            mem_free(key);
            return false;
        }
    }
    *out = key;
    return true;
}

struct shardkey *shardkey_ref(struct shardkey *key)
{
    atomic_fetch_add_explicit(&key->refs, 1, memory_order_relaxed);
    return key;
}

void shardkey_unref(struct shardkey *key)
{
    if (key != NULL && atomic_fetch_sub_explicit(&key->refs, 1, memory_order_acq_rel) == 1) {
        mem_free(key);
    }
}

struct bdoc shardkey_pattern(const struct shardkey *key)
{
    return key->pattern;
}

size_t shardkey_field_count(const struct shardkey *key)
{
    return key->count;
}

const char *shardkey_field_path(const struct shardkey *key, size_t index)
{
    CHECK(index < key->count);
    return key->paths[index];
}

bool shardkey_field_is_hashed(const struct shardkey *key, size_t index)
{
    return index == key->hashed;
}

size_t shardkey_hashed_field(const struct shardkey *key)
{
    return key->hashed;
}

bool shardkey_equal(const struct shardkey *a, const struct shardkey *b)
{
    if (a->count != b->count || a->hashed != b->hashed) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (strcmp(a->paths[i], b->paths[i]) != 0) {
            return false;
        }
    }
    return true;
}

bool shardkey_is_prefix_of(const struct shardkey *key, struct bdoc index_key)
{
    struct biter iter;
    struct belem elem;
    size_t found = 0;
    biter_init(&iter, index_key);
    while (found < key->count && biter_next(&iter, &elem)) {
        bool in_key = false;
        for (size_t i = 0; i < key->count && !in_key; i++) {
            in_key = strcmp(key->paths[i], elem.key) == 0;
        }
        if (!in_key) {
            return false;
        }
        found++;
    }
    return found == key->count;
}

/* The value at a dotted path; BT_EOO when missing. */
static bool value_at(struct bdoc doc, const char *path, struct bval *out, struct err *err)
{
    const char *part = path;
    *out = BVAL_MISSING;
    for (;;) {
        const char *dot = strchrnul(part, '.');
        bool found = bdoc_find_n(doc, part, (size_t)(dot - part), out);
        if (found && out->type == BT_ARRAY) {
            return err_set(err, ERR_ShardKeyNotFound,
                           "Shard key cannot contain array values or array descendants: '%.*s' of '%s' is an array",
                           (int)(dot - path), path, path);
        }
        if (*dot == '\0') {
            return true;
        }
        if (!found || out->type != BT_DOCUMENT) {
            *out = BVAL_MISSING;
            return true;
        }
        doc = bval_doc(out);
        part = dot + 1;
    }
}

bool shardkey_extract(const struct shardkey *key, struct bdoc doc, bson_t *out, struct err *err)
{
    for (size_t i = 0; i < key->count; i++) {
        struct bval val;
        if (!value_at(doc, key->paths[i], &val, err)) {
            return false;
        }
        if (i == key->hashed) {
            bson_append_int64(out, key->paths[i], -1, bval_hash(&val));
        } else {
            bval_append(out, key->paths[i], -1, val.type == BT_EOO ? &BVAL_NULL : &val);
        }
    }
    return true;
}

bool shardkey_encode_component(const struct shardkey *key, size_t index, const struct bval *val, struct buf *out,
                               struct err *err)
{
    if (val->type == BT_ARRAY) {
        return err_set(err, ERR_ShardKeyNotFound,
                       "Shard key cannot contain array values or array descendants: '%s' is an array",
                       key->paths[index]);
    }
    if (index == key->hashed) {
        keyenc_append_i64(out, bval_hash(val), false);
    } else {
        keyenc_append(out, val->type == BT_EOO ? &BVAL_NULL : val, false);
    }
    return true;
}

bool shardkey_encode_doc(const struct shardkey *key, struct bdoc doc, struct buf *out, struct err *err)
{
    size_t start = out->len;
    for (size_t i = 0; i < key->count; i++) {
        struct bval val;
        if (!value_at(doc, key->paths[i], &val, err) || !shardkey_encode_component(key, i, &val, out, err)) {
            out->len = start;
            return false;
        }
    }
    return true;
}

/* The bound has exactly the pattern's fields in order. */
static bool check_bound(const struct shardkey *key, struct bdoc bound, struct err *err)
{
    struct biter iter;
    struct belem elem;
    size_t index = 0;
    for (biter_init(&iter, bound); biter_next(&iter, &elem); index++) {
        if (index == key->count || strcmp(elem.key, key->paths[index]) != 0) {
            return err_set(err, ERR_BadValue, "bound field '%s' doesn't fit the shard key pattern", elem.key);
        }
        if (elem.val.type == BT_ARRAY || elem.val.type == BT_UNDEFINED || elem.val.type == BT_EOO) {
            return err_set(err, ERR_BadValue, "bound field '%s' can't be of type %s", elem.key,
                           bval_type_name(elem.val.type));
        }
        bool extreme = elem.val.type == BT_MIN_KEY || elem.val.type == BT_MAX_KEY;
        if (index == key->hashed && elem.val.type != BT_INT64 && !extreme) {
            return err_set(err, ERR_BadValue, "bound field '%s' is hashed: it must be a 64-bit integer", elem.key);
        }
    }
    if (index != key->count) {
        return err_set(err, ERR_BadValue, "bound lacks the shard key field '%s'", key->paths[index]);
    }
    return true;
}

static bool all_of_type(const struct shardkey *key, struct bdoc bound, uint8_t type)
{
    struct biter iter;
    struct belem elem;
    size_t count = 0;
    for (biter_init(&iter, bound); biter_next(&iter, &elem); count++) {
        if (elem.val.type != type) {
            return false;
        }
    }
    return count == key->count;
}

bool shardkey_encode_bound(const struct shardkey *key, struct bdoc bound, struct buf *out, struct err *err)
{
    if (!check_bound(key, bound, err)) {
        return false;
    }
    if (all_of_type(key, bound, BT_MAX_KEY)) {
        buf_append_u8(out, KEY_AFTER_PREFIX);
        return true;
    }
    keyenc_append_doc_key(out, bound, 0);
    return true;
}

static void append_everywhere(const struct shardkey *key, const struct bval *val, bson_t *out)
{
    for (size_t i = 0; i < key->count; i++) {
        bval_append(out, key->paths[i], -1, val);
    }
}

void shardkey_global_min(const struct shardkey *key, bson_t *out)
{
    append_everywhere(key, &BVAL_MIN_KEY, out);
}

void shardkey_global_max(const struct shardkey *key, bson_t *out)
{
    append_everywhere(key, &BVAL_MAX_KEY, out);
}

bool shardkey_bound_is_global_min(const struct shardkey *key, struct bdoc bound)
{
    return all_of_type(key, bound, BT_MIN_KEY);
}

bool shardkey_bound_is_global_max(const struct shardkey *key, struct bdoc bound)
{
    return all_of_type(key, bound, BT_MAX_KEY);
}

bool shardkey_extend_bound(const struct shardkey *key, struct bdoc prefix, bson_t *out, struct err *err)
{
    struct biter iter;
    struct belem elem;
    size_t index = 0;
    for (biter_init(&iter, prefix); biter_next(&iter, &elem); index++) {
        if (index == key->count || strcmp(elem.key, key->paths[index]) != 0) {
            return err_set(err, ERR_BadValue, "bound field '%s' is not a prefix of the shard key", elem.key);
        }
        bval_append(out, elem.key, (int)elem.key_len, &elem.val);
    }
    for (; index < key->count; index++) {
        bval_append(out, key->paths[index], -1, &BVAL_MIN_KEY);
    }
    return true;
}
