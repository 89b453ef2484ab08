#include "command/ops.h"
#include "tests/unit/command/command_env.h"

/* Runs while the registry shows it. */
static struct op_registry *ops;
static void (*inside)(struct command_ctx *ctx);

static enum command_status run_inside(struct command_ctx *ctx, struct err *err)
{
    inside(ctx);
    return interrupt_check(err) ? COMMAND_OK : COMMAND_ERROR;
}

static void run(const char *body, void (*what)(struct command_ctx *ctx))
{
    static const struct command commands[] = {
        {"find", NULL, 0, run_inside},
        {"getMore", NULL, 0, run_inside},
    };
    struct command_table *table = command_table_new();
    struct command_ctx *ctx = ctx_of(body, NULL, NULL, 0);
    command_table_add(table, commands, 2);
    ctx->respond = catch_reply;
    ctx->internal = true;
    ctx->ops = ops;
    ctx->op.client = "10.0.0.1:5";
    inside = what;
    command_run(table, ctx);
    command_table_free(table);
    assert_int_equal(op_registry_count(ops), 0);
}

static int start(void **state)
{
    (void)state;
    ops = op_registry_new();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    op_registry_free(ops);
    return 0;
}

static bson_t *listed;

static void keep(void *arg, const bson_t *op)
{
    (void)arg;
    assert_null(listed);
    listed = bson_copy(op);
}

static struct bval listed_value(const char *name)
{
    struct bval val;
    assert_true(bdoc_find(bdoc_of(listed), name, &val));
    return val;
}

static void list_here(struct command_ctx *ctx)
{
    op_set_plan(ctx, "IXSCAN { a: 1 }");
    op_list(ops, &(struct op_list_options){.host = "h:1"}, keep, NULL);
}

static void ops_list_shows_what_is_under_way(void **state)
{
    (void)state;
    run("{\"find\": \"c\", \"filter\": {\"a\": 1}, \"$sherdDeadlineMs\": 5000, \"$db\": \"d\"}", list_here);
    struct bval val = listed_value("op");
    assert_true(bval_is_str(&val, "query"));
    val = listed_value("ns");
    assert_true(bval_is_str(&val, "d.c"));
    val = listed_value("client");
    assert_true(bval_is_str(&val, "10.0.0.1:5"));
    val = listed_value("planSummary");
    assert_true(bval_is_str(&val, "IXSCAN { a: 1 }"));
    val = listed_value("command");
    assert_true(bdoc_has(bval_doc(&val), "filter"));
    assert_false(bdoc_has(bval_doc(&val), "$sherdDeadlineMs"));
    bson_destroy(listed);
    listed = NULL;
    expect_answer("{\"ok\": 1.0}");
}

/* As commands do that work on a completed copy: whoever lists meanwhile must not see half of the exchange. */
static void exchange_body_and_list(struct command_ctx *ctx)
{
    ctx->body = (struct bdoc){0};
    list_here(ctx);
}

static void ops_list_shows_the_command_as_it_came(void **state)
{
    (void)state;
    run("{\"find\": \"c\", \"filter\": {\"a\": 1}, \"$db\": \"d\"}", exchange_body_and_list);
    struct bval val = listed_value("command");
    assert_true(bdoc_has(bval_doc(&val), "filter"));
    bson_destroy(listed);
    listed = NULL;
    expect_answer("{\"ok\": 1.0}");
}

static void ops_list_cuts_a_long_command(void **state)
{
    char body[4096];
    (void)state;
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    snprintf(body, sizeof body, "{\"find\": \"c\", \"filter\": {\"a\": \"%s\"}, \"$db\": \"d\"}", text);
    run(body, list_here);
    assert_true(listed->len < 2000);
    struct bval val = listed_value("command");
    assert_true(bdoc_has(bval_doc(&val), "$truncated"));
    bson_destroy(listed);
    listed = NULL;
    expect_answer("{\"ok\": 1.0}");
}

static void kill_here(struct command_ctx *ctx)
{
    assert_false(op_kill(ops, ctx->op.id + 1));
    assert_true(op_kill(ops, ctx->op.id));
}

static void ops_kill_ends_the_operation_with_11601(void **state)
{
    (void)state;
    run("{\"find\": \"c\", \"$db\": \"d\"}", kill_here);
    expect_error(11601);
}

static void kill_by_key(struct command_ctx *ctx)
{
    assert_int_equal(ctx->op.router_key, 77);
    assert_int_equal(op_kill_router_key(ops, 78), 0);
    assert_int_equal(op_kill_router_key(ops, 77), 1);
}

static void ops_kill_reaches_the_parts_of_a_routers_operation(void **state)
{
    (void)state;
    run("{\"find\": \"c\", \"$sherdOp\": {\"$numberLong\": \"77\"}, \"$db\": \"d\"}", kill_by_key);
    expect_error(11601);
}

static void kill_by_session(struct command_ctx *ctx)
{
    uint8_t other[16] = {1};
    uint8_t own[16] = {0};
    assert_int_equal(op_kill_session(ops, other, NULL), 0);
    assert_int_equal(op_kill_session(ops, own, ctx), 0);
    assert_int_equal(op_kill_session(ops, own, NULL), 1);
}

static void ops_kill_of_a_session_spares_who_asks(void **state)
{
    (void)state;
    run("{\"find\": \"c\", \"lsid\": {\"id\": {\"$binary\": {\"base64\": \"AAAAAAAAAAAAAAAAAAAAAA==\", \"subType\": "
        "\"04\"}}}, \"$db\": \"d\"}",
        kill_by_session);
    expect_error(11601);
}

static int woken;

static void wake(void *arg)
{
    (void)arg;
    woken++;
}

static void wait_and_kill(struct command_ctx *ctx)
{
    woken = 0;
    assert_true(op_set_waiting(ctx, "waiting for a test", wake, NULL));
    op_kill_all(ops, ERR_InterruptedAtShutdown);
    op_kill_all(ops, ERR_InterruptedAtShutdown);
    assert_int_equal(woken, 1);
    assert_false(op_set_waiting(ctx, "waiting again", wake, NULL));
}

static void ops_kill_wakes_a_parked_operation_once(void **state)
{
    (void)state;
    run("{\"find\": \"c\", \"$db\": \"d\"}", wait_and_kill);
    expect_error(11600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_list_shows_what_is_under_way),
        cmocka_unit_test(ops_list_shows_the_command_as_it_came),
        cmocka_unit_test(ops_list_cuts_a_long_command),
        cmocka_unit_test(ops_kill_ends_the_operation_with_11601),
        cmocka_unit_test(ops_kill_reaches_the_parts_of_a_routers_operation),
        cmocka_unit_test(ops_kill_of_a_session_spares_who_asks),
        cmocka_unit_test(ops_kill_wakes_a_parked_operation_once),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
