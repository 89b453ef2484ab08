/* Shard key patterns: {a: 1}, {a: 1, "b.c": 1}, {a: "hashed"}, {a: "hashed", b: 1}. Checks them, takes a document's
 * shard key value and encodes values and chunk bounds to bytes that compare like the values do. Used by routers to
 * target, by shards to check ownership, by the config service to check chunks. A shardkey is immutable and
 * reference-counted: any thread. */
#ifndef SHERD_CLUSTER_SHARDKEY_H
#define SHERD_CLUSTER_SHARDKEY_H

#include "bson/value.h"
#include "cluster/keyrange.h"

enum {
    SHARDKEY_MAX_FIELDS = 32,
    SHARDKEY_MAX_PATTERN_BYTES = 4096,
};

struct shardkey;

/* ERR_BadValue for an empty pattern, a bad path, a value other than 1 or "hashed", two hashed fields, a repeated field.
 * The caller ends with shardkey_unref. */
bool shardkey_parse(struct bdoc pattern, struct shardkey **out, struct err *err) ERR_WARN_UNUSED;
struct shardkey *shardkey_ref(struct shardkey *key);
void shardkey_unref(struct shardkey *key); /* accepts NULL */

/* All borrowed from the key. */
struct bdoc shardkey_pattern(const struct shardkey *key);
size_t shardkey_field_count(const struct shardkey *key);
const char *shardkey_field_path(const struct shardkey *key, size_t index);
bool shardkey_field_is_hashed(const struct shardkey *key, size_t index);
/* SIZE_MAX when no field is hashed. */
size_t shardkey_hashed_field(const struct shardkey *key);
bool shardkey_equal(const struct shardkey *a, const struct shardkey *b);
/* True when `fields` (an index key) begins with all of the shard key's fields, in any order of the rest: what a unique
 * index on a sharded collection must do. A hashed field counts as its plain field. */
bool shardkey_is_prefix_of(const struct shardkey *key, struct bdoc index_key);

/* The shard key value of a document, appended to `out` (initialised by the caller) under the pattern's names: a missing
 * field is null, a hashed one its 64-bit hash. ERR_ShardKeyNotFound, naming the path, when an array stands on or at the
 * end of a path. */
bool shardkey_extract(const struct shardkey *key, struct bdoc doc, bson_t *out, struct err *err) ERR_WARN_UNUSED;
/* The same straight to encoded bytes, appended to `out`; on failure `out` is as before. */
bool shardkey_encode_doc(const struct shardkey *key, struct bdoc doc, struct buf *out, struct err *err) ERR_WARN_UNUSED;
/* Appends the encoded component of one field's plain value (a hashed field is hashed here). A value of type BT_EOO
 * counts as null. For targeting: components in order of the pattern make a prefix, KEY_AFTER_PREFIX closes it.
 * ERR_ShardKeyNotFound for an array. */
bool shardkey_encode_component(const struct shardkey *key, size_t index, const struct bval *val, struct buf *out,
                               struct err *err) ERR_WARN_UNUSED;

/* Encodes a bound of a chunk: the pattern's fields in order, each value as stored (a hashed field holds its hash,
 * MinKey or MaxKey). ERR_BadValue for other fields, a missing one or an array. MaxKey in every field is the end of all
 * keys. */
bool shardkey_encode_bound(const struct shardkey *key, struct bdoc bound, struct buf *out,
                           struct err *err) ERR_WARN_UNUSED;
/* {a: MinKey, ...} and {a: MaxKey, ...}, appended to `out`. */
void shardkey_global_min(const struct shardkey *key, bson_t *out);
void shardkey_global_max(const struct shardkey *key, bson_t *out);
bool shardkey_bound_is_global_min(const struct shardkey *key, struct bdoc bound);
bool shardkey_bound_is_global_max(const struct shardkey *key, struct bdoc bound);
/* Fills a bound that names only the first fields, with MinKey for the rest, as zones and moveRange give them.
 * ERR_BadValue when the given fields are not a prefix of the pattern. */
bool shardkey_extend_bound(const struct shardkey *key, struct bdoc prefix, bson_t *out,
                           struct err *err) ERR_WARN_UNUSED;

#endif
