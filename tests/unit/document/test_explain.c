#include "tests/unit/cmocka_all.h"
#include "tests/unit/document/fixture.h"

#include "bson/path.h"

#include <string.h>

/* 100 documents {_id, x: _id % 10, y: _id % 3}, an index on x. */
static void fill(struct fixture *fixture)
{
    fixture_open(fixture);
    for (int i = 0; i < 100; i++) {
        char text[128];
        snprintf(text, sizeof text, "{'insert': 'c', 'documents': [{'_id': %d, 'x': %d, 'y': %d}]}", i, i % 10, i % 3);
        bson_destroy(fixture_run(fixture, text));
    }
    fixture_expect(fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'x': 1}, 'name': 'x_1'}]}", "{'ok': 1.0}");
}

/* The string at a dotted path. */
static void expect_text(const bson_t *reply, const char *path, const char *wanted)
{
    bson_iter_t iter;
    bson_iter_t found;
    assert_true(bson_iter_init(&iter, reply));
    if (!bson_iter_find_descendant(&iter, path, &found) || !BSON_ITER_HOLDS_UTF8(&found)) {
        char *text = bson_as_relaxed_extended_json(reply, NULL);
        fail_msg("no string at %s in %s", path, text);
    }
    assert_string_equal(bson_iter_utf8(&found, NULL), wanted);
}

static void explain_find_shows_the_plan_and_what_it_examined(void **state)
{
    struct fixture fixture;
    (void)state;
    fill(&fixture);
    bson_t *reply =
        fixture_run(&fixture, "{'explain': {'find': 'c', 'filter': {'x': 3}}, 'verbosity': 'executionStats'}");
    expect_text(reply, "queryPlanner.namespace", "t.c");
    expect_text(reply, "queryPlanner.winningPlan.stage", "FETCH");
    expect_text(reply, "queryPlanner.winningPlan.inputStage.stage", "IXSCAN");
    expect_text(reply, "queryPlanner.winningPlan.inputStage.indexName", "x_1");
    expect_text(reply, "queryPlanner.winningPlan.inputStage.indexBounds.x.0", "[3, 3]");
    assert_int_equal(fixture_i64(reply, "queryPlanner.parsedQuery.x.$eq"), 3);
    assert_int_equal(fixture_i64(reply, "executionStats.nReturned"), 10);
    assert_int_equal(fixture_i64(reply, "executionStats.totalKeysExamined"), 10);
    assert_int_equal(fixture_i64(reply, "executionStats.totalDocsExamined"), 10);
    assert_int_equal(fixture_i64(reply, "executionStats.executionStages.inputStage.keysExamined"), 10);
    expect_text(reply, "command.find", "c");
    expect_text(reply, "serverInfo.host", "localhost");
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void explain_of_a_sort_counts_each_stage(void **state)
{
    struct fixture fixture;
    (void)state;
    fill(&fixture);
    bson_t *reply = fixture_run(&fixture, "{'explain': {'find': 'c', 'filter': {'y': 1}, 'sort': {'y': 1}, 'skip': 2,"
                                          " 'limit': 5}, 'verbosity': 'executionStats'}");
    expect_text(reply, "executionStats.executionStages.stage", "SKIP");
    expect_text(reply, "executionStats.executionStages.inputStage.stage", "SORT");
    expect_text(reply, "executionStats.executionStages.inputStage.inputStage.stage", "COLLSCAN");
    assert_int_equal(fixture_i64(reply, "executionStats.nReturned"), 5);
    assert_int_equal(fixture_i64(reply, "executionStats.executionStages.inputStage.nReturned"), 7);
    assert_int_equal(fixture_i64(reply, "executionStats.executionStages.inputStage.inputStage.docsExamined"), 100);
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void explain_of_a_write_changes_nothing(void **state)
{
    struct fixture fixture;
    (void)state;
    fill(&fixture);
    unsigned logged = fixture.history_count;
    bson_t *reply = fixture_run(&fixture, "{'explain': {'update': 'c', 'updates': [{'q': {'x': 3}, 'u': {'$set':"
                                          " {'y': 0}}, 'multi': true}]}, 'verbosity': 'executionStats'}");
    expect_text(reply, "executionStats.executionStages.stage", "UPDATE");
    assert_int_equal(fixture_i64(reply, "executionStats.executionStages.nMatched"), 10);
    assert_int_equal(fixture_i64(reply, "executionStats.executionStages.nWouldModify"), 6);
    assert_int_equal(fixture_i64(reply, "executionStats.executionStages.nWouldUpsert"), 0);
    bson_destroy(reply);
    reply = fixture_run(&fixture, "{'explain': {'delete': 'c', 'deletes': [{'q': {'x': 3}, 'limit': 0}]},"
                                  " 'verbosity': 'executionStats'}");
    assert_int_equal(fixture_i64(reply, "executionStats.executionStages.nWouldDelete"), 10);
    bson_destroy(reply);
    reply = fixture_run(&fixture, "{'explain': {'update': 'c', 'updates': [{'q': {'x': 77}, 'u': {'$set':"
                                  " {'y': 0}}, 'upsert': true}]}, 'verbosity': 'executionStats'}");
    assert_int_equal(fixture_i64(reply, "executionStats.executionStages.nWouldUpsert"), 1);
    bson_destroy(reply);
    reply = fixture_run(&fixture, "{'explain': {'findAndModify': 'c', 'query': {'x': 3}, 'sort': {'y': -1},"
                                  " 'remove': true}, 'verbosity': 'executionStats'}");
    expect_text(reply, "executionStats.executionStages.stage", "DELETE");
    assert_int_equal(fixture_i64(reply, "executionStats.nReturned"), 1);
    bson_destroy(reply);
    assert_int_equal(fixture.history_count, logged);
    fixture_close(&fixture);
}

static void explain_of_count_and_distinct(void **state)
{
    struct fixture fixture;
    (void)state;
    fill(&fixture);
    bson_t *reply = fixture_run(&fixture, "{'explain': {'count': 'c', 'query': {'x': 3}, 'skip': 4}}");
    expect_text(reply, "queryPlanner.winningPlan.stage", "COUNT");
    assert_int_equal(fixture_i64(reply, "executionStats.executionStages.nCounted"), 6);
    assert_int_equal(fixture_i64(reply, "executionStats.executionStages.nSkipped"), 4);
    bson_destroy(reply);
    reply = fixture_run(&fixture, "{'explain': {'count': 'c'}}");
    assert_int_equal(fixture_i64(reply, "executionStats.totalDocsExamined"), 0);
    assert_int_equal(fixture_i64(reply, "executionStats.executionStages.nCounted"), 100);
    bson_destroy(reply);
    reply = fixture_run(&fixture, "{'explain': {'distinct': 'c', 'key': 'x', 'query': {'x': {'$gt': 7}}}}");
    expect_text(reply, "queryPlanner.namespace", "t.c");
    assert_true(fixture_i64(reply, "executionStats.totalKeysExamined") <= 21);
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void explain_of_aggregate_shows_stages_after_the_cursor(void **state)
{
    struct fixture fixture;
    (void)state;
    fill(&fixture);
    bson_t *reply = fixture_run(&fixture, "{'explain': {'aggregate': 'c', 'pipeline': [{'$match': {'x': 3}},"
                                          " {'$group': {'_id': '$y'}}], 'cursor': {}}, 'verbosity': 'executionStats'}");
    expect_text(reply, "stages.0.$cursor.queryPlanner.winningPlan.stage", "FETCH");
    assert_int_equal(fixture_i64(reply, "stages.0.$cursor.executionStats.nReturned"), 10);
    assert_int_equal(fixture_i64(reply, "stages.0.nReturned"), 10);
    expect_text(reply, "stages.1.$group._id", "$y");
    assert_int_equal(fixture_i64(reply, "stages.1.nReturned"), 3);
    bson_destroy(reply);
    reply = fixture_run(&fixture, "{'aggregate': 'c', 'pipeline': [{'$match': {'x': 3}}], 'explain': true}");
    expect_text(reply, "queryPlanner.winningPlan.stage", "FETCH");
    assert_false(bson_has_field(reply, "executionStats"));
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void explain_of_what_is_not_there_is_eof(void **state)
{
    struct fixture fixture;
    (void)state;
    fill(&fixture);
    bson_t *reply = fixture_run(&fixture, "{'explain': {'find': 'none', 'filter': {'x': 3}}}");
    expect_text(reply, "queryPlanner.winningPlan.stage", "EOF");
    assert_int_equal(fixture_i64(reply, "executionStats.nReturned"), 0);
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void explain_malformed_fails_with_code(void **state)
{
    struct fixture fixture;
    (void)state;
    fill(&fixture);
    fixture_expect_error(&fixture, "{'explain': {'find': 'c'}, 'verbosity': 'all'}", 2);
    fixture_expect_error(&fixture, "{'explain': {'find': 'c'}, 'verbosity': 1}", 14);
    fixture_expect_error(&fixture, "{'explain': {'explain': {'find': 'c'}}}", 20);
    fixture_expect_error(&fixture, "{'explain': {'insert': 'c', 'documents': [{'a': 1}]}}", 20);
    fixture_expect_error(&fixture, "{'explain': {}}", 9);
    fixture_expect_error(&fixture, "{'explain': 'find'}", 14);
    fixture_expect_error(&fixture, "{'explain': {'find': 'c', 'filter': {'$foo': 1}}}", 2);
    fixture_expect_error(&fixture, "{'explain': {'find': 'c', 'nope': 1}}", 40415);
    fixture_expect_error(&fixture, "{'explain': {'update': 'c', 'updates': []}}", 16);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explain_find_shows_the_plan_and_what_it_examined),
        cmocka_unit_test(explain_of_a_sort_counts_each_stage),
        cmocka_unit_test(explain_of_a_write_changes_nothing),
        cmocka_unit_test(explain_of_count_and_distinct),
        cmocka_unit_test(explain_of_aggregate_shows_stages_after_the_cursor),
        cmocka_unit_test(explain_of_what_is_not_there_is_eof),
        cmocka_unit_test(explain_malformed_fails_with_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
