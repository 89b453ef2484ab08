/* The apply thread writes while a worker takes checkpoints and others read: readers always see whole transactions, and
 * the last checkpoint is a state that was committed. Run under the thread sanitizer too. */
#include "tests/unit/storage/storage_test.h"

#include "base/clock.h"
#include "base/thread.h"
#include "storage/counters.h"
#include "storage/cursor.h"

#include <stdatomic.h>
#include <stdio.h>

enum { RUN_MS = 1500, RUN_MAX_MS = 60000, DOCS_PER_TXN = 7, READERS = 2 };

struct shared {
    struct fixture *f;
    _Atomic bool stop;
    _Atomic uint64_t checkpoints;
    _Atomic uint64_t reads;
};

/* Every transaction adds DOCS_PER_TXN documents, some a collection: the count in a snapshot is a multiple, and equals
 * the index. */
static void *read_on(void *arg)
{
    struct shared *shared = arg;
    while (!atomic_load(&shared->stop)) {
        struct store_txn *txn;
        struct err err;
        if (!store_read_begin(shared->f->store, &txn, &err))
            fail_msg("%s", err.msg);
        const struct collection *coll = catalog_find(txn, "db.c", 4);
        assert_non_null(coll);
        struct counter counter;
        counter_collection(txn, coll, &counter);
        uint64_t index = store_txn_applied_index(txn);
        assert_int_equal(counter.docs, (int64_t)(index - 1) * DOCS_PER_TXN);
        size_t position = 0;
        uint64_t collections = 0;
        while (catalog_next(txn, "many", 4, &position) != NULL)
            collections++;
        assert_int_equal(collections, (index - 1) / 10);
        struct record_cursor cursor;
        record_cursor_open(&cursor, txn, coll, true);
        uint64_t last = 0;
        if (record_cursor_next(&cursor, &last, NULL))
            assert_int_equal(last, counter.docs);
        record_cursor_close(&cursor);
        store_read_end(txn);
        atomic_fetch_add(&shared->reads, 1);
    }
    return NULL;
}

static void *checkpoint_on(void *arg)
{
    struct shared *shared = arg;
    uint64_t before = 0;
    while (!atomic_load(&shared->stop)) {
        uint64_t index;
        struct err err;
        assert_true(store_checkpoint(shared->f->store, &index, &err));
        assert_true(index >= before);
        before = index;
        atomic_fetch_add(&shared->checkpoints, 1);
        store_checkpoint_due(shared->f->store);
        struct store_space space;
        assert_true(store_space(shared->f->store, &space, &err));
    }
    return NULL;
}

/* A busy machine gets more time, so that the others come to their turns. */
static bool goes_on(struct shared *shared, int64_t start_ms)
{
    int64_t ran_ms = clock_now_ms() - start_ms;
    bool all_had_turns = atomic_load(&shared->checkpoints) > 2 && atomic_load(&shared->reads) > 2;
    return ran_ms < RUN_MS || (ran_ms < RUN_MAX_MS && !all_had_turns);
}

static void write_on(struct fixture *f, struct shared *shared)
{
    int64_t start_ms = clock_now_ms();
    for (int32_t id = 0; goes_on(shared, start_ms);) {
        fixture_begin(f);
        for (int i = 0; i < DOCS_PER_TXN; i++) {
            char json[64];
            snprintf(json, sizeof json, "{\"_id\": %d, \"t\": \"some text\"}", id++);
            assert_true(fixture_insert(f, json));
        }
        if (f->index % 10 == 0) {
            char ns[32];
            uint8_t uuid[UUID_BYTES] = {9};
            store_le64(uuid + 8, f->index);
            int len = snprintf(ns, sizeof ns, "many.c%llu", (unsigned long long)f->index);
            assert_true(catalog_create(f->txn, ns, (size_t)len, uuid, bdoc_empty(), &f->err));
        }
        fixture_commit(f);
    }
}

static void threads_read_and_checkpoint_beside_the_writer(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    fixture_commit(f);
    struct shared shared = {.f = f};
    pthread_t threads[READERS + 1];
    for (int i = 0; i < READERS; i++)
        thread_start(&threads[i], "reader", read_on, &shared);
    thread_start(&threads[READERS], "checkpoint", checkpoint_on, &shared);
    write_on(f, &shared);
    atomic_store(&shared.stop, true);
    for (int i = 0; i <= READERS; i++)
        thread_join(threads[i]);
    assert_true(atomic_load(&shared.checkpoints) > 2); /* a busy writer doesn't starve them */
    assert_true(atomic_load(&shared.reads) > 2);
    uint64_t index = store_checkpoint_index(f->store);
    fixture_reopen(f);
    assert_int_equal(f->index, index);
    assert_valid(f);
    struct counter counter;
    counter_collection(f->txn, f->coll, &counter);
    assert_int_equal(counter.docs, (int64_t)(index - 1) * DOCS_PER_TXN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_read_and_checkpoint_beside_the_writer, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
