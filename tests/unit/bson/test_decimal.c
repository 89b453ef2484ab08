#include "bson/decimal.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>

static const struct {
    const char *operation;
    const char *a;
    const char *b;
    const char *result;
} vectors[] = {
#include "tests/unit/bson/decimal_vectors.inc"
};

static bson_decimal128_t dec(const char *text)
{
    bson_decimal128_t out;
    assert_true(decimal_from_str(text, strlen(text), &out));
    return out;
}

static void assert_decimal(bson_decimal128_t number, const char *expected)
{
    char text[BSON_DECIMAL128_STRING];
    decimal_to_str(&number, text);
    assert_string_equal(text, expected);
}

static bson_decimal128_t apply(const char *operation, bson_decimal128_t a, bson_decimal128_t b)
{
    if (strcmp(operation, "add") == 0)
        return decimal_add(a, b);
    if (strcmp(operation, "sub") == 0)
        return decimal_sub(a, b);
    if (strcmp(operation, "mul") == 0)
        return decimal_mul(a, b);
    if (strcmp(operation, "div") == 0)
        return decimal_div(a, b);
    if (strcmp(operation, "mod") == 0)
        return decimal_mod(a, b);
    return decimal_sqrt(a);
}

static void arithmetic_agrees_with_recorded_results(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        bson_decimal128_t result = apply(vectors[i].operation, dec(vectors[i].a), dec(vectors[i].b));
        bson_decimal128_t expected = dec(vectors[i].result);
        if (result.low != expected.low || result.high != expected.high) {
            print_error("%s %s %s\n", vectors[i].operation, vectors[i].a, vectors[i].b);
            assert_decimal(result, vectors[i].result);
        }
    }
}

static void round_goes_as_the_mode_says(void **state)
{
    (void)state;
    assert_decimal(decimal_round(dec("2.5"), 0, DECIMAL_HALF_EVEN), "2");
    assert_decimal(decimal_round(dec("3.5"), 0, DECIMAL_HALF_EVEN), "4");
    assert_decimal(decimal_round(dec("-2.51"), 0, DECIMAL_HALF_EVEN), "-3");
    assert_decimal(decimal_round(dec("-2.5"), 0, DECIMAL_FLOOR), "-3");
    assert_decimal(decimal_round(dec("-2.5"), 0, DECIMAL_CEIL), "-2");
    assert_decimal(decimal_round(dec("2.9"), 0, DECIMAL_TRUNCATE), "2");
    assert_decimal(decimal_round(dec("1234.567"), 2, DECIMAL_HALF_EVEN), "1234.57");
    assert_decimal(decimal_round(dec("1250"), -2, DECIMAL_HALF_EVEN), "1.2E+3");
    assert_decimal(decimal_round(dec("9.999"), 2, DECIMAL_HALF_EVEN), "10.00");
    assert_decimal(decimal_round(dec("1E-6000"), 0, DECIMAL_CEIL), "1");
    assert_decimal(decimal_round(dec("Infinity"), 0, DECIMAL_CEIL), "Infinity");
}

static void from_f64_keeps_15_digits_or_34(void **state)
{
    (void)state;
    assert_decimal(decimal_from_f64(2.5, false), "2.50000000000000");
    assert_decimal(decimal_from_f64(0.1, false), "0.100000000000000");
    assert_decimal(decimal_from_f64(0.1, true), "0.1000000000000000055511151231257827");
    assert_decimal(decimal_from_f64(2.5, true), "2.5");
    assert_decimal(decimal_from_f64(100, true), "100");
    assert_decimal(decimal_from_f64(-0.0, false), "-0");
    assert_decimal(decimal_from_f64((double)NAN, false), "NaN");
    assert_decimal(decimal_from_f64(-(double)INFINITY, true), "-Infinity");
}

static void to_i64_rounds_and_refuses_what_does_not_fit(void **state)
{
    (void)state;
    int64_t out;
    assert_true(decimal_to_i64(dec("9223372036854775807"), DECIMAL_TRUNCATE, &out));
    assert_true(out == INT64_MAX);
    assert_true(decimal_to_i64(dec("-9223372036854775808"), DECIMAL_TRUNCATE, &out));
    assert_true(out == INT64_MIN);
    assert_false(decimal_to_i64(dec("9223372036854775808"), DECIMAL_TRUNCATE, &out));
    assert_true(decimal_to_i64(dec("9223372036854775807.4"), DECIMAL_HALF_EVEN, &out));
    assert_true(decimal_to_i64(dec("1E+3"), DECIMAL_HALF_EVEN, &out));
    assert_int_equal(out, 1000);
    assert_false(decimal_to_i64(dec("1E+6000"), DECIMAL_HALF_EVEN, &out));
    assert_false(decimal_to_i64(dec("NaN"), DECIMAL_HALF_EVEN, &out));
    assert_true(decimal_to_i64(dec("0E+6000"), DECIMAL_HALF_EVEN, &out));
    assert_int_equal(out, 0);
}

static void to_f64_gives_the_nearest_double(void **state)
{
    (void)state;
    assert_true(decimal_to_f64(dec("0.1")) == 0.1);
    assert_true(decimal_to_f64(dec("1E+23")) == 1e23);
    assert_true(decimal_to_f64(dec("9007199254740993")) == 9007199254740992.0);
    assert_true(isinf(decimal_to_f64(dec("1E+400"))));
    assert_true(decimal_to_f64(dec("-4.9E-324")) == -4.9e-324);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_agrees_with_recorded_results),
        cmocka_unit_test(round_goes_as_the_mode_says),
        cmocka_unit_test(from_f64_keeps_15_digits_or_34),
        cmocka_unit_test(to_i64_rounds_and_refuses_what_does_not_fit),
        cmocka_unit_test(to_f64_gives_the_nearest_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
