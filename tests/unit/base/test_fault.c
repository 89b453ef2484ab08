#include "base/fault.h"

#include "tests/unit/cmocka_all.h"

static void fault_hit_acts_once_at_the_named_passage(void **state)
{
    (void)state;
    struct err err;
    assert_false(fault_hit(FAULT_rpc_drop_reply));
    assert_true(fault_enable("rpc_drop_reply:3:fail", &err));
    assert_false(fault_hit(FAULT_rpc_drop_reply));
    assert_false(fault_hit(FAULT_apply_before_commit));
    assert_false(fault_hit(FAULT_rpc_drop_reply));
    assert_true(fault_hit(FAULT_rpc_drop_reply));
    assert_false(fault_hit(FAULT_rpc_drop_reply));
}

static void fault_enable_refuses_what_it_does_not_know(void **state)
{
    (void)state;
    const char *const bad[] = {"nonsense:1:kill", "rpc_drop_reply:0:kill", "rpc_drop_reply:1:explode", "rpc_drop_reply",
                               ":"};
    struct err err;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(fault_enable(bad[i], &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fault_hit_acts_once_at_the_named_passage),
        cmocka_unit_test(fault_enable_refuses_what_it_does_not_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
