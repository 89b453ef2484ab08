/* insert, update, delete. */
#include "base/mem.h"
#include "routerd/client_error.h"
#include "routerd/commands.h"
#include "routerd/forward.h"
#include "routerd/request.h"
#include "routerd/write_batch.h"
#include "routerd/write_concern.h"

/* Metadata in the config service: the command as it is, statements included. */
static enum command_status write_config(struct command_ctx *ctx, enum write_kind kind, struct err *err)
{
    const char *const known[] = {write_kind_field(kind), NULL};
    struct remote_request request;
    struct wire_piece pieces[WIRE_MAX_SEQUENCES];
    struct rpc_sequence sequences[WIRE_MAX_SEQUENCES];
    enum command_status status = COMMAND_ERROR;
    if (!batch_check_sequences(ctx, known, err))
        return COMMAND_ERROR;
    remote_request_init_config(&request, router_of(ctx), false);
    request_append_body(&request.body, ctx->body, NULL);
    for (unsigned i = 0; i < ctx->msg.sequence_count; i++) {
        const struct wire_sequence *from = &ctx->msg.sequences[i];
        pieces[i] = (struct wire_piece){.data = from->data, .len = from->len, .owner = ctx->frame};
        sequences[i] = (struct rpc_sequence){.name = from->name, .pieces = &pieces[i], .piece_count = 1};
    }
    request.sequences = sequences;
    request.sequence_count = ctx->msg.sequence_count;
    if (remote_run_one(router_of(ctx), &request, ctx->deadline_ms, NULL))
        status = forward_reply(ctx, &request);
    else
        (void)client_error_from(ctx, &request, err);
    remote_request_deinit(&request);
    return status;
}

static size_t primary_members(struct write_batch *batch)
{
    struct route route;
    struct remote_set *set;
    struct err err;
    size_t members = SIZE_MAX;
    route_init(&route, batch->ctx, batch->ns.full);
    if (route_next(&route, &err) && route.routing->exists && route_primary(&route, &set, &err)) {
        members = set->members.count;
        remote_set_unref(set);
    }
    route_deinit(&route);
    return members;
}

static enum command_status run_write(struct command_ctx *ctx, enum write_kind kind, _Atomic uint64_t *counter,
                                     struct err *err)
{
    struct write_batch batch;
    if (forward_is_config_db(ctx->db))
        return write_config(ctx, kind, err);
    bool ok = write_batch_init(&batch, ctx, kind, err);
    if (ok) {
        atomic_fetch_add(counter, batch.count);
        ok = write_batch_run(&batch, err);
    }
    if (ok) {
        write_batch_sort_errors(&batch);
        write_result_append(&batch.result, &ctx->reply);
        if (bdoc_has(ctx->body, "writeConcern"))
            write_concern_append_error(ctx, primary_members(&batch));
    }
    write_batch_deinit(&batch);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

static enum command_status run_insert(struct command_ctx *ctx, struct err *err)
{
    return run_write(ctx, WRITE_INSERT, &router_of(ctx)->counters.insert, err);
}

static enum command_status run_update(struct command_ctx *ctx, struct err *err)
{
    return run_write(ctx, WRITE_UPDATE, &router_of(ctx)->counters.update, err);
}

static enum command_status run_delete(struct command_ctx *ctx, struct err *err)
{
    return run_write(ctx, WRITE_DELETE, &router_of(ctx)->counters.remove, err);
}

static const struct command commands[] = {
    {"insert", NULL, COMMAND_WRITE | COMMAND_COLLECTION | COMMAND_SEQUENCES, run_insert},
    {"update", NULL, COMMAND_WRITE | COMMAND_COLLECTION | COMMAND_SEQUENCES, run_update},
    {"delete", NULL, COMMAND_WRITE | COMMAND_COLLECTION | COMMAND_SEQUENCES, run_delete},
};

const struct command_family commands_write = COMMAND_FAMILY(commands);
