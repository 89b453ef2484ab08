#include "tests/unit/storage/storage_test.h"

#include "base/mem.h"
#include "bson/hash.h"
#include "bson/keyenc.h"
#include "storage/index_keys.h"

#include <string.h>

/* The keys of `doc` must be those of the arrays of values in `expected` ({"0": [values], ...}), in order. */
static void assert_keys(struct fixture *f, const char *index_name, const char *doc_json, const char *expected_json,
                        bool multikey)
{
    const struct index_def *index = fixture_index(f, index_name);
    bson_t *doc = json_doc(doc_json);
    bson_t *expected = json_doc(expected_json);
    struct index_keys keys = {0};
    if (!index_keys_generate(index, bdoc_of(doc), &keys, &f->err))
        fail_msg("%s: %s", doc_json, f->err.msg);
    if (keys.count != bdoc_count(bdoc_of(expected)))
        fail_msg("%s: %zu keys, not %u", doc_json, keys.count, bdoc_count(bdoc_of(expected)));
    struct biter iter;
    struct belem elem;
    struct buf wanted = BUF_INIT;
    biter_init(&iter, bdoc_of(expected));
    for (size_t i = 0; biter_next(&iter, &elem); i++) {
        buf_clear(&wanted);
        keyenc_append_doc_key(&wanted, bval_doc(&elem.val), keyenc_descending(index->key_pattern));
        if (wanted.len != keys.keys[i].len ||
            memcmp(wanted.data, keys.bytes.data + keys.keys[i].offset, wanted.len) != 0)
            fail_msg("%s: key %zu differs", doc_json, i);
    }
    assert_int_equal(keys.multikey, multikey);
    buf_deinit(&wanted);
    index_keys_deinit(&keys);
    bson_destroy(doc);
    bson_destroy(expected);
}

static void index_keys_of_plain_fields_are_one_key(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1, \"b\": -1}, \"name\": \"i\"}"));
    assert_keys(f, "i", "{\"b\": \"x\", \"a\": 5}", "{\"0\": [5, \"x\"]}", false);
    assert_keys(f, "i", "{\"b\": {\"c\": 1}}", "{\"0\": [null, {\"c\": 1}]}", false);
    assert_keys(f, "i", "{}", "{\"0\": [null, null]}", false);
}

static void index_keys_of_an_array_are_sorted_and_distinct(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1}, \"name\": \"up\"}"));
    assert_true(fixture_add_index(f, "{\"key\": {\"b\": 1, \"a\": -1}, \"name\": \"down\"}"));
    assert_keys(f, "up", "{\"a\": [3, 1, 3, 2]}", "{\"0\": [1], \"1\": [2], \"2\": [3]}", true);
    assert_keys(f, "down", "{\"a\": [3, 1, 3], \"b\": 0}", "{\"0\": [0, 3], \"1\": [0, 1]}", true);
    assert_keys(f, "up", "{\"a\": []}", "{\"0\": [{\"$undefined\": true}]}", true);
    assert_keys(f, "up", "{\"a\": [[1, 2]]}", "{\"0\": [[1, 2]]}", true);
}

static void index_keys_of_dotted_paths_go_through_arrays(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a.b\": 1, \"a.c\": 1}, \"name\": \"i\"}"));
    assert_keys(f, "i", "{\"a\": {\"b\": 1, \"c\": 2}}", "{\"0\": [1, 2]}", false);
    assert_keys(f, "i", "{\"a\": [{\"b\": 1, \"c\": 2}, {\"b\": 3}]}", "{\"0\": [1, 2], \"1\": [3, null]}", true);
    assert_keys(f, "i", "{\"a\": [{\"b\": [1, 2]}, {\"b\": 3}]}",
                "{\"0\": [1, null], \"1\": [2, null], \"2\": [3, null]}", true);
    assert_keys(f, "i", "{\"a\": 5}", "{\"0\": [null, null]}", false);
}

static void index_keys_of_a_sparse_index_need_a_field(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1, \"b\": 1}, \"sparse\": true, \"name\": \"plain\"}"));
    assert_true(fixture_add_index(f, "{\"key\": {\"a.x\": 1}, \"sparse\": true, \"name\": \"dotted\"}"));
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": \"hashed\"}, \"sparse\": true, \"name\": \"hashed\"}"));
    assert_keys(f, "plain", "{\"c\": 1}", "{}", false);
    assert_keys(f, "plain", "{\"b\": 1}", "{\"0\": [null, 1]}", false);
    assert_keys(f, "plain", "{\"a\": null}", "{\"0\": [null, null]}", false);
    assert_keys(f, "dotted", "{\"a\": {\"y\": 1}}", "{}", false);
    assert_keys(f, "dotted", "{\"a\": {\"x\": null}}", "{\"0\": [null]}", false);
    assert_keys(f, "hashed", "{\"c\": 1}", "{}", false);
}

static void index_keys_of_a_hashed_field_are_its_hash(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"b\": -1, \"a\": \"hashed\"}, \"name\": \"i\"}"));
    bson_t *doc = json_doc("{\"a\": {\"$numberLong\": \"42\"}, \"b\": 1}");
    struct bval a;
    struct bval b;
    bdoc_find(bdoc_of(doc), "a", &a);
    bdoc_find(bdoc_of(doc), "b", &b);
    struct buf wanted = BUF_INIT;
    keyenc_append(&wanted, &b, true);
    keyenc_append_i64(&wanted, bval_hash(&a), false);
    struct index_keys keys = {0};
    assert_true(index_keys_generate(fixture_index(f, "i"), bdoc_of(doc), &keys, &f->err));
    assert_int_equal(keys.count, 1);
    assert_int_equal(keys.keys[0].len, wanted.len);
    assert_memory_equal(keys.bytes.data, wanted.data, wanted.len);
    index_keys_deinit(&keys);
    buf_deinit(&wanted);
    bson_destroy(doc);
}

static void index_keys_refusals_have_mongodbs_codes(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1, \"b\": 1}, \"name\": \"pair\"}"));
    assert_true(fixture_add_index(f, "{\"key\": {\"c.0\": 1}, \"name\": \"digit\"}"));
    static const struct {
        const char *doc;
        const char *index;
        int32_t code;
    } cases[] = {
        {"{\"a\": [1], \"b\": [1]}", "pair", 171},
        {"{\"a\": [], \"b\": [1]}", "pair", 171},
        {"{\"c\": [{\"0\": 1}]}", "digit", 16746},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct index_keys keys = {0};
        bson_t *doc = json_doc(cases[i].doc);
        assert_false(index_keys_generate(fixture_index(f, cases[i].index), bdoc_of(doc), &keys, &f->err));
        assert_int_equal(f->err.code, cases[i].code);
        index_keys_deinit(&keys);
        bson_destroy(doc);
    }
}

static void append_numbers(bson_t *doc, const char *name, uint32_t count)
{
    bson_t array;
    BSON_APPEND_ARRAY_BEGIN(doc, name, &array);
    for (uint32_t i = 0; i < count; i++) {
        char text[16];
        const char *key;
        size_t len = bson_uint32_to_string(i, &key, text, sizeof text);
        bson_append_int32(&array, key, (int)len, (int32_t)i);
    }
    bson_append_array_end(doc, &array);
}

static void index_keys_in_number_and_bytes_are_bounded(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"big\": 1, \"a\": 1}, \"name\": \"i\"}"));
    struct index_keys keys = {0};
    bson_t many = BSON_INITIALIZER;
    append_numbers(&many, "a", INDEX_KEYS_MAX + 1);
    assert_false(index_keys_generate(fixture_index(f, "i"), bdoc_of(&many), &keys, &f->err));
    assert_int_equal(f->err.code, 201);
    bson_destroy(&many);
    bson_t large = BSON_INITIALIZER;
    char *text = mem_alloc(1 << 20);
    memset(text, 'x', 1 << 20);
    append_numbers(&large, "a", 100);
    bson_append_utf8(&large, "big", -1, text, 1 << 20);
    assert_false(index_keys_generate(fixture_index(f, "i"), bdoc_of(&large), &keys, &f->err));
    assert_int_equal(f->err.code, 201);
    bson_destroy(&large);
    mem_free(text);
    index_keys_deinit(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        CASE(index_keys_of_plain_fields_are_one_key),       CASE(index_keys_of_an_array_are_sorted_and_distinct),
        CASE(index_keys_of_dotted_paths_go_through_arrays), CASE(index_keys_of_a_sparse_index_need_a_field),
        CASE(index_keys_of_a_hashed_field_are_its_hash),    CASE(index_keys_refusals_have_mongodbs_codes),
        CASE(index_keys_in_number_and_bytes_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
