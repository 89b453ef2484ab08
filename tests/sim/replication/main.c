/* Whole groups in virtual time: seeds decide who is cut off, crashes, lags, and how large the batches are. Checked:
 *  - behind each log entry, the state of every member is the same;
 *  - every n-th seed has the real storage beneath: at the end all stores hold the same, also after another crash;
 *  - replaying the log on any checkpoint, or on nothing, ends in the same bytes;
 *  - an acknowledged command is applied exactly once, a refused one never, one of unknown outcome at most once.
 * usage: sim_replication [--seeds N] [--first SEED] [--store-every N, 0 for never] */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "tests/sim/replication/member.h"

#include <raft/fixture.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ELECTION_MS = 300,
    HEARTBEAT_MS = 30,
    ROUND_MS = 10,
    FAULTY_ROUNDS = 220,   /* of ROUND_MS virtual milliseconds */
    HEALING_ROUNDS = 3000, /* at most */
    SNAPSHOT_ENTRIES = 60,
    MEMBERS_MAX = 5,
};

static void setup(struct sim *sim, struct raft_fixture *fixture)
{
    struct raft_configuration configuration;
    unsigned first = (unsigned)prng_below(&sim->prng, sim->count);
    CHECK(raft_fixture_init(fixture) == 0);
    for (unsigned i = 0; i < sim->count; i++) {
        sim_member_init(&sim->members[i], sim, i);
        CHECK(raft_fixture_grow(fixture, &sim->members[i].raft_fsm) == 0);
        sim->members[i].raft = raft_fixture_get(fixture, i);
        sim_member_attach(&sim->members[i]);
        raft_set_election_timeout(sim->members[i].raft, ELECTION_MS);
        raft_set_heartbeat_timeout(sim->members[i].raft, HEARTBEAT_MS);
        raft_set_pre_vote(sim->members[i].raft, true);
        raft_set_snapshot_threshold(sim->members[i].raft, SNAPSHOT_ENTRIES);
        raft_set_snapshot_trailing(sim->members[i].raft, SIM_ENTRIES_MAX);
        /* The fixture never draws them again, so they must differ by more than a round trip. */
        raft_fixture_set_randomized_election_timeout(
            fixture, i, ELECTION_MS + (i + first) % sim->count * 50 + (unsigned)prng_below(&sim->prng, 20));
    }
    CHECK(raft_fixture_configuration(fixture, sim->count, &configuration) == 0);
    CHECK(raft_fixture_bootstrap(fixture, &configuration) == 0);
    raft_configuration_close(&configuration);
    CHECK(raft_fixture_start(fixture) == 0);
}

static void toggle_link(struct sim *sim, struct raft_fixture *fixture, bool cut)
{
    unsigned a = (unsigned)prng_below(&sim->prng, sim->count), b = (unsigned)prng_below(&sim->prng, sim->count);
    if (a == b)
        return;
    if (!cut)
        raft_fixture_reconnect(fixture, a, b);
    else
        raft_fixture_disconnect(fixture, a, b);
    if (!cut && raft_fixture_saturated(fixture, a, b))
        raft_fixture_desaturate(fixture, a, b);
}

static void crash(struct sim *sim, struct raft_fixture *fixture, unsigned number)
{
    raft_fixture_kill(fixture, number);
    sim_member_crash(&sim->members[number]);
}

static void restart(struct sim *sim, struct raft_fixture *fixture, unsigned number)
{
    raft_fixture_revive(fixture, number);
    sim_member_restart(&sim->members[number]);
}

static unsigned down_count(const struct sim *sim)
{
    unsigned down = 0;
    for (unsigned i = 0; i < sim->count; i++)
        down += sim->members[i].down;
    return down;
}

static void one_fault(struct sim *sim, struct raft_fixture *fixture)
{
    unsigned number = (unsigned)prng_below(&sim->prng, sim->count);
    struct sim_member *member = &sim->members[number];
    switch (prng_below(&sim->prng, 6)) {
    case 0:
        toggle_link(sim, fixture, true);
        break;
    case 1:
    case 2:
        toggle_link(sim, fixture, false);
        break;
    case 3:
        if (member->down)
            restart(sim, fixture, number);
        else if (down_count(sim) < sim->count / 2)
            crash(sim, fixture, number);
        break;
    case 4:
        raft_fixture_set_network_latency(fixture, number, 1 + (unsigned)prng_below(&sim->prng, 40));
        break;
    default:
        raft_fixture_set_disk_latency(fixture, number, 1 + (unsigned)prng_below(&sim->prng, 30));
        break;
    }
}

static void propose(struct sim *sim)
{
    for (unsigned i = 0; i < sim->count; i++) {
        struct sim_member *member = &sim->members[i];
        if (member->down || raft_state(member->raft) != RAFT_LEADER)
            continue;
        for (uint64_t n = prng_below(&sim->prng, 5); n > 0; n--)
            sim_member_propose(member, 8 + prng_below(&sim->prng, 200));
        if (prng_below(&sim->prng, 10) == 0)
            sim_member_propose(member, SIM_FRAGMENT_BYTES + prng_below(&sim->prng, 4 * SIM_FRAGMENT_BYTES));
    }
}

static void heal(struct sim *sim, struct raft_fixture *fixture)
{
    for (unsigned i = 0; i < sim->count; i++) {
        if (sim->members[i].down)
            restart(sim, fixture, i);
        raft_fixture_set_network_latency(fixture, i, 5);
        raft_fixture_set_disk_latency(fixture, i, 5);
        for (unsigned j = 0; j < sim->count; j++)
            if (i != j)
                raft_fixture_reconnect(fixture, i, j);
    }
}

static bool settled(const struct sim *sim)
{
    uint64_t last = raft_last_index(sim->members[0].raft);
    bool leader = false;
    for (unsigned i = 0; i < sim->count; i++) {
        const struct sim_member *member = &sim->members[i];
        leader = leader || raft_state(member->raft) == RAFT_LEADER;
        if (raft_last_index(member->raft) != last || raft_last_applied(member->raft) != last ||
            member->packer.pending.head != NULL || member->inflight != NULL)
            return false;
    }
    return leader;
}

static void step(struct sim *sim, struct raft_fixture *fixture)
{
    raft_fixture_step_until_elapsed(fixture, ROUND_MS);
    for (unsigned i = 0; i < sim->count; i++)
        sim_member_step(&sim->members[i]);
}

static void check_end(struct sim *sim)
{
    const struct hash_state *first = &sim->members[0].state;
    for (unsigned i = 0; i < sim->count; i++)
        sim_member_drain(&sim->members[i]);
    for (unsigned i = 1; i < sim->count; i++)
        if (memcmp(first, &sim->members[i].state, sizeof *first) != 0)
            sim_fail(sim, "members end in different states", i, sim->members[i].state.applied);
    for (uint64_t id = 0; id < sim->next_id; id++) {
        unsigned times = first->times[id];
        enum replica_outcome outcome = (enum replica_outcome)(sim->outcomes[id] - 1);
        if (sim->outcomes[id] == 0)
            sim_fail(sim, "a proposal without an outcome", id, times);
        else if (outcome == REPLICA_APPLIED && times != 1)
            sim_fail(sim, "an acknowledged command is not applied once", id, times);
        else if (outcome == REPLICA_NOT_LEADER && times != 0)
            sim_fail(sim, "a refused command is applied", id, times);
        else if (times > 1)
            sim_fail(sim, "a command is applied twice", id, times);
    }
    for (unsigned i = 0; i < sim->count; i++)
        sim_member_check_store(&sim->members[i]);
    for (unsigned i = 0; i < sim->count; i++)
        sim_member_check_replay(&sim->members[i]);
}

struct totals {
    uint64_t commands, entries, checkpoints;
};

static unsigned run_seed(uint64_t seed, bool with_store, struct totals *totals)
{
    struct sim *sim = mem_alloc(sizeof *sim);
    struct raft_fixture fixture;
    sim->seed = seed;
    sim->prng.state = seed;
    sim->with_store = with_store;
    sim->count = prng_below(&sim->prng, 3) == 0 ? 5 : 3;
    sim->members = mem_alloc_array(sim->count, sizeof *sim->members);
    memset(&fixture, 0, sizeof fixture);
    setup(sim, &fixture);
    for (unsigned round = 0; round < FAULTY_ROUNDS; round++) {
        if (round > 50 && prng_below(&sim->prng, 12) == 0)
            one_fault(sim, &fixture);
        propose(sim);
        step(sim, &fixture);
    }
    heal(sim, &fixture);
    unsigned rounds = 0;
    for (; rounds < HEALING_ROUNDS && !settled(sim); rounds++)
        step(sim, &fixture);
    if (rounds == HEALING_ROUNDS)
        sim_fail(sim, "does not settle", raft_last_index(sim->members[0].raft), 0);
    else
        check_end(sim);
    totals->commands += sim->members[0].state.count;
    totals->entries += sim->members[0].entry_count;
    for (unsigned i = 0; i < sim->count; i++)
        totals->checkpoints += sim->members[i].checkpoint_count;
    for (unsigned i = 0; i < sim->count; i++)
        sim_member_end(&sim->members[i]);
    raft_fixture_close(&fixture);
    for (unsigned i = 0; i < sim->count; i++)
        sim_member_deinit(&sim->members[i]);
    unsigned failures = sim->failures;
    mem_free(sim->members);
    mem_free(sim);
    return failures;
}

int main(int argc, char **argv)
{
    uint64_t seeds = 100, first = 1, store_every = 5, failed = 0;
    struct totals totals = {0};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seeds") == 0)
            seeds = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--first") == 0)
            first = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--store-every") == 0)
            store_every = strtoull(argv[i + 1], NULL, 10);
    }
    log_set_level(LOG_LEVEL_WARN);
    int64_t start_ms = clock_now_ms();
    for (uint64_t seed = first; seed < first + seeds; seed++)
        failed += run_seed(seed, store_every > 0 && seed % store_every == 0, &totals) > 0;
    printf("%llu seeds, %llu failed, %llu commands in %llu entries, %llu checkpoints, %.1f s\n",
           (unsigned long long)seeds, (unsigned long long)failed, (unsigned long long)totals.commands,
           (unsigned long long)totals.entries, (unsigned long long)totals.checkpoints,
           (double)(clock_now_ms() - start_ms) / 1e3);
    return failed == 0 ? 0 : 1;
}
