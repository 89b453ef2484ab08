/* explain of update, delete and findAndModify: what they would choose and change. Nothing is written. On a worker. */
#ifndef SHERD_DOCUMENT_EXPLAIN_WRITE_H
#define SHERD_DOCUMENT_EXPLAIN_WRITE_H

#include "document/explain.h"

/* `ctx` is the explained command; the answer goes into ctx->reply. */
bool explain_update(struct command_ctx *ctx, enum explain_verbosity verbosity, struct err *err) ERR_WARN_UNUSED;
bool explain_delete(struct command_ctx *ctx, enum explain_verbosity verbosity, struct err *err) ERR_WARN_UNUSED;
bool explain_find_and_modify(struct command_ctx *ctx, enum explain_verbosity verbosity,
                             struct err *err) ERR_WARN_UNUSED;

#endif
