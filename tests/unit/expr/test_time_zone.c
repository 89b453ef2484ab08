#include "expr/dates.h"
#include "expr/time_zone.h"
#include "tests/unit/cmocka_all.h"

#include <pthread.h>
#include <string.h>

static struct time_zone find(const char *name)
{
    struct time_zone zone;
    if (!time_zone_find(name, strlen(name), &zone))
        fail_msg("no zone %s", name);
    return zone;
}

static int64_t at(int64_t year, int month, int day, int hour)
{
    return date_days(year, month, day) * 86400000 + (int64_t)hour * 3600000;
}

static void zone_offsets_change_with_the_season(void **state)
{
    struct time_zone berlin = find("Europe/Berlin");
    struct time_zone york = find("America/New_York");
    (void)state;
    assert_int_equal(time_zone_offset_ms(&berlin, at(2024, 1, 1, 0)), 3600000);
    assert_int_equal(time_zone_offset_ms(&berlin, at(2024, 7, 1, 0)), 7200000);
    assert_int_equal(time_zone_offset_ms(&berlin, at(2024, 3, 31, 1)), 7200000);
    assert_int_equal(time_zone_offset_ms(&berlin, at(2024, 3, 31, 1) - 1), 3600000);
    assert_int_equal(time_zone_offset_ms(&york, at(1999, 7, 1, 0)), -4 * 3600000);
}

/* The table ends; the rules go on with the calendar's period of 400 years. */
static void zone_far_future_follows_the_rules(void **state)
{
    struct time_zone berlin = find("Europe/Berlin");
    (void)state;
    assert_int_equal(time_zone_offset_ms(&berlin, at(3024, 7, 1, 0)), 7200000);
    assert_int_equal(time_zone_offset_ms(&berlin, at(3024, 1, 1, 0)), 3600000);
    assert_int_equal(time_zone_offset_ms(&berlin, at(9000, 7, 1, 0)), 7200000);
}

static void zone_local_time_that_is_missing_or_twice_there(void **state)
{
    struct time_zone berlin = find("Europe/Berlin");
    (void)state;
    assert_int_equal(time_zone_to_utc(&berlin, at(2024, 3, 31, 2)), at(2024, 3, 31, 1));
    assert_int_equal(time_zone_to_utc(&berlin, at(2024, 10, 27, 2)), at(2024, 10, 27, 0));
    assert_int_equal(time_zone_to_utc(&berlin, at(2024, 6, 1, 12)), at(2024, 6, 1, 10));
}

static void zone_names_that_are_none(void **state)
{
    struct time_zone zone;
    static const char *const bad[] = {"", "Europe/Nowhere", "europe/berlin", "+25:0", "++1", "Z0", "GMT+99:99:99"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (time_zone_find(bad[i], strlen(bad[i]), &zone))
            fail_msg("%s is taken for a zone", bad[i]);
    assert_int_equal(find("+0530").offset_ms, 5 * 3600000 + 1800000);
    assert_int_equal(find("UTC").offset_ms, 0);
}

/* How many look-ups failed, as a pointer. */
static void *look_up_places(void *arg)
{
    static const char *const names[] = {"Europe/Paris", "Asia/Tokyo", "Australia/Sydney", "America/Chicago"};
    uintptr_t offset = (uintptr_t)arg;
    uintptr_t failed = 0;
    for (uintptr_t i = 0; i < 200; i++) {
        struct time_zone zone;
        const char *name = names[(i + offset) % 4];
        bool found = time_zone_find(name, strlen(name), &zone);
        failed += !found || time_zone_offset_ms(&zone, at(2024, 7, 1, 0)) == 0 ? 1 : 0;
    }
    return (void *)failed;
}

/* Several threads read the same new places at once. */
static void zone_tables_are_shared_by_threads(void **state)
{
    pthread_t threads[4];
    (void)state;
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_up_places, (void *)i), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zone_offsets_change_with_the_season),
        cmocka_unit_test(zone_far_future_follows_the_rules),
        cmocka_unit_test(zone_local_time_that_is_missing_or_twice_there),
        cmocka_unit_test(zone_names_that_are_none),
        cmocka_unit_test(zone_tables_are_shared_by_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
