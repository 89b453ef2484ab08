/* The first chunks of a collection. Pure: the same input gives the same plan. Run by the config service. */
#ifndef SHERD_CLUSTER_PLAN_H
#define SHERD_CLUSTER_PLAN_H

#include "base/arena.h"
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
    struct bdoc min; /* both in the plan's arena */
    struct bdoc max;
    size_t shard; /* index into the input's shards */
};

struct chunk_plan {
    struct chunk_plan_item *items; /* sorted, from MinKey to MaxKey */
    size_t count;
    struct arena arena;
};

/* A hashed first field on an empty collection: the 64-bit space in equal parts, each shard
 * a run of neighbours, runs differing by at most one chunk. Everything else: one chunk on the first shard.
 * ERR_InvalidOptions for a numInitialChunks out of bounds or where it means nothing. The caller ends with
 * chunk_plan_deinit. */
bool chunk_plan_make(const struct chunk_plan_input *input, struct chunk_plan *out, struct err *err) ERR_WARN_UNUSED;
void chunk_plan_deinit(struct chunk_plan *plan);

#endif
