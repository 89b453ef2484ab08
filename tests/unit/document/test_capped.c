#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include "document/wakeups.h"
#include "storage/catalog.h"

#include <string.h>

static void capped_inserts_push_the_oldest_out(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c', 'capped': true, 'size': 4096, 'max': 2}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 3}, {'_id': 1}, {'_id': 2}]}", "{'n': 3}");
    fixture_expect_batch(&fixture, "{'find': 'c'}", "[{'_id': 1}, {'_id': 2}]");
    fixture_expect(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': 9}, 'u': {'x': 1}, 'upsert': true}]}",
                   "{'n': 1}");
    fixture_expect_batch(&fixture, "{'find': 'c', 'projection': {'x': 0}}", "[{'_id': 2}, {'_id': 9}]");
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'_id': 1}}", "[]");
    fixture_close(&fixture);
}

static void capped_size_counts_bytes(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    /* A document {_id: int, s: 80 characters} is 4 + 9 + 7 + 81 + 1 = 106 bytes or so: two fit into 256, three don't.
     */
    fixture_expect(&fixture, "{'create': 'c', 'capped': true, 'size': 256}", "{'ok': 1.0}");
    for (int i = 0; i < 5; i++) {
        char command[256];
        snprintf(command, sizeof command, "{'insert': 'c', 'documents': [{'_id': %d, 's': '%080d'}]}", i, i);
        fixture_expect(&fixture, command, "{'n': 1}");
    }
    fixture_expect_batch(&fixture, "{'find': 'c', 'projection': {'s': 0}}", "[{'_id': 3}, {'_id': 4}]");
    char large[1024];
    snprintf(large, sizeof large, "{'insert': 'c', 'documents': [{'_id': 7, 's': '%0300d'}]}", 1);
    bson_t *reply = fixture_run(&fixture, large);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.code"), 2);
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void capped_documents_may_be_deleted_and_changed(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c', 'capped': true, 'size': 4096, 'max': 3}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1}, {'_id': 2}, {'_id': 3}]}", "{'n': 3}");
    fixture_expect(&fixture, "{'delete': 'c', 'deletes': [{'q': {'_id': 2}, 'limit': 1}]}", "{'n': 1}");
    fixture_expect(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'s': 'longer'}}}]}",
                   "{'nModified': 1}");
    fixture_expect_batch(&fixture, "{'find': 'c'}", "[{'_id': 1, 's': 'longer'}, {'_id': 3}]");
    fixture_close(&fixture);
}

static void lower_caps_take_effect_at_once(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c', 'capped': true, 'size': 4096}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1}, {'_id': 2}, {'_id': 3}]}", "{'n': 3}");
    fixture_expect(&fixture, "{'collMod': 'c', 'cappedMax': 1}", "{'ok': 1.0}");
    fixture_expect_batch(&fixture, "{'find': 'c'}", "[{'_id': 3}]");
    fixture_expect(&fixture, "{'collMod': 'c', 'cappedMax': 0}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 4}, {'_id': 5}]}", "{'n': 2}");
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 3}");
    fixture_close(&fixture);
}

static void replay_gives_the_same_capped_collection(void **state)
{
    (void)state;
    struct fixture first;
    struct fixture second;
    fixture_open(&first);
    fixture_open(&second);
    fixture_expect(&first, "{'create': 'c', 'capped': true, 'size': 512, 'max': 7}", "{'ok': 1.0}");
    for (int i = 0; i < 40; i++) {
        char command[256];
        snprintf(command, sizeof command, "{'insert': 'c', 'documents': [{'_id': %d, 's': '%0*d'}]}", i, 1 + i * 3, i);
        fixture_expect(&first, command, "{'n': 1}");
    }
    fixture_expect(&first, "{'convertToCapped': 'c', 'size': 256}", "{'ok': 1.0}");
    fixture_replay(&first, &second);
    assert_int_equal(fixture_hash(&first), fixture_hash(&second));
    fixture_close(&first);
    fixture_close(&second);
}

static void stats_tell_the_caps(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c', 'capped': true, 'size': 1000, 'max': 5}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'collStats': 'c'}", "{'capped': true, 'max': 5, 'maxSize': 1024}");
    fixture_close(&fixture);
}

static void woken(void *arg)
{
    ++*(int *)arg;
}

static void an_insert_wakes_who_waits(void **state)
{
    (void)state;
    struct fixture fixture;
    struct store_txn *txn;
    struct err err;
    int count = 0;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c', 'capped': true, 'size': 1000}", "{'ok': 1.0}");
    assert_true(store_read_begin(fixture.store, &txn, &err));
    uint32_t id = catalog_find(txn, "t.c", strlen("t.c"))->id;
    store_read_end(txn);
    struct document_wakeups *wakeups = document_engine_wakeups(fixture.host.engine);
    struct document_waiter waiter = {.collection_id = id, .wake = woken, .arg = &count};
    assert_true(document_wakeups_wait(wakeups, &waiter, document_wakeups_seen(wakeups, id)));
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1}]}", "{'n': 1}");
    assert_int_equal(count, 1);
    assert_true(document_wakeups_wait(wakeups, &waiter, document_wakeups_seen(wakeups, id)));
    fixture_expect(&fixture, "{'drop': 'c'}", "{'ok': 1.0}");
    assert_int_equal(count, 2);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capped_inserts_push_the_oldest_out),
        cmocka_unit_test(capped_size_counts_bytes),
        cmocka_unit_test(capped_documents_may_be_deleted_and_changed),
        cmocka_unit_test(lower_caps_take_effect_at_once),
        cmocka_unit_test(replay_gives_the_same_capped_collection),
        cmocka_unit_test(stats_tell_the_caps),
        cmocka_unit_test(an_insert_wakes_who_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
