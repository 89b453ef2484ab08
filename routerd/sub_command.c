#include "routerd/sub_command.h"

#include "base/check.h"

#include "routerd/router.h"

#include <string.h>

bool sub_command_new(struct command_ctx *parent, const char *db, struct bdoc body, struct command_ctx **out,
                     struct err *err)
{
    static const char *const own[] = {"$db", "maxTimeMS", NULL};
    struct wire_msg msg;
    bson_t whole = BSON_INITIALIZER;
    struct biter iter;
    struct belem elem;
    *out = NULL;
    for (biter_init(&iter, body); biter_next(&iter, &elem);)
        if (strcmp(elem.key, own[0]) != 0 && strcmp(elem.key, own[1]) != 0)
            bval_append(&whole, elem.key, (int)elem.key_len, &elem.val);
    BSON_APPEND_UTF8(&whole, "$db", db);
    struct wire_frame *frame = wire_frame_of_doc(bdoc_of(&whole));
    bson_destroy(&whole);
    if (!wire_msg_parse(frame->data, frame->len, WIRE_PARSE_TRUSTED, &msg, err)) {
        wire_frame_unref(frame);
        return false;
    }
    struct command_ctx *ctx = command_ctx_new(frame, &msg);
    wire_frame_unref(frame);
    ctx->daemon = parent->daemon;
    ctx->session = parent->session;
    ctx->internal = true;
    if (!command_parse(ctx, err)) {
        command_ctx_free(ctx);
        return false;
    }
    command_ctx_set_deadline(ctx, parent->deadline_ms);
    ctx->max_time_ms = parent->max_time_ms;
    ctx->command = command_table_find(router_of(ctx)->commands, ctx->name);
    *out = ctx;
    return true;
}

void sub_command_free(struct command_ctx *ctx)
{
    command_ctx_free(ctx);
}

bool sub_command_run(struct command_ctx *ctx, struct err *err)
{
    if (ctx->command == NULL)
        return err_set(err, ERR_CommandNotFound, "no such command: '%s'", ctx->name);
    enum command_status status = ctx->command->run(ctx, err);
    CHECK(status != COMMAND_PARKED);
    return status == COMMAND_OK;
}

struct bdoc sub_command_reply(const struct command_ctx *ctx)
{
    struct wire_msg msg;
    struct err ignored;
    if (ctx->raw_reply == NULL)
        return bdoc_of(&ctx->reply);
    if (!wire_msg_parse(ctx->raw_reply->data, ctx->raw_reply->len, WIRE_PARSE_TRUSTED, &msg, &ignored))
        return bdoc_empty();
    return msg.body;
}

bool sub_command_do(struct command_ctx *parent, const char *db, struct bdoc body, struct err *err)
{
    struct command_ctx *ctx;
    if (!sub_command_new(parent, db, body, &ctx, err))
        return false;
    bool ok = sub_command_run(ctx, err);
    sub_command_free(ctx);
    return ok;
}
