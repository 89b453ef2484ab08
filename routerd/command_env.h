/* What a command's expressions see on the router, and by which collation its strings compare. On a worker. */
#ifndef SHERD_ROUTERD_COMMAND_ENV_H
#define SHERD_ROUTERD_COMMAND_ENV_H

#include "base/arena.h"
#include "expr/expr.h"
#include "routerd/routing_cache.h"

/* Reads `let` and `collation` of a command's or a statement's body. Without a collation the default of the routing's
 * sharded collection counts (NULL: none is known). The collation lives as long as the arena; `let` is borrowed from the
 * body. */
bool command_env_init(struct arena *arena, struct bdoc body, const struct routing *routing, struct expr_env *out,
                      struct err *err) ERR_WARN_UNUSED;
/* The collation that counts: the body's, else the routing's default, else data NULL. */
bool command_env_collation(struct bdoc body, const struct routing *routing, struct bdoc *out,
                           struct err *err) ERR_WARN_UNUSED;
/* Whether two specifications mean the same; data NULL is simple. */
bool command_env_same_collation(struct bdoc a, struct bdoc b, bool *same, struct err *err) ERR_WARN_UNUSED;

#endif
