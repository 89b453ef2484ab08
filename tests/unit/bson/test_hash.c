#include "bson/compare.h"
#include "bson/hash.h"
#include "tests/unit/bson/random_value.h"
#include "tests/unit/cmocka_all.h"

static int64_t hash_of(const char *json)
{
    bson_error_t error;
    bson_t *doc = bson_new_from_json((const uint8_t *)json, -1, &error);
    assert_non_null(doc);
    struct bval val = random_value_of(doc);
    int64_t hash = bval_hash(&val);
    bson_destroy(doc);
    return hash;
}

/* Values that MongoDB documents, or pins in its own start-up check. */
static void hash_of_known_values_is_mongodbs(void **state)
{
    (void)state;
    assert_true(hash_of("{\"v\": 42}") == INT64_C(-944302157085130861));
    bson_t *doc = BCON_NEW("v", "hashthis");
    struct bval val = random_value_of(doc);
    assert_true(bval_hash_seeded(&val, 1) == INT64_C(6271151123721111923));
    bson_destroy(doc);
}

static void hash_of_equal_numbers_is_equal(void **state)
{
    (void)state;
    int64_t one = hash_of("{\"v\": 1}");
    assert_true(one == hash_of("{\"v\": {\"$numberLong\": \"1\"}}"));
    assert_true(one == hash_of("{\"v\": {\"$numberDouble\": \"1.0\"}}"));
    assert_true(one == hash_of("{\"v\": {\"$numberDecimal\": \"1.00\"}}"));
    assert_true(hash_of("{\"v\": {\"$numberDouble\": \"0.5\"}}") == hash_of("{\"v\": {\"$numberDecimal\": \"0.50\"}}"));
    assert_true(hash_of("{\"v\": {\"$numberDouble\": \"NaN\"}}") == hash_of("{\"v\": {\"$numberDecimal\": \"NaN\"}}"));
}

static void hash_of_1_and_1_99_differs(void **state)
{
    (void)state;
    assert_true(hash_of("{\"v\": 1}") != hash_of("{\"v\": 1.99}"));
    assert_true(hash_of("{\"v\": 1.5}") != hash_of("{\"v\": 1.99}"));
    assert_true(hash_of("{\"v\": 1e300}") != hash_of("{\"v\": 1e301}"));
    assert_true(hash_of("{\"v\": {\"$numberLong\": \"9007199254740993\"}}") !=
                hash_of("{\"v\": {\"$numberLong\": \"9007199254740992\"}}"));
}

static void hash_of_a_missing_value_is_that_of_null(void **state)
{
    (void)state;
    assert_true(bval_hash(&BVAL_MISSING) == bval_hash(&BVAL_NULL));
    assert_true(bval_hash(&BVAL_NULL) == hash_of("{\"v\": null}"));
}

static void hash_of_equal_random_numbers_is_equal(void **state)
{
    (void)state;
    struct prng prng = {23};
    for (int i = 0; i < 20000; i++) {
        bson_t *a = random_number_new(&prng);
        bson_t *b = random_number_new(&prng);
        struct bval a_val = random_value_of(a);
        struct bval b_val = random_value_of(b);
        assert_int_equal(bval_compare(&a_val, &b_val) == 0, bval_hash(&a_val) == bval_hash(&b_val));
        bson_destroy(a);
        bson_destroy(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_of_known_values_is_mongodbs),
        cmocka_unit_test(hash_of_equal_numbers_is_equal),
        cmocka_unit_test(hash_of_1_and_1_99_differs),
        cmocka_unit_test(hash_of_a_missing_value_is_that_of_null),
        cmocka_unit_test(hash_of_equal_random_numbers_is_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
