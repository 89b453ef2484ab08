#include "tests/unit/cmocka_all.h"

#include "cluster/keyrange.h"

static struct key_bytes key_of(const char *text)
{
    return (struct key_bytes){.data = (const uint8_t *)text, .len = (uint32_t)strlen(text)};
}

static struct key_range range_of(const char *min, const char *max)
{
    return (struct key_range){.min = key_of(min), .max = key_of(max)};
}

static struct range_set *set_of(const struct key_range *ranges, size_t count)
{
    struct range_set *set = NULL;
    struct err err;
    if (!range_set_new(ranges, count, &set, &err)) {
        fail_msg("%s", err.msg);
    }
    return set;
}

static void key_bytes_compare_puts_the_prefix_first(void **state)
{
    (void)state;
    assert_true(key_bytes_compare(key_of("a"), key_of("ab")) < 0);
    assert_true(key_bytes_compare(key_of("b"), key_of("ab")) > 0);
    assert_int_equal(key_bytes_compare(key_of(""), (struct key_bytes){0}), 0);
    assert_true(key_bytes_compare(key_of("\xff"), key_of("\x01")) > 0);
}

static void key_range_is_closed_below_and_open_above(void **state)
{
    (void)state;
    struct key_range range = range_of("b", "d");
    assert_true(key_range_contains(range, key_of("b")));
    assert_true(key_range_contains(range, key_of("czzz")));
    assert_false(key_range_contains(range, key_of("d")));
    assert_false(key_range_contains(range, key_of("a")));
    assert_false(key_range_overlaps(range, range_of("d", "e")));
    assert_false(key_range_overlaps(range, range_of("a", "b")));
    assert_true(key_range_overlaps(range, range_of("c", "z")));
    assert_true(key_range_is_empty(key_range_intersect(range, range_of("x", "z"))));
}

static void range_set_find_names_the_range_of_a_key(void **state)
{
    (void)state;
    struct range_set *set = set_of((struct key_range[]){range_of("m", "p"), range_of("b", "d"), range_of("d", "f")}, 3);
    assert_int_equal(range_set_count(set), 3);
    assert_int_equal(range_set_find(set, key_of("b")), 0);
    assert_int_equal(range_set_find(set, key_of("d")), 1);
    assert_int_equal(range_set_find(set, key_of("o")), 2);
    assert_true(range_set_find(set, key_of("a")) == SIZE_MAX);
    assert_true(range_set_find(set, key_of("f")) == SIZE_MAX);
    assert_true(range_set_find(set, key_of("p")) == SIZE_MAX);
    assert_true(range_set_contains(set, key_of("mm")));
    range_set_free(set);
}

static void range_set_covers_across_adjacent_ranges_only(void **state)
{
    (void)state;
    struct range_set *set = set_of((struct key_range[]){range_of("b", "d"), range_of("d", "f"), range_of("h", "k")}, 3);
    assert_true(range_set_covers(set, range_of("b", "f")));
    assert_true(range_set_covers(set, range_of("c", "e")));
    assert_true(range_set_covers(set, range_of("x", "x")));
    assert_false(range_set_covers(set, range_of("b", "g")));
    assert_false(range_set_covers(set, range_of("e", "i")));
    assert_false(range_set_covers(set, range_of("a", "c")));
    assert_true(range_set_overlaps(set, range_of("a", "c")));
    assert_true(range_set_overlaps(set, range_of("f", "i")));
    assert_false(range_set_overlaps(set, range_of("f", "h")));
    assert_false(range_set_overlaps(set, range_of("k", "z")));
    range_set_free(set);
}

static void range_set_new_refuses_overlap_and_empty(void **state)
{
    (void)state;
    struct range_set *set;
    struct err err;
    assert_false(range_set_new((struct key_range[]){range_of("b", "d"), range_of("c", "f")}, 2, &set, &err));
    assert_int_equal(err.code, ERR_RangeOverlapConflict);
    assert_false(range_set_new((struct key_range[]){range_of("d", "d")}, 1, &set, &err));
    assert_int_equal(err.code, ERR_BadValue);
}

static void range_set_of_nothing_owns_nothing(void **state)
{
    (void)state;
    struct range_set *set = set_of(NULL, 0);
    assert_false(range_set_contains(set, key_of("a")));
    assert_false(range_set_overlaps(set, range_of("a", "z")));
    assert_false(range_set_covers(set, range_of("a", "z")));
    range_set_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_bytes_compare_puts_the_prefix_first),
        cmocka_unit_test(key_range_is_closed_below_and_open_above),
        cmocka_unit_test(range_set_find_names_the_range_of_a_key),
        cmocka_unit_test(range_set_covers_across_adjacent_ranges_only),
        cmocka_unit_test(range_set_new_refuses_overlap_and_empty),
        cmocka_unit_test(range_set_of_nothing_owns_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
