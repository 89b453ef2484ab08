#include "tests/unit/cmocka_all.h"

#include "configd/batch_error.h"

#include <string.h>

/* The code that the command ends with; 0: the error stays with its statement. */
static int32_t ends_with(int32_t code, int64_t changed)
{
    struct err failed;
    struct err out;
    err_set(&failed, code, "as the test says");
    if (!batch_error_ends(&failed, changed, &out)) {
        return 0;
    }
    assert_non_null(strstr(out.msg, "as the test says"));
    return out.code;
}

static void batch_error_of_a_statement_stays_with_it(void **state)
{
    (void)state;
    assert_int_equal(ends_with(ERR_BadValue, 0), 0);
    assert_int_equal(ends_with(ERR_IllegalOperation, 1), 0);
    assert_int_equal(ends_with(ERR_TypeMismatch, 0), 0);
}

static void batch_error_of_a_member_that_does_not_lead_ends_the_command(void **state)
{
    (void)state;
    assert_int_equal(ends_with(ERR_NotWritablePrimary, 0), ERR_NotWritablePrimary);
    assert_int_equal(ends_with(ERR_InterruptedAtShutdown, 0), ERR_InterruptedAtShutdown);
    assert_int_equal(ends_with(ERR_LockBusy, 0), ERR_LockBusy);
}

static void batch_error_with_an_unknown_outcome_ends_the_command(void **state)
{
    (void)state;
    assert_int_equal(ends_with(ERR_InterruptedDueToReplStateChange, 0), ERR_InterruptedDueToReplStateChange);
    assert_int_equal(ends_with(ERR_InterruptedDueToReplStateChange, 2), ERR_InterruptedDueToReplStateChange);
}

/* The router sends again what was not executed: a command that is done in part must not say so. */
static void batch_error_after_changes_is_an_unknown_outcome(void **state)
{
    (void)state;
    assert_int_equal(ends_with(ERR_NotWritablePrimary, 1), ERR_InterruptedDueToReplStateChange);
    assert_int_equal(ends_with(ERR_LockBusy, 3), ERR_InterruptedDueToReplStateChange);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_error_of_a_statement_stays_with_it),
        cmocka_unit_test(batch_error_of_a_member_that_does_not_lead_ends_the_command),
        cmocka_unit_test(batch_error_with_an_unknown_outcome_ends_the_command),
        cmocka_unit_test(batch_error_after_changes_is_an_unknown_outcome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
