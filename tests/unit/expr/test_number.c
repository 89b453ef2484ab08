#include "expr/number.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>

static void number_add_of_int32_overflows_to_int64(void **state)
{
    struct number a = number_i32(INT32_MAX);
    struct number b = number_i32(1);
    struct number sum;
    (void)state;
    assert_true(number_add(&a, &b, NUMBER_REFUSE, &sum));
    assert_int_equal(sum.type, BT_INT64);
    assert_int_equal(sum.i64, (int64_t)INT32_MAX + 1);
}

static void number_add_of_int64_overflow_is_refused_or_double(void **state)
{
    struct number a = number_i64(INT64_MAX);
    struct number b = number_i64(1);
    struct number sum;
    (void)state;
    assert_false(number_add(&a, &b, NUMBER_REFUSE, &sum));
    assert_true(number_add(&a, &b, NUMBER_TO_DOUBLE, &sum));
    assert_int_equal(sum.type, BT_DOUBLE);
    assert_true(sum.f64 == 9223372036854775808.0);
}

static void number_sum_keeps_small_doubles_beside_large_ones(void **state)
{
    struct number_sum sum = {0};
    struct number parts[] = {number_f64(1e16), number_f64(1), number_f64(1), number_f64(-1e16)};
    (void)state;
    for (size_t i = 0; i < 4; i++)
        number_sum_add(&sum, &parts[i]);
    assert_true(number_sum_f64(&sum) == 2);
}

static void number_sum_of_integers_is_exact_and_narrow(void **state)
{
    struct number_sum sum = {0};
    struct number part = number_i32(INT32_MAX);
    (void)state;
    assert_int_equal(number_sum_result(&sum).type, BT_INT32);
    number_sum_add(&sum, &part);
    assert_int_equal(number_sum_result(&sum).type, BT_INT32);
    number_sum_add(&sum, &part);
    assert_int_equal(number_sum_result(&sum).type, BT_INT64);
    assert_int_equal(number_sum_result(&sum).i64, 2 * (int64_t)INT32_MAX);
}

static void number_sum_with_infinity_is_infinite(void **state)
{
    struct number_sum sum = {0};
    struct number parts[] = {number_f64(INFINITY), number_f64(1)};
    (void)state;
    number_sum_add(&sum, &parts[0]);
    number_sum_add(&sum, &parts[1]);
    assert_true(isinf(number_sum_f64(&sum)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(number_add_of_int32_overflows_to_int64),
        cmocka_unit_test(number_add_of_int64_overflow_is_refused_or_double),
        cmocka_unit_test(number_sum_keeps_small_doubles_beside_large_ones),
        cmocka_unit_test(number_sum_of_integers_is_exact_and_narrow),
        cmocka_unit_test(number_sum_with_infinity_is_infinite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
