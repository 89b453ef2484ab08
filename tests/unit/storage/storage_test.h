/* What the storage tests share: a store in a directory of its own, documents from JSON text. */
#ifndef SHERD_TESTS_UNIT_STORAGE_STORAGE_TEST_H
#define SHERD_TESTS_UNIT_STORAGE_STORAGE_TEST_H

#include "tests/unit/cmocka_all.h"

#include "storage/catalog.h"
#include "storage/records.h"

struct fixture {
    char *dir;
    struct store *store;
    struct store_txn *txn;         /* a write transaction, unless a test ended it */
    uint64_t index;                /* applied by the last commit */
    const struct collection *coll; /* "db.c", made by fixture_make_collection */
    struct err err;
};

/* A directory under TMPDIR or /tmp; the caller gives it to remove_dir. */
char *make_dir(void);
void remove_dir(char *dir);

/* cmocka set-up and tear-down. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

struct store_options test_options(const char *dir);
void fixture_begin(struct fixture *f);
void fixture_commit(struct fixture *f);
/* Closes and opens the store: what was not checkpointed is gone. */
void fixture_reopen(struct fixture *f);
void fixture_make_collection(struct fixture *f);
/* Finds f->coll again after a change of the catalog. */
void fixture_find(struct fixture *f);
/* Builds at once; false with f->err. */
bool fixture_add_index(struct fixture *f, const char *spec_json);
const struct index_def *fixture_index(struct fixture *f, const char *name);

/* The bson_t is the caller's to destroy; fails the test on bad JSON. */
bson_t *json_doc(const char *json);
/* Inserts; false with f->err. */
bool fixture_insert(struct fixture *f, const char *json);
bool fixture_insert_bson(struct fixture *f, const bson_t *doc, uint64_t *record_id);
/* The record with {_id: id}; fails when there is none. */
uint64_t fixture_record(struct fixture *f, int32_t id);
void fixture_replace(struct fixture *f, int32_t id, const char *json);
void fixture_erase(struct fixture *f, int32_t id);
/* collection_validate says valid; prints the report if not. */
void assert_valid(struct fixture *f);
int64_t count_entries(struct store_txn *txn, const struct index_def *index);

#endif
