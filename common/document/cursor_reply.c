#include "document/cursor_reply.h"

#include "document/cursors.h"

#include <string.h>

enum command_status cursor_reply_empty(struct command_ctx *ctx, const char *ns)
{
    struct batch_reply reply;
    batch_reply_begin(&reply, true);
    command_ctx_set_raw(ctx, batch_reply_end(&reply, 0, ns));
    return COMMAND_OK;
}

static bool fill_first(struct document_cursor *cursor, const struct read_txn *read, int64_t deadline_ms,
                       struct batch_reply *reply, int64_t batch_size, struct err *err)
{
    if (read != NULL && !document_cursor_attach(cursor, read, deadline_ms, err))
        return false;
    bool ok = document_cursor_fill(cursor, reply, batch_size, err);
    document_cursor_detach(cursor);
    return ok;
}

/* With another plan when the remembered one is given up: until then nothing has left for the client. */
static bool fill_or_replan(struct document_cursor *cursor, const struct read_txn *read, int64_t deadline_ms,
                           struct batch_reply *reply, int64_t batch_size, struct err *err)
{
    cursor->may_replan = read != NULL && cursor->plan != NULL;
    if (fill_first(cursor, read, deadline_ms, reply, batch_size, err))
        return true;
    if (err->code != PLAN_ERR_REPLAN)
        return false;
    batch_reply_deinit(reply);
    batch_reply_begin(reply, true);
    return document_cursor_replan(cursor, read, err) && fill_first(cursor, read, deadline_ms, reply, batch_size, err);
}

enum command_status cursor_reply_first(struct command_ctx *ctx, struct document_cursor *cursor,
                                       const struct read_txn *read, int64_t batch_size, struct err *err)
{
    struct document_engine *engine = document_engine_of(ctx);
    struct batch_reply reply;
    batch_reply_begin(&reply, true);
    if (cursor->plan != NULL)
        op_set_plan(ctx, plan_summary(cursor->plan, &cursor->arena));
    if (!fill_or_replan(cursor, read, ctx->deadline_ms, &reply, batch_size, err))
        goto failed;
    cursor->may_replan = false;
    int64_t id = 0;
    char ns[sizeof cursor->ns];
    memcpy(ns, cursor->ns, sizeof ns);
    if (cursor->exhausted || cursor->single_batch) {
        document_cursor_free(cursor);
    } else {
        if (!document_cursors_add(document_engine_cursors(engine), cursor, &id, err))
            goto failed;
    }
    command_ctx_set_raw(ctx, batch_reply_end(&reply, id, ns));
    return COMMAND_OK;
failed:
    document_cursor_free(cursor);
    batch_reply_deinit(&reply);
    return COMMAND_ERROR;
}

struct wire_frame *cursor_reply_copy(const struct wire_frame *frame)
{
    struct wire_frame *copy = wire_frame_new(frame->len);
    memcpy(copy->data, frame->data, frame->len);
    return copy;
}
