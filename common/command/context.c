#include "command/context.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "command/reply.h"
#include "command/table.h"

#include <stdalign.h>
#include <stdatomic.h>

enum {
    SLOW_MS = 100,
    SLOW_LINES_MAX = 20, /* a second: an overloaded daemon mustn't write a line per command */
};

struct command_ctx *command_ctx_new(struct wire_frame *frame, const struct wire_msg *msg)
{
    struct command_ctx *ctx = mem_alloc_aligned(1, sizeof *ctx, alignof(struct command_ctx));
    arena_init(&ctx->arena);
    ctx->frame = wire_frame_ref(frame);
    ctx->msg = *msg;
    ctx->body = msg->body;
    command_ctx_set_deadline(ctx, DEADLINE_NEVER);
    ctx->started_ms = clock_now_ms();
    bson_init(&ctx->reply);
    return ctx;
}

void command_ctx_free(struct command_ctx *ctx)
{
    if (ctx == NULL)
        return;
    bson_destroy(&ctx->reply);
    wire_frame_unref(ctx->raw_reply);
    wire_frame_unref(ctx->frame);
    arena_deinit(&ctx->arena);
    mem_free(ctx);
}

void command_ctx_set_raw(struct command_ctx *ctx, struct wire_frame *reply)
{
    CHECK(ctx->raw_reply == NULL && wire_frame_is_sole(reply));
    ctx->raw_reply = reply;
}

void command_ctx_add_label(struct command_ctx *ctx, const char *label)
{
    CHECK(ctx->label_count < sizeof ctx->labels / sizeof ctx->labels[0]);
    ctx->labels[ctx->label_count++] = label;
}

bool command_ctx_check_deadline(const struct command_ctx *ctx, struct err *err)
{
    /* A command inside another one is a part of the operation that its thread works for. */
    return interrupt_check_one(&ctx->op.interrupt, err) && interrupt_check(err);
}

void command_ctx_set_deadline(struct command_ctx *ctx, int64_t deadline_ms)
{
    ctx->deadline_ms = deadline_ms;
    ctx->op.interrupt.deadline_ms = deadline_ms;
}

struct interrupt *command_ctx_enter(struct command_ctx *ctx)
{
    return interrupt_enter(&ctx->op.interrupt);
}

void command_ctx_leave(struct interrupt *before)
{
    (void)interrupt_enter(before);
}

static struct wire_frame *error_frame(const struct command_ctx *ctx, const struct err *err)
{
    bson_t reply;
    bson_init(&reply);
    reply_append_error(&reply, err, ctx->labels, ctx->label_count);
    struct wire_frame *frame = wire_frame_of_doc(bdoc_of(&reply));
    bson_destroy(&reply);
    return frame;
}

static struct wire_frame *success_frame(struct command_ctx *ctx)
{
    if (ctx->raw_reply != NULL) {
        struct wire_frame *frame = ctx->raw_reply;
        ctx->raw_reply = NULL;
        return frame;
    }
    reply_append_ok(&ctx->reply);
    struct bdoc body = bdoc_of(&ctx->reply);
    if (body.len <= COMMAND_REPLY_MAX_BYTES)
        return wire_frame_of_doc(body);
    struct err err;
    err_set(&err, ERR_BSONObjectTooLarge, "the reply would be %u bytes, more than %d", body.len,
            COMMAND_REPLY_MAX_BYTES);
    return error_frame(ctx, &err);
}

/* Whether one more line may be written in this second; *left_out: those that could not be before. */
static bool may_log_slow(int64_t now_ms, unsigned *left_out)
{
    static _Atomic int64_t second;
    static atomic_uint lines;
    static atomic_uint skipped;
    int64_t before = atomic_load(&second);
    if (before != now_ms / 1000 && atomic_compare_exchange_strong(&second, &before, now_ms / 1000))
        atomic_store(&lines, 0);
    if (atomic_fetch_add(&lines, 1) >= SLOW_LINES_MAX) {
        atomic_fetch_add(&skipped, 1);
        return false;
    }
    *left_out = atomic_exchange(&skipped, 0);
    return true;
}

static void log_if_slow(const struct command_ctx *ctx, const struct err *err)
{
    unsigned left_out;
    int64_t now_ms = clock_now_ms();
    if (now_ms - ctx->started_ms < SLOW_MS || !may_log_slow(now_ms, &left_out))
        return;
    uint32_t len;
    log_info("COMMAND", 4301, "Slow command", LOG_STR("command", ctx->name), LOG_STR("db", ctx->db),
             LOG_STR("ns", ctx->value.type == BT_STRING ? bval_str(&ctx->value, &len) : NULL),
             LOG_STR("planSummary", ctx->op.plan_summary[0] != '\0' ? ctx->op.plan_summary : NULL),
             LOG_I64("durationMillis", now_ms - ctx->started_ms), LOG_I64("code", err != NULL ? err->code : 0),
             LOG_I64("linesLeftOut", left_out));
}

void command_finish(struct command_ctx *ctx, const struct err *err)
{
    log_if_slow(ctx, err);
    op_end(ctx);
    struct wire_frame *frame = err != NULL ? error_frame(ctx, err) : success_frame(ctx);
    ctx->respond(ctx, frame);
    command_ctx_free(ctx);
}
