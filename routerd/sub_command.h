/* A command that the router runs itself on behalf of a client's command: the reads of $lookup, the writes of $out and
 * $merge, the aggregate behind a view. It has memory, body and reply of its own; deadline and session are those of the
 * command that it belongs to. On that command's worker; blocks as the command does. */
#ifndef SHERD_ROUTERD_SUB_COMMAND_H
#define SHERD_ROUTERD_SUB_COMMAND_H

#include "command/context.h"
#include "command/table.h"

/* A context for the command `body`, whose first field is its name; "$db" is added. The body is copied. `parent` must
 * outlive it. False: the command is malformed. The caller ends with sub_command_free. */
bool sub_command_new(struct command_ctx *parent, const char *db, struct bdoc body, struct command_ctx **out,
                     struct err *err) ERR_WARN_UNUSED;
/* Accepts NULL. */
void sub_command_free(struct command_ctx *ctx);

/* Runs it as the command table has it. */
bool sub_command_run(struct command_ctx *ctx, struct err *err) ERR_WARN_UNUSED;
/* The fields of the reply of a command that has run; borrowed from the context. */
struct bdoc sub_command_reply(const struct command_ctx *ctx);

/* The whole thing: makes, runs and frees a command whose reply doesn't matter. */
bool sub_command_do(struct command_ctx *parent, const char *db, struct bdoc body, struct err *err) ERR_WARN_UNUSED;

#endif
