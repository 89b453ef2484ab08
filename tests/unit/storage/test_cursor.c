#include "tests/unit/storage/storage_test.h"

#include "base/mem.h"
#include "base/random.h"
#include "bson/keyenc.h"
#include "storage/cursor.h"
#include "storage/index_run.h"

#include <stdio.h>
#include <string.h>

/* ---- records ---- */

static void record_cursor_walks_both_ways_and_goes_on_after_an_erasure(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    for (int i = 0; i < 10; i++) {
        char json[32];
        snprintf(json, sizeof json, "{\"_id\": %d}", i);
        assert_true(fixture_insert(f, json));
    }
    struct record_cursor cursor;
    uint64_t id;
    uint64_t sum = 0;
    for (int backward = 0; backward < 2; backward++) {
        record_cursor_open(&cursor, f->txn, f->coll, backward == 1);
        for (uint64_t i = 1; record_cursor_next(&cursor, &id, NULL); i++, sum += id)
            assert_int_equal(id, backward == 1 ? 11 - i : i);
        record_cursor_close(&cursor);
    }
    assert_int_equal(sum, 110);
    assert_true(record_erase(f->txn, f->coll, 5, NULL));
    record_cursor_open(&cursor, f->txn, f->coll, false);
    record_cursor_seek_after(&cursor, 4);
    assert_true(record_cursor_next(&cursor, &id, NULL));
    assert_int_equal(id, 6);
    record_cursor_close(&cursor);
    record_cursor_open(&cursor, f->txn, f->coll, true);
    record_cursor_seek_after(&cursor, 5);
    assert_true(record_cursor_next(&cursor, &id, NULL));
    assert_int_equal(id, 4);
    record_cursor_close(&cursor);
}

static void record_cursor_stays_in_its_collection_and_passes_over_pieces(void **state)
{
    struct fixture *f = *state;
    static const uint8_t uuids[2][UUID_BYTES] = {"before", "behind"};
    assert_true(catalog_create(f->txn, "db.a", 4, uuids[0], bdoc_empty(), &f->err));
    fixture_make_collection(f);
    assert_true(catalog_create(f->txn, "db.z", 4, uuids[1], bdoc_empty(), &f->err));
    char *text = mem_alloc(300000);
    memset(text, 'x', 300000);
    static const char *const names[] = {"db.a", "db.c", "db.z"};
    for (int i = 0; i < 9; i++) {
        bson_t *doc = bson_new();
        BSON_APPEND_INT32(doc, "_id", i);
        bson_append_utf8(doc, "t", 1, text, i % 2 == 0 ? 300000 : 10);
        const struct collection *coll = catalog_find(f->txn, names[i % 3], 4);
        assert_true(record_insert(f->txn, coll, bdoc_of(doc), NULL, NULL, &f->err));
        bson_destroy(doc);
    }
    fixture_find(f);
    for (int backward = 0; backward < 2; backward++) {
        struct record_cursor cursor;
        struct bdoc doc;
        int32_t expected = backward == 1 ? 7 : 1;
        record_cursor_open(&cursor, f->txn, f->coll, backward == 1);
        while (record_cursor_next(&cursor, NULL, &doc)) {
            struct bval id;
            bdoc_find(doc, "_id", &id);
            assert_int_equal(bval_i32(&id), expected);
            assert_true(bdoc_validate(doc.data, doc.len, 100, &f->err));
            expected += backward == 1 ? -3 : 3;
        }
        assert_int_equal(expected, backward == 1 ? -2 : 10);
        record_cursor_close(&cursor);
    }
    mem_free(text);
}

/* ---- index entries ---- */

static void encode_int(struct buf *to, int32_t number, bool descending)
{
    uint8_t bytes[4];
    store_le32(bytes, (uint32_t)number);
    struct bval val = {BT_INT32, 4, bytes};
    keyenc_append(to, &val, descending);
}

static void fill_compound(struct fixture *f)
{
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1, \"b\": -1}, \"name\": \"i\"}"));
    for (int a = 0; a < 5; a++) {
        for (int b = 0; b < 5; b++) {
            char json[64];
            snprintf(json, sizeof json, "{\"_id\": %d, \"a\": %d, \"b\": %d}", a * 10 + b, a, b);
            assert_true(fixture_insert(f, json));
        }
    }
}

static int count_between(struct fixture *f, const struct index_bounds *bounds, bool backward)
{
    struct index_cursor cursor;
    struct index_entry entry;
    int count = 0;
    index_cursor_open(&cursor, f->txn, fixture_index(f, "i"), bounds, backward);
    while (index_cursor_next(&cursor, &entry))
        count++;
    assert_false(index_cursor_next(&cursor, &entry));
    index_cursor_close(&cursor);
    return count;
}

static void index_cursor_bounds_are_prefixes(void **state)
{
    struct fixture *f = *state;
    fill_compound(f);
    struct buf two = BUF_INIT;
    struct buf three = BUF_INIT;
    encode_int(&two, 2, false);
    encode_int(&three, 3, false);
    for (int backward = 0; backward < 2; backward++) {
        struct index_bounds bounds = {two.data, (uint32_t)two.len, two.data, (uint32_t)two.len, true, true};
        assert_int_equal(count_between(f, &bounds, backward == 1), 5);
        bounds.low_inclusive = false;
        assert_int_equal(count_between(f, &bounds, backward == 1), 0);
        bounds = (struct index_bounds){two.data, (uint32_t)two.len, three.data, (uint32_t)three.len, true, false};
        assert_int_equal(count_between(f, &bounds, backward == 1), 5);
        bounds = (struct index_bounds){two.data, (uint32_t)two.len, NULL, 0, false, false};
        assert_int_equal(count_between(f, &bounds, backward == 1), 10);
        bounds = (struct index_bounds){NULL, 0, two.data, (uint32_t)two.len, false, true};
        assert_int_equal(count_between(f, &bounds, backward == 1), 15);
        bounds = (struct index_bounds){0};
        assert_int_equal(count_between(f, &bounds, backward == 1), 25);
    }
    buf_deinit(&two);
    buf_deinit(&three);
}

static void index_cursor_seek_skips(void **state)
{
    struct fixture *f = *state;
    fill_compound(f);
    struct index_bounds all = {0};
    struct index_cursor cursor;
    struct index_entry entry;
    int seen = 0;
    index_cursor_open(&cursor, f->txn, fixture_index(f, "i"), &all, false);
    for (int32_t a = 0; index_cursor_next(&cursor, &entry); a++) { /* the first entry of each value of a */
        struct buf key = BUF_INIT;
        encode_int(&key, a, false);
        assert_memory_equal(entry.key, key.data, key.len);
        index_cursor_seek(&cursor, key.data, (uint32_t)key.len, false);
        buf_deinit(&key);
        seen++;
    }
    assert_int_equal(seen, 5);
    index_cursor_close(&cursor);
}

/* It went back to the bound when this began with the key, and so on for ever. */
static void index_cursor_seek_beyond_a_prefix_of_its_bound_moves_on(void **state)
{
    struct fixture *f = *state;
    fill_compound(f);
    struct buf low = BUF_INIT;
    struct buf prefix = BUF_INIT;
    struct index_cursor cursor;
    struct index_entry entry;
    encode_int(&prefix, 2, false);
    buf_append(&low, prefix.data, prefix.len);
    buf_append_u8(&low, 0x01); /* somewhere within the keys that begin with 2 */
    struct index_bounds bounds = {low.data, (uint32_t)low.len, NULL, 0, true, false};
    index_cursor_open(&cursor, f->txn, fixture_index(f, "i"), &bounds, false);
    assert_true(index_cursor_next(&cursor, &entry));
    index_cursor_seek(&cursor, prefix.data, (uint32_t)prefix.len, false);
    assert_true(index_cursor_next(&cursor, &entry));
    assert_true(memcmp(entry.key, prefix.data, prefix.len) > 0);
    index_cursor_close(&cursor);
    buf_deinit(&low);
    buf_deinit(&prefix);
}

static void index_cursor_restore_of_nonsense_is_refused(void **state)
{
    struct fixture *f = *state;
    fill_compound(f);
    struct index_bounds all = {0};
    struct index_cursor cursor;
    index_cursor_open(&cursor, f->txn, fixture_index(f, "i"), &all, false);
    assert_false(index_cursor_restore(&cursor, "12345678", 8));
    assert_false(index_cursor_restore(&cursor, NULL, 0));
    index_cursor_close(&cursor);
}

/* ---- more long keys with one prefix than a cursor holds ---- */

enum { RUN_DOCS = 3 * RUN_HELD_MAX };

static void fill_run(struct fixture *f)
{
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"t\": 1}, \"name\": \"i\"}"));
    char text[600];
    struct prng prng = {1};
    memset(text, 'p', sizeof text);
    for (int32_t i = 0; i < RUN_DOCS; i++) {
        bson_t *doc = bson_new();
        uint64_t number = prng_below(&prng, 100000); /* a few keys come twice */
        for (int digit = 0; digit < 6; digit++, number /= 10)
            text[sizeof text - 1 - (size_t)digit] = (char)('0' + (char)(number % 10));
        BSON_APPEND_INT32(doc, "_id", i);
        bson_append_utf8(doc, "t", 1, text, sizeof text);
        assert_true(record_insert(f->txn, f->coll, bdoc_of(doc), NULL, NULL, &f->err));
        bson_destroy(doc);
    }
    memset(text, 'a', sizeof text);
    for (int i = 0; i < 2; i++, memset(text, 'z', sizeof text)) { /* one before and one behind the run */
        bson_t *doc = bson_new();
        BSON_APPEND_INT32(doc, "_id", RUN_DOCS + i);
        bson_append_utf8(doc, "t", 1, text, sizeof text);
        assert_true(record_insert(f->txn, f->coll, bdoc_of(doc), NULL, NULL, &f->err));
        bson_destroy(doc);
    }
}

static void index_cursor_orders_a_run_larger_than_it_holds(void **state)
{
    struct fixture *f = *state;
    fill_run(f);
    struct index_bounds all = {0};
    for (int backward = 0; backward < 2; backward++) {
        struct index_cursor cursor;
        struct index_entry entry;
        struct buf before = BUF_INIT;
        uint64_t before_id = 0;
        int count = 0;
        index_cursor_open(&cursor, f->txn, fixture_index(f, "i"), &all, backward == 1);
        while (index_cursor_next(&cursor, &entry)) {
            int order =
                keyenc_compare(before.data == NULL ? entry.key : before.data, before.len, entry.key, entry.key_len);
            if (order == 0)
                order = before_id < entry.record_id ? -1 : 1;
            if (count > 0)
                assert_true(backward == 1 ? order > 0 : order < 0);
            buf_clear(&before);
            buf_append(&before, entry.key, entry.key_len);
            before_id = entry.record_id;
            count++;
        }
        assert_int_equal(count, RUN_DOCS + 2);
        index_cursor_close(&cursor);
        buf_deinit(&before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        CASE(record_cursor_walks_both_ways_and_goes_on_after_an_erasure),
        CASE(record_cursor_stays_in_its_collection_and_passes_over_pieces),
        CASE(index_cursor_bounds_are_prefixes),
        CASE(index_cursor_seek_skips),
        CASE(index_cursor_seek_beyond_a_prefix_of_its_bound_moves_on),
        CASE(index_cursor_restore_of_nonsense_is_refused),
        CASE(index_cursor_orders_a_run_larger_than_it_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
