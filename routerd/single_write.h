/* Writes of one document whose filter doesn't say on which shard it is: ask all shards that may have it for their best
 * candidate, choose, and send the write to that document by its _id and shard key together with the filter. If it no
 * longer matches then, begin again. On a worker; blocks. */
#ifndef SHERD_ROUTERD_SINGLE_WRITE_H
#define SHERD_ROUTERD_SINGLE_WRITE_H

#include "routerd/write_batch.h"

enum { SINGLE_WRITE_TRIES_MAX = 200 }; /* searches for one document; the deadline may end them earlier */

/* What is looked for. */
struct single_query {
    struct bdoc filter;
    struct bdoc sort;      /* data NULL: any will do */
    struct bdoc collation; /* data NULL: the collection's */
    struct bval hint;      /* BT_EOO: none */
    struct bdoc body;      /* the command, for let and the like */
};

enum single_found {
    SINGLE_FOUND,
    SINGLE_NONE,   /* no document matches */
    SINGLE_STALE,  /* the routing table was old: start again */
    SINGLE_FAILED, /* err is ready for the client */
};

/* A document that was found; in the context's arena. */
struct single_candidate {
    struct bdoc filter; /* {$and: [the filter, {_id, shard key fields}]} */
    struct bdoc doc;    /* _id and the fields of the shard key */
};

/* Looks for a candidate. */
enum single_found single_write_find(struct route *route, const char *coll, const struct single_query *query,
                                    const struct target *target, struct single_candidate *out, struct err *err);
/* The shard that the document belongs to now. ERR_ShardKeyNotFound. */
bool single_write_shard(const struct route *route, struct bdoc doc, size_t *shard, struct err *err) ERR_WARN_UNUSED;
/* A pause before the `tries`th search: writers of one document get out of each other's way. False: time is up. */
bool single_write_pause(struct command_ctx *ctx, int tries, struct err *err) ERR_WARN_UNUSED;

/* Carries out an update or delete statement of a batch; the result is in the batch and the item. Leaves it pending when
 * the routing table was old. */
void single_write_run(struct write_batch *batch, struct route *route, struct write_item *item,
                      const struct target *target);

#endif
