#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include "document/insert.h"

#include "storage/catalog.h"

#include <stdio.h>
#include <string.h>

static void rename_keeps_documents_indexes_and_uuid(void **state)
{
    (void)state;
    struct fixture fixture;
    struct store_txn *txn;
    struct err err;
    uint8_t uuid[16];
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'a', 'documents': [{'_id': 1, 'x': 1}]}", "{'n': 1}");
    fixture_expect(&fixture, "{'createIndexes': 'a', 'indexes': [{'key': {'x': 1}, 'name': 'x_1'}]}", "{'ok': 1.0}");
    assert_true(store_read_begin(fixture.store, &txn, &err));
    memcpy(uuid, catalog_find(txn, "t.a", 3)->uuid, sizeof uuid);
    store_read_end(txn);
    fixture_expect(&fixture, "{'renameCollection': 't.a', 'to': 't.b', '$db': 'admin'}", "{'ok': 1.0}");
    fixture_expect_batch(&fixture, "{'find': 'b', 'filter': {'x': 1}}", "[{'_id': 1, 'x': 1}]");
    fixture_expect_batch(&fixture, "{'find': 'a'}", "[]");
    assert_true(store_read_begin(fixture.store, &txn, &err));
    assert_memory_equal(uuid, catalog_find(txn, "t.b", 3)->uuid, sizeof uuid);
    assert_null(catalog_find(txn, "t.a", 3));
    store_read_end(txn);
    fixture_expect(&fixture, "{'renameCollection': 't.b', 'to': 'other.c', '$db': 'admin'}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'count': 'c', '$db': 'other'}", "{'n': 1}");
    fixture_close(&fixture);
}

static void rename_drops_a_target_only_when_told(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'a', 'documents': [{'_id': 1}]}", "{'n': 1}");
    fixture_expect(&fixture, "{'insert': 'b', 'documents': [{'_id': 2}]}", "{'n': 1}");
    fixture_expect_error(&fixture, "{'renameCollection': 't.a', 'to': 't.b', '$db': 'admin'}", 48);
    fixture_expect(&fixture, "{'renameCollection': 't.a', 'to': 't.b', 'dropTarget': true, '$db': 'admin'}",
                   "{'ok': 1.0}");
    fixture_expect_batch(&fixture, "{'find': 'b'}", "[{'_id': 1}]");
    fixture_close(&fixture);
}

static void rename_refuses_what_can_not_be(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'a'}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'create': 'v', 'viewOn': 'a'}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'create': 'ts', 'timeseries': {'timeField': 't'}}", "{'ok': 1.0}");
    fixture_expect_error(&fixture, "{'renameCollection': 't.nothing', 'to': 't.b', '$db': 'admin'}", 26);
    fixture_expect_error(&fixture, "{'renameCollection': 't.a', 'to': 't.a', '$db': 'admin'}", 20);
    fixture_expect_error(&fixture, "{'renameCollection': 't.a', 'to': 't.', '$db': 'admin'}", 73);
    fixture_expect_error(&fixture, "{'renameCollection': 't.a', 'to': 't.system.x', '$db': 'admin'}", 73);
    fixture_expect_error(&fixture, "{'renameCollection': 't.a', '$db': 'admin'}", 40414);
    fixture_expect_error(&fixture, "{'renameCollection': 1, 'to': 't.b', '$db': 'admin'}", 14);
    fixture_expect_error(&fixture, "{'renameCollection': 't.a', 'to': 't.b'}", 13);
    fixture_expect_error(&fixture, "{'renameCollection': 't.v', 'to': 't.b', '$db': 'admin'}", 166);
    fixture_expect_error(&fixture, "{'renameCollection': 't.a', 'to': 't.v', 'dropTarget': true, '$db': 'admin'}", 48);
    fixture_expect_error(&fixture, "{'renameCollection': 't.ts', 'to': 't.b', '$db': 'admin'}", 20);
    fixture_close(&fixture);
}

static void conversion_keeps_the_newest_and_drops_indexes(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 3}, {'_id': 1}, {'_id': 2}]}", "{'n': 3}");
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'x': 1}, 'name': 'x_1'}]}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'convertToCapped': 'c', 'size': 1}", "{'ok': 1.0}");
    fixture_expect_batch(&fixture, "{'listIndexes': 'c'}", "[{'v': 2, 'key': {'_id': 1}, 'name': '_id_'}]");
    fixture_expect_batch(&fixture, "{'find': 'c'}", "[{'_id': 3}, {'_id': 1}, {'_id': 2}]");
    fixture_expect(&fixture, "{'collStats': 'c'}", "{'capped': true, 'maxSize': 256}");
    fixture_expect_error(&fixture, "{'convertToCapped': 'c'}", 40414);
    fixture_expect_error(&fixture, "{'convertToCapped': 'c', 'size': 0}", 72);
    fixture_expect_error(&fixture, "{'convertToCapped': 'nothing', 'size': 1}", 26);
    fixture_close(&fixture);
}

static void conversion_erases_much_in_several_entries(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    bson_t command = BSON_INITIALIZER;
    bson_t documents;
    bson_t doc;
    BSON_APPEND_UTF8(&command, "insert", "c");
    BSON_APPEND_ARRAY_BEGIN(&command, "documents", &documents);
    for (int i = 0; i < 2500; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        BSON_APPEND_DOCUMENT_BEGIN(&documents, key, &doc);
        BSON_APPEND_INT32(&doc, "_id", i);
        bson_append_document_end(&documents, &doc);
    }
    bson_append_array_end(&command, &documents);
    BSON_APPEND_UTF8(&command, "$db", "t");
    bson_destroy(fixture_run_bson(&fixture, &command));
    bson_destroy(&command);
    unsigned before = fixture.history_count;
    fixture_expect(&fixture, "{'convertToCapped': 'c', 'size': 256}", "{'ok': 1.0}");
    /* Three pieces, and one that looks for indexes to be erased. */
    assert_int_equal(fixture.history_count - before, 4);
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 18}");
    fixture_close(&fixture);
}

static void a_capped_clone_has_the_newest_documents(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 2}, {'_id': 1}]}", "{'n': 2}");
    fixture_expect(&fixture, "{'cloneCollectionAsCapped': 'c', 'toCollection': 'd', 'size': 1000}", "{'ok': 1.0}");
    fixture_expect_batch(&fixture, "{'find': 'd'}", "[{'_id': 2}, {'_id': 1}]");
    fixture_expect(&fixture, "{'collStats': 'd'}", "{'capped': true}");
    fixture_expect_error(&fixture, "{'cloneCollectionAsCapped': 'c', 'toCollection': 'd', 'size': 1000}", 48);
    fixture_expect_error(&fixture, "{'cloneCollectionAsCapped': 'nothing', 'toCollection': 'e', 'size': 1000}", 26);
    fixture_close(&fixture);
}

/* As the last batches of a clone whose target was dropped: nothing comes back, least of all a plain collection. */
static void documents_for_a_collection_that_must_be_there_make_none(void **state)
{
    static const uint8_t make_none[16];
    (void)state;
    struct fixture fixture;
    struct err err = {0};
    struct buf payload = BUF_INIT;
    bson_t *doc = BCON_NEW("_id", BCON_INT32(1));
    struct insert_header header = {.ns = "t.gone", .create_uuid = make_none, .count = 1};
    insert_header_encode(&payload, &header);
    buf_append(&payload, bson_get_data(doc), doc->len);
    fixture_open(&fixture);
    assert_false(fixture_apply_command(&fixture, DOCUMENT_KIND_INSERT, payload.data, payload.len, &err));
    assert_int_equal(err.code, 26);
    fixture_expect_batch(&fixture, "{'listCollections': 1}", "[]");
    fixture_close(&fixture);
    buf_deinit(&payload);
    bson_destroy(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_for_a_collection_that_must_be_there_make_none),
        cmocka_unit_test(rename_keeps_documents_indexes_and_uuid),
        cmocka_unit_test(rename_drops_a_target_only_when_told),
        cmocka_unit_test(rename_refuses_what_can_not_be),
        cmocka_unit_test(conversion_keeps_the_newest_and_drops_indexes),
        cmocka_unit_test(conversion_erases_much_in_several_entries),
        cmocka_unit_test(a_capped_clone_has_the_newest_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
