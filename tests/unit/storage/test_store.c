#include "tests/unit/storage/storage_test.h"

#include "storage/counters.h"

#include <stdio.h>
#include <string.h>

static void store_meta_values_follow_the_transaction(void **state)
{
    struct fixture *f = *state;
    const void *value;
    size_t len;
    assert_false(store_meta_get(f->txn, "k", 1, &value, &len));
    store_meta_put(f->txn, "k", 1, "one", 3);
    fixture_commit(f);
    struct store_txn *old;
    assert_true(store_read_begin(f->store, &old, &f->err));
    fixture_begin(f);
    store_meta_put(f->txn, "k", 1, "two", 3);
    store_meta_put(f->txn, "applied_index", 13, "x", 1); /* the store's own values are out of reach */
    fixture_commit(f);
    assert_true(store_meta_get(old, "k", 1, &value, &len));
    assert_int_equal(len, 3);
    assert_memory_equal(value, "one", 3);
    assert_int_equal(store_txn_applied_index(old), 1);
    store_read_end(old);
    fixture_begin(f);
    assert_int_equal(store_txn_applied_index(f->txn), 2);
    store_meta_delete(f->txn, "k", 1);
    assert_false(store_meta_get(f->txn, "k", 1, &value, &len));
}

static void store_abort_leaves_documents_and_counters(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_insert(f, "{\"_id\": 1}"));
    fixture_commit(f);
    fixture_begin(f);
    assert_true(fixture_insert(f, "{\"_id\": 2}"));
    store_write_abort(f->txn);
    fixture_begin(f);
    struct counter counter;
    fixture_find(f);
    counter_collection(f->txn, f->coll, &counter);
    assert_int_equal(counter.docs, 1);
    assert_true(fixture_insert(f, "{\"_id\": 2}"));
    assert_int_equal(fixture_record(f, 2), 2); /* the id of the aborted one was not used up */
    assert_valid(f);
}

static uint64_t hash(struct fixture *f)
{
    struct store_txn *txn;
    assert_true(store_read_begin(f->store, &txn, &f->err));
    uint64_t result = store_logical_hash(txn);
    store_read_end(txn);
    return result;
}

static void store_hash_changes_with_every_value(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_insert(f, "{\"_id\": 1, \"a\": \"12345678\"}"));
    fixture_commit(f);
    uint64_t first = hash(f);
    assert_int_equal(hash(f), first);
    fixture_begin(f);
    fixture_replace(f, 1, "{\"_id\": 1, \"a\": \"12345679\"}");
    fixture_commit(f);
    assert_int_not_equal(hash(f), first);
}

static void store_read_beyond_max_readers_is_refused(void **state)
{
    struct fixture *f = *state;
    struct store_txn *txns[64];
    int open = 0;
    while (open < 64 && store_read_begin(f->store, &txns[open], &f->err))
        open++;
    assert_in_range(open, 32, 63);
    assert_int_equal(f->err.code, ERR_LockBusy);
    while (open > 0)
        store_read_end(txns[--open]);
    assert_true(store_read_begin(f->store, &txns[0], &f->err));
    store_read_end(txns[0]);
}

static void counter_range_follows_its_documents(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    char name[600];
    memset(name, 'k', sizeof name);
    struct record_write write = {.range = {name, sizeof name}, .old_range = {"old", 3}};
    bson_t *doc = json_doc("{\"_id\": 1}");
    uint64_t record;
    assert_true(record_insert(f->txn, f->coll, bdoc_of(doc), &write, &record, &f->err));
    struct counter counter;
    assert_true(counter_range(f->txn, f->coll, name, sizeof name, &counter));
    assert_int_equal(counter.docs, 1);
    assert_int_equal(counter.bytes, doc->len);
    counter_range_set(f->txn, f->coll, "old", 3, &(struct counter){.docs = 5, .bytes = 500});
    assert_true(record_replace(f->txn, f->coll, record, bdoc_of(doc), &write, &f->err));
    fixture_commit(f);
    fixture_begin(f);
    fixture_find(f);
    counter_range(f->txn, f->coll, "old", 3, &counter);
    assert_int_equal(counter.docs, 4);
    assert_int_equal(counter.bytes, 500 - (int64_t)doc->len);
    counter_range(f->txn, f->coll, name, sizeof name, &counter);
    assert_int_equal(counter.docs, 2);
    name[sizeof name - 1] = 'x'; /* another range, though its first bytes are the same */
    assert_false(counter_range(f->txn, f->coll, name, sizeof name, &counter));
    counter_range_delete(f->txn, f->coll, "old", 3);
    fixture_commit(f);
    fixture_begin(f);
    fixture_find(f);
    assert_false(counter_range(f->txn, f->coll, "old", 3, &counter));
    bson_destroy(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        CASE(store_meta_values_follow_the_transaction), CASE(store_abort_leaves_documents_and_counters),
        CASE(store_hash_changes_with_every_value),      CASE(store_read_beyond_max_readers_is_refused),
        CASE(counter_range_follows_its_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
