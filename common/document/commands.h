/* The command table of document commands, shared by shardd and configd. Handlers run on workers; ctx->daemon must begin
 * with a struct document_host. */
#ifndef SHERD_DOCUMENT_COMMANDS_H
#define SHERD_DOCUMENT_COMMANDS_H

#include "command/table.h"

extern const struct command document_commands[];
extern const unsigned document_command_count;

/* Reads. */
enum command_status find_run(struct command_ctx *ctx, struct err *err);
enum command_status get_more_run(struct command_ctx *ctx, struct err *err);
enum command_status kill_cursors_run(struct command_ctx *ctx, struct err *err);
enum command_status count_run(struct command_ctx *ctx, struct err *err);
enum command_status distinct_run(struct command_ctx *ctx, struct err *err);
enum command_status aggregate_run(struct command_ctx *ctx, struct err *err);
enum command_status coll_stats_run(struct command_ctx *ctx, struct err *err);
enum command_status db_stats_run(struct command_ctx *ctx, struct err *err);
enum command_status plan_cache_clear_run(struct command_ctx *ctx, struct err *err);
enum command_status validate_run(struct command_ctx *ctx, struct err *err);
enum command_status list_collections_run(struct command_ctx *ctx, struct err *err);
enum command_status list_indexes_run(struct command_ctx *ctx, struct err *err);
enum command_status list_databases_run(struct command_ctx *ctx, struct err *err);

/* Writes. */
enum command_status insert_run(struct command_ctx *ctx, struct err *err);
enum command_status update_run(struct command_ctx *ctx, struct err *err);
enum command_status delete_run(struct command_ctx *ctx, struct err *err);
enum command_status find_and_modify_run(struct command_ctx *ctx, struct err *err);

/* Definitions. */
enum command_status create_run(struct command_ctx *ctx, struct err *err);
enum command_status drop_run(struct command_ctx *ctx, struct err *err);
enum command_status drop_database_run(struct command_ctx *ctx, struct err *err);
enum command_status create_indexes_run(struct command_ctx *ctx, struct err *err);
enum command_status drop_indexes_run(struct command_ctx *ctx, struct err *err);
enum command_status coll_mod_run(struct command_ctx *ctx, struct err *err);
enum command_status set_parameter_run(struct command_ctx *ctx, struct err *err);
enum command_status get_parameter_run(struct command_ctx *ctx, struct err *err);
enum command_status rename_collection_run(struct command_ctx *ctx, struct err *err);
enum command_status convert_to_capped_run(struct command_ctx *ctx, struct err *err);
enum command_status clone_as_capped_run(struct command_ctx *ctx, struct err *err);

#endif
