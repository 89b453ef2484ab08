#include "tests/unit/storage/storage_test.h"

#include "base/mem.h"
#include "storage/index_build.h"

#include <stdio.h>
#include <string.h>

enum { DOCS = 100 };

static void insert_docs(struct fixture *f)
{
    fixture_make_collection(f);
    for (int i = 0; i < DOCS; i++) {
        char json[80];
        snprintf(json, sizeof json, "{\"_id\": %d, \"a\": %d}", i, i);
        assert_true(fixture_insert(f, json));
    }
}

static void begin_build(struct fixture *f, const char *spec_json)
{
    bson_t *spec = json_doc(spec_json);
    uint32_t id;
    fixture_find(f);
    assert_true(catalog_create_index(f->txn, f->coll, bdoc_of(spec), &id, NULL, &f->err));
    bson_destroy(spec);
    assert_int_equal(fixture_index(f, "a_1")->state, INDEX_BUILDING);
}

static bool step(struct fixture *f, uint32_t records)
{
    const struct index_def *index = fixture_index(f, "a_1");
    return index_build_step(f->txn, f->coll, index, records);
}

static bool finish(struct fixture *f)
{
    const struct index_def *index = fixture_index(f, "a_1");
    return index_build_finish(f->txn, f->coll, index, &f->err);
}

static void index_build_in_steps_with_writes_between_is_complete(void **state)
{
    struct fixture *f = *state;
    insert_docs(f);
    begin_build(f, "{\"key\": {\"a\": 1}}");
    assert_true(step(f, 30));
    assert_int_equal(index_build_done_records(f->txn, fixture_index(f, "a_1")), 30);
    fixture_replace(f, 5, "{\"_id\": 5, \"a\": \"before the position\"}");
    fixture_replace(f, 90, "{\"_id\": 90, \"a\": \"beyond the position\"}");
    fixture_replace(f, 91, "{\"_id\": 91, \"a\": 91, \"b\": 1}");
    fixture_erase(f, 6);
    fixture_erase(f, 92);
    assert_true(fixture_insert(f, "{\"_id\": 1000, \"a\": [7, 8]}"));
    fixture_commit(f);
    fixture_begin(f);
    while (step(f, 17))
        assert_valid(f);
    assert_true(finish(f));
    assert_int_equal(fixture_index(f, "a_1")->state, INDEX_READY);
    assert_true(fixture_index(f, "a_1")->multikey);
    assert_int_equal(count_entries(f->txn, fixture_index(f, "a_1")), DOCS - 2 + 2);
    assert_valid(f);
}

static void index_build_goes_on_after_a_restart(void **state)
{
    struct fixture *f = *state;
    insert_docs(f);
    begin_build(f, "{\"key\": {\"a\": 1}}");
    assert_true(step(f, 40));
    fixture_commit(f);
    assert_true(store_checkpoint(f->store, NULL, &f->err));
    fixture_reopen(f);
    assert_int_equal(index_build_done_records(f->txn, fixture_index(f, "a_1")), 40);
    assert_false(step(f, 1000));
    assert_true(finish(f));
    assert_valid(f);
}

static void index_build_of_a_unique_index_fails_on_duplicates(void **state)
{
    struct fixture *f = *state;
    insert_docs(f);
    assert_true(fixture_insert(f, "{\"_id\": 1000, \"a\": 3}"));
    begin_build(f, "{\"key\": {\"a\": 1}, \"unique\": true}");
    while (step(f, 50))
        continue;
    assert_false(finish(f));
    assert_int_equal(f->err.code, ERR_DuplicateKey);
    assert_non_null(strstr(f->err.msg, "index: a_1 dup key: { a: 3 }"));
    assert_int_equal(fixture_index(f, "a_1")->state, INDEX_FAILED);
    assert_true(fixture_insert(f, "{\"_id\": 1001, \"a\": 3}"));
    assert_valid(f);
}

static void index_build_forgives_a_duplicate_that_went_away(void **state)
{
    struct fixture *f = *state;
    insert_docs(f);
    assert_true(fixture_insert(f, "{\"_id\": 1000, \"a\": 3}"));
    begin_build(f, "{\"key\": {\"a\": 1}, \"unique\": true}");
    assert_true(step(f, 10));
    assert_true(fixture_insert(f, "{\"_id\": 1001, \"a\": 4}")); /* not refused yet */
    while (step(f, 50))
        continue;
    fixture_erase(f, 1000);
    fixture_replace(f, 1001, "{\"_id\": 1001, \"a\": \"another\"}");
    assert_true(finish(f));
    assert_false(fixture_insert(f, "{\"_id\": 1002, \"a\": 4}"));
    assert_int_equal(f->err.code, ERR_DuplicateKey);
    assert_valid(f);
}

static void index_build_fails_on_parallel_arrays_unless_they_went_away(void **state)
{
    struct fixture *f = *state;
    for (int fixed = 0; fixed < 2; fixed++) {
        if (fixed == 0)
            insert_docs(f);
        if (fixed == 0)
            assert_true(fixture_insert(f, "{\"_id\": 1000, \"a\": [1], \"b\": [1]}"));
        begin_build(f, "{\"key\": {\"a\": 1, \"b\": 1}, \"name\": \"a_1\"}");
        while (step(f, 50))
            continue;
        if (fixed == 1)
            fixture_replace(f, 1000, "{\"_id\": 1000, \"a\": [1], \"b\": 1}");
        assert_int_equal(finish(f), fixed == 1);
        if (fixed == 0) {
            assert_int_equal(f->err.code, 171);
            const struct index_def *index = fixture_index(f, "a_1");
            assert_true(catalog_drop_index(f->txn, f->coll, index, &f->err));
        }
        assert_valid(f);
    }
}

static void index_build_now_that_fails_leaves_no_index(void **state)
{
    struct fixture *f = *state;
    insert_docs(f);
    assert_true(fixture_insert(f, "{\"_id\": 1000, \"a\": 3}"));
    assert_false(fixture_add_index(f, "{\"key\": {\"a\": 1}, \"unique\": true}"));
    assert_int_equal(f->err.code, ERR_DuplicateKey);
    assert_int_equal(f->coll->index_count, 1);
    while (catalog_erase_step(f->txn, 1000))
        continue;
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1}}"));
    assert_valid(f);
}

/* ---- partial indexes, with a filter of the test's own: {field: NAME} means "has the field NAME" ---- */

static void *compile(struct bdoc filter, const struct bval_order *order, struct err *err)
{
    struct bval field;
    (void)order;
    if (!bdoc_find(filter, "field", &field)) {
        err_set(err, ERR_CannotCreateIndex, "no field");
        return NULL;
    }
    uint32_t len;
    const char *name = bval_str(&field, &len);
    return mem_copy_strn(name, len);
}

static bool matches(const void *compiled, struct bdoc doc)
{
    return bdoc_has(doc, compiled);
}

static void index_of_a_partial_filter_holds_what_matches(void **state)
{
    struct fixture *f = *state;
    store_write_abort(f->txn);
    store_close(f->store);
    struct store_options options = test_options(f->dir);
    options.filter_hooks = (struct store_filter_hooks){compile, matches, mem_free};
    assert_true(store_open(&options, &f->store, &f->err));
    fixture_begin(f);
    insert_docs(f);
    assert_false(fixture_add_index(f, "{\"key\": {\"a\": 1}, \"partialFilterExpression\": {\"x\": 1}}"));
    assert_int_equal(f->err.code, ERR_CannotCreateIndex);
    assert_true(fixture_add_index(
        f, "{\"key\": {\"a\": 1}, \"unique\": true, \"partialFilterExpression\": {\"field\": \"x\"}}"));
    assert_int_equal(count_entries(f->txn, fixture_index(f, "a_1")), 0);
    assert_true(fixture_insert(f, "{\"_id\": 1000, \"a\": 3, \"x\": 1}"));
    assert_false(fixture_insert(f, "{\"_id\": 1001, \"a\": 3, \"x\": 1}"));
    assert_true(fixture_insert(f, "{\"_id\": 1001, \"a\": 3}"));
    fixture_replace(f, 1000, "{\"_id\": 1000, \"a\": 3}");
    assert_int_equal(count_entries(f->txn, fixture_index(f, "a_1")), 0);
    assert_valid(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        CASE(index_build_in_steps_with_writes_between_is_complete),
        CASE(index_build_goes_on_after_a_restart),
        CASE(index_build_of_a_unique_index_fails_on_duplicates),
        CASE(index_build_forgives_a_duplicate_that_went_away),
        CASE(index_build_fails_on_parallel_arrays_unless_they_went_away),
        CASE(index_build_now_that_fails_leaves_no_index),
        CASE(index_of_a_partial_filter_holds_what_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
