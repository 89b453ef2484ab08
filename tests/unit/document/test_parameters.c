#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include "document/parameters.h"
#include "document/ttl.h"

static void parameters_are_set_and_shown(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'setParameter': 1, 'ttlMonitorSleepSecs': 5, '$db': 'admin'}", "{'was': 60, 'ok': 1.0}");
    fixture_expect(&fixture, "{'setParameter': 1, 'ttlMonitorEnabled': false, '$db': 'admin'}", "{'was': true}");
    fixture_expect(&fixture, "{'getParameter': '*', '$db': 'admin'}",
                   "{'ttlMonitorEnabled': false, 'ttlMonitorSleepSecs': 5}");
    fixture_expect(&fixture, "{'getParameter': 1, 'ttlMonitorEnabled': 1, '$db': 'admin'}",
                   "{'ttlMonitorEnabled': false}");
    fixture_close(&fixture);
}

static void unknown_names_and_bad_values_are_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect_error(&fixture, "{'setParameter': 1, 'nonsense': 5, '$db': 'admin'}", 72);
    fixture_expect_error(&fixture, "{'setParameter': 1, '$db': 'admin'}", 72);
    fixture_expect_error(&fixture, "{'setParameter': 1, 'ttlMonitorSleepSecs': 0, '$db': 'admin'}", 2);
    fixture_expect_error(&fixture, "{'setParameter': 1, 'ttlMonitorSleepSecs': 'x', '$db': 'admin'}", 2);
    fixture_expect_error(&fixture, "{'setParameter': 1, 'ttlMonitorEnabled': 'x', '$db': 'admin'}", 14);
    fixture_expect_error(&fixture, "{'getParameter': 1, 'nonsense': 1, '$db': 'admin'}", 72);
    fixture_close(&fixture);
}

static void a_restarted_member_has_what_was_set(void **state)
{
    (void)state;
    struct fixture fixture;
    struct err err;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'setParameter': 1, 'ttlMonitorSleepSecs': 5, '$db': 'admin'}", "{'ok': 1.0}");
    struct document_ttl *ttl = document_engine_ttl(fixture.host.engine);
    document_ttl_set_sleep_secs(ttl, 60);
    assert_true(document_parameters_load(fixture.host.engine, &err));
    assert_int_equal(document_ttl_sleep_secs(ttl), 5);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_set_and_shown),
        cmocka_unit_test(unknown_names_and_bad_values_are_refused),
        cmocka_unit_test(a_restarted_member_has_what_was_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
