/* A full map and a full disk: user writes are refused in time, deletes still run, and there is space again afterwards.
 * The disk is a small tmpfs in a mount namespace of this process; without the right to make one, that case is skipped.
 */
#include "tests/unit/storage/storage_test.h"

#include "base/mem.h"
#include "base/random.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

enum { DOC_TEXT = 3000, BATCH = 20 };

static struct store *open_small(struct fixture *f, const char *dir, uint64_t map_bytes, uint64_t ahead_bytes)
{
    struct store_options options = test_options(dir);
    struct store *store;
    options.map_bytes = map_bytes;
    options.ahead_bytes = ahead_bytes;
    options.checkpoint_bytes = 4 << 20;
    if (!store_open(&options, &store, &f->err))
        fail_msg("%s", f->err.msg);
    return store;
}

static void insert_batch(struct fixture *f, int32_t *next)
{
    char text[DOC_TEXT];
    memset(text, 'x', sizeof text);
    for (int i = 0; i < BATCH; i++) {
        bson_t *doc = bson_new();
        BSON_APPEND_INT32(doc, "_id", (*next)++);
        bson_append_utf8(doc, "t", 1, text, sizeof text);
        assert_true(fixture_insert_bson(f, doc, NULL));
        bson_destroy(doc);
    }
}

static void commit_and_check(struct fixture *f)
{
    fixture_commit(f);
    if (store_checkpoint_due(f->store))
        assert_true(store_checkpoint(f->store, NULL, &f->err));
    fixture_begin(f);
}

/* Writes until refused, then deletes everything in small transactions, and writes again. */
static void fill_and_empty(struct fixture *f, const char *dir, uint64_t map_bytes, uint64_t ahead_bytes)
{
    store_write_abort(f->txn);
    store_close(f->store);
    f->index = 0;
    f->store = open_small(f, dir, map_bytes, ahead_bytes);
    fixture_begin(f);
    fixture_make_collection(f);
    int32_t count = 0;
    while (store_check_space(f->store, &f->err)) {
        insert_batch(f, &count);
        commit_and_check(f);
        assert_true(count < 100000);
    }
    assert_int_equal(f->err.code, ERR_OutOfDiskSpace);
    assert_true(count > 500);
    struct store_space space;
    assert_true(store_space(f->store, &space, &f->err));
    assert_true(space.left_bytes < 2 * space.reserve_bytes);
    for (int32_t id = 0; id < count; id++) {
        fixture_erase(f, id);
        if (id % BATCH == 0)
            commit_and_check(f);
    }
    commit_and_check(f);
    fixture_commit(f);
    assert_true(store_checkpoint(f->store, NULL, &f->err));
    fixture_begin(f);
    fixture_commit(f); /* frees pages that only the old checkpoint held */
    fixture_begin(f);
    assert_true(store_check_space(f->store, &f->err));
    insert_batch(f, &count);
    assert_valid(f);
}

static void space_of_a_full_map_leaves_room_for_deletes(void **state)
{
    struct fixture *f = *state;
    char *dir = make_dir();
    fill_and_empty(f, dir, 16 << 20, 4 << 20);
    store_write_abort(f->txn);
    f->txn = NULL;
    store_close(f->store);
    f->store = NULL;
    remove_dir(dir);
}

static void space_of_a_full_disk_leaves_room_for_deletes(void **state)
{
    struct fixture *f = *state;
    char *dir = make_dir();
    bool mounted = unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                   mount("tmpfs", dir, "tmpfs", 0, "size=20m") == 0;
    if (mounted) {
        fill_and_empty(f, dir, UINT64_C(1) << 30, 4 << 20);
        store_write_abort(f->txn);
        f->txn = NULL;
        store_close(f->store);
        f->store = NULL;
        umount2(dir, MNT_DETACH);
    }
    remove_dir(dir);
    if (!mounted)
        skip();
}

static void space_report_adds_up(void **state)
{
    struct fixture *f = *state;
    struct store_space space;
    assert_true(store_space(f->store, &space, &f->err));
    assert_int_equal(space.map_bytes, UINT64_C(256) << 20);
    assert_true(space.file_bytes > 0 && space.file_bytes < 1 << 20);
    assert_true(space.left_bytes <= space.map_bytes + space.reusable_bytes);
    assert_true(space.reserve_bytes > 0);
    assert_true(store_check_space(f->store, &f->err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        CASE(space_report_adds_up),
        CASE(space_of_a_full_map_leaves_room_for_deletes),
        CASE(space_of_a_full_disk_leaves_room_for_deletes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
