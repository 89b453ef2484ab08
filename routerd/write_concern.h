/* writeConcern and readConcern of a client's command. Every acknowledged write is committed by a majority and synced,
 * so what a client asks for is checked and otherwise met anyway. Pure. */
#ifndef SHERD_ROUTERD_WRITE_CONCERN_H
#define SHERD_ROUTERD_WRITE_CONCERN_H

#include "command/context.h"

/* Checks both documents of the command. 9 FailedToParse, 14, 72 InvalidOptions. */
bool concerns_check(const struct command_ctx *ctx, struct err *err) ERR_WARN_UNUSED;
/* Adds writeConcernError to the reply when the command asks for more members than a set has, or for a named mode. */
void write_concern_append_error(struct command_ctx *ctx, size_t members);

#endif
