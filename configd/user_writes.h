/* Writes of users on the config database: update and delete of settings, noBalance of a sharded collection. Everything
 * else that changes data is refused with ERR_IllegalOperation: metadata changes only through the commands that keep it
 * consistent. Workers; they wait for the log. */
#ifndef SHERD_CONFIGD_USER_WRITES_H
#define SHERD_CONFIGD_USER_WRITES_H

#include "command/table.h"

enum command_status user_update_run(struct command_ctx *ctx, struct err *err);
enum command_status user_delete_run(struct command_ctx *ctx, struct err *err);
/* insert, findAndModify, create, drop, ... */
enum command_status user_refuse_run(struct command_ctx *ctx, struct err *err);

#endif
