#include "tests/unit/storage/storage_test.h"

#include "base/log.h"
#include "base/mem.h"
#include "storage/cursor.h"
#include "storage/index_build.h"
#include "storage/validate.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *make_dir(void)
{
    const char *base = getenv("TMPDIR");
    char *dir = mem_printf("%s/sherd-storage-XXXXXX", base != NULL ? base : "/tmp");
    assert_non_null(mkdtemp(dir));
    return dir;
}

void remove_dir(char *dir)
{
    DIR *handle = opendir(dir);
    assert_non_null(handle);
    for (struct dirent *entry; (entry = readdir(handle)) != NULL;)
        unlinkat(dirfd(handle), entry->d_name, 0);
    closedir(handle);
    rmdir(dir);
    mem_free(dir);
}

struct store_options test_options(const char *dir)
{
    return (struct store_options){
        .dir = dir,
        .map_bytes = UINT64_C(256) << 20,
        .ahead_bytes = UINT64_C(1) << 20,
        .max_readers = 32,
        .create = true,
    };
}

void fixture_begin(struct fixture *f)
{
    assert_true(store_write_begin(f->store, &f->txn, &f->err));
}

void fixture_commit(struct fixture *f)
{
    store_write_commit(f->txn, ++f->index);
    f->txn = NULL;
    f->coll = NULL;
}

int fixture_setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof *f);
    log_set_level(LOG_LEVEL_WARN);
    f->dir = make_dir();
    struct store_options options = test_options(f->dir);
    if (!store_open(&options, &f->store, &f->err))
        fail_msg("%s", f->err.msg);
    fixture_begin(f);
    *state = f;
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    store_write_abort(f->txn);
    store_close(f->store);
    remove_dir(f->dir);
    mem_free(f);
    return 0;
}

void fixture_reopen(struct fixture *f)
{
    store_write_abort(f->txn);
    f->txn = NULL;
    store_close(f->store);
    struct store_options options = test_options(f->dir);
    options.create = false;
    if (!store_open(&options, &f->store, &f->err))
        fail_msg("%s", f->err.msg);
    f->index = store_applied_index(f->store);
    fixture_begin(f);
}

void fixture_find(struct fixture *f)
{
    f->coll = catalog_find(f->txn, "db.c", 4);
    assert_non_null(f->coll);
}

void fixture_make_collection(struct fixture *f)
{
    static const uint8_t uuid[UUID_BYTES] = "collection uuid";
    if (!catalog_create(f->txn, "db.c", 4, uuid, bdoc_empty(), &f->err))
        fail_msg("%s", f->err.msg);
    fixture_find(f);
}

bson_t *json_doc(const char *json)
{
    bson_error_t error;
    bson_t *doc = bson_new_from_json((const uint8_t *)json, -1, &error);
    if (doc == NULL)
        fail_msg("%s: %s", json, error.message);
    return doc;
}

bool fixture_add_index(struct fixture *f, const char *spec_json)
{
    bson_t *spec = json_doc(spec_json);
    bool ok = index_build_now(f->txn, f->coll, bdoc_of(spec), NULL, &f->err);
    bson_destroy(spec);
    fixture_find(f);
    return ok;
}

const struct index_def *fixture_index(struct fixture *f, const char *name)
{
    fixture_find(f);
    const struct index_def *index = collection_find_index(f->coll, name);
    assert_non_null(index);
    return index;
}

bool fixture_insert_bson(struct fixture *f, const bson_t *doc, uint64_t *record_id)
{
    fixture_find(f);
    return record_insert(f->txn, f->coll, bdoc_of(doc), NULL, record_id, &f->err);
}

bool fixture_insert(struct fixture *f, const char *json)
{
    bson_t *doc = json_doc(json);
    bool ok = fixture_insert_bson(f, doc, NULL);
    bson_destroy(doc);
    return ok;
}

uint64_t fixture_record(struct fixture *f, int32_t id)
{
    uint8_t bytes[4];
    store_le32(bytes, (uint32_t)id);
    struct bval val = {BT_INT32, 4, bytes};
    uint64_t record_id = 0;
    fixture_find(f);
    assert_true(record_find_id(f->txn, f->coll, &val, &record_id));
    return record_id;
}

void fixture_replace(struct fixture *f, int32_t id, const char *json)
{
    bson_t *doc = json_doc(json);
    uint64_t record = fixture_record(f, id);
    if (!record_replace(f->txn, f->coll, record, bdoc_of(doc), NULL, &f->err))
        fail_msg("%s", f->err.msg);
    bson_destroy(doc);
}

void assert_valid(struct fixture *f)
{
    bson_t report = BSON_INITIALIZER;
    fixture_find(f);
    bool valid = collection_validate(f->txn, f->coll, &report);
    if (!valid) {
        char *text = bson_as_relaxed_extended_json(&report, NULL);
        print_error("%s\n", text);
        bson_free(text);
    }
    bson_destroy(&report);
    assert_true(valid);
}

int64_t count_entries(struct store_txn *txn, const struct index_def *index)
{
    struct index_bounds all = {0};
    struct index_cursor cursor;
    struct index_entry entry;
    int64_t count = 0;
    index_cursor_open(&cursor, txn, index, &all, false);
    while (index_cursor_next(&cursor, &entry))
        count++;
    index_cursor_close(&cursor);
    return count;
}

void fixture_erase(struct fixture *f, int32_t id)
{
    uint64_t record = fixture_record(f, id);
    assert_true(record_erase(f->txn, f->coll, record, NULL));
}
