/* shardCollection, driven by the router: the steps are numbered in shard_collection.c. Each is repeatable; a router
 * that dies in between leaves an operation that the primary shard has aborted, or that was committed. On a worker;
 * blocks. */
#ifndef SHERD_ROUTERD_SHARD_COLLECTION_H
#define SHERD_ROUTERD_SHARD_COLLECTION_H

#include "routerd/ddl.h"

struct shard_collection_request {
    struct ns ns;
    struct bdoc key;
    bool unique;
    int64_t initial_chunks; /* 0: the default */
    struct bdoc collation;  /* as given; data NULL: none */
};

bool shard_collection_run(struct command_ctx *ctx, const struct shard_collection_request *request,
                          struct err *err) ERR_WARN_UNUSED;

/* A unique index stays unique over several shards only when equal keys meet on one of them. ERR_InvalidOptions names
 * the first of `indexes` (an array of specifications; data NULL: none) of which that isn't so. Pure. */
bool shard_collection_check_unique(const struct shardkey *key, struct bdoc indexes, struct err *err) ERR_WARN_UNUSED;
/* Appends a filter to `out` for documents that have no place under the key: those with an array on or at the end of one
 * of its paths. Pure. */
void shard_collection_misfits(const struct shardkey *key, bson_t *out);

#endif
