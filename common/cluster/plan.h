/* The first chunks of a collection. Pure: the same input gives the same plan. Run by the config service. */
#ifndef SHERD_CLUSTER_PLAN_H
#define SHERD_CLUSTER_PLAN_H

#include "cluster/shardkey.h"

enum {
    PLAN_CHUNKS_PER_SHARD = 2, /* hashed, unless told otherwise */
    PLAN_MAX_CHUNKS_PER_SHARD = 8192,
    PLAN_MAX_CHUNKS = 16384,
};

struct chunk_plan_input {
    const struct shardkey *key;
    const char *const *shards; /* names, the shard that holds the collection first */
    size_t shard_count;        /* at least 1 */
    bool empty;                /* the collection holds no document: chunks may lie anywhere */
    int64_t initial_chunks;    /* numInitialChunks; 0: the default */
};

struct chunk_plan_item {
    bson_t min; /* owned by the plan */
    bson_t max;
    size_t shard; /* index into the input's shards */
};

struct chunk_plan {
    struct chunk_plan_item *items; /* sorted, from MinKey to MaxKey */
    size_t count;
};

/* A hashed first field on an empty collection: the 64-bit space in equal parts, equal runs of them to each shard in
 * turn. Everything else: one chunk on the first shard. ERR_InvalidOptions for a numInitialChunks out of bounds or where
 * it means nothing. The caller ends with chunk_plan_deinit. */
bool chunk_plan_make(const struct chunk_plan_input *input, struct chunk_plan *out, struct err *err) ERR_WARN_UNUSED;
void chunk_plan_deinit(struct chunk_plan *plan);

#endif
