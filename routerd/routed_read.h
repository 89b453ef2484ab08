/* The way of a read on one collection: to the config service for its databases, to the primary shard for a collection
 * that isn't sharded, to the command's own code for one that is or for a view, and again when a routing table was old.
 * On a worker; blocks. */
#ifndef SHERD_ROUTERD_ROUTED_READ_H
#define SHERD_ROUTERD_ROUTED_READ_H

#include "routerd/forward.h"
#include "routerd/view.h"

/* What a command does at each end of the way. */
struct routed_read {
    /* One shard or the config service has answered the whole command: makes the client's reply of it. NULL: the reply
     * passes through. */
    enum command_status (*answered)(struct command_ctx *ctx, const char *ns, struct remote_request *request,
                                    struct err *err);
    /* The collection is sharded; *again: the routing table was old. */
    enum command_status (*sharded)(struct route *route, const struct ns *ns, bool *again, struct err *err);
    enum command_status (*no_database)(struct command_ctx *ctx, const char *ns, struct err *err);
    /* The name is a view's. NULL: the shard's error goes to the client. */
    enum command_status (*view)(struct command_ctx *ctx, const struct view *view, struct err *err);
};

enum command_status routed_read_run(struct command_ctx *ctx, const struct routed_read *read, struct err *err);

#endif
