#include "tests/unit/cmocka_all.h"

#include "base/log.h"
#include "base/mem.h"
#include "node/node_internal.h"

#include <stdalign.h>
#include <sys/wait.h>
#include <unistd.h>

/* The exit status of a member that meets a command of that kind. */
static int status_after(uint8_t kind)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const struct node_program program = {.name = "test"};
        struct node *node = mem_alloc_aligned(1, sizeof *node, alignof(struct node));
        struct buf result = BUF_INIT;
        log_set_level(LOG_LEVEL_ERROR + 1);
        node->program = &program;
        arena_init(&node->apply.arena);
        struct replica_fsm fsm = node_fsm(node);
        fsm.apply(fsm.arg, 7, &kind, 1, &result);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void node_fsm_unknown_kind_stops_the_member(void **state)
{
    (void)state;
    assert_int_equal(status_after(DOCUMENT_KIND_LIMIT - 1), REPLICA_EXIT_LOG);
    assert_int_equal(status_after(200), REPLICA_EXIT_LOG);
}

/* A known kind that can't be read is refused alike on every member. */
static void node_fsm_short_command_is_refused(void **state)
{
    (void)state;
    assert_int_equal(status_after(DOCUMENT_KIND_INSERT), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_fsm_unknown_kind_stops_the_member),
        cmocka_unit_test(node_fsm_short_command_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
