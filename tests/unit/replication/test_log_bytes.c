#include "replication/log_bytes.h"

#include "tests/unit/cmocka_all.h"

enum {
    KIB = 1024,
    MIB = 1 << 20,
};

static void log_bytes_counts_entries_back(void **state)
{
    struct log_bytes log = {0};
    (void)state;
    for (uint64_t index = 1; index <= 64 * 1024; index++)
        log_bytes_add(&log, KIB, index);
    uint64_t entries = log_bytes_entries(&log, 8 * MIB, 64 * 1024);
    assert_in_range(entries, 7 * 1024, 9 * 1024);
}

static void log_bytes_short_log_has_no_bound(void **state)
{
    struct log_bytes log = {0};
    (void)state;
    log_bytes_add(&log, 100, 1);
    assert_true(log_bytes_entries(&log, 8 * MIB, 1) == UINT64_MAX);
}

static void log_bytes_large_entries_leave_few(void **state)
{
    struct log_bytes log = {0};
    (void)state;
    for (uint64_t index = 1; index <= 1000; index++)
        log_bytes_add(&log, MIB, index);
    assert_in_range(log_bytes_entries(&log, 64 * MIB, 1000), 60, 66);
}

static void log_bytes_truncation_forgets_marks(void **state)
{
    struct log_bytes log = {0};
    (void)state;
    for (uint64_t index = 1; index <= 100; index++)
        log_bytes_add(&log, MIB, index);
    log_bytes_add(&log, MIB, 50);
    assert_in_range(log_bytes_entries(&log, 10 * MIB, 50), 8, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_bytes_counts_entries_back),
        cmocka_unit_test(log_bytes_short_log_has_no_bound),
        cmocka_unit_test(log_bytes_large_entries_leave_few),
        cmocka_unit_test(log_bytes_truncation_forgets_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
