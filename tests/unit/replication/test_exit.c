/* Members that end their process, and processes that end their members: each case in a child of its own. */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "replication/internal.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/replication/group.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PORT = 27450,
};

static struct group group;

/* Runs `body` in a child; its exit status, or minus the signal. */
static int in_child(void (*body)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        log_set_level(LOG_LEVEL_ERROR + 1);
        body();
        _exit(0);
    }
    int status;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void apply_garbage(void)
{
    static const uint8_t garbage[40] = {9, 9, 9};
    group_start_all(&group);
    group_wait_leader(&group);
    apply_push(group.members[0].replica, apply_item_new(1000, garbage, sizeof garbage));
    clock_sleep_ms(10000);
}

static void exit_damaged_entry_stops_the_member(void **state)
{
    (void)state;
    group_init(&group, 1, PORT);
    assert_int_equal(in_child(apply_garbage), REPLICA_EXIT_LOG);
    group_deinit(&group);
}

static void lag_behind_the_cut(void)
{
    group_start_all(&group);
    group_propose_wait(&group, 0, 64);
    unsigned victim = (group_wait_leader(&group) + 1) % 3;
    group_stop(&group, victim, 0);
    for (unsigned i = 1; i < 300; i++)
        group_propose_wait(&group, i, 64);
    clock_sleep_ms(500);
    group_start(&group, victim);
    clock_sleep_ms(10000);
}

static void exit_member_behind_the_cut_needs_a_copy(void **state)
{
    (void)state;
    group_init(&group, 3, PORT);
    group.snapshot_entries = 40;
    group.trailing_entries = 16;
    group.hold_bytes = 1;
    assert_int_equal(in_child(lag_behind_the_cut), REPLICA_EXIT_COPY);
    group_deinit(&group);
}

static void fill_the_disk(void)
{
    struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    static struct outcome outcomes[120];
    group_start_all(&group);
    group_wait_leader(&group);
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (unsigned i = 0; i < 120; i++)
        group_propose(&group, 0, i, 512 << 10, &outcomes[i]);
    clock_sleep_ms(20000);
}

static void exit_log_without_progress_on_disk(void **state)
{
    (void)state;
    group_init(&group, 1, PORT);
    assert_int_equal(in_child(fill_the_disk), REPLICA_EXIT_DISK);
    group_deinit(&group);
}

static int acknowledged_pipe[2];

static void acknowledge_forever(void)
{
    group_start_all(&group);
    struct hash_state now;
    group_wait_leader(&group);
    hash_fsm_get(&group.members[0].fsm, &now);
    for (uint64_t id = now.count; id < HASH_FSM_IDS; id++) {
        group_propose_wait(&group, id, 200);
        CHECK(write(acknowledged_pipe[1], &id, sizeof id) == sizeof id);
    }
}

static uint64_t expected_count;

static void check_acknowledged(void)
{
    struct hash_state now;
    group_start_all(&group);
    group_wait_leader(&group);
    hash_fsm_get(&group.members[0].fsm, &now);
    for (uint64_t id = 0; id < expected_count; id++)
        if (now.times[id] != 1)
            _exit(1);
    _exit(0);
}

/* Kills the child some time after it began to acknowledge; returns the number of acknowledged ids so far. */
static uint64_t kill_in_the_middle(unsigned acknowledged)
{
    uint64_t id = 0;
    CHECK(pipe(acknowledged_pipe) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        log_set_level(LOG_LEVEL_ERROR + 1);
        acknowledge_forever();
        _exit(0);
    }
    close(acknowledged_pipe[1]);
    for (unsigned i = 0; i < acknowledged; i++)
        CHECK(read(acknowledged_pipe[0], &id, sizeof id) == sizeof id);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    while (read(acknowledged_pipe[0], &id, sizeof id) == sizeof id)
        ;
    close(acknowledged_pipe[0]);
    return id + 1;
}

static void kill_loses_nothing_acknowledged(void **state)
{
    (void)state;
    group_init(&group, 1, PORT);
    group.snapshot_entries = 50;
    group.trailing_entries = 16;
    for (unsigned round = 0; round < 5; round++) {
        expected_count = kill_in_the_middle(30 + 40 * round);
        assert_int_equal(in_child(check_acknowledged), 0);
    }
    group_deinit(&group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_damaged_entry_stops_the_member),
        cmocka_unit_test(exit_member_behind_the_cut_needs_a_copy),
        cmocka_unit_test(exit_log_without_progress_on_disk),
        cmocka_unit_test(kill_loses_nothing_acknowledged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
