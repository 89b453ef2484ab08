/* One chunk of a sharded collection: [min, max) of the shard key and the shard that owns it. Immutable and
 * reference-counted, so that successive routing tables share what did not change. */
#ifndef SHERD_CLUSTER_CHUNK_H
#define SHERD_CLUSTER_CHUNK_H

#include "cluster/metadata.h"

#include <stdatomic.h>

struct chunk {
    atomic_int refs;
    bson_oid_t id;                    /* _id in config.chunks */
    uint8_t uuid[CLUSTER_UUID_BYTES]; /* of the collection */
    struct bdoc min;                  /* bounds as BSON; all bytes below are the chunk's own */
    struct bdoc max;
    struct key_range range; /* the same bounds encoded */
    const char *shard;
    struct chunk_version version; /* lastmod, with the collection's epoch */
    uint64_t since;               /* onCurrentShardSince, a BSON timestamp */
    bool jumbo;
};

/* What chunk_new copies. */
struct chunk_spec {
    const bson_oid_t *id;
    const uint8_t *uuid;
    struct bdoc min;
    struct bdoc max;
    const char *shard;
    struct chunk_version version;
    uint64_t since;
    bool jumbo;
};

/* ERR_BadValue when a bound doesn't fit the pattern or min >= max. The caller ends with chunk_unref. */
bool chunk_new(const struct shardkey *key, const struct chunk_spec *spec, struct chunk **out,
               struct err *err) ERR_WARN_UNUSED;
/* From a document of config.chunks: {_id, uuid, min, max, shard, lastmod, onCurrentShardSince, history: [{validAfter,
 * shard}], jumbo?}. */
bool chunk_parse(const struct shardkey *key, const bson_oid_t *epoch, struct bdoc doc, struct chunk **out,
                 struct err *err) ERR_WARN_UNUSED;
void chunk_append(bson_t *to, const struct chunk *chunk);
struct chunk *chunk_ref(struct chunk *chunk);
void chunk_unref(struct chunk *chunk); /* accepts NULL */

/* Sorts by min. */
void chunks_sort(struct chunk **chunks, size_t count);
/* Invariant 6 on a sorted list: from MinKey to MaxKey without hole or overlap, no two equal versions.
 * ERR_RangeOverlapConflict names the place. */
bool chunks_check_cover(const struct shardkey *key, struct chunk *const *sorted, size_t count,
                        struct err *err) ERR_WARN_UNUSED;
/* Index of the chunk of a complete sorted list that holds `key`. */
size_t chunks_find(struct chunk *const *sorted, size_t count, struct key_bytes key);

#endif
