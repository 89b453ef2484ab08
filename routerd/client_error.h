/* Errors on their way from a shard or the network to a client. A driver takes some codes for news about the server it
 * talks to and would drop this router because of an election on a shard: such codes never leave. A failed write gets
 * the label that makes drivers repeat it only where it was certainly not carried out. */
#ifndef SHERD_ROUTERD_CLIENT_ERROR_H
#define SHERD_ROUTERD_CLIENT_ERROR_H

#include "command/context.h"
#include "routerd/remote.h"

/* The code that a client may see for `code`: 6, 89 or 112 for trouble inside the cluster, any other unchanged.
 * `unknown`: the operation may have been carried out. */
int32_t client_error_code(int32_t code, bool unknown);
/* Fills `err` from a request that isn't ok, and sets the context's error labels. Returns false. */
bool client_error_from(struct command_ctx *ctx, const struct remote_request *request, struct err *err);
/* The same for an error without a request: `err` is changed in place. */
void client_error_make(struct command_ctx *ctx, bool unknown, struct err *err);
/* 13388, 249, 150: the router's table is old; never shown to a client. */
bool client_error_is_stale(int32_t code);

#endif
