/* One command on several shards side by side, all or nothing: what reads over ranges, DDL and candidates share. On a
 * worker; blocks. */
#ifndef SHERD_ROUTERD_SCATTER_H
#define SHERD_ROUTERD_SCATTER_H

#include "routerd/registry.h"
#include "routerd/route.h"
#include "routerd/target.h"

enum scatter_outcome {
    SCATTER_DONE,   /* all shards have answered ok */
    SCATTER_STALE,  /* the routing table was old: route_next, then again */
    SCATTER_FAILED, /* err is ready for the client */
};

struct scatter {
    struct remote_request *requests;
    size_t count;
};

/* What is sent. */
struct scatter_command {
    bson_t body;     /* the same for all; the version is added */
    bool repeatable; /* see remote.h */
    /* An error that says that a shard has nothing left to do: none when another shard has done it; 0: there is none. */
    int32_t gone_code;
    bool done_before; /* some shard has answered ok in an earlier round */
};

/* The body, with the ranges of each target as its version. The caller ends with scatter_deinit whatever the outcome. A
 * cursor opened on a shard while another refused is not closed: see scatter_close_cursors. */
enum scatter_outcome scatter_targets(struct route *route, const struct target *target,
                                     const struct scatter_command *command, struct scatter *out, struct err *err);
/* The body to the primary shard of the route's database, with the database's version: for a collection that isn't
 * sharded. */
enum scatter_outcome scatter_primary(struct route *route, const struct scatter_command *command, struct scatter *out,
                                     struct err *err);
/* The body as it is, to each set. SCATTER_DONE or SCATTER_FAILED. */
enum scatter_outcome scatter_sets(struct command_ctx *ctx, const struct set_list *sets,
                                  const struct scatter_command *command, struct scatter *out, struct err *err);
bool scatter_any_ok(const struct scatter *scatter);
/* Kills the cursors of those that have answered, but for replies whose frame was taken: a merge looks after these. */
void scatter_close_cursors(struct route *route, struct scatter *scatter);
void scatter_deinit(struct scatter *scatter);

#endif
