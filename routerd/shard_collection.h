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
};

bool shard_collection_run(struct command_ctx *ctx, const struct shard_collection_request *request,
                          struct err *err) ERR_WARN_UNUSED;

#endif
