/* explain of a command given as a document: the explain command itself, and aggregate with {explain: true}. On a
 * worker; blocks. */
#ifndef SHERD_ROUTERD_EXPLAIN_COMMAND_H
#define SHERD_ROUTERD_EXPLAIN_COMMAND_H

#include "command/table.h"

/* `verbosity` is "queryPlanner", "executionStats" or "allPlansExecution"; the answer goes into ctx->reply. */
enum command_status explain_command(struct command_ctx *ctx, struct bdoc command, const char *verbosity,
                                    struct err *err);

#endif
