#include "routerd/explain_reply.h"

#include "base/clock.h"
#include "tests/unit/routerd/support.h"

/* Two shards' answers to an explain. */
struct answers {
    struct arena arena;
    struct router router;
    struct remote_request requests[2];
    struct scatter scatter;
    struct command_ctx *ctx;
    struct command_ctx *inner;
};

static struct command_ctx *ctx_of(struct arena *arena, struct router *router, const char *json)
{
    struct wire_msg msg;
    struct err err;
    struct wire_frame *frame = wire_frame_of_doc(json_doc(arena, json));
    assert_true(wire_msg_parse(frame->data, frame->len, WIRE_PARSE_TRUSTED, &msg, &err));
    struct command_ctx *ctx = command_ctx_new(frame, &msg);
    wire_frame_unref(frame);
    ctx->daemon = router;
    ctx->name = "explain";
    ctx->db = "db";
    return ctx;
}

static void begin(struct answers *answers, const char *first, const char *second)
{
    static const char *const names[] = {"s0", "s1"};
    const char *const replies[] = {first, second};
    *answers = (struct answers){.scatter.count = 2};
    arena_init(&answers->arena);
    snprintf(answers->router.address, sizeof answers->router.address, "here:27017");
    for (int i = 0; i < 2; i++) {
        struct remote_set *set;
        struct err err;
        char host[32];
        snprintf(host, sizeof host, "%s/h:%d", names[i], i + 1);
        assert_true(remote_set_new(names[i], host, &set, &err));
        remote_request_init(&answers->requests[i], set, true);
        remote_set_unref(set);
        answers->requests[i].reply = json_doc(&answers->arena, replies[i]);
    }
    answers->scatter.requests = answers->requests;
    answers->ctx = ctx_of(&answers->arena, &answers->router, "{\"explain\": {\"find\": \"c\"}}");
    answers->inner = ctx_of(&answers->arena, &answers->router, "{\"find\": \"c\", \"$sherdX\": 1}");
}

static void end(struct answers *answers)
{
    for (int i = 0; i < 2; i++)
        remote_request_deinit(&answers->requests[i]);
    command_ctx_free(answers->ctx);
    command_ctx_free(answers->inner);
    arena_deinit(&answers->arena);
}

static struct bval at(struct answers *answers, const char *path)
{
    bson_iter_t iter;
    bson_iter_t found;
    struct bval val;
    const bson_t *reply = &answers->ctx->reply;
    assert_true(bson_iter_init(&iter, reply));
    if (!bson_iter_find_descendant(&iter, path, &found))
        fail_msg("nothing at %s", path);
    bson_t one = BSON_INITIALIZER;
    bson_append_iter(&one, "v", 1, &found);
    struct bdoc doc = {arena_copy(&answers->arena, bson_get_data(&one), one.len), one.len};
    bson_destroy(&one);
    assert_true(bdoc_find(doc, "v", &val));
    return val;
}

static void expect_number(struct answers *answers, const char *path, int64_t wanted)
{
    struct bval val = at(answers, path);
    int64_t number;
    assert_true(bval_to_i64(&val, &number));
    assert_int_equal(number, wanted);
}

static void expect_text(struct answers *answers, const char *path, const char *wanted)
{
    struct bval val = at(answers, path);
    if (!bval_is_str(&val, wanted))
        fail_msg("%s isn't %s", path, wanted);
}

static void explain_reply_adds_up_what_the_shards_examined(void **state)
{
    struct answers answers;
    (void)state;
    begin(&answers,
          "{\"explainVersion\": \"1\", \"queryPlanner\": {\"namespace\": \"db.c\", \"winningPlan\": {\"stage\": "
          "\"EOF\"}},"
          " \"executionStats\": {\"nReturned\": 3, \"totalKeysExamined\": 4, \"totalDocsExamined\": 5,"
          " \"executionTimeMillis\": 6, \"allPlansExecution\": [{\"score\": 1}]}}",
          "{\"queryPlanner\": {\"namespace\": \"db.c\"}, \"executionStats\": {\"nReturned\": 10,"
          " \"totalKeysExamined\": 20, \"totalDocsExamined\": 30, \"executionTimeMillis\": 40}}");
    struct explain_reply reply = {
        .ctx = answers.ctx,
        .inner = answers.inner,
        .stage = "SHARD_MERGE",
        .scatter = &answers.scatter,
        .targeting = {.kind = "broadcast", .reason = "no predicate on k", .shards = 2, .of = 3},
        .stats = true,
        .all_plans = true,
    };
    explain_reply_plan(&reply);
    expect_text(&answers, "queryPlanner.winningPlan.stage", "SHARD_MERGE");
    expect_text(&answers, "queryPlanner.winningPlan.shards.0.shardName", "s0");
    expect_text(&answers, "queryPlanner.winningPlan.shards.0.connectionString", "s0/h:1");
    expect_text(&answers, "queryPlanner.winningPlan.shards.0.winningPlan.stage", "EOF");
    expect_text(&answers, "queryPlanner.winningPlan.shards.1.namespace", "db.c");
    expect_number(&answers, "executionStats.nReturned", 13);
    expect_number(&answers, "executionStats.totalKeysExamined", 24);
    expect_number(&answers, "executionStats.executionStages.totalDocsExamined", 35);
    expect_number(&answers, "executionStats.executionStages.totalChildMillis", 46);
    expect_number(&answers, "executionStats.executionStages.shards.1.nReturned", 10);
    expect_number(&answers, "executionStats.allPlansExecution.0.allPlans.0.score", 1);
    expect_text(&answers, "targeting.kind", "broadcast");
    expect_number(&answers, "targeting.of", 3);
    expect_text(&answers, "serverInfo.host", "here");
    expect_text(&answers, "command.find", "c");
    struct bval command = at(&answers, "command");
    assert_false(bdoc_has(bval_doc(&command), "$sherdX"));
    end(&answers);
}

static void explain_reply_of_a_pipeline_keeps_each_shards_stages(void **state)
{
    struct answers answers;
    (void)state;
    begin(&answers, "{\"stages\": [{\"$cursor\": {}}], \"serverInfo\": {}, \"ok\": 1.0}",
          "{\"queryPlanner\": {\"namespace\": \"db.c\"}, \"ok\": 1.0}");
    struct explain_reply reply = {
        .ctx = answers.ctx,
        .inner = answers.inner,
        .scatter = &answers.scatter,
        .targeting = {.kind = "broadcast", .reason = "no predicate on k", .shards = 2, .of = 2},
        .shards_part = json_doc(&answers.arena, "{\"0\": {\"$match\": {}}}"),
    };
    explain_reply_aggregate(&reply);
    expect_text(&answers, "mergeType", "mongos");
    assert_int_equal(at(&answers, "splitPipeline.shardsPart").type, BT_ARRAY);
    assert_int_equal(at(&answers, "splitPipeline.mergerPart").type, BT_ARRAY);
    assert_int_equal(at(&answers, "shards.s0.stages.0.$cursor").type, BT_DOCUMENT);
    expect_text(&answers, "shards.s1.queryPlanner.namespace", "db.c");
    struct bval shard = at(&answers, "shards.s0");
    assert_false(bdoc_has(bval_doc(&shard), "ok"));
    end(&answers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explain_reply_adds_up_what_the_shards_examined),
        cmocka_unit_test(explain_reply_of_a_pipeline_keeps_each_shards_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
