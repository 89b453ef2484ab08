/* From an rpc request to a command: gates for load, leadership and read concern, then the command table. */
#include "base/fault.h"
#include "command/fields.h"
#include "command/reply.h"
#include "node/node_internal.h"

#include <string.h>

static void respond(struct command_ctx *ctx, struct wire_frame *reply)
{
    struct rpc_request *request = ctx->request;
    struct node *node = request->arg;
    if (fault_hit(FAULT_rpc_drop_reply)) {
        wire_frame_unref(reply);
        rpc_request_drop(request);
    } else {
        rpc_request_reply(request, reply);
    }
    atomic_fetch_sub(&node->requests, 1);
}

static void run_command(void *arg)
{
    struct command_ctx *ctx = arg;
    struct node *node = ctx->daemon;
    command_run(node->commands, ctx);
}

static void barrier_done(void *arg, enum replica_outcome outcome)
{
    struct command_ctx *ctx = arg;
    struct node *node = ctx->daemon;
    struct err err;
    if (outcome == REPLICA_APPLIED) {
        node_submit(node, run_command, ctx);
        return;
    }
    if (node_check_leader(node, &err))
        err_set(&err, ERR_NotWritablePrimary, "leadership changed while the read was waiting");
    command_finish(ctx, &err);
}

/* Reads that must see everything acknowledged before them. */
static bool needs_barrier(const struct command_ctx *ctx)
{
    struct bval concern;
    struct bval level;
    if (!bdoc_find(ctx->body, "readConcern", &concern) || concern.type != BT_DOCUMENT)
        return false;
    if (bdoc_has(bval_doc(&concern), "afterClusterTime"))
        return true;
    return bdoc_find(bval_doc(&concern), "level", &level) &&
           (bval_is_str(&level, "linearizable") || bval_is_str(&level, "majority"));
}

static void run_request(struct pool_job *job)
{
    struct rpc_request *request = (struct rpc_request *)job;
    struct node *node = request->arg;
    struct command_ctx *ctx = command_ctx_new(request->frame, &request->msg);
    struct err err;
    ctx->daemon = node;
    ctx->request = request;
    ctx->internal = true;
    ctx->ops = node->ops;
    ctx->op.client = rpc_request_peer(request);
    ctx->respond = respond;
    if (!command_parse(ctx, &err)) {
        command_finish(ctx, &err);
        return;
    }
    const struct command *command = command_table_find(node->commands, ctx->name);
    bool any_role = command == NULL || (command->flags & COMMAND_ANY_ROLE) != 0;
    if (!any_role && !node_check_leader(node, &err)) {
        command_finish(ctx, &err);
        return;
    }
    if (!any_role && node->program->admit != NULL && !node->program->admit(node->plugin, ctx, &err)) {
        command_finish(ctx, &err);
        return;
    }
    if (!any_role && !(command->flags & COMMAND_WRITE) && needs_barrier(ctx))
        replica_read_index(node->replica, barrier_done, ctx);
    else
        command_run(node->commands, ctx);
}

static void refuse_busy(struct rpc_request *request)
{
    struct err err;
    bson_t reply = BSON_INITIALIZER;
    document_busy_set(&err, "too many requests under way");
    reply_append_error(&reply, &err, NULL, 0);
    rpc_request_reply_doc(request, bdoc_of(&reply));
    bson_destroy(&reply);
}

void node_handle_request(void *arg, struct rpc_request *request)
{
    struct node *node = arg;
    request->job.run = run_request;
    if (atomic_fetch_add(&node->requests, 1) < NODE_REQUESTS_MAX && rpc_request_dispatch(request, node->pool))
        return;
    atomic_fetch_sub(&node->requests, 1);
    refuse_busy(request);
}
