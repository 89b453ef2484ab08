#include "tests/unit/storage/storage_test.h"

#include "base/mem.h"
#include "storage/counters.h"

#include <string.h>

static void record_insert_then_get_returns_the_bytes(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    bson_t *doc = json_doc("{\"_id\": 1, \"a\": \"x\"}");
    uint64_t id;
    assert_true(fixture_insert_bson(f, doc, &id));
    struct buf scratch = BUF_INIT;
    struct bdoc found;
    assert_true(record_get(f->txn, f->coll, id, &scratch, &found));
    assert_true(bdoc_same(found, bdoc_of(doc)));
    assert_false(record_get(f->txn, f->coll, id + 1, &scratch, &found));
    assert_null(scratch.data);
    bson_destroy(doc);
}

static void record_find_id_compares_numbers_by_value(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_insert(f, "{\"_id\": 7}"));
    bson_t *probe = json_doc("{\"_id\": {\"$numberDouble\": \"7.0\"}}");
    struct bval id;
    uint64_t record;
    bdoc_find(bdoc_of(probe), "_id", &id);
    assert_true(record_find_id(f->txn, f->coll, &id, &record));
    assert_int_equal(record, fixture_record(f, 7));
    bson_destroy(probe);
}

static void assert_duplicate(struct fixture *f, const char *message, const char *details)
{
    assert_int_equal(f->err.code, ERR_DuplicateKey);
    assert_string_equal(f->err.msg, message);
    bson_t view;
    assert_true(bson_init_static(&view, f->err.details, f->err.details_len));
    char *text = bson_as_relaxed_extended_json(&view, NULL);
    assert_string_equal(text, details);
    bson_free(text);
}

static void record_insert_of_a_taken_id_is_refused_in_mongodbs_words(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_insert(f, "{\"_id\": 1}"));
    assert_false(fixture_insert(f, "{\"_id\": 1, \"a\": 2}"));
    assert_duplicate(f, "E11000 duplicate key error collection: db.c index: _id_ dup key: { _id: 1 }",
                     "{ \"keyPattern\" : { \"_id\" : 1 }, \"keyValue\" : { \"_id\" : 1 } }");
    assert_valid(f);
}

static void record_insert_checks_all_unique_keys_before_the_first_put(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1, \"b\": -1}, \"unique\": true}"));
    assert_true(fixture_insert(f, "{\"_id\": 1, \"a\": \"k\", \"b\": 2}"));
    assert_false(fixture_insert(f, "{\"_id\": 2, \"a\": \"k\", \"b\": 2.0}"));
    assert_duplicate(f, "E11000 duplicate key error collection: db.c index: a_1_b_-1 dup key: { a: \"k\", b: 2.0 }",
                     "{ \"keyPattern\" : { \"a\" : 1, \"b\" : -1 }, \"keyValue\" : { \"a\" : \"k\", \"b\" : 2.0 } }");
    assert_true(fixture_insert(f, "{\"_id\": 2, \"a\": \"k\", \"b\": 3}"));
    assert_valid(f);
}

static bool says_no(void *arg, struct bdoc other)
{
    (void)other;
    ++*(int *)arg;
    return false;
}

static void record_insert_asks_the_owner_about_a_conflict(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_insert(f, "{\"_id\": 1}"));
    int asked = 0;
    struct record_write write = {.conflicts = says_no, .conflicts_arg = &asked};
    bson_t *doc = json_doc("{\"_id\": 1}");
    assert_true(record_insert(f->txn, f->coll, bdoc_of(doc), &write, NULL, &f->err));
    assert_int_equal(asked, 1);
    assert_false(record_insert(f->txn, f->coll, bdoc_of(doc), NULL, NULL, &f->err));
    bson_destroy(doc);
    assert_valid(f);
}

static void record_replace_moves_the_entries(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1}, \"unique\": true}"));
    assert_true(fixture_insert(f, "{\"_id\": 1, \"a\": [1, 2, 3]}"));
    assert_true(fixture_insert(f, "{\"_id\": 2, \"a\": 9}"));
    assert_true(fixture_index(f, "a_1")->multikey);
    fixture_replace(f, 1, "{\"_id\": 1, \"a\": [3, 4]}");
    assert_int_equal(count_entries(f->txn, fixture_index(f, "a_1")), 3);
    fixture_replace(f, 2, "{\"_id\": 2, \"a\": 1}");
    bson_t *doc = json_doc("{\"_id\": 2, \"a\": 4}");
    uint64_t record = fixture_record(f, 2);
    assert_false(record_replace(f->txn, f->coll, record, bdoc_of(doc), NULL, &f->err));
    assert_int_equal(f->err.code, ERR_DuplicateKey);
    bson_destroy(doc);
    assert_valid(f);
}

static void record_replace_with_another_id_is_refused(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_insert(f, "{\"_id\": 1}"));
    bson_t *doc = json_doc("{\"_id\": 2}");
    uint64_t record = fixture_record(f, 1);
    assert_false(record_replace(f->txn, f->coll, record, bdoc_of(doc), NULL, &f->err));
    assert_int_equal(f->err.code, ERR_ImmutableField);
    bson_destroy(doc);
}

static void record_erase_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1}}"));
    assert_true(fixture_insert(f, "{\"_id\": 1, \"a\": [1, 2]}"));
    uint64_t id = fixture_record(f, 1);
    assert_true(record_erase(f->txn, f->coll, id, NULL));
    assert_false(record_erase(f->txn, f->coll, id, NULL));
    struct counter counter;
    counter_collection(f->txn, f->coll, &counter);
    assert_int_equal(counter.docs, 0);
    assert_int_equal(counter.bytes, 0);
    assert_int_equal(count_entries(f->txn, fixture_index(f, "a_1")), 0);
    assert_valid(f);
}

/* ---- documents in pieces ---- */

static bson_t *large_doc(int32_t id, size_t bytes, char fill)
{
    char *text = mem_alloc(bytes);
    memset(text, fill, bytes);
    bson_t *doc = bson_new();
    BSON_APPEND_INT32(doc, "_id", id);
    bson_append_utf8(doc, "text", -1, text, (int)bytes);
    mem_free(text);
    return doc;
}

static void assert_stored(struct fixture *f, uint64_t id, const bson_t *doc)
{
    struct buf scratch = BUF_INIT;
    struct bdoc found;
    assert_true(record_get(f->txn, f->coll, id, &scratch, &found));
    assert_true(bdoc_same(found, bdoc_of(doc)));
    buf_deinit(&scratch);
}

static void record_in_pieces_grows_shrinks_and_goes(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    static const size_t sizes[] = {65000, 65520, 65521, 1 << 20, 200000, 100, (16 << 20) - 100, 65490};
    uint64_t id = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        bson_t *doc = large_doc(1, sizes[i], (char)('a' + i));
        if (i == 0)
            assert_true(fixture_insert_bson(f, doc, &id));
        else
            assert_true(record_replace(f->txn, f->coll, id, bdoc_of(doc), NULL, &f->err));
        assert_stored(f, id, doc);
        bson_destroy(doc);
        assert_valid(f);
    }
    assert_true(record_erase(f->txn, f->coll, id, NULL));
    assert_valid(f);
}

/* ---- limits ---- */

static void record_insert_beyond_16_mib_is_10334(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    bson_t *doc = large_doc(1, 16 << 20, 'x');
    assert_false(fixture_insert_bson(f, doc, NULL));
    assert_int_equal(f->err.code, ERR_BSONObjectTooLarge);
    bson_destroy(doc);
}

static bson_t *nested(int levels)
{
    bson_t *doc = bson_new();
    BSON_APPEND_INT32(doc, "x", 1);
    for (int i = 1; i < levels; i++) {
        bson_t *outer = bson_new();
        if (i == levels - 1)
            BSON_APPEND_INT32(outer, "_id", 1);
        BSON_APPEND_DOCUMENT(outer, "d", doc);
        bson_destroy(doc);
        doc = outer;
    }
    return doc;
}

static void record_insert_beyond_100_levels_is_15(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    bson_t *fits = nested(100);
    bson_t *deep = nested(101);
    assert_true(fixture_insert_bson(f, fits, NULL));
    assert_false(fixture_insert_bson(f, deep, NULL));
    assert_int_equal(f->err.code, ERR_Overflow);
    bson_destroy(fits);
    bson_destroy(deep);
}

static void record_insert_with_a_bad_id_is_53(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    static const char *const docs[] = {"{\"a\": 1}", "{\"_id\": [1]}",
                                       "{\"_id\": {\"$regularExpression\": {\"pattern\": \"a\", \"options\": \"\"}}}"};
    for (size_t i = 0; i < sizeof docs / sizeof docs[0]; i++) {
        assert_false(fixture_insert(f, docs[i]));
        assert_int_equal(f->err.code, ERR_InvalidIdField);
    }
}

static void record_insert_of_parallel_arrays_is_171_and_changes_nothing(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1, \"b\": 1}}"));
    assert_false(fixture_insert(f, "{\"_id\": 1, \"a\": [1], \"b\": [2]}"));
    assert_int_equal(f->err.code, 171);
    assert_valid(f);
    assert_true(fixture_insert(f, "{\"_id\": 1, \"a\": [1], \"b\": 2}"));
    assert_valid(f);
}

static void record_insert_of_an_array_in_a_hashed_index_is_16766(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a.b\": \"hashed\"}}"));
    assert_false(fixture_insert(f, "{\"_id\": 1, \"a\": {\"b\": [1]}}"));
    assert_int_equal(f->err.code, 16766);
    assert_false(fixture_insert(f, "{\"_id\": 1, \"a\": [{\"b\": 1}]}"));
    assert_int_equal(f->err.code, 16766);
    assert_true(fixture_insert(f, "{\"_id\": 1, \"a\": {\"b\": 1}}"));
    assert_valid(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        CASE(record_insert_then_get_returns_the_bytes),
        CASE(record_find_id_compares_numbers_by_value),
        CASE(record_insert_of_a_taken_id_is_refused_in_mongodbs_words),
        CASE(record_insert_checks_all_unique_keys_before_the_first_put),
        CASE(record_insert_asks_the_owner_about_a_conflict),
        CASE(record_replace_moves_the_entries),
        CASE(record_replace_with_another_id_is_refused),
        CASE(record_erase_leaves_nothing),
        CASE(record_in_pieces_grows_shrinks_and_goes),
        CASE(record_insert_beyond_16_mib_is_10334),
        CASE(record_insert_beyond_100_levels_is_15),
        CASE(record_insert_with_a_bad_id_is_53),
        CASE(record_insert_of_parallel_arrays_is_171_and_changes_nothing),
        CASE(record_insert_of_an_array_in_a_hashed_index_is_16766),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
