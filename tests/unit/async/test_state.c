#include "tests/unit/cmocka_all.h"

#include "async/state.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHUT, OPENING, OPEN };

static const struct state_table door = {
    .machine = "door",
    .count = 3,
    .names = {"shut", "opening", "open"},
    .next = {[SHUT] = STATE_BIT(OPENING), [OPENING] = STATE_BIT(OPEN) | STATE_BIT(SHUT), [OPEN] = STATE_BIT(SHUT)},
};

static void state_move_follows_the_table(void **state)
{
    (void)state;
    struct state machine;
    state_init(&machine, &door, SHUT);
    assert_string_equal(state_name(&machine), "shut");
    assert_false(state_may_move(&machine, OPEN));
    assert_false(state_may_move(&machine, 17));
    assert_true(state_may_move(&machine, OPENING));
    state_move(&machine, OPENING);
    state_move(&machine, OPEN);
    assert_string_equal(state_name(&machine), "open");
}

static void state_move_outside_the_table_aborts(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGABRT, SIG_DFL);
        struct state machine;
        state_init(&machine, &door, SHUT);
        state_move(&machine, OPEN);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_move_follows_the_table),
        cmocka_unit_test(state_move_outside_the_table_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
