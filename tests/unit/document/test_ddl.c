#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include "document/ddl.h"
#include "storage/catalog.h"

#include <stdio.h>

static void create_existing_collection_is_told(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c'}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'create': 'c'}", "{'ok': 1.0}");
    fixture_expect_error(&fixture, "{'create': 'c', 'capped': true, 'size': 1000}", 48);
    fixture_expect_error(&fixture, "{'create': 'c', 'nonsense': true}", 40415);
    fixture_expect_error(&fixture, "{'create': ''}", 73);
    fixture_close(&fixture);
}

static void drop_forgets_data_and_erases_it_in_steps(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1}, {'_id': 2}]}", "{'n': 2}");
    fixture_expect(&fixture, "{'drop': 'c'}", "{'nIndexesWas': 1, 'ns': 't.c'}");
    fixture_expect_batch(&fixture, "{'find': 'c'}", "[]");
    fixture_expect(&fixture, "{'drop': 'c'}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1}]}", "{'n': 1}");
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 1}");
    struct store_txn *txn;
    struct err err;
    assert_true(store_read_begin(fixture.store, &txn, &err));
    assert_false(catalog_erase_pending(txn));
    store_read_end(txn);
    fixture_close(&fixture);
}

static void drop_database_takes_all_collections(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'a', 'documents': [{'_id': 1}]}", "{'n': 1}");
    fixture_expect(&fixture, "{'insert': 'b', 'documents': [{'_id': 1}]}", "{'n': 1}");
    fixture_expect(&fixture, "{'insert': 'x', 'documents': [{'_id': 1}], '$db': 'other'}", "{'n': 1}");
    fixture_expect(&fixture, "{'dropDatabase': 1}", "{'dropped': 't'}");
    fixture_expect_batch(&fixture, "{'listCollections': 1, 'nameOnly': true}", "[]");
    fixture_expect(&fixture, "{'listDatabases': 1, 'nameOnly': true, '$db': 'admin'}",
                   "{'databases': [{'name': 'other'}]}");
    fixture_expect_error(&fixture, "{'dropDatabase': 1, '$db': 'config'}", 20);
    fixture_close(&fixture);
}

static void create_indexes_reports_counts_and_refuses_conflicts(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}]}",
                   "{'numIndexesBefore': 1, 'numIndexesAfter': 2, 'createdCollectionAutomatically': true}");
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}]}",
                   "{'numIndexesBefore': 2, 'numIndexesAfter': 2, 'note': 'all indexes already exist'}");
    fixture_expect_error(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'other'}]}", 85);
    fixture_expect_error(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'b': 1}, 'name': 'a_1'}]}", 86);
    fixture_expect_error(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'b': 0}, 'name': 'b_0'}]}", 67);
    fixture_expect_error(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'b': 1}, 'name': 'b', 'nonsense': 1}]}",
                         197);
    fixture_expect_error(&fixture, "{'createIndexes': 'c', 'indexes': []}", 2);
    fixture_close(&fixture);
}

static void create_unique_index_over_duplicates_leaves_nothing(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'a': 1}, {'_id': 2, 'a': 1}]}", "{'n': 2}");
    fixture_expect_error(&fixture,
                         "{'createIndexes': 'c', 'indexes': [{'key': {'b': 1}, 'name': 'b'}, {'key': {'a': 1}, 'name': "
                         "'a', 'unique': true}]}",
                         11000);
    fixture_expect_batch(&fixture, "{'listIndexes': 'c'}", "[{'v': 2, 'key': {'_id': 1}, 'name': '_id_'}]");
    fixture_close(&fixture);
}

static void drop_indexes_by_name_key_list_and_star(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(
        &fixture,
        "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}, {'key': {'b': 1}, 'name': 'b_1'},"
        " {'key': {'c': 1}, 'name': 'c_1'}, {'key': {'d': 1}, 'name': 'd_1'}]}",
        "{'numIndexesAfter': 5}");
    fixture_expect(&fixture, "{'dropIndexes': 'c', 'index': 'a_1'}", "{'nIndexesWas': 5}");
    fixture_expect(&fixture, "{'dropIndexes': 'c', 'index': {'b': 1}}", "{'nIndexesWas': 4}");
    fixture_expect_error(&fixture, "{'dropIndexes': 'c', 'index': ['c_1', 'nope']}", 27);
    fixture_expect_error(&fixture, "{'dropIndexes': 'c', 'index': '_id_'}", 72);
    fixture_expect_error(&fixture, "{'dropIndexes': 'c', 'index': 5}", 14);
    fixture_expect(&fixture, "{'dropIndexes': 'c', 'index': ['c_1']}", "{'nIndexesWas': 3}");
    fixture_expect(&fixture, "{'dropIndexes': 'c', 'index': '*'}", "{'nIndexesWas': 2}");
    fixture_expect_error(&fixture, "{'dropIndexes': 'missing', 'index': '*'}", 26);
    fixture_expect_error(&fixture, "{'listIndexes': 'missing'}", 26);
    fixture_close(&fixture);
}

static void insert_many(struct fixture *fixture, int count, int modulo)
{
    for (int done = 0; done < count; done += 1000) {
        bson_t command = BSON_INITIALIZER;
        bson_t array;
        BSON_APPEND_UTF8(&command, "insert", "big");
        BSON_APPEND_ARRAY_BEGIN(&command, "documents", &array);
        for (int i = done; i < done + 1000 && i < count; i++) {
            bson_t doc;
            char key[16];
            snprintf(key, sizeof key, "%d", i - done);
            BSON_APPEND_DOCUMENT_BEGIN(&array, key, &doc);
            BSON_APPEND_INT32(&doc, "_id", i);
            BSON_APPEND_INT32(&doc, "a", i % modulo);
            bson_append_document_end(&array, &doc);
        }
        bson_append_array_end(&command, &array);
        BSON_APPEND_UTF8(&command, "$db", "t");
        bson_destroy(fixture_run_bson(fixture, &command));
        bson_destroy(&command);
    }
}

static void index_of_a_large_collection_is_built_through_the_log(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call call;
    fixture_open(&fixture);
    insert_many(&fixture, 5000, 5000);
    fixture.hold = true;
    fixture_start(&fixture, &call,
                  "{'createIndexes': 'big', 'indexes': [{'key': {'a': 1}, 'name': 'a_1', 'unique': true}]}");
    /* A write in the middle of the build is in the index, too. */
    struct fixture_call write;
    fixture_start(&fixture, &write, "{'insert': 'big', 'documents': [{'_id': 9999, 'a': 9999}]}");
    assert_true(fixture_apply(&fixture) > 3);
    fixture.hold = false;
    assert_true(call.done && write.done);
    assert_int_equal(fixture_i64(call.reply, "numIndexesAfter"), 2);
    bson_destroy(call.reply);
    bson_destroy(write.reply);
    fixture_expect(&fixture, "{'count': 'big', 'query': {'a': {'$gte': 0}}, 'hint': 'a_1'}", "{'n': 5001}");
    fixture_expect_error(&fixture, "{'validate': 'missing'}", 26);
    fixture_expect(&fixture, "{'validate': 'big'}", "{'valid': true, 'nrecords': 5001}");
    fixture_close(&fixture);
}

static void unique_index_of_a_large_collection_fails_on_a_duplicate(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    insert_many(&fixture, 3000, 2999);
    fixture_expect_error(
        &fixture, "{'createIndexes': 'big', 'indexes': [{'key': {'a': 1}, 'name': 'a_1', 'unique': true}]}", 11000);
    fixture_expect_batch(&fixture, "{'listIndexes': 'big'}", "[{'v': 2, 'key': {'_id': 1}, 'name': '_id_'}]");
    fixture_close(&fixture);
}

/* Whoever asks for an index is answered when it can be used. */
static void index_that_is_being_built_is_waited_for(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call first;
    struct fixture_call second;
    const char *command = "{'createIndexes': 'big', 'indexes': [{'key': {'a': 1}, 'name': 'a_1', 'unique': true}]}";
    for (int duplicates = 0; duplicates < 2; duplicates++) {
        fixture_open(&fixture);
        insert_many(&fixture, 5000, 5000 - duplicates);
        fixture.hold = true;
        fixture_start(&fixture, &first, command);
        fixture_start(&fixture, &second, command);
        fixture_apply(&fixture);
        assert_true(first.done && second.done);
        assert_int_equal(fixture_i64(first.reply, duplicates ? "code" : "ok"), duplicates ? 11000 : 1);
        assert_int_equal(fixture_i64(second.reply, duplicates ? "code" : "ok"), duplicates ? 276 : 1);
        bson_destroy(first.reply);
        bson_destroy(second.reply);
        fixture_close(&fixture);
    }
}

static void index_build_outlasts_a_busy_log(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    insert_many(&fixture, 5000, 5000);
    fixture.busy = 2;
    fixture.busy_after = 2;
    fixture_expect(&fixture, "{'createIndexes': 'big', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}]}",
                   "{'numIndexesAfter': 2}");
    assert_int_equal(fixture.busy, 0);
    fixture_expect(&fixture, "{'count': 'big', 'query': {'a': {'$gte': 0}}, 'hint': 'a_1'}", "{'n': 5000}");
    fixture_close(&fixture);
}

static void index_build_of_a_former_leader_is_taken_up(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call call;
    fixture_open(&fixture);
    insert_many(&fixture, 3000, 3000);
    /* The leader is lost right after the index came into being. */
    fixture.hold = true;
    fixture_start(&fixture, &call, "{'createIndexes': 'big', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}]}");
    fixture.hold = false;
    fixture.not_leader = true;
    fixture_apply(&fixture);
    assert_true(call.done);
    assert_int_equal(fixture_i64(call.reply, "code"), 10107);
    bson_destroy(call.reply);
    fixture.not_leader = false;
    /* The second look takes it up: the first only notes it. */
    document_engine_tick(fixture.host.engine);
    document_engine_tick(fixture.host.engine);
    fixture_drain(&fixture);
    fixture_expect(&fixture, "{'count': 'big', 'query': {'a': {'$gte': 0}}, 'hint': 'a_1'}", "{'n': 3000}");
    fixture_close(&fixture);
}

static int check_code(struct fixture *fixture, const char *options, const char *indexes)
{
    struct err err = {0};
    bson_t *options_doc = bson_new_from_json((const uint8_t *)options, -1, NULL);
    bson_t *indexes_doc = bson_new_from_json((const uint8_t *)indexes, -1, NULL);
    struct create_header header = {.options = bdoc_of(options_doc), .indexes = bdoc_of(indexes_doc)};
    bool ok = create_header_check(fixture->host.engine, &header, &err);
    bson_destroy(options_doc);
    bson_destroy(indexes_doc);
    return ok ? 0 : err.code;
}

/* In the log it would end every member of this shard, again and again. */
static void what_a_shard_with_another_icu_made_is_refused_before_the_log(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    assert_int_equal(check_code(&fixture, "{}", "{}"), 0);
    assert_int_equal(check_code(&fixture, "{\"collation\": {\"locale\": \"de\"}}",
                                "{\"0\": {\"key\": {\"a\": 1}, \"name\": \"a\"}}"),
                     0);
    assert_int_equal(check_code(&fixture, "{\"collation\": {\"locale\": \"de\", \"version\": \"0.0\"}}", "{}"), 161);
    assert_int_equal(check_code(&fixture, "{}",
                                "{\"0\": {\"key\": {\"a\": 1}, \"name\": \"a\", \"collation\": {\"locale\": \"de\", "
                                "\"version\": \"0.0\"}}}"),
                     161);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create_existing_collection_is_told),
        cmocka_unit_test(what_a_shard_with_another_icu_made_is_refused_before_the_log),
        cmocka_unit_test(drop_forgets_data_and_erases_it_in_steps),
        cmocka_unit_test(drop_database_takes_all_collections),
        cmocka_unit_test(create_indexes_reports_counts_and_refuses_conflicts),
        cmocka_unit_test(create_unique_index_over_duplicates_leaves_nothing),
        cmocka_unit_test(drop_indexes_by_name_key_list_and_star),
        cmocka_unit_test(index_of_a_large_collection_is_built_through_the_log),
        cmocka_unit_test(unique_index_of_a_large_collection_fails_on_a_duplicate),
        cmocka_unit_test(index_that_is_being_built_is_waited_for),
        cmocka_unit_test(index_build_outlasts_a_busy_log),
        cmocka_unit_test(index_build_of_a_former_leader_is_taken_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
