/* Any bytes as a command: it is answered, with a well-formed document, whatever it is. */
#include "base/check.h"
#include "command/batch.h"
#include "command/fields.h"
#include "command/reply.h"
#include "command/table.h"
#include "tests/fuzz/wire/fuzz_wire.h"

static unsigned answers;

static void respond(struct command_ctx *ctx, struct wire_frame *reply)
{
    (void)ctx;
    struct wire_msg msg;
    struct err err;
    CHECK(wire_msg_parse(reply->data, reply->len, WIRE_PARSE_CHECKED, &msg, NULL));
    (void)!reply_check(msg.body, &err);
    wire_frame_unref(reply);
    answers++;
}

static enum command_status run_insert(struct command_ctx *ctx, struct err *err)
{
    static const char *const known[] = {"insert", "documents", "ordered", "limit", NULL};
    struct batch batch;
    struct batch_iter iter;
    struct bdoc doc;
    bool ordered = true;
    int64_t limit = 0;
    const char *text = NULL;
    if (!fields_check_known(ctx->body, "insert", known, err) || !batch_init(&batch, ctx, "documents", err) ||
        !field_get_bool(ctx->body, "ordered", &ordered, err) ||
        !field_get_i64_in(ctx->body, "limit", 0, 100, &limit, err) || !field_get_str(ctx->body, "comment", &text, err))
        return COMMAND_ERROR;
    struct write_result result;
    write_result_init(&result, true);
    for (batch_iter_init(&iter, &batch); batch_next(&iter, &doc); result.n++) {
        struct bval id;
        if (bdoc_find(doc, "_id", &id))
            write_result_add_upserted(&result, (int32_t)iter.index, &id);
    }
    CHECK(result.n == batch.count);
    write_result_append(&result, &ctx->reply);
    write_result_deinit(&result);
    return COMMAND_OK;
}

static const struct command commands[] = {
    {"insert", NULL, COMMAND_COLLECTION | COMMAND_SEQUENCES, run_insert},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct command_table *table;
    if (table == NULL) {
        table = command_table_new();
        command_table_add(table, commands, 1);
    }
    struct wire_msg msg;
    if (!wire_msg_parse(data, size, WIRE_PARSE_CHECKED, &msg, NULL))
        return 0;
    struct wire_frame *frame = wire_frame_new((uint32_t)size);
    memcpy(frame->data, data, size);
    CHECK(wire_msg_parse(frame->data, size, WIRE_PARSE_CHECKED, &msg, NULL));
    struct command_ctx *ctx = command_ctx_new(frame, &msg);
    wire_frame_unref(frame);
    ctx->respond = respond;
    unsigned before = answers;
    command_run(table, ctx);
    CHECK(answers == before + 1);
    return 0;
}
