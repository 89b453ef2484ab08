/* count, distinct, aggregate, lists and statistics */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include <stdio.h>

static void fill(struct fixture *fixture)
{
    fixture_open(fixture);
    fixture_expect(fixture,
                   "{'insert': 'c', 'documents': [{'_id': 1, 'a': 3, 't': [1, 2]}, {'_id': 2, 'a': 1, 't': [2, 3]},"
                   " {'_id': 3, 'a': 2}, {'_id': 4, 'a': 1}]}",
                   "{'n': 4}");
}

static void count_obeys_query_skip_and_limit(void **state)
{
    (void)state;
    struct fixture fixture;
    fill(&fixture);
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 4}");
    fixture_expect(&fixture, "{'count': 'c', 'skip': 1, 'limit': 2}", "{'n': 2}");
    fixture_expect(&fixture, "{'count': 'c', 'skip': 9}", "{'n': 0}");
    fixture_expect(&fixture, "{'count': 'c', 'query': {'a': 1}}", "{'n': 2}");
    fixture_expect(&fixture, "{'count': 'c', 'query': {'a': {'$gte': 1}}, 'limit': -3}", "{'n': 3}");
    fixture_expect(
        &fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a'}, {'key': {'t': 1}, 'name': 't'}]}",
        "{'ok': 1.0}");
    fixture_expect(&fixture, "{'count': 'c', 'query': {'a': {'$gte': 1, '$lt': 3}}}", "{'n': 3}");
    fixture_expect(&fixture, "{'count': 'c', 'query': {'t': {'$gte': 1}}}", "{'n': 2}");
    fixture_expect(&fixture, "{'count': 'missing'}", "{'n': 0}");
    fixture_close(&fixture);
}

static void distinct_expands_arrays_and_joins_equal_numbers(void **state)
{
    (void)state;
    struct fixture fixture;
    fill(&fixture);
    fixture_expect(&fixture, "{'distinct': 'c', 'key': 't'}", "{'values': [1, 2, 3]}");
    fixture_expect(&fixture, "{'distinct': 'c', 'key': 'a', 'query': {'_id': {'$gt': 1}}}", "{'values': [1, 2]}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 9, 'a': {'$numberDouble': '1.0'}}]}", "{'n': 1}");
    fixture_expect(&fixture, "{'distinct': 'c', 'key': 'a', 'query': {'_id': {'$gt': 3}}}", "{'values': [1]}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 10, 'd': [[1, [2]], 3]}]}", "{'n': 1}");
    fixture_expect(&fixture, "{'distinct': 'c', 'key': 'd.0'}", "{'values': [1, [2]]}");
    fixture_expect(&fixture, "{'distinct': 'missing', 'key': 'a'}", "{'values': []}");
    fixture_expect_error(&fixture, "{'distinct': 'c'}", 40414);
    fixture_close(&fixture);
}

static void aggregate_plans_its_front_and_runs_the_rest(void **state)
{
    (void)state;
    struct fixture fixture;
    fill(&fixture);
    fixture_expect_batch(
        &fixture,
        "{'aggregate': 'c', 'pipeline': [{'$match': {'a': {'$lt': 3}}}, {'$sort': {'_id': -1}}, {'$limit': 2},"
        " {'$project': {'a': 1}}], 'cursor': {}}",
        "[{'_id': 4, 'a': 1}, {'_id': 3, 'a': 2}]");
    fixture_expect_batch(&fixture,
                         "{'aggregate': 'c', 'pipeline': [{'$group': {'_id': '$a', 'n': {'$sum': 1}}}, {'$sort': "
                         "{'_id': 1}}], 'cursor': {}}",
                         "[{'_id': 1, 'n': 2}, {'_id': 2, 'n': 1}, {'_id': 3, 'n': 1}]");
    fixture_expect_batch(&fixture, "{'aggregate': 'missing', 'pipeline': [{'$count': 'n'}], 'cursor': {}}", "[]");
    fixture_expect_error(&fixture, "{'aggregate': 'c', 'pipeline': [{'$nope': 1}], 'cursor': {}}", 40324);
    fixture_expect_error(&fixture, "{'aggregate': 'c', 'pipeline': []}", 9);
    fixture_expect_error(&fixture, "{'aggregate': 1, 'pipeline': [{'$match': {}}], 'cursor': {}}", 73);
    fixture_close(&fixture);
}

static void aggregate_batches_go_on_after_getmore(void **state)
{
    (void)state;
    struct fixture fixture;
    char command[160];
    fill(&fixture);
    bson_t *reply = fixture_run(&fixture, "{'aggregate': 'c', 'pipeline': [{'$group': {'_id': '$_id'}}, {'$sort': "
                                          "{'_id': 1}}], 'cursor': {'batchSize': 3}}");
    int64_t id = fixture_i64(reply, "cursor.id");
    bson_destroy(reply);
    fixture_expect(&fixture, "{'drop': 'c'}", "{'ok': 1.0}");
    /* The group has read everything: what is left doesn't need the collection. */
    snprintf(command, sizeof command, "{'getMore': {'$numberLong': '%lld'}, 'collection': 'c'}", (long long)id);
    fixture_expect_batch(&fixture, command, "[{'_id': 4}]");
    fixture_close(&fixture);
}

static void stats_count_documents_and_bytes_exactly(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1}, {'_id': 2}, {'_id': 3}]}", "{'n': 3}");
    fixture_expect(&fixture, "{'delete': 'c', 'deletes': [{'q': {'_id': 2}, 'limit': 1}]}", "{'n': 1}");
    fixture_expect(&fixture, "{'collStats': 'c'}",
                   "{'ns': 't.c', 'count': 2, 'size': 28, 'avgObjSize': 14, 'nindexes': 1}");
    fixture_expect(&fixture, "{'dbStats': 1}", "{'collections': 1, 'objects': 2, 'dataSize': 28}");
    bson_t *reply = fixture_run(
        &fixture, "{'aggregate': 'c', 'pipeline': [{'$collStats': {'storageStats': {'scale': 2}}}], 'cursor': {}}");
    assert_int_equal(fixture_i64(reply, "cursor.firstBatch.0.storageStats.size"), 14);
    assert_int_equal(fixture_i64(reply, "cursor.firstBatch.0.storageStats.count"), 2);
    bson_destroy(reply);
    fixture_expect_error(&fixture,
                         "{'aggregate': 'missing', 'pipeline': [{'$collStats': {'count': {}}}], 'cursor': {}}", 26);
    fixture_close(&fixture);
}

static void lists_filter_and_page(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'b'}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'create': 'a'}", "{'ok': 1.0}");
    fixture_expect_batch(&fixture, "{'listCollections': 1, 'nameOnly': true}",
                         "[{'name': 'a', 'type': 'collection'}, {'name': 'b', 'type': 'collection'}]");
    fixture_expect_batch(&fixture, "{'listCollections': 1, 'nameOnly': true, 'filter': {'name': 'b'}}",
                         "[{'name': 'b', 'type': 'collection'}]");
    bson_t *reply = fixture_run(&fixture, "{'listCollections': 1, 'cursor': {'batchSize': 1}}");
    char command[160];
    snprintf(command, sizeof command, "{'getMore': {'$numberLong': '%lld'}, 'collection': '$cmd.listCollections'}",
             (long long)fixture_i64(reply, "cursor.id"));
    bson_destroy(reply);
    reply = fixture_run(&fixture, command);
    assert_int_equal(fixture_i64(reply, "cursor.id"), 0);
    bson_destroy(reply);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(count_obeys_query_skip_and_limit),
        cmocka_unit_test(distinct_expands_arrays_and_joins_equal_numbers),
        cmocka_unit_test(aggregate_plans_its_front_and_runs_the_rest),
        cmocka_unit_test(aggregate_batches_go_on_after_getmore),
        cmocka_unit_test(stats_count_documents_and_bytes_exactly),
        cmocka_unit_test(lists_filter_and_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
