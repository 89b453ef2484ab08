#include "tests/unit/command/command_env.h"

#include "base/clock.h"
#include "command/fields.h"

static enum command_status run_ok(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    BSON_APPEND_UTF8(&ctx->reply, "ran", ctx->command->name);
    BSON_APPEND_UTF8(&ctx->reply, "db", ctx->db);
    return COMMAND_OK;
}

static enum command_status run_other(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    BSON_APPEND_UTF8(&ctx->reply, "ran", "other");
    return COMMAND_OK;
}

static enum command_status run_error(struct command_ctx *ctx, struct err *err)
{
    command_ctx_add_label(ctx, "RetryableWriteError");
    err_set(err, ERR_BadValue, "no good");
    return COMMAND_ERROR;
}

static struct command_ctx *parked;

static enum command_status run_park(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    parked = ctx;
    return COMMAND_PARKED;
}

static const struct command commands[] = {
    {"ping", NULL, 0, run_ok},
    {"isMaster", "hello", 0, run_ok},
    {"fail", NULL, 0, run_error},
    {"park", NULL, 0, run_park},
    {"shardCollection", NULL, COMMAND_ADMIN_ONLY, run_ok},
    {"_internal", NULL, COMMAND_INTERNAL_ONLY, run_ok},
    {"configureFailPoint", NULL, COMMAND_TEST, run_ok},
    {"insert", NULL, COMMAND_COLLECTION | COMMAND_SEQUENCES, run_ok},
};

static struct command_table *table;

static int table_up(void **state)
{
    (void)state;
    table = command_table_new();
    command_table_add(table, commands, sizeof commands / sizeof commands[0]);
    return 0;
}

static int table_down(void **state)
{
    (void)state;
    command_table_free(table);
    command_table_free(NULL);
    return 0;
}

static void run(const char *body)
{
    struct command_ctx *ctx = ctx_of(body, NULL, NULL, 0);
    ctx->respond = catch_reply;
    command_run(table, ctx);
}

static void table_finds_every_spelling(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *found;
    } cases[] = {
        {"ping", "ping"},
        {"isMaster", "isMaster"},
        {"ismaster", "isMaster"},
        {"hello", "isMaster"},
        {"shardcollection", "shardCollection"},
        {"shardCollection", "shardCollection"},
        {"SHARDCOLLECTION", NULL},
        {"Ping", NULL},
        {"configureFailPoint", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct command *command = command_table_find(table, cases[i].name);
        assert_int_equal(command != NULL, cases[i].found != NULL);
        if (command != NULL)
            assert_string_equal(command->name, cases[i].found);
    }
    command_table_enable_test(table, true);
    assert_non_null(command_table_find(table, "configureFailPoint"));
    command_table_enable_test(table, false);
}

static void table_next_walks_each_command_once(void **state)
{
    (void)state;
    unsigned position = 0;
    unsigned count = 0;
    while (command_table_next(table, &position) != NULL)
        count++;
    assert_int_equal(count, sizeof commands / sizeof commands[0] - 1); /* without the test command */
}

static void table_later_array_overrides(void **state)
{
    (void)state;
    static const struct command more[] = {{"ping", NULL, 0, run_other}};
    struct command_table *own = command_table_new();
    command_table_add(own, commands, 2);
    command_table_add(own, more, 1);
    assert_ptr_equal(command_table_find(own, "ping"), &more[0]);
    unsigned position = 0;
    unsigned count = 0;
    while (command_table_next(own, &position) != NULL)
        count++;
    assert_int_equal(count, 2);
    command_table_free(own);
}

static void run_answers_the_handlers_reply(void **state)
{
    (void)state;
    run("{\"ping\": 1, \"$db\": \"test\"}");
    expect_answer("{\"ran\": \"ping\", \"db\": \"test\", \"ok\": 1.0}");
    run("{\"fail\": 1, \"$db\": \"test\"}");
    expect_answer("{\"ok\": 0.0, \"errmsg\": \"no good\", \"code\": 2, \"codeName\": \"BadValue\","
                  "\"errorLabels\": [\"RetryableWriteError\"]}");
}

static void run_refuses_with_the_right_codes(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int32_t code;
    } cases[] = {
        {"{}", ERR_CommandNotFound},
        {"{\"nothing\": 1, \"$db\": \"test\"}", ERR_CommandNotFound},
        {"{\"_internal\": 1, \"$db\": \"test\"}", ERR_CommandNotFound},
        {"{\"configureFailPoint\": 1, \"$db\": \"admin\"}", ERR_CommandNotFound},
        {"{\"ping\": 1}", COMMAND_ERR_DB_MISSING},
        {"{\"ping\": 1, \"$db\": 5}", ERR_TypeMismatch},
        {"{\"ping\": 1, \"$db\": null}", ERR_TypeMismatch},
        {"{\"ping\": 1, \"$db\": \"a.b\"}", ERR_InvalidNamespace},
        {"{\"shardCollection\": \"a.b\", \"$db\": \"test\"}", ERR_Unauthorized},
        {"{\"insert\": 5, \"$db\": \"test\"}", ERR_InvalidNamespace},
        {"{\"ping\": 1, \"$db\": \"test\", \"maxTimeMS\": -1}", COMMAND_ERR_OUT_OF_RANGE},
        {"{\"ping\": 1, \"$db\": \"test\", \"maxTimeMS\": \"a\"}", ERR_TypeMismatch},
        {"{\"ping\": 1, \"$db\": \"test\", \"maxTimeMS\": 1e12}", COMMAND_ERR_OUT_OF_RANGE},
        {"{\"ping\": 1, \"$db\": \"test\", \"$sherdVersion\": {}}", COMMAND_ERR_FIELD_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run(cases[i].body);
        expect_error(cases[i].code);
    }
}

static void run_refuses_sequences_that_are_not_expected(void **state)
{
    (void)state;
    struct command_ctx *ctx = ctx_of("{\"ping\": 1, \"$db\": \"test\"}", "documents", "{}", 1);
    ctx->respond = catch_reply;
    command_run(table, ctx);
    expect_error(COMMAND_ERR_FIELD_UNKNOWN);
    ctx = ctx_of("{\"insert\": \"c\", \"$db\": \"test\"}", "documents", "{}", 1);
    ctx->respond = catch_reply;
    command_run(table, ctx);
    expect_answer("{\"ran\": \"insert\", \"db\": \"test\", \"ok\": 1.0}");
}

static void run_internal_command_from_a_daemon(void **state)
{
    (void)state;
    struct command_ctx *ctx = ctx_of(
        "{\"_internal\": 1, \"$db\": \"test\", \"$sherdDeadlineMs\": {\"$numberLong\": \"5000\"}}", NULL, NULL, 0);
    ctx->respond = catch_reply;
    ctx->internal = true;
    command_run(table, ctx);
    expect_answer("{\"ran\": \"_internal\", \"db\": \"test\", \"ok\": 1.0}");
}

static void run_parked_command_is_finished_later(void **state)
{
    (void)state;
    run("{\"park\": 1, \"$db\": \"test\"}");
    assert_null(answered);
    BSON_APPEND_INT32(&parked->reply, "later", 1);
    command_finish(parked, NULL);
    expect_answer("{\"later\": 1, \"ok\": 1.0}");
}

static void parse_takes_the_earlier_deadline(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int64_t left_ms; /* -1: none */
    } cases[] = {
        {"{\"ping\": 1, \"$db\": \"d\"}", -1},
        {"{\"ping\": 1, \"$db\": \"d\", \"maxTimeMS\": 0}", -1},
        {"{\"ping\": 1, \"$db\": \"d\", \"maxTimeMS\": 4000}", 4000},
        {"{\"ping\": 1, \"$db\": \"d\", \"maxTimeMS\": 4000, \"$sherdDeadlineMs\": 3000}", 3000},
        {"{\"ping\": 1, \"$db\": \"d\", \"maxTimeMS\": 2000, \"$sherdDeadlineMs\": 3000}", 2000},
        {"{\"ping\": 1, \"$db\": \"d\", \"$sherdDeadlineMs\": 0}", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err;
        struct command_ctx *ctx = ctx_of(cases[i].body, NULL, NULL, 0);
        ctx->internal = true;
        assert_true(command_parse(ctx, &err));
        if (cases[i].left_ms < 0) {
            assert_true(ctx->deadline_ms == DEADLINE_NEVER);
        } else {
            int64_t left_ms = deadline_remaining_ms(ctx->deadline_ms);
            assert_true(left_ms <= cases[i].left_ms && left_ms >= cases[i].left_ms - 1000);
        }
        assert_int_equal(command_ctx_check_deadline(ctx, &err), cases[i].left_ms != 0);
        command_ctx_free(ctx);
    }
}

/* OP_QUERY: the database is in the namespace, the command may be wrapped. */
static void parse_op_query_finds_database_and_command(void **state)
{
    (void)state;
    struct err err;
    struct command_ctx *ctx = ctx_of("{\"$query\": {\"isMaster\": 1}, \"$readPreference\": {}}", NULL, NULL, 0);
    ctx->msg.query_ns = "admin.$cmd";
    assert_true(command_parse(ctx, &err));
    assert_string_equal(ctx->db, "admin");
    assert_string_equal(ctx->name, "isMaster");
    command_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_finds_every_spelling),
        cmocka_unit_test(table_next_walks_each_command_once),
        cmocka_unit_test(table_later_array_overrides),
        cmocka_unit_test(run_answers_the_handlers_reply),
        cmocka_unit_test(run_refuses_with_the_right_codes),
        cmocka_unit_test(run_refuses_sequences_that_are_not_expected),
        cmocka_unit_test(run_internal_command_from_a_daemon),
        cmocka_unit_test(run_parked_command_is_finished_later),
        cmocka_unit_test(parse_takes_the_earlier_deadline),
        cmocka_unit_test(parse_op_query_finds_database_and_command),
    };
    return cmocka_run_group_tests(tests, table_up, table_down);
}
