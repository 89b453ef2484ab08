#include "expr/dates.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

static void dates_split_and_days_are_inverse(void **state)
{
    (void)state;
    for (int64_t days = -800000; days < 800000; days += 37) {
        struct date_parts parts;
        date_split(days * 86400000, &parts);
        assert_int_equal(date_days(parts.year, parts.month, parts.day), days);
        assert_int_equal(parts.weekday, ((days % 7 + 11) % 7));
    }
}

static void dates_split_takes_the_ends_of_the_range(void **state)
{
    struct date_parts parts;
    char text[40];
    (void)state;
    date_split(INT64_MIN, &parts);
    assert_in_range(parts.ms, 0, 999);
    assert_false(date_print_iso(INT64_MIN, text, sizeof text));
    date_split(INT64_MAX, &parts);
    assert_in_range(parts.hour, 0, 23);
}

static void dates_month_out_of_range_carries_into_the_year(void **state)
{
    (void)state;
    assert_int_equal(date_days(2023, 13, 1), date_days(2024, 1, 1));
    assert_int_equal(date_days(2023, 0, 1), date_days(2022, 12, 1));
    assert_int_equal(date_days(2024, 2, 30), date_days(2024, 3, 1));
}

static void dates_iso_week_of_year_ends(void **state)
{
    static const struct {
        int year, month, day, iso_year, week;
    } cases[] = {{2021, 1, 3, 2020, 53}, {2021, 1, 4, 2021, 1}, {2024, 12, 30, 2025, 1}, {2026, 12, 31, 2026, 53}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct date_parts parts;
        int64_t year;
        int week;
        date_split(date_days(cases[i].year, cases[i].month, cases[i].day) * 86400000, &parts);
        date_iso_week(&parts, &year, &week);
        assert_int_equal(year, cases[i].iso_year);
        assert_int_equal(week, cases[i].week);
    }
}

static void dates_parse_reads_offsets_and_refuses_nonsense(void **state)
{
    int64_t ms;
    char text[32];
    (void)state;
    assert_true(date_parse_iso("2024-02-29T10:20:30.405+01:30", 29, &ms));
    assert_true(date_print_iso(ms, text, sizeof text));
    assert_string_equal(text, "2024-02-29T08:50:30.405Z");
    assert_true(date_parse_iso("1969-12-31", 10, &ms));
    assert_int_equal(ms, -86400000);
    assert_false(date_parse_iso("2023-02-29", 10, &ms));
    assert_false(date_parse_iso("2023-13-01", 10, &ms));
    assert_false(date_parse_iso("2023-01-01T25:00", 16, &ms));
    assert_false(date_parse_iso("", 0, &ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_split_and_days_are_inverse),
        cmocka_unit_test(dates_month_out_of_range_carries_into_the_year),
        cmocka_unit_test(dates_iso_week_of_year_ends),
        cmocka_unit_test(dates_parse_reads_offsets_and_refuses_nonsense),
        cmocka_unit_test(dates_split_takes_the_ends_of_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
