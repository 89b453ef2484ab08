#include "base/err.h"

#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <string.h>

static void err_set_fills_and_returns_false(void **state)
{
    (void)state;
    struct err err;
    assert_false(err_set(&err, ERR_BadValue, "n is %d", 3));
    assert_int_equal(err.code, 2);
    assert_string_equal(err.msg, "n is 3");
    assert_int_equal(err.details_len, 0);
    assert_false(err_set(NULL, ERR_BadValue, "nobody listens"));
}

static void err_set_errno_appends_the_reason(void **state)
{
    (void)state;
    struct err err;
    err_set_errno(&err, ERR_OperationFailed, ENOENT, "cannot open %s", "x");
    assert_string_equal(err.msg, "cannot open x: No such file or directory");
}

static void err_prefix_keeps_the_message_and_cuts_what_is_too_long(void **state)
{
    (void)state;
    struct err err;
    err_set(&err, ERR_BadValue, "inner");
    err_prefix(&err, "outer %d", 1);
    assert_string_equal(err.msg, "outer 1: inner");
    for (int i = 0; i < 200; i++)
        err_prefix(&err, "again and again");
    assert_int_equal(strlen(err.msg), ERR_MSG_MAX - 1);
}

static void err_details_beyond_the_limit_are_left_out(void **state)
{
    (void)state;
    struct err err;
    uint8_t bytes[ERR_DETAILS_MAX + 1] = {0};
    err_set(&err, ERR_DuplicateKey, "x");
    err_set_details(&err, bytes, ERR_DETAILS_MAX);
    assert_int_equal(err.details_len, ERR_DETAILS_MAX);
    err_set(&err, ERR_DuplicateKey, "x");
    err_set_details(&err, bytes, ERR_DETAILS_MAX + 1);
    assert_int_equal(err.details_len, 0);
}

static void err_names_and_categories_follow_the_table(void **state)
{
    (void)state;
    char name[ERR_NAME_MAX];
    assert_string_equal(err_name(11000, name), "DuplicateKey");
    assert_string_equal(err_name(26, name), "NamespaceNotFound");
    assert_string_equal(err_name(40415, name), "Location40415");
    assert_true(err_categories(ERR_NotWritablePrimary) & ERR_CAT_NOT_PRIMARY);
    assert_true(err_categories(ERR_StaleConfig) & ERR_CAT_STALE);
    assert_int_equal(err_categories(ERR_BadValue), ERR_CAT_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(err_set_fills_and_returns_false),
        cmocka_unit_test(err_set_errno_appends_the_reason),
        cmocka_unit_test(err_prefix_keeps_the_message_and_cuts_what_is_too_long),
        cmocka_unit_test(err_details_beyond_the_limit_are_left_out),
        cmocka_unit_test(err_names_and_categories_follow_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
