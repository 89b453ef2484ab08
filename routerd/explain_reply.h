/* The router's answer to explain, put together from those of the shards in the shape of a mongos's. Pure. */
#ifndef SHERD_ROUTERD_EXPLAIN_REPLY_H
#define SHERD_ROUTERD_EXPLAIN_REPLY_H

#include "routerd/scatter.h"

/* How the operation was routed. */
struct explain_targeting {
    const char *kind;   /* "targeted", "broadcast", "unsharded" */
    const char *reason; /* a sentence */
    struct bdoc key;    /* the shard key; data NULL: not sharded */
    size_t shards;      /* asked */
    size_t of;          /* shards that own a part of the collection */
};

struct explain_reply {
    struct command_ctx *ctx;         /* the explain command: its reply is filled */
    const struct command_ctx *inner; /* the command that is explained */
    const char *stage;               /* "SINGLE_SHARD", "SHARD_MERGE" ... */
    const struct scatter *scatter;
    struct explain_targeting targeting;
    bool stats; /* the verbosity asks for executionStats */
    bool all_plans;
    /* aggregate: the two halves, arrays; data NULL: the whole pipeline runs on the shard */
    struct bdoc shards_part;
    struct bdoc merger_part;
    struct bdoc merge_sort; /* the order in which streams are merged; data NULL: any */
    const char *ns;
};

/* find, count, distinct, update, delete, findAndModify. */
void explain_reply_plan(const struct explain_reply *reply);
void explain_reply_aggregate(const struct explain_reply *reply);
/* An aggregate on a collection that isn't sharded: the shard's answer as it is. */
void explain_reply_whole(const struct explain_reply *reply);
/* targeting, command, serverInfo: the end of both, also alone. */
void explain_reply_end(const struct explain_reply *reply);

#endif
