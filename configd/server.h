/* The config service's part of a configd process: one lock under which the leader plans and commits changes of cluster
 * metadata, one at a time. Made at start by the node, handed to every command through server_of. */
#ifndef SHERD_CONFIGD_SERVER_H
#define SHERD_CONFIGD_SERVER_H

#include "command/context.h"
#include "command/table.h"
#include "configd/change.h"

struct node;
struct config_server;

enum {
    SERVER_CHANGE_MS = 10 * 1000, /* for the lock and the log together, when the request brings no deadline */
    SERVER_REPLANS = 16,          /* times a change is planned again because another was first */
};

struct config_server *server_new(struct node *node);
void server_free(struct config_server *server);
struct config_server *server_of(const struct command_ctx *ctx);

/* Plans a change on the newest state and commits it; plans again when another change came first. Fills `reply`
 * (initialised by the caller). Blocks: for threads that may wait. Errors: the plan's, 10107, 11602, 112. */
bool server_change(struct config_server *server, change_plan_cb *plan, struct bdoc request, int64_t deadline_ms,
                   bson_t *reply, struct err *err) ERR_WARN_UNUSED;
/* The whole of a command: the request is the body, the answer goes into ctx->reply. */
enum command_status server_run_change(struct command_ctx *ctx, change_plan_cb *plan, struct err *err);
/* Commits without a look at the sequence: for documents that nothing depends on (config.mongos). */
bool server_write_unguarded(struct config_server *server, change_plan_cb *plan, struct bdoc request,
                            int64_t deadline_ms, struct err *err) ERR_WARN_UNUSED;
/* Answers from one read transaction of the leader. */
typedef bool server_read_cb(const struct metadata_view *view, struct bdoc request, bson_t *reply, struct err *err);
enum command_status server_run_read(struct command_ctx *ctx, server_read_cb *read, struct err *err);

/* Node hooks, on the housekeeping thread: creates the config database at the first lead, forgets old operations. */
void server_lead(struct config_server *server, bool leading);
void server_tick(struct config_server *server);

extern const struct command config_commands[];
extern const size_t config_command_count;

#endif
