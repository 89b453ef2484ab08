/* `let` of a command: its values may be expressions, which are computed once, here, so that every shard sees the same
 * constants. On a worker. */
#ifndef SHERD_ROUTERD_LET_VALUES_H
#define SHERD_ROUTERD_LET_VALUES_H

#include "command/context.h"

/* Replaces ctx->body by a copy whose `let` holds constants; nothing to do without one. Errors: the expressions'. */
bool let_values_resolve(struct command_ctx *ctx, struct err *err) ERR_WARN_UNUSED;

#endif
