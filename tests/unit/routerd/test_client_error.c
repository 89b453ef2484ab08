#include "support.h"

#include "base/clock.h"
#include "command/table.h"
#include "routerd/client_error.h"

static void client_error_code_state_changes_never_reach_a_client(void **state)
{
    (void)state;
    static const int32_t codes[] = {91, 189, 11600, 11602, 10107, 13435, 13436, 10058, 13388, 249, 150};
    static const int32_t forbidden[] = {91, 189, 11600, 11602, 10107, 13435, 13436, 10058, 13388, 249, 150};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        for (size_t k = 0; k < sizeof forbidden / sizeof forbidden[0]; k++) {
            assert_int_not_equal(client_error_code(codes[i], false), forbidden[k]);
            assert_int_not_equal(client_error_code(codes[i], true), forbidden[k]);
        }
    }
}

static void client_error_code_other_errors_stay(void **state)
{
    (void)state;
    assert_int_equal(client_error_code(11000, false), 11000);
    assert_int_equal(client_error_code(26, false), 26);
    assert_int_equal(client_error_code(50, true), 50);
}

static void client_error_code_unknown_outcome_is_a_time_out(void **state)
{
    (void)state;
    assert_int_equal(client_error_code(ERR_InterruptedDueToReplStateChange, true), ERR_NetworkTimeout);
    assert_int_equal(client_error_code(ERR_NotWritablePrimary, false), ERR_HostUnreachable);
}

/* A context as for an insert with a transaction number. */
static struct command_ctx *write_context(struct arena *arena, const char *body)
{
    static const struct command insert = {.name = "insert", .flags = COMMAND_WRITE};
    struct wire_frame *frame = wire_frame_of_doc(json_doc(arena, body));
    struct wire_msg msg;
    struct err err;
    assert_true(wire_msg_parse(frame->data, frame->len, WIRE_PARSE_CHECKED, &msg, &err));
    struct command_ctx *ctx = command_ctx_new(frame, &msg);
    wire_frame_unref(frame);
    ctx->command = &insert;
    return ctx;
}

static void client_error_make_labels_only_what_was_not_executed(void **state)
{
    (void)state;
    struct arena arena;
    struct err err;
    arena_init(&arena);
    struct command_ctx *ctx = write_context(&arena, "{\"insert\": \"c\", \"txnNumber\": 1, \"$db\": \"db\"}");
    err_set(&err, ERR_NotWritablePrimary, "not the leader");
    client_error_make(ctx, true, &err);
    assert_int_equal(ctx->label_count, 0);
    err_set(&err, ERR_NotWritablePrimary, "not the leader");
    client_error_make(ctx, false, &err);
    client_error_make(ctx, false, &err);
    assert_int_equal(ctx->label_count, 1);
    assert_string_equal(ctx->labels[0], "RetryableWriteError");
    command_ctx_free(ctx);
    arena_deinit(&arena);
}

static void client_error_make_without_transaction_number_has_no_label(void **state)
{
    (void)state;
    struct arena arena;
    struct err err;
    arena_init(&arena);
    struct command_ctx *ctx = write_context(&arena, "{\"insert\": \"c\", \"$db\": \"db\"}");
    err_set(&err, ERR_HostUnreachable, "no leader");
    client_error_make(ctx, false, &err);
    assert_int_equal(ctx->label_count, 0);
    command_ctx_free(ctx);
    arena_deinit(&arena);
}

static void client_error_make_after_max_time_says_so(void **state)
{
    (void)state;
    struct arena arena;
    struct err err;
    arena_init(&arena);
    struct command_ctx *ctx = write_context(&arena, "{\"insert\": \"c\", \"$db\": \"db\"}");
    ctx->max_time_ms = 1;
    ctx->deadline_ms = clock_now_ms() - 1;
    err_set(&err, ERR_HostUnreachable, "no leader");
    client_error_make(ctx, false, &err);
    assert_int_equal(err.code, ERR_MaxTimeMSExpired);
    command_ctx_free(ctx);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_error_code_state_changes_never_reach_a_client),
        cmocka_unit_test(client_error_code_other_errors_stay),
        cmocka_unit_test(client_error_code_unknown_outcome_is_a_time_out),
        cmocka_unit_test(client_error_make_labels_only_what_was_not_executed),
        cmocka_unit_test(client_error_make_without_transaction_number_has_no_label),
        cmocka_unit_test(client_error_make_after_max_time_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
