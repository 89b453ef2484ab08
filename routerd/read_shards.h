/* Reads of a sharded collection without a cursor (count, distinct): the whole command on one shard passes through, on
 * several the answers are put together. On a worker; blocks. */
#ifndef SHERD_ROUTERD_READ_SHARDS_H
#define SHERD_ROUTERD_READ_SHARDS_H

#include "command/table.h"
#include "routerd/scatter.h"

/* How a command is put together from several shards. */
struct shards_read {
    const char *filter_field; /* "query" */
    const char *const *skip;  /* fields not sent to the shards, ended by NULL */
    /* Appends fields to the body of each shard's request. May be NULL. */
    bool (*prepare)(struct command_ctx *ctx, bson_t *body, struct err *err);
    /* Makes the reply from the answers of `scatter` (none: nothing can match). */
    bool (*join)(struct route *route, const struct scatter *scatter, struct err *err);
};

/* *again: the routing table was old. */
enum command_status read_shards_run(struct route *route, const struct shards_read *read, bool *again, struct err *err);

#endif
