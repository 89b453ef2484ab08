#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include <stdio.h>

static void fill(struct fixture *fixture)
{
    fixture_open(fixture);
    fixture_expect(fixture,
                   "{'insert': 'c', 'documents': [{'_id': 1, 'a': 3, 't': [1, 2]}, {'_id': 2, 'a': 1, 't': [2, 3]},"
                   " {'_id': 3, 'a': 2, 't': []}, {'_id': 4, 'a': 1}]}",
                   "{'n': 4}");
}

static void find_by_id_returns_the_document(void **state)
{
    (void)state;
    struct fixture fixture;
    fill(&fixture);
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'_id': 2}, 'projection': {'a': 1}}",
                         "[{'_id': 2, 'a': 1}]");
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'_id': 2, 'a': 9}}", "[]");
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'_id': 9}}", "[]");
    fixture_close(&fixture);
}

static void find_sort_skip_limit_work_in_memory_and_by_index(void **state)
{
    (void)state;
    struct fixture fixture;
    fill(&fixture);
    const char *command = "{'find': 'c', 'sort': {'a': 1, '_id': -1}, 'skip': 1, 'limit': 2, 'projection': {'t': 0}}";
    fixture_expect_batch(&fixture, command, "[{'_id': 2, 'a': 1}, {'_id': 3, 'a': 2}]");
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1, '_id': -1}, 'name': 'x'}]}",
                   "{'numIndexesAfter': 2}");
    fixture_expect_batch(&fixture, command, "[{'_id': 2, 'a': 1}, {'_id': 3, 'a': 2}]");
    fixture_expect_batch(&fixture, "{'find': 'c', 'sort': {'a': -1, '_id': 1}, 'limit': 2, 'projection': {'t': 0}}",
                         "[{'_id': 1, 'a': 3}, {'_id': 3, 'a': 2}]");
    fixture_close(&fixture);
}

static void find_through_multikey_index_gives_each_document_once(void **state)
{
    (void)state;
    struct fixture fixture;
    fill(&fixture);
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'t': 1}, 'name': 't_1'}]}", "{'ok': 1.0}");
    fixture_expect_batch(&fixture,
                         "{'find': 'c', 'filter': {'t': {'$gte': 1}}, 'hint': 't_1', 'projection': {'_id': 1}}",
                         "[{'_id': 1}, {'_id': 2}]");
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'t': {'$in': [2, 3]}}, 'projection': {'_id': 1}}",
                         "[{'_id': 1}, {'_id': 2}]");
    fixture_close(&fixture);
}

static void find_cursor_goes_on_after_its_document_was_deleted(void **state)
{
    (void)state;
    struct fixture fixture;
    char command[160];
    fill(&fixture);
    bson_t *reply = fixture_run(&fixture, "{'find': 'c', 'batchSize': 2}");
    int64_t id = fixture_i64(reply, "cursor.id");
    assert_true(id != 0);
    bson_destroy(reply);
    fixture_expect(&fixture, "{'delete': 'c', 'deletes': [{'q': {'_id': {'$in': [2, 3]}}, 'limit': 0}]}", "{'n': 2}");
    snprintf(command, sizeof command, "{'getMore': {'$numberLong': '%lld'}, 'collection': 'c'}", (long long)id);
    fixture_expect_batch(&fixture, command, "[{'_id': 4, 'a': 1}]");
    fixture_expect_error(&fixture, command, 43);
    fixture_close(&fixture);
}

static void find_numbered_batch_is_repeated(void **state)
{
    (void)state;
    struct fixture fixture;
    char command[160];
    fill(&fixture);
    bson_t *reply = fixture_run(&fixture, "{'find': 'c', 'batchSize': 1, 'projection': {'_id': 1}}");
    int64_t id = fixture_i64(reply, "cursor.id");
    bson_destroy(reply);
    for (int number = 1; number <= 2; number++) {
        snprintf(command, sizeof command,
                 "{'getMore': {'$numberLong': '%lld'}, 'collection': 'c', 'batchSize': 1, '$sherdBatch': %d}",
                 (long long)id, number);
        const char *expected = number == 1 ? "[{'_id': 2}]" : "[{'_id': 3}]";
        fixture_expect_batch(&fixture, command, expected);
        fixture_expect_batch(&fixture, command, expected);
    }
    fixture_close(&fixture);
}

static void find_cursor_of_dropped_collection_ends_with_an_error(void **state)
{
    (void)state;
    struct fixture fixture;
    char command[160];
    fill(&fixture);
    bson_t *reply = fixture_run(&fixture, "{'find': 'c', 'batchSize': 1}");
    int64_t id = fixture_i64(reply, "cursor.id");
    bson_destroy(reply);
    fixture_expect(&fixture, "{'drop': 'c'}", "{'nIndexesWas': 1}");
    snprintf(command, sizeof command, "{'getMore': {'$numberLong': '%lld'}, 'collection': 'c'}", (long long)id);
    fixture_expect_error(&fixture, command, 175);
    fixture_expect_error(&fixture, command, 43);
    fixture_close(&fixture);
}

static void find_kill_cursors_closes(void **state)
{
    (void)state;
    struct fixture fixture;
    char command[160];
    fill(&fixture);
    bson_t *reply = fixture_run(&fixture, "{'find': 'c', 'batchSize': 0}");
    int64_t id = fixture_i64(reply, "cursor.id");
    bson_destroy(reply);
    snprintf(command, sizeof command,
             "{'killCursors': 'c', 'cursors': [{'$numberLong': '%lld'}, {'$numberLong': '5'}]}", (long long)id);
    reply = fixture_run(&fixture, command);
    assert_int_equal(fixture_i64(reply, "cursorsKilled.0"), id);
    assert_int_equal(fixture_i64(reply, "cursorsNotFound.0"), 5);
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void find_sort_keys_come_with_the_documents(void **state)
{
    (void)state;
    struct fixture fixture;
    fill(&fixture);
    bson_t *reply = fixture_run(&fixture, "{'find': 'c', 'sort': {'a': 1}, '$sherdSortKeys': true}");
    struct bval cursor;
    struct bval keys;
    assert_true(bdoc_find(bdoc_of(reply), "cursor", &cursor));
    assert_true(bdoc_find(bval_doc(&cursor), "sortKeys", &keys));
    assert_int_equal(bdoc_count(bval_doc(&keys)), 4);
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void find_bad_requests_get_their_codes(void **state)
{
    (void)state;
    struct fixture fixture;
    fill(&fixture);
    fixture_expect_error(&fixture, "{'find': 'c', 'filter': {'a': {'$nope': 1}}}", 2);
    fixture_expect_error(&fixture, "{'find': 'c', 'filter': 5}", 14);
    fixture_expect_error(&fixture, "{'find': 'c', 'unknown': 5}", 40415);
    fixture_expect_error(&fixture, "{'find': 'c', 'hint': 'nope'}", 2);
    fixture_expect_error(&fixture, "{'find': 'c', 'tailable': true}", 2);
    fixture_expect_error(&fixture, "{'find': 'c', 'collation': {'locale': 'no such place'}}", 2);
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'_id': 4}, 'collation': {'locale': 'simple'}}",
                         "[{'_id': 4, 'a': 1}]");
    fixture_expect_batch(&fixture, "{'find': 'missing'}", "[]");
    fixture_close(&fixture);
}

static void find_batch_stops_at_its_size_in_bytes(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    char *big = bson_malloc0(6 << 20);
    memset(big, 'x', (6 << 20) - 1);
    for (int i = 0; i < 4; i++) {
        bson_t *command = BCON_NEW("insert", "big", "documents", "[", "{", "_id", BCON_INT32(i), "s", BCON_UTF8(big),
                                   "}", "]", "$db", "t");
        bson_destroy(fixture_run_bson(&fixture, command));
        bson_destroy(command);
    }
    bson_free(big);
    bson_t *reply = fixture_run(&fixture, "{'find': 'big'}");
    char command[160];
    assert_int_equal(fixture_i64(reply, "cursor.firstBatch.1._id"), 1);
    snprintf(command, sizeof command, "{'getMore': {'$numberLong': '%lld'}, 'collection': 'big'}",
             (long long)fixture_i64(reply, "cursor.id"));
    bson_destroy(reply);
    reply = fixture_run(&fixture, command);
    assert_int_equal(fixture_i64(reply, "cursor.nextBatch.0._id"), 2);
    assert_int_equal(fixture_i64(reply, "cursor.nextBatch.1._id"), 3);
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void find_gives_record_ids_and_keys(void **state)
{
    (void)state;
    struct fixture fixture;
    fill(&fixture);
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}]}", "{'ok': 1.0}");
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'_id': 2}, 'projection': {'a': 1}, 'showRecordId': true}",
                         "[{'_id': 2, 'a': 1, '$recordId': 2}]");
    fixture_expect_batch(&fixture,
                         "{'find': 'c', 'projection': {'_id': 1}, 'sort': {'t': -1}, 'limit': 1, 'showRecordId': true}",
                         "[{'_id': 2, '$recordId': 2}]");
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'a': {'$gt': 1}}, 'returnKey': true}",
                         "[{'a': 2}, {'a': 3}]");
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'a': {'$gt': 1}}, 'sort': {'_id': 1}, 'returnKey': true}",
                         "[{'a': 3}, {'a': 2}]");
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'t': 3}, 'returnKey': true}", "[{}]");
    fixture_close(&fixture);
}

static void find_projects_metadata(void **state)
{
    (void)state;
    struct fixture fixture;
    fill(&fixture);
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}]}", "{'ok': 1.0}");
    fixture_expect_batch(&fixture,
                         "{'find': 'c', 'filter': {'_id': {'$lt': 4}}, 'sort': {'t': -1, 'a': 1}, 'projection': {'_id':"
                         " 1, 'k': {'$meta': 'sortKey'}, 'r': {'$meta': 'recordId'}}}",
                         "[{'_id': 2, 'k': [3, 1], 'r': 2}, {'_id': 1, 'k': [2, 3], 'r': 1},"
                         " {'_id': 3, 'k': [{'$undefined': true}, 2], 'r': 3}]");
    fixture_expect_batch(&fixture,
                         "{'find': 'c', 'filter': {'a': 2}, 'projection': {'_id': 1, 'k': {'$meta': 'indexKey'}}}",
                         "[{'_id': 3, 'k': {'a': 2}}]");
    fixture_close(&fixture);
}

static void find_covered_by_an_index_has_the_id_in_front(void **state)
{
    (void)state;
    struct fixture fixture;
    fill(&fixture);
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1, '_id': 1}, 'name': 'x'}]}",
                   "{'ok': 1.0}");
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'a': {'$gt': 1}}, 'projection': {'a': 1}, 'hint': 'x'}",
                         "[{'_id': 3, 'a': 2}, {'_id': 1, 'a': 3}]");
    fixture_close(&fixture);
}

static void find_min_and_max_bound_the_hinted_index(void **state)
{
    (void)state;
    struct fixture fixture;
    fill(&fixture);
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}]}", "{'ok': 1.0}");
    fixture_expect_batch(&fixture,
                         "{'find': 'c', 'min': {'a': 2}, 'max': {'a': 3}, 'hint': 'a_1', 'projection': {'_id': 1}}",
                         "[{'_id': 3}]");
    fixture_expect_error(&fixture, "{'find': 'c', 'min': {'a': 2}}", 51173);
    fixture_expect_error(&fixture, "{'find': 'c', 'min': {'b': 2}, 'hint': 'a_1'}", 51174);
    fixture_expect_error(&fixture, "{'find': 'c', 'min': {'a': 2}, 'max': {'a': 1}, 'hint': 'a_1'}", 51175);
    fixture_close(&fixture);
}

static void find_min_and_max_hold_for_a_sort_by_several_values(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'createIndexes': 'm', 'indexes': [{'key': {'a': 1, 'b': 1}, 'name': 'a_b'}]}",
                   "{'ok': 1.0}");
    for (int b = 0; b < 200; b++) {
        char insert[160];
        snprintf(insert, sizeof insert, "{'insert': 'm', 'documents': [{'a': 1, 'b': %d}, {'a': 2, 'b': %d}]}", b, b);
        bson_destroy(fixture_run(&fixture, insert));
    }
    fixture_expect_batch(&fixture,
                         "{'find': 'm', 'filter': {'a': {'$in': [1, 2]}}, 'sort': {'b': 1}, 'limit': 3, 'hint': 'a_b',"
                         " 'min': {'a': 1, 'b': 150}, 'max': {'a': 2, 'b': 2}, 'projection': {'_id': 0}}",
                         "[{'a': 2, 'b': 0}, {'a': 2, 'b': 1}, {'a': 1, 'b': 150}]");
    fixture_close(&fixture);
}

static void find_index_key_of_a_document_that_did_not_fit_is_its_own(void **state)
{
    enum { TEXT = 9 * 1024 * 1024 };
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'createIndexes': 'big', 'indexes': [{'key': {'k': 1}, 'name': 'k'}]}", "{'ok': 1.0}");
    char *insert = malloc(TEXT + 100);
    memset(insert, 'x', TEXT + 100);
    for (int i = 0; i < 2; i++) {
        int len = sprintf(insert, "{'insert': 'big', 'documents': [{'_id': %d, 'k': %d, 'v': '", i, i);
        insert[len] = 'x';
        strcpy(insert + TEXT, "'}]}");
        bson_destroy(fixture_run(&fixture, insert));
    }
    free(insert);
    bson_t *reply = fixture_run(&fixture, "{'find': 'big', 'filter': {'k': {'$gte': 0}}, 'hint': 'k',"
                                          " 'projection': {'v': 1, 'key': {'$meta': 'indexKey'}}}");
    char more[100];
    assert_int_equal(fixture_i64(reply, "cursor.firstBatch.0.key.k"), 0);
    snprintf(more, sizeof more, "{'getMore': {'$numberLong': '%lld'}, 'collection': 'big'}",
             (long long)fixture_i64(reply, "cursor.id"));
    bson_destroy(reply);
    reply = fixture_run(&fixture, more);
    assert_int_equal(fixture_i64(reply, "cursor.nextBatch.0.key.k"), 1);
    bson_destroy(reply);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find_by_id_returns_the_document),
        cmocka_unit_test(find_sort_skip_limit_work_in_memory_and_by_index),
        cmocka_unit_test(find_through_multikey_index_gives_each_document_once),
        cmocka_unit_test(find_cursor_goes_on_after_its_document_was_deleted),
        cmocka_unit_test(find_numbered_batch_is_repeated),
        cmocka_unit_test(find_cursor_of_dropped_collection_ends_with_an_error),
        cmocka_unit_test(find_kill_cursors_closes),
        cmocka_unit_test(find_sort_keys_come_with_the_documents),
        cmocka_unit_test(find_bad_requests_get_their_codes),
        cmocka_unit_test(find_batch_stops_at_its_size_in_bytes),
        cmocka_unit_test(find_gives_record_ids_and_keys),
        cmocka_unit_test(find_projects_metadata),
        cmocka_unit_test(find_covered_by_an_index_has_the_id_in_front),
        cmocka_unit_test(find_min_and_max_bound_the_hinted_index),
        cmocka_unit_test(find_min_and_max_hold_for_a_sort_by_several_values),
        cmocka_unit_test(find_index_key_of_a_document_that_did_not_fit_is_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
