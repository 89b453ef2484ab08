#include "bson/compare.h"
#include "bson/keyenc.h"
#include "tests/unit/bson/random_value.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANDOM_VALUES = 400 };

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

struct sample {
    bson_t *doc;
    struct bval val;
    struct buf key;
};

static void fail_pair(const struct sample *a, const struct sample *b, int expected, int got)
{
    char *a_text = bson_as_canonical_extended_json(a->doc, NULL);
    char *b_text = bson_as_canonical_extended_json(b->doc, NULL);
    print_error("%s against %s: compare %d, keys %d\n", a_text, b_text, expected, got);
    bson_free(a_text);
    bson_free(b_text);
    fail();
}

/* Every pair of `samples`: the keys' order is the values' order, and no key is a prefix of a different one. */
static void check_all_pairs(const struct sample *samples, int count, bool descending)
{
    for (int i = 0; i < count; i++) {
        for (int j = i; j < count; j++) {
            const struct sample *a = &samples[i];
            const struct sample *b = &samples[j];
            int expected = sign(bval_compare(&a->val, &b->val));
            assert_int_equal(expected, -sign(bval_compare(&b->val, &a->val)));
            int got = sign(keyenc_compare(a->key.data, a->key.len, b->key.data, b->key.len));
            if (got != (descending ? -expected : expected))
                fail_pair(a, b, expected, got);
            size_t common = a->key.len < b->key.len ? a->key.len : b->key.len;
            if (expected != 0)
                assert_memory_not_equal(a->key.data, b->key.data, common);
            else
                assert_int_equal(a->key.len, b->key.len);
        }
    }
}

static void check_random(uint64_t seed, bool numbers, bool descending)
{
    struct prng prng = {seed};
    struct sample samples[RANDOM_VALUES];
    for (int i = 0; i < RANDOM_VALUES; i++) {
        samples[i].doc = numbers ? random_number_new(&prng) : random_value_new(&prng, 3);
        samples[i].val = random_value_of(samples[i].doc);
        samples[i].key = BUF_INIT;
        keyenc_append(&samples[i].key, &samples[i].val, descending);
    }
    check_all_pairs(samples, RANDOM_VALUES, descending);
    for (int i = 0; i < RANDOM_VALUES; i++) {
        bson_destroy(samples[i].doc);
        buf_deinit(&samples[i].key);
    }
}

static void keyenc_of_random_values_orders_as_compare(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++)
        check_random(seed, false, seed % 2 == 0);
}

static void keyenc_of_random_numbers_orders_as_compare(void **state)
{
    (void)state;
    for (uint64_t seed = 100; seed <= 112; seed++)
        check_random(seed, true, seed % 4 == 0);
}

static void key_of_json(const char *json, struct buf *key)
{
    bson_error_t error;
    bson_t *doc = bson_new_from_json((const uint8_t *)json, -1, &error);
    assert_non_null(doc);
    keyenc_append_doc_key(key, bdoc_of(doc), 0);
    bson_destroy(doc);
}

static void keyenc_of_equal_numbers_gives_equal_bytes(void **state)
{
    (void)state;
    static const char *const ones[] = {"{\"v\": {\"$numberInt\": \"1\"}}", "{\"v\": {\"$numberLong\": \"1\"}}",
                                       "{\"v\": {\"$numberDouble\": \"1.0\"}}",
                                       "{\"v\": {\"$numberDecimal\": \"1.000\"}}"};
    struct buf first = BUF_INIT;
    key_of_json(ones[0], &first);
    for (size_t i = 1; i < sizeof ones / sizeof *ones; i++) {
        struct buf key = BUF_INIT;
        key_of_json(ones[i], &key);
        assert_int_equal(first.len, key.len);
        assert_memory_equal(first.data, key.data, key.len);
        buf_deinit(&key);
    }
    assert_int_equal(first.len, 2);
    buf_deinit(&first);
}

/* The bytes are on disk: they may never change. */
static void keyenc_format_stays_as_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *hex;
    } known[] = {
        {"{\"v\": {\"$minKey\": 1}}", "08"},
        {"{\"v\": null}", "18"},
        {"{\"v\": {\"$numberDouble\": \"NaN\"}}", "20"},
        {"{\"v\": {\"$numberDouble\": \"-Infinity\"}}", "21"},
        {"{\"v\": {\"$numberInt\": \"-1\"}}", "2afd"},
        {"{\"v\": {\"$numberInt\": \"0\"}}", "2c"},
        {"{\"v\": {\"$numberDouble\": \"0.5\"}}", "2d7fc0000000000000"},
        {"{\"v\": {\"$numberInt\": \"1\"}}", "2e02"},
        {"{\"v\": {\"$numberDouble\": \"1.5\"}}", "2e0380000000000000"},
        {"{\"v\": {\"$numberInt\": \"300\"}}", "2f0258"},
        {"{\"v\": {\"$numberLong\": \"9223372036854775807\"}}", "35fffffffffffffffe"},
        {"{\"v\": {\"$numberDecimal\": \"1.1\"}}", "2e0319999999999991400000363bf3b1ceeebe6e4a8b00000000"},
        {"{\"v\": \"a\"}", "486100"},
        {"{\"v\": \"a\\u0000\\u0001b\"}", "4861010101026200"},
        {"{\"v\": {\"a\": 1}}", "50206100 2e02 00"},
        {"{\"v\": [1, \"b\"]}", "58 2e02 486200 00"},
        {"{\"v\": {\"$oid\": \"000000010203040506070809\"}}", "68000000010203040506070809"},
        {"{\"v\": true}", "7001"},
        {"{\"v\": {\"$date\": {\"$numberLong\": \"0\"}}}", "788000000000000000"},
        {"{\"v\": {\"$timestamp\": {\"t\": 1, \"i\": 2}}}", "800000000100000002"},
        {"{\"v\": {\"$maxKey\": 1}}", "f0"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct buf key = BUF_INIT;
        key_of_json(known[i].json, &key);
        char hex[256] = "";
        for (size_t at = 0; at < key.len; at++)
            snprintf(hex + 2 * at, 3, "%02x", key.data[at]);
        char expected[256];
        size_t len = 0;
        for (const char *at = known[i].hex; *at != 0; at++)
            if (*at != ' ')
                expected[len++] = *at;
        expected[len] = 0;
        if (strcmp(hex, expected) != 0)
            print_error("%s\n", known[i].json);
        assert_string_equal(hex, expected);
        buf_deinit(&key);
    }
}

static void keyenc_missing_encodes_as_null(void **state)
{
    (void)state;
    struct buf missing = BUF_INIT;
    struct buf null = BUF_INIT;
    keyenc_append(&missing, &BVAL_MISSING, false);
    keyenc_append(&null, &BVAL_NULL, false);
    assert_int_equal(missing.len, null.len);
    assert_memory_equal(missing.data, null.data, null.len);
    buf_deinit(&missing);
    buf_deinit(&null);
}

static void keyenc_compound_key_orders_by_each_direction(void **state)
{
    (void)state;
    bson_t *pattern = BCON_NEW("a", BCON_INT32(1), "b", BCON_DOUBLE(-1.0), "c", "hashed");
    uint64_t descending = keyenc_descending(bdoc_of(pattern));
    assert_int_equal(descending, 2);
    bson_t *low = BCON_NEW("a", BCON_INT32(1), "b", BCON_INT32(9));
    bson_t *high = BCON_NEW("a", BCON_INT32(1), "b", BCON_UTF8(""));
    struct buf low_key = BUF_INIT;
    struct buf high_key = BUF_INIT;
    keyenc_append_doc_key(&low_key, bdoc_of(low), descending);
    keyenc_append_doc_key(&high_key, bdoc_of(high), descending);
    assert_true(keyenc_compare(low_key.data, low_key.len, high_key.data, high_key.len) > 0);
    buf_deinit(&low_key);
    buf_deinit(&high_key);
    bson_destroy(low);
    bson_destroy(high);
    bson_destroy(pattern);
}

static void keyenc_bound_with_max_key_is_above_max_key_itself(void **state)
{
    (void)state;
    bson_t *doc = BCON_NEW("a", BCON_MAXKEY);
    struct buf key = BUF_INIT;
    struct buf bound = BUF_INIT;
    keyenc_append_doc_key(&key, bdoc_of(doc), 0);
    keyenc_append_bound(&bound, bdoc_of(doc));
    assert_true(keyenc_compare(key.data, key.len, bound.data, bound.len) < 0);
    buf_clear(&key);
    buf_clear(&bound);
    bson_reinit(doc);
    bson_append_minkey(doc, "a", -1);
    keyenc_append_doc_key(&key, bdoc_of(doc), 0);
    keyenc_append_bound(&bound, bdoc_of(doc));
    assert_int_equal(keyenc_compare(key.data, key.len, bound.data, bound.len), 0);
    buf_deinit(&key);
    buf_deinit(&bound);
    bson_destroy(doc);
}

static void keyenc_class_ends_enclose_the_class(void **state)
{
    (void)state;
    struct prng prng = {7};
    for (int i = 0; i < 2000; i++) {
        bool descending = i % 2 == 1;
        bson_t *a = random_value_new(&prng, 1);
        bson_t *b = random_value_new(&prng, 1);
        struct bval a_val = random_value_of(a);
        struct bval b_val = random_value_of(b);
        struct buf key = BUF_INIT;
        struct buf before = BUF_INIT;
        struct buf after = BUF_INIT;
        keyenc_append(&key, &a_val, descending);
        keyenc_append_before_class(&before, b_val.type, descending);
        keyenc_append_after_class(&after, b_val.type, descending);
        int to_before = keyenc_compare(key.data, key.len, before.data, before.len);
        int to_after = keyenc_compare(key.data, key.len, after.data, after.len);
        bool inside = descending ? to_before < 0 && to_after > 0 : to_before > 0 && to_after < 0;
        assert_int_equal(inside, bval_class(a_val.type) == bval_class(b_val.type));
        buf_deinit(&key);
        buf_deinit(&before);
        buf_deinit(&after);
        bson_destroy(a);
        bson_destroy(b);
    }
}

static void keyenc_first_byte_is_never_0_or_255(void **state)
{
    (void)state;
    struct prng prng = {11};
    for (int i = 0; i < 2000; i++) {
        bson_t *doc = random_value_new(&prng, 0);
        struct bval val = random_value_of(doc);
        struct buf key = BUF_INIT;
        keyenc_append(&key, &val, i % 2 == 0);
        assert_in_range(key.data[0], 1, 254);
        buf_deinit(&key);
        bson_destroy(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keyenc_of_random_values_orders_as_compare),
        cmocka_unit_test(keyenc_of_random_numbers_orders_as_compare),
        cmocka_unit_test(keyenc_of_equal_numbers_gives_equal_bytes),
        cmocka_unit_test(keyenc_format_stays_as_it_is),
        cmocka_unit_test(keyenc_missing_encodes_as_null),
        cmocka_unit_test(keyenc_compound_key_orders_by_each_direction),
        cmocka_unit_test(keyenc_bound_with_max_key_is_above_max_key_itself),
        cmocka_unit_test(keyenc_class_ends_enclose_the_class),
        cmocka_unit_test(keyenc_first_byte_is_never_0_or_255),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
