#include "tests/unit/command/command_env.h"

#include "command/reply.h"

static void context_keeps_its_message(void **state)
{
    (void)state;
    struct command_ctx *ctx = ctx_of("{\"find\": \"c\", \"$db\": \"d\"}", NULL, NULL, 0);
    assert_true(bdoc_has(ctx->body, "find"));
    assert_non_null(arena_alloc(&ctx->arena, 100000));
    command_ctx_free(ctx);
    command_ctx_free(NULL);
}

static void finish_passes_a_raw_reply_through(void **state)
{
    (void)state;
    struct command_ctx *ctx = ctx_of("{\"find\": \"c\", \"$db\": \"d\"}", NULL, NULL, 0);
    ctx->respond = catch_reply;
    bson_t *raw = json("{\"raw\": 1, \"ok\": 1.0}");
    command_ctx_set_raw(ctx, wire_frame_of_doc(bdoc_of(raw)));
    BSON_APPEND_INT32(&ctx->reply, "unused", 1);
    command_finish(ctx, NULL);
    expect_answer("{\"raw\": 1, \"ok\": 1.0}");
    bson_destroy(raw);
}

static void finish_with_an_error_drops_the_raw_reply(void **state)
{
    (void)state;
    struct command_ctx *ctx = ctx_of("{\"find\": \"c\", \"$db\": \"d\"}", NULL, NULL, 0);
    ctx->respond = catch_reply;
    bson_t *raw = json("{\"raw\": 1, \"ok\": 1.0}");
    command_ctx_set_raw(ctx, wire_frame_of_doc(bdoc_of(raw)));
    bson_destroy(raw);
    struct err err = {0};
    err_set(&err, ERR_Interrupted, "stop");
    command_finish(ctx, &err);
    expect_error(ERR_Interrupted);
}

static void finish_with_a_reply_too_large_is_an_error(void **state)
{
    (void)state;
    struct command_ctx *ctx = ctx_of("{\"find\": \"c\", \"$db\": \"d\"}", NULL, NULL, 0);
    ctx->respond = catch_reply;
    bson_t part;
    bson_init(&part);
    static char text[10000000];
    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i < 5; i++)
        BSON_APPEND_UTF8(&ctx->reply, "x", text);
    bson_destroy(&part);
    command_finish(ctx, NULL);
    expect_error(ERR_BSONObjectTooLarge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(context_keeps_its_message),
        cmocka_unit_test(finish_passes_a_raw_reply_through),
        cmocka_unit_test(finish_with_an_error_drops_the_raw_reply),
        cmocka_unit_test(finish_with_a_reply_too_large_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
