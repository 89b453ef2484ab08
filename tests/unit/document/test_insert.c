#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include <stdio.h>
#include <string.h>

static void insert_without_id_gets_one_in_front(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'a': 1}, {'b': 2, '_id': 5}]}", "{'n': 2}");
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'_id': 5}}", "[{'_id': 5, 'b': 2}]");
    fixture_expect(&fixture, "{'count': 'c', 'query': {'_id': {'$type': 'objectId'}}}", "{'n': 1}");
    fixture_close(&fixture);
}

static void insert_ordered_stops_unordered_goes_on(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    bson_t *reply = fixture_run(&fixture, "{'insert': 'c', 'documents': [{'_id': 1}, {'_id': 1}, {'_id': 2}]}");
    assert_int_equal(fixture_i64(reply, "n"), 1);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.index"), 1);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.code"), 11000);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.keyValue._id"), 1);
    bson_destroy(reply);
    /* One is refused by the leader (array as _id), one by apply (duplicate). */
    reply = fixture_run(&fixture, "{'insert': 'c', 'ordered': false, 'documents': [{'a': 1, '_id': [1]}, {'_id': 1}, "
                                  "{'_id': 3}, {'_id': {'$x': 1}}, {'_id': 4}]}");
    assert_int_equal(fixture_i64(reply, "n"), 2);
    int64_t indexes = 0;
    for (int i = 0; i < 3; i++) {
        char path[32];
        snprintf(path, sizeof path, "writeErrors.%d.index", i);
        indexes += 1 << fixture_i64(reply, path);
    }
    assert_int_equal(indexes, 1 + 2 + 8);
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void insert_large_batch_is_split_into_entries(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    char *big = bson_malloc0(1 << 20);
    memset(big, 'x', (1 << 20) - 1);
    bson_t command = BSON_INITIALIZER;
    bson_t array;
    BSON_APPEND_UTF8(&command, "insert", "c");
    BSON_APPEND_ARRAY_BEGIN(&command, "documents", &array);
    for (int i = 0; i < 10; i++) {
        char key[16];
        bson_t doc;
        snprintf(key, sizeof key, "%d", i);
        BSON_APPEND_DOCUMENT_BEGIN(&array, key, &doc);
        BSON_APPEND_INT32(&doc, "_id", i == 8 ? 0 : i);
        BSON_APPEND_UTF8(&doc, "s", big);
        bson_append_document_end(&array, &doc);
    }
    bson_append_array_end(&command, &array);
    BSON_APPEND_UTF8(&command, "$db", "t");
    bson_t *reply = fixture_run_bson(&fixture, &command);
    assert_int_equal(fixture_i64(reply, "n"), 8);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.index"), 8);
    assert_int_equal(fixture.history_count, 3);
    bson_destroy(reply);
    bson_destroy(&command);
    bson_free(big);
    fixture_close(&fixture);
}

/* `count` documents of 1 MiB, numbered from `from`. */
static bson_t *insert_large(struct fixture *fixture, int from, int count)
{
    static char pad[(1 << 20) - 100];
    bson_t command = BSON_INITIALIZER;
    bson_t array;
    memset(pad, 'x', sizeof pad - 1);
    BSON_APPEND_UTF8(&command, "insert", "c");
    BSON_APPEND_ARRAY_BEGIN(&command, "documents", &array);
    for (int i = 0; i < count; i++) {
        bson_t doc;
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        BSON_APPEND_DOCUMENT_BEGIN(&array, key, &doc);
        BSON_APPEND_INT32(&doc, "_id", from + i);
        BSON_APPEND_UTF8(&doc, "pad", pad);
        bson_append_document_end(&array, &doc);
    }
    bson_append_array_end(&command, &array);
    BSON_APPEND_UTF8(&command, "$db", "t");
    bson_t *reply = fixture_run_bson(fixture, &command);
    bson_destroy(&command);
    return reply;
}

/* A batch of several entries never fills the map: that would end the process. */
static void insert_large_batch_stops_when_space_runs_out(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open_small(&fixture, 96 << 20);
    bson_t *reply = insert_large(&fixture, 0, 40);
    assert_int_equal(fixture_i64(reply, "n"), 40);
    bson_destroy(reply);
    reply = insert_large(&fixture, 1000, 45);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.code"), ERR_OutOfDiskSpace);
    assert_in_range(fixture_i64(reply, "n"), 8, 44);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.index"), fixture_i64(reply, "n"));
    bson_destroy(reply);
    reply = insert_large(&fixture, 2000, 1);
    assert_int_equal(fixture_i64(reply, "code"), ERR_OutOfDiskSpace);
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void insert_bad_requests_get_their_codes(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect_error(&fixture, "{'insert': 'c', 'documents': []}", 16);
    fixture_expect_error(&fixture, "{'insert': 'c'}", 40414);
    fixture_expect_error(&fixture, "{'insert': 'c', 'documents': [5]}", 14);
    fixture_expect_error(&fixture, "{'insert': 'a$b', 'documents': [{}]}", 73);
    fixture_expect_error(&fixture, "{'insert': 5, 'documents': [{}]}", 73);
    fixture_close(&fixture);
}

/* A damaged or foreign log command is refused and changes nothing, whatever its bytes are. */
static void apply_damaged_command_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1}]}", "{'n': 1}");
    uint64_t before = fixture_hash(&fixture);
    for (unsigned kind = 0; kind < DOCUMENT_KIND_LIMIT; kind++) {
        for (size_t len = 0; len < 64; len++) {
            uint8_t bytes[64];
            struct store_txn *txn;
            struct err err;
            struct arena arena;
            struct buf result = BUF_INIT;
            memset(bytes, (int)len * 7, sizeof bytes);
            arena_init(&arena);
            assert_true(store_write_begin(fixture.store, &txn, &err));
            struct document_apply apply = {.engine = fixture.host.engine, .txn = txn, .arena = &arena};
            (void)!document_apply_command(&apply, (uint8_t)kind, bytes, len, &result, &err);
            store_write_abort(txn);
            arena_deinit(&arena);
            buf_deinit(&result);
        }
    }
    assert_int_equal(fixture_hash(&fixture), before);
    fixture_close(&fixture);
}

static void apply_same_log_gives_the_same_store(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture copy;
    fixture_open(&fixture);
    fixture_open(&copy);
    static const char *const commands[] = {
        "{'insert': 'c', 'documents': [{'_id': 1, 'a': 1}, {'a': 2}, {'_id': 1}, {'_id': 3, 't': [1, 2]}]}",
        "{'insert': 'c', 'ordered': false, 'documents': [{'_id': 10, 'a': 5}, {'_id': 1}, {'_id': 11}]}",
        "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a', 'unique': true, 'sparse': true}, {'key': "
        "{'t': -1}, 'name': 't'}]}",
        "{'update': 'c', 'updates': [{'q': {'a': {'$gt': 0}}, 'u': {'$inc': {'a': 10}}, 'multi': true}, {'q': {'z': "
        "1}, 'u': {'$push': {'t': 5}}, 'upsert': true}]}",
        "{'update': 'c', 'updates': [{'q': {'_id': 3}, 'u': {'$currentDate': {'when': true}}}]}",
        "{'update': 'c', 'updates': [{'q': {'a': {'$exists': true}}, 'u': [{'$set': {'b': {'$add': ['$a', 0.1]}}}], "
        "'multi': true}]}",
        "{'findAndModify': 'c', 'query': {}, 'sort': {'a': -1}, 'remove': true}",
        "{'delete': 'c', 'deletes': [{'q': {'s': {'$regularExpression': {'pattern': 'x', 'options': ''}}}, 'limit': 0},"
        " {'q': {'_id': 10}, 'limit': 1}]}",
        "{'create': 'd'}",
        "{'insert': 'd', 'documents': [{'_id': 1}]}",
        "{'dropIndexes': 'c', 'index': 't'}",
        "{'drop': 'd'}",
    };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        fixture_expect(&fixture, commands[i], "{'ok': 1.0}");
    fixture_replay(&fixture, &copy);
    assert_int_equal(fixture_hash(&fixture), fixture_hash(&copy));
    fixture_close(&fixture);
    fixture_close(&copy);
}

static void log_replay_of_all_kinds_of_collections_gives_the_same_store(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture copy;
    fixture_open(&fixture);
    fixture_open(&copy);
    static const char *const commands[] = {
        "{'create': 'cap', 'capped': true, 'size': 4096, 'max': 3}",
        "{'createIndexes': 'cap', 'indexes': [{'key': {'$**': 1}, 'name': 'w'}]}",
        "{'insert': 'cap', 'documents': [{'_id': 1, 'a': [1]}, {'_id': 2}, {'_id': 3}, {'_id': 4, 'a': {'b': 'x'}}]}",
        "{'collMod': 'cap', 'cappedMax': 2}",
        "{'create': 'v', 'validator': {'s': {'$regex': '^a'}}}",
        "{'insert': 'v', 'documents': [{'_id': 1, 's': 'ab'}, {'_id': 2, 's': 'b'}], 'ordered': false}",
        "{'update': 'v', 'updates': [{'q': {}, 'u': [{'$set': {'s': {'$concat': ['a', '$s']}}}], 'multi': true}]}",
        "{'collMod': 'v', 'validator': {'s': {'$gte': 'a'}}, 'validationLevel': 'moderate'}",
        "{'update': 'v', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'s': 5}}}]}",
        "{'create': 'l', 'collation': {'locale': 'en', 'strength': 2}}",
        "{'createIndexes': 'l', 'indexes': [{'key': {'s': 1}, 'name': 's', 'unique': true}, {'key': {'s': 'hashed'},"
        " 'name': 'h'}, {'key': {'t': 1}, 'name': 't', 'prepareUnique': true}]}",
        "{'insert': 'l', 'documents': [{'_id': 'A', 's': 'x', 't': 1}, {'_id': 'a'}, {'_id': 'b', 's': 'X'}],"
        " 'ordered': false}",
        "{'update': 'l', 'updates': [{'q': {'s': 'X'}, 'u': {'$set': {'s': 'Y'}}}]}",
        "{'collMod': 'l', 'index': {'name': 't', 'unique': true}}",
        "{'collMod': 'l', 'index': {'name': 'h', 'hidden': true}}",
        "{'create': 'ts', 'timeseries': {'timeField': 't', 'metaField': 'm'}}",
        "{'insert': 'ts', 'documents': [{'_id': 1, 't': {'$date': {'$numberLong': '0'}}, 'm': 1}, {'_id': 1, 't':"
        " {'$date': {'$numberLong': '5'}}, 'm': 1}]}",
        "{'update': 'ts', 'updates': [{'q': {'m': 1}, 'u': {'$set': {'m': 2}}, 'multi': true}]}",
        "{'create': 'w', 'viewOn': 'v', 'pipeline': [{'$match': {'s': 1}}]}",
        "{'collMod': 'w', 'viewOn': 'l', 'pipeline': []}",
        "{'renameCollection': 't.v', 'to': 't.l', 'dropTarget': true, '$db': 'admin'}",
        "{'renameCollection': 't.ts2', 'to': 'u.c', '$db': 'admin'}",
        "{'convertToCapped': 'l', 'size': 4096}",
        "{'cloneCollectionAsCapped': 'cap', 'toCollection': 'cap2', 'size': 4096}",
        "{'setParameter': 1, 'ttlMonitorSleepSecs': 7, '$db': 'admin'}",
        "{'drop': 'w'}",
    };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        bson_destroy(fixture_run(&fixture, commands[i]));
    assert_true(fixture.history_count > 20);
    fixture_replay(&fixture, &copy);
    assert_int_equal(fixture_hash(&fixture), fixture_hash(&copy));
    fixture_expect(&copy, "{'validate': 'cap', 'full': true}", "{'valid': true, 'nrecords': 2}");
    fixture_expect(&copy, "{'validate': 'l', 'full': true}", "{'valid': true, 'nrecords': 1}");
    fixture_expect(&copy, "{'validate': 'ts', 'full': true}", "{'valid': true, 'nrecords': 2}");
    fixture_close(&fixture);
    fixture_close(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_replay_of_all_kinds_of_collections_gives_the_same_store),
        cmocka_unit_test(insert_without_id_gets_one_in_front),
        cmocka_unit_test(insert_ordered_stops_unordered_goes_on),
        cmocka_unit_test(insert_large_batch_is_split_into_entries),
        cmocka_unit_test(insert_large_batch_stops_when_space_runs_out),
        cmocka_unit_test(insert_bad_requests_get_their_codes),
        cmocka_unit_test(apply_damaged_command_is_refused),
        cmocka_unit_test(apply_same_log_gives_the_same_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
