/* Real members of one group, on loopback, in one process. */
#include "replication/replica.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/replication/group.h"

#include <stdio.h>
#include <string.h>

static struct group group;

static void alone_proposals_applied_with_their_results(void **state)
{
    struct outcome outcomes[100];
    (void)state;
    group_init(&group, 1, 27400);
    group_start_all(&group);
    assert_int_equal(group_wait_leader(&group), 0);
    for (unsigned i = 0; i < 100; i++)
        group_propose(&group, 0, 500 + i, 32, &outcomes[i]);
    for (unsigned i = 0; i < 100; i++) {
        assert_true(outcome_wait(&outcomes[i]));
        assert_int_equal(outcomes[i].outcome, REPLICA_APPLIED);
        assert_int_equal(outcomes[i].id, 500 + i);
        assert_int_equal(outcomes[i].count, i + 1);
    }
    assert_int_equal(group_read(&group, 0), REPLICA_APPLIED);
    group_deinit(&group);
}

static void alone_restart_replays_what_no_checkpoint_holds(void **state)
{
    struct hash_state before, after;
    (void)state;
    group_init(&group, 1, 27400);
    group_start_all(&group);
    for (unsigned i = 0; i < 20; i++)
        group_propose_wait(&group, i, 64);
    hash_fsm_get(&group.members[0].fsm, &before);
    group_stop(&group, 0, 1000);
    group_start_all(&group);
    group_wait_leader(&group);
    hash_fsm_get(&group.members[0].fsm, &after);
    assert_int_equal(after.count, before.count);
    assert_int_equal(after.hash, before.hash);
    group_deinit(&group);
}

static void alone_snapshots_cut_the_log_and_restart_skips(void **state)
{
    struct hash_state before, after;
    struct replica_status status;
    (void)state;
    group_init(&group, 1, 27400);
    group.snapshot_entries = 40;
    group.trailing_entries = 16;
    group_start_all(&group);
    for (unsigned i = 0; i < 400; i++)
        group_propose_wait(&group, i, 64);
    hash_fsm_get(&group.members[0].fsm, &before);
    assert_true(hash_fsm_checkpoints(&group.members[0].fsm) >= 2);
    group_stop(&group, 0, 1000);
    group_start_all(&group);
    assert_true(hash_fsm_loaded(&group.members[0].fsm) > 0);
    group_wait_leader(&group);
    hash_fsm_get(&group.members[0].fsm, &after);
    assert_int_equal(after.hash, before.hash);
    assert_int_equal(after.count, 400);
    replica_get_status(group.members[0].replica, &status);
    assert_int_equal(status.role, REPLICA_LEADER);
    assert_int_equal(status.leader_id, 1);
    assert_string_equal(status.leader_address, group.members[0].address);
    group_deinit(&group);
}

static void alone_large_command_logged_in_fragments(void **state)
{
    struct hash_state before, after;
    (void)state;
    group_init(&group, 1, 27400);
    group_start_all(&group);
    group_propose_wait(&group, 1, 16);
    group_propose_wait(&group, 2, (5 << 20) + 77);
    group_propose_wait(&group, 3, 1 << 20);
    group_propose_wait(&group, 4, 16);
    hash_fsm_get(&group.members[0].fsm, &before);
    assert_int_equal(before.count, 4);
    assert_int_equal(before.times[2], 1);
    group_stop(&group, 0, 1000);
    group_start_all(&group);
    group_wait_leader(&group);
    hash_fsm_get(&group.members[0].fsm, &after);
    assert_int_equal(after.hash, before.hash);
    group_deinit(&group);
}

static void alone_too_much_in_flight_is_busy(void **state)
{
    struct outcome outcomes[64];
    unsigned busy = 0, applied = 0;
    (void)state;
    group_init(&group, 1, 27400);
    group.pending_max = 16;
    group_start_all(&group);
    group_wait_leader(&group);
    hash_fsm_set_delay(&group.members[0].fsm, 100);
    for (unsigned i = 0; i < 64; i++)
        group_propose(&group, 0, i, 64, &outcomes[i]);
    for (unsigned i = 0; i < 64; i++) {
        assert_true(outcome_wait(&outcomes[i]));
        busy += outcomes[i].outcome == REPLICA_BUSY;
        applied += outcomes[i].outcome == REPLICA_APPLIED;
    }
    assert_int_equal(busy + applied, 64);
    assert_true(busy > 0 && applied >= 16);
    struct hash_state end;
    hash_fsm_get(&group.members[0].fsm, &end);
    assert_int_equal(end.count, applied);
    group_deinit(&group);
}

static void alone_bulk_faster_than_segments_is_not_refused(void **state)
{
    /* More than the segments that the library prepares ahead, less than what may be in flight. */
    enum { COUNT = 90, COMMAND_BYTES = 512 << 10 };
    _Static_assert(COUNT * COMMAND_BYTES < REPLICA_PENDING_MAX_BYTES, "all may be in flight");
    static struct outcome outcomes[COUNT];
    (void)state;
    group_init(&group, 1, 27400);
    group_start_all(&group);
    group_wait_leader(&group);
    for (unsigned i = 0; i < COUNT; i++)
        group_propose(&group, 0, i, COMMAND_BYTES, &outcomes[i]);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_true(outcome_wait(&outcomes[i]));
        assert_int_equal(outcomes[i].outcome, REPLICA_APPLIED);
    }
    group_deinit(&group);
}

static void three_members_agree(void **state)
{
    struct replica_status status;
    (void)state;
    group_init(&group, 3, 27410);
    group_start_all(&group);
    for (unsigned i = 0; i < 50; i++)
        group_propose_wait(&group, i, 100);
    group_propose_wait(&group, 60, 3 << 20);
    assert_true(group_equal(&group));
    unsigned leader = group_wait_leader(&group);
    for (unsigned i = 0; i < 3; i++) {
        replica_get_status(group.members[i].replica, &status);
        assert_int_equal(status.leader_id, leader + 1);
        assert_string_equal(status.leader_address, group.members[leader].address);
        assert_int_equal(status.member_count, 3);
    }
    group_deinit(&group);
}

static void five_members_survive_the_loss_of_two(void **state)
{
    (void)state;
    group_init(&group, 5, 27410);
    group_start_all(&group);
    for (unsigned i = 0; i < 10; i++)
        group_propose_wait(&group, i, 64);
    for (unsigned i = 0; i < 2; i++)
        group_stop(&group, group_wait_leader(&group), 0);
    for (unsigned i = 10; i < 20; i++)
        group_propose_wait(&group, i, 64);
    group_start_all(&group);
    assert_true(group_equal(&group));
    group_deinit(&group);
}

static void three_follower_refuses_and_names_the_leader(void **state)
{
    struct outcome outcome;
    (void)state;
    group_init(&group, 3, 27410);
    group_start_all(&group);
    unsigned other = (group_wait_leader(&group) + 1) % 3;
    group_propose(&group, other, 1, 16, &outcome);
    assert_true(outcome_wait(&outcome));
    assert_int_equal(outcome.outcome, REPLICA_NOT_LEADER);
    assert_int_equal(group_read(&group, other), REPLICA_NOT_LEADER);
    group_deinit(&group);
}

static void three_leader_lost_and_back_all_acknowledged_there(void **state)
{
    struct hash_state end;
    unsigned id = 0;
    (void)state;
    group_init(&group, 3, 27410);
    group_start_all(&group);
    for (unsigned round = 0; round < 3; round++) {
        unsigned leader = group_wait_leader(&group);
        for (unsigned i = 0; i < 20; i++)
            group_propose_wait(&group, id++, 200);
        group_stop(&group, leader, 0);
        for (unsigned i = 0; i < 20; i++)
            group_propose_wait(&group, id++, 200);
        group_start(&group, leader);
    }
    assert_true(group_equal(&group));
    hash_fsm_get(&group.members[0].fsm, &end);
    for (unsigned i = 0; i < id; i++)
        assert_true(end.times[i] >= 1);
    group_deinit(&group);
}

static void three_without_majority_outcome_is_unknown(void **state)
{
    struct outcome outcome;
    (void)state;
    group_init(&group, 3, 27410);
    group_start_all(&group);
    unsigned leader = group_wait_leader(&group);
    group_propose_wait(&group, 1, 16);
    leader = group_wait_leader(&group);
    group_stop(&group, (leader + 1) % 3, 0);
    group_stop(&group, (leader + 2) % 3, 0);
    group_propose(&group, leader, 2, 16, &outcome);
    assert_true(outcome_wait(&outcome));
    assert_true(outcome.outcome == REPLICA_UNKNOWN || outcome.outcome == REPLICA_NOT_LEADER);
    assert_int_equal(group_read(&group, leader), REPLICA_NOT_LEADER);
    group_deinit(&group);
}

/* On a busy machine leadership may move between two looks. Returns the member that answered. */
static unsigned read_from_leader(void)
{
    for (unsigned attempt = 0; attempt < 20; attempt++) {
        unsigned leader = group_wait_leader(&group);
        if (group_read(&group, leader) == REPLICA_APPLIED)
            return leader;
    }
    fail_msg("no leader answers a read");
    return 0;
}

static void three_read_needs_a_majority(void **state)
{
    (void)state;
    group_init(&group, 3, 27410);
    group_start_all(&group);
    unsigned leader = read_from_leader();
    for (unsigned i = 0; i < 100; i++)
        leader = read_from_leader();
    unsigned down = (leader + 1) % 3;
    group_stop(&group, down, 0);
    leader = read_from_leader();
    group_stop(&group, 3 - down - leader, 0);
    assert_int_equal(group_read(&group, leader), REPLICA_NOT_LEADER);
    group_deinit(&group);
}

static void three_step_down_moves_leadership(void **state)
{
    struct err err;
    (void)state;
    group_init(&group, 3, 27410);
    group_start_all(&group);
    for (unsigned i = 0; i < 10; i++)
        group_propose_wait(&group, i, 64);
    unsigned leader = group_wait_leader(&group);
    assert_true(replica_step_down(group.members[leader].replica, 5000, &err));
    assert_int_not_equal(group_wait_leader(&group), leader);
    group_propose_wait(&group, 11, 64);
    assert_true(group_equal(&group));
    group_deinit(&group);
}

static void three_clean_stop_hands_over_without_an_election_timeout(void **state)
{
    (void)state;
    group_init(&group, 3, 27410);
    group_start_all(&group);
    unsigned leader = group_wait_leader(&group);
    group_propose_wait(&group, 1, 64);
    leader = group_wait_leader(&group);
    group_stop(&group, leader, 3000);
    int64_t start_ms = clock_now_ms();
    group_wait_leader(&group);
    assert_true(clock_now_ms() - start_ms < REPLICA_ELECTION_TIMEOUT_MS);
    group_deinit(&group);
}

/* The others are gone, so nobody takes over: the leader notices that it leads no more and ends. */
static void three_clean_stop_of_the_last_member_does_not_wait(void **state)
{
    (void)state;
    group_init(&group, 3, 27410);
    group_start_all(&group);
    group_propose_wait(&group, 1, 64);
    unsigned leader = group_wait_leader(&group);
    group_stop(&group, (leader + 1) % 3, 3000);
    group_stop(&group, (leader + 2) % 3, 3000);
    int64_t start_ms = clock_now_ms();
    group_stop(&group, leader, 20000);
    assert_true(clock_now_ms() - start_ms < 10000);
    group_deinit(&group);
}

static void three_snapshots_under_load_stay_equal(void **state)
{
    (void)state;
    group_init(&group, 3, 27410);
    group.snapshot_entries = 50;
    group.trailing_entries = 2000;
    group_start_all(&group);
    for (unsigned i = 0; i < 300; i++)
        group_propose_wait(&group, i, 64);
    unsigned victim = (group_wait_leader(&group) + 1) % 3;
    group_stop(&group, victim, 0);
    for (unsigned i = 300; i < 600; i++)
        group_propose_wait(&group, i, 64);
    group_start(&group, victim);
    assert_true(group_equal(&group));
    struct hash_state end;
    hash_fsm_get(&group.members[victim].fsm, &end);
    assert_int_equal(end.count, 600);
    group_deinit(&group);
}

static void three_slow_follower_catches_up_within_its_queue(void **state)
{
    (void)state;
    group_init(&group, 3, 27410);
    group.apply_queue_bytes = 32 << 10;
    group_start_all(&group);
    unsigned slow = (group_wait_leader(&group) + 1) % 3;
    hash_fsm_set_delay(&group.members[slow].fsm, 20);
    for (unsigned i = 0; i < 200; i++)
        group_propose_wait(&group, i, 8 << 10);
    hash_fsm_set_delay(&group.members[slow].fsm, 0);
    assert_true(group_equal(&group));
    group_deinit(&group);
}

static void bootstrap_twice_refused(void **state)
{
    struct replica_member member = {.id = 1, .address = "127.0.0.1:27450:27400"};
    struct err err;
    char dir[200];
    (void)state;
    group_init(&group, 1, 27400);
    snprintf(dir, sizeof dir, "%s/1/raft", group.dir);
    assert_false(replica_bootstrap(dir, 1, &member, 1, &err));
    assert_int_equal(err.code, ERR_AlreadyInitialized);
    assert_false(replica_bootstrap(dir, 2, &member, 1, &err));
    assert_int_equal(err.code, ERR_BadValue);
    group_deinit(&group);
}

static bool try_start(const char *dir, const char *address, struct hash_fsm *fsm, struct err *err)
{
    struct replica_options options = {
        .dir = dir, .set_name = "test", .id = 1, .address = address, .fsm = hash_fsm_hooks(fsm)};
    struct replica *replica;
    return replica_start(&replica, &options, err);
}

static void start_failures_say_why(void **state)
{
    struct hash_fsm fsm;
    struct err err;
    char dir[200];
    (void)state;
    group_init(&group, 1, 27400);
    group_start_all(&group);
    hash_fsm_open(&fsm, NULL);
    assert_false(try_start("/tmp/sherd-not-there", "127.0.0.1:1:27409", &fsm, &err));
    assert_int_equal(err.code, ERR_NotYetInitialized);
    snprintf(dir, sizeof dir, "%s/empty", group.dir);
    assert_true(file_make_dir(dir, &err));
    assert_false(try_start(dir, "127.0.0.1:1:27409", &fsm, &err));
    assert_non_null(strstr(err.msg, "never initialised"));
    assert_int_equal(err.code, ERR_NotYetInitialized);
    snprintf(dir, sizeof dir, "%s/2", group.dir);
    struct replica_member member = {.id = 1, .address = "127.0.0.1:27450:27400"};
    assert_true(replica_bootstrap(dir, 1, &member, 1, &err));
    assert_false(try_start(dir, "127.0.0.1:27450:27400", &fsm, &err));
    assert_non_null(strstr(err.msg, "in use"));
    hash_fsm_close(&fsm);
    group_deinit(&group);
}

static int quiet(void **state)
{
    (void)state;
    log_set_level(LOG_LEVEL_ERROR);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_proposals_applied_with_their_results),
        cmocka_unit_test(alone_restart_replays_what_no_checkpoint_holds),
        cmocka_unit_test(alone_snapshots_cut_the_log_and_restart_skips),
        cmocka_unit_test(alone_large_command_logged_in_fragments),
        cmocka_unit_test(alone_too_much_in_flight_is_busy),
        cmocka_unit_test(alone_bulk_faster_than_segments_is_not_refused),
        cmocka_unit_test(three_members_agree),
        cmocka_unit_test(five_members_survive_the_loss_of_two),
        cmocka_unit_test(three_follower_refuses_and_names_the_leader),
        cmocka_unit_test(three_leader_lost_and_back_all_acknowledged_there),
        cmocka_unit_test(three_without_majority_outcome_is_unknown),
        cmocka_unit_test(three_read_needs_a_majority),
        cmocka_unit_test(three_step_down_moves_leadership),
        cmocka_unit_test(three_clean_stop_hands_over_without_an_election_timeout),
        cmocka_unit_test(three_clean_stop_of_the_last_member_does_not_wait),
        cmocka_unit_test(three_snapshots_under_load_stay_equal),
        cmocka_unit_test(three_slow_follower_catches_up_within_its_queue),
        cmocka_unit_test(bootstrap_twice_refused),
        cmocka_unit_test(start_failures_say_why),
    };
    return cmocka_run_group_tests(tests, quiet, NULL);
}
