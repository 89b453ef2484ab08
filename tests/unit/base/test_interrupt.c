#include "base/interrupt.h"

#include "base/clock.h"
#include "tests/unit/cmocka_all.h"

static void interrupt_without_an_operation_lets_everything_go_on(void **state)
{
    struct err err;
    (void)state;
    assert_null(interrupt_current());
    assert_true(interrupt_check(&err));
}

static void interrupt_past_its_deadline_fails_with_50(void **state)
{
    struct interrupt interrupt = {.deadline_ms = DEADLINE_NEVER};
    struct err err = {0};
    (void)state;
    struct interrupt *before = interrupt_enter(&interrupt);
    assert_true(interrupt_check(&err));
    interrupt.deadline_ms = clock_now_ms() - 1;
    assert_false(interrupt_check(&err));
    assert_int_equal(err.code, 50);
    assert_ptr_equal(interrupt_enter(before), &interrupt);
    assert_true(interrupt_check(&err));
}

static void interrupt_keeps_the_code_of_its_first_kill(void **state)
{
    struct interrupt interrupt = {.deadline_ms = DEADLINE_NEVER};
    struct err err = {0};
    (void)state;
    interrupt_kill(&interrupt, ERR_Interrupted);
    interrupt_kill(&interrupt, ERR_InterruptedAtShutdown);
    assert_false(interrupt_check_one(&interrupt, &err));
    assert_int_equal(err.code, 11601);
}

static bool is_gone(void *arg)
{
    return *(bool *)arg;
}

static void interrupt_ends_with_its_client(void **state)
{
    bool gone = false;
    struct interrupt interrupt = {.deadline_ms = DEADLINE_NEVER, .gone = is_gone, .gone_arg = &gone};
    struct err err = {0};
    (void)state;
    assert_true(interrupt_check_one(&interrupt, &err));
    gone = true;
    assert_false(interrupt_check_one(&interrupt, &err));
    assert_int_equal(err.code, 279);
}

static void interrupt_step_notices_within_its_interval(void **state)
{
    struct interrupt interrupt = {.deadline_ms = DEADLINE_NEVER};
    struct err err = {0};
    int steps = 0;
    (void)state;
    interrupt_kill(&interrupt, ERR_Interrupted);
    struct interrupt *before = interrupt_enter(&interrupt);
    while (steps <= INTERRUPT_EVERY && interrupt_step(&err))
        steps++;
    interrupt_enter(before);
    assert_true(steps < INTERRUPT_EVERY);
    assert_int_equal(err.code, 11601);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interrupt_without_an_operation_lets_everything_go_on),
        cmocka_unit_test(interrupt_past_its_deadline_fails_with_50),
        cmocka_unit_test(interrupt_keeps_the_code_of_its_first_kill),
        cmocka_unit_test(interrupt_ends_with_its_client),
        cmocka_unit_test(interrupt_step_notices_within_its_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
