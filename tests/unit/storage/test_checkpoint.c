#include "tests/unit/storage/storage_test.h"

#include "base/crc32c.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *path_in(const struct fixture *f, const char *name)
{
    return mem_printf("%s/%s", f->dir, name);
}

static bool file_exists(const struct fixture *f, const char *name)
{
    char *path = path_in(f, name);
    bool found = access(path, F_OK) == 0;
    mem_free(path);
    return found;
}

static void write_file(const struct fixture *f, const char *name, const void *data, size_t len)
{
    char *path = path_in(f, name);
    assert_true(file_replace(path, data, len, NULL));
    mem_free(path);
}

static void read_file(const struct fixture *f, const char *name, struct buf *out)
{
    char *path = path_in(f, name);
    assert_true(file_read(path, 1 << 20, out, NULL));
    mem_free(path);
}

static void close_store(struct fixture *f)
{
    store_write_abort(f->txn);
    f->txn = NULL;
    store_close(f->store);
    f->store = NULL;
}

static bool open_again(struct fixture *f, bool create)
{
    struct store_options options = test_options(f->dir);
    options.create = create;
    return store_open(&options, &f->store, &f->err);
}

static void commit_doc(struct fixture *f, const char *json)
{
    assert_true(fixture_insert(f, json));
    fixture_commit(f);
}

static void store_open_goes_back_to_the_checkpoint(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    commit_doc(f, "{\"_id\": 1}");
    uint64_t index;
    assert_true(store_checkpoint(f->store, &index, &f->err));
    assert_int_equal(index, 1);
    assert_int_equal(store_checkpoint_index(f->store), 1);
    fixture_begin(f);
    commit_doc(f, "{\"_id\": 2}");
    assert_int_equal(store_applied_index(f->store), 2);
    fixture_reopen(f);
    assert_int_equal(f->index, 1);
    fixture_record(f, 1);
    assert_true(fixture_insert(f, "{\"_id\": 2}")); /* it is gone */
    assert_valid(f);
}

static void store_open_deletes_files_that_the_checkpoint_does_not_name(void **state)
{
    struct fixture *f = *state;
    close_store(f);
    write_file(f, "data-7.mdb", "x", 1);
    write_file(f, "data-7.mdb-lock", "x", 1);
    write_file(f, "checkpoint.tmp", "x", 1);
    write_file(f, "node.json", "x", 1);
    assert_true(open_again(f, false));
    assert_false(file_exists(f, "data-7.mdb"));
    assert_false(file_exists(f, "data-7.mdb-lock"));
    assert_false(file_exists(f, "checkpoint.tmp"));
    assert_true(file_exists(f, "node.json"));
    assert_true(file_exists(f, "data-1.mdb"));
}

static void store_open_with_a_damaged_checkpoint_is_refused(void **state)
{
    struct fixture *f = *state;
    close_store(f);
    struct buf bytes = BUF_INIT;
    read_file(f, "checkpoint", &bytes);
    for (size_t at = 0; at < bytes.len; at += 97) {
        bytes.data[at] ^= 0x40;
        write_file(f, "checkpoint", bytes.data, bytes.len);
        assert_false(open_again(f, at % 2 == 0)); /* whether a new store may be made or not */
        assert_int_equal(f->err.code, ERR_NotYetInitialized);
        bytes.data[at] ^= 0x40;
    }
    write_file(f, "checkpoint", bytes.data, bytes.len / 2);
    assert_false(open_again(f, false));
    assert_int_equal(f->err.code, ERR_NotYetInitialized);
    write_file(f, "checkpoint", bytes.data, bytes.len);
    assert_true(open_again(f, false));
    buf_deinit(&bytes);
}

static void store_open_without_a_checkpoint_starts_empty_only_if_asked(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    fixture_commit(f);
    close_store(f);
    char *path = path_in(f, "checkpoint");
    assert_int_equal(unlink(path), 0);
    mem_free(path);
    assert_false(store_exists(f->dir));
    assert_false(open_again(f, false));
    assert_int_equal(f->err.code, ERR_NotYetInitialized);
    assert_true(open_again(f, true));
    assert_true(store_exists(f->dir));
    assert_int_equal(store_applied_index(f->store), 0);
}

static void store_open_of_a_newer_format_is_refused(void **state)
{
    struct fixture *f = *state;
    close_store(f);
    struct buf bytes = BUF_INIT;
    read_file(f, "checkpoint", &bytes);
    store_le32(bytes.data + 8, STORE_FORMAT_VERSION + 1);
    store_le32(bytes.data + bytes.len - 4, crc32c(0, bytes.data, bytes.len - 4));
    write_file(f, "checkpoint", bytes.data, bytes.len);
    buf_deinit(&bytes);
    assert_false(open_again(f, true));
    assert_int_equal(f->err.code, ERR_UnsupportedFormat);
    assert_non_null(strstr(f->err.msg, "newer program"));
}

static void store_open_of_a_directory_in_use_is_refused(void **state)
{
    struct fixture *f = *state;
    struct store *second = NULL;
    struct store_options options = test_options(f->dir);
    assert_false(store_open(&options, &second, &f->err));
    assert_int_equal(f->err.code, ERR_LockBusy);
    pid_t child = fork();
    if (child == 0)
        _exit(!store_open(&options, &second, &f->err) && f->err.code == ERR_LockBusy ? 0 : 1);
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static void store_open_of_a_missing_directory_is_refused(void **state)
{
    struct fixture *f = *state;
    struct store *second = NULL;
    struct store_options options = test_options("/nonexistent/dir");
    assert_false(store_open(&options, &second, &f->err));
    assert_int_equal(f->err.code, ERR_OperationFailed);
}

static void store_checkpoint_that_fails_keeps_the_older_one(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    commit_doc(f, "{\"_id\": 1}");
    assert_true(store_checkpoint(f->store, NULL, &f->err));
    assert_true(fault_enable("checkpoint_before_rename:1:fail", &f->err));
    for (int32_t i = 0; i < 200; i++) { /* enough to reuse pages, were the older checkpoint not pinned */
        fixture_begin(f);
        char json[64];
        snprintf(json, sizeof json, "{\"_id\": %d}", i + 10);
        commit_doc(f, json);
        if (i == 20)
            assert_false(store_checkpoint(f->store, NULL, &f->err));
    }
    assert_int_equal(store_checkpoint_index(f->store), 1);
    fixture_reopen(f);
    assert_int_equal(f->index, 1);
    assert_valid(f);
}

/* A process killed at any point of a checkpoint leaves the old one or the new one. */
static void store_checkpoint_killed_anywhere_leaves_a_state(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    commit_doc(f, "{\"_id\": 1}");
    assert_true(store_checkpoint(f->store, NULL, &f->err));
    close_store(f);
    static const struct {
        const char *faults;
        uint64_t index;
    } cases[] = {
        {"apply_before_commit:1:kill", 1},     {"apply_after_commit:1:kill", 1},
        {"checkpoint_before_sync:1:kill", 1},  {"checkpoint_before_rename:1:kill", 1},
        {"checkpoint_after_rename:1:kill", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pid_t child = fork();
        if (child == 0) {
            bool ok = open_again(f, false) && fault_enable(cases[i].faults, &f->err);
            f->index = 1;
            fixture_begin(f);
            ok = ok && fixture_insert(f, "{\"_id\": 2}");
            fixture_commit(f);
            ok = ok && store_checkpoint(f->store, NULL, &f->err);
            _exit(ok ? 0 : 1);
        }
        int status;
        waitpid(child, &status, 0);
        assert_true(WIFSIGNALED(status));
        assert_true(open_again(f, false));
        assert_int_equal(store_applied_index(f->store), cases[i].index);
        fixture_begin(f);
        assert_valid(f);
        close_store(f);
    }
}

static void store_checkpoint_is_due_after_enough_changes(void **state)
{
    struct fixture *f = *state;
    close_store(f);
    struct store_options options = test_options(f->dir);
    options.checkpoint_bytes = 1 << 20;
    assert_true(store_open(&options, &f->store, &f->err));
    fixture_begin(f);
    fixture_make_collection(f);
    fixture_commit(f);
    assert_false(store_checkpoint_due(f->store));
    bson_t *doc = bson_new();
    char text[3000];
    memset(text, 'x', sizeof text);
    BSON_APPEND_INT32(doc, "_id", 1);
    bson_append_utf8(doc, "t", 1, text, sizeof text);
    fixture_begin(f);
    uint64_t id;
    assert_true(fixture_insert_bson(f, doc, &id));
    for (int i = 0; i < 300 && !store_checkpoint_due(f->store); i++) {
        fixture_commit(f);
        fixture_begin(f);
        fixture_find(f);
        assert_true(record_replace(f->txn, f->coll, id, bdoc_of(doc), NULL, &f->err));
    }
    fixture_commit(f);
    assert_true(store_checkpoint_due(f->store));
    assert_true(fault_enable("checkpoint_before_rename:1:fail", &f->err));
    assert_false(store_checkpoint(f->store, NULL, &f->err));
    assert_true(store_checkpoint_due(f->store)); /* as before: nothing was made durable */
    assert_true(fault_enable("", &f->err));
    assert_true(store_checkpoint(f->store, NULL, &f->err));
    assert_false(store_checkpoint_due(f->store));
    bson_destroy(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        CASE(store_open_goes_back_to_the_checkpoint),
        CASE(store_open_deletes_files_that_the_checkpoint_does_not_name),
        CASE(store_open_with_a_damaged_checkpoint_is_refused),
        CASE(store_open_without_a_checkpoint_starts_empty_only_if_asked),
        CASE(store_open_of_a_newer_format_is_refused),
        CASE(store_open_of_a_directory_in_use_is_refused),
        CASE(store_open_of_a_missing_directory_is_refused),
        CASE(store_checkpoint_that_fails_keeps_the_older_one),
        CASE(store_checkpoint_killed_anywhere_leaves_a_state),
        CASE(store_checkpoint_is_due_after_enough_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
