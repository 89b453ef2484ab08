/* Views: a shard refuses a command on one with CommandOnShardedViewNotSupportedOnMongod and says what the view stands
 * for; the command then runs as an aggregate on the collection below, which may be sharded. On a worker. */
#ifndef SHERD_ROUTERD_VIEW_H
#define SHERD_ROUTERD_VIEW_H

#include "command/namespace.h"
#include "command/table.h"

/* A view, resolved through all views below it. Documents lie in the arena of the context that resolved it. */
struct view {
    struct ns view;        /* its own name */
    struct ns on;          /* the collection below */
    struct bdoc pipeline;  /* array */
    struct bdoc collation; /* data NULL: simple */
};

/* True when `refused` is a shard's word that the name is a view's. */
bool view_is_refusal(const struct err *refused);
/* What the view `ns` stands for, out of the refusal, or asked for where that has no room for it. Blocks.
 * ViewDepthLimitExceeded (165), NamespaceNotFound when it has gone. */
bool view_resolve(struct command_ctx *ctx, const struct ns *ns, const struct err *refused, struct view *out,
                  struct err *err) ERR_WARN_UNUSED;

/* The body of an aggregate on view->on that does what the find, count, distinct or aggregate command `body` asks of the
 * view; $db is left out, other fields ($sherd..., lsid, maxTimeMS ...) go along. `out` is initialised by the caller.
 * Errors: 167 OptionNotSupportedOnView, another collation than the view's; the commands' own. Pure. */
bool view_aggregate_body(struct arena *arena, const struct view *view, struct bdoc body, bson_t *out,
                         struct err *err) ERR_WARN_UNUSED;

/* The commands on a view. */
enum command_status view_find(struct command_ctx *ctx, const struct view *view, struct err *err);
enum command_status view_count(struct command_ctx *ctx, const struct view *view, struct err *err);
enum command_status view_distinct(struct command_ctx *ctx, const struct view *view, struct err *err);

#endif
