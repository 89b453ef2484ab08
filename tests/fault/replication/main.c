/* Three members as real processes on loopback under load, killed and stopped at random, with snapshots all the time. At
 * the end: every acknowledged command is in the state exactly once, a refused one never, all states are equal, and no
 * process has ended by itself. Meanwhile no read that passed the leader check may miss a command that was acknowledged
 * before it began, whoever acknowledged it.
 * usage: fault_replication [--seconds S] [--seed N] [--port P] */
#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "tests/unit/replication/hash_fsm.h"

#include <ftw.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MEMBERS = 3,
    OUTSTANDING = 24,
    READERS = 4,
    SNAPSHOT_ENTRIES = 40,
    SETTLE_MS = 30000,
};

enum {
    ID_NONE,
    ID_PROPOSED,
    ID_ACKNOWLEDGED,
    ID_REFUSED,
    ID_UNKNOWN,
};

/* One per member, written by its process. */
struct published {
    atomic_uint sequence; /* odd while it is being written */
    atomic_bool serving;
    uint64_t applied, count, hash;
};

struct shared {
    atomic_bool load;
    atomic_uint next_id;
    _Atomic uint64_t acknowledged; /* by whatever member */
    _Atomic uint64_t reads, stale_reads;
    struct published members[MEMBERS];
    _Atomic uint8_t ids[HASH_FSM_IDS];
};

static struct shared *shared;
static char dir[64] = "/tmp/sherd-fault-XXXXXX";
static char addresses[MEMBERS][64];
static pid_t pids[MEMBERS];
static unsigned failures;

/* ---- a member's process ---- */

struct slot {
    atomic_bool busy;
    unsigned id;
};

static void on_done(void *arg, enum replica_outcome outcome, uint64_t index, const uint8_t *result, size_t len)
{
    struct slot *slot = arg;
    (void)index;
    (void)result;
    (void)len;
    if (outcome == REPLICA_APPLIED)
        atomic_fetch_add(&shared->acknowledged, 1);
    uint8_t state = outcome == REPLICA_APPLIED ? ID_ACKNOWLEDGED : outcome == REPLICA_UNKNOWN ? ID_UNKNOWN : ID_REFUSED;
    atomic_store(&shared->ids[slot->id], state);
    atomic_store(&slot->busy, false);
}

static void propose(struct replica *replica, struct slot *slot, struct prng *prng)
{
    unsigned id = atomic_fetch_add(&shared->next_id, 1);
    if (id >= HASH_FSM_IDS)
        return;
    size_t len = 16 + prng_below(prng, 400);
    if (prng_below(prng, 500) == 0)
        len = (1 << 20) + prng_below(prng, 1 << 20);
    slot->id = id;
    atomic_store(&slot->busy, true);
    atomic_store(&shared->ids[id], ID_PROPOSED);
    replica_propose(replica, hash_fsm_command(id, len), len, on_done, slot);
}

struct read_slot {
    atomic_bool busy;
    struct hash_fsm *fsm;
    uint64_t acknowledged; /* when the read began */
};

static void on_read(void *arg, enum replica_outcome outcome)
{
    struct read_slot *slot = arg;
    if (outcome == REPLICA_APPLIED) {
        atomic_fetch_add(&shared->reads, 1);
        if (hash_fsm_count(slot->fsm) < slot->acknowledged)
            atomic_fetch_add(&shared->stale_reads, 1);
    }
    atomic_store(&slot->busy, false);
}

static void read_some(struct replica *replica, struct read_slot *slots, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (atomic_load(&slots[i].busy))
            continue;
        atomic_store(&slots[i].busy, true);
        slots[i].acknowledged = atomic_load(&shared->acknowledged);
        replica_read_index(replica, on_read, &slots[i]);
    }
}

static void publish(struct published *published, struct hash_fsm *fsm, bool serving)
{
    static struct hash_state now;
    hash_fsm_get(fsm, &now);
    atomic_fetch_add(&published->sequence, 1);
    published->applied = now.applied;
    published->count = now.count;
    published->hash = now.hash;
    atomic_fetch_add(&published->sequence, 1);
    atomic_store(&published->serving, serving);
}

static void make_paths(unsigned number, char *raft, char *state, size_t size)
{
    snprintf(raft, size, "%s/%u-raft", dir, number);
    snprintf(state, size, "%s/%u-state", dir, number);
}

static _Noreturn void run_member(unsigned number)
{
    static struct hash_fsm fsm;
    static struct slot slots[OUTSTANDING];
    static struct read_slot reads[READERS];
    char raft[128], state[128];
    struct prng prng = {.state = (uint64_t)getpid()};
    struct replica *replica;
    struct err err;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    make_paths(number, raft, state, sizeof raft);
    hash_fsm_open(&fsm, state);
    struct replica_options options = {.dir = raft,
                                      .set_name = "fault",
                                      .id = number + 1,
                                      .address = addresses[number],
                                      .bind_host = "127.0.0.1",
                                      .fsm = hash_fsm_hooks(&fsm),
                                      .snapshot_entries = SNAPSHOT_ENTRIES};
    if (!replica_start(&replica, &options, &err)) {
        fprintf(stderr, "member %u: %s\n", number + 1, err.msg);
        _exit(1);
    }
    for (unsigned i = 0; i < READERS; i++)
        reads[i].fsm = &fsm;
    for (;;) {
        bool serving = replica_is_serving(replica);
        for (unsigned i = 0; i < OUTSTANDING && serving && atomic_load(&shared->load); i++)
            if (!atomic_load(&slots[i].busy))
                propose(replica, &slots[i], &prng);
        read_some(replica, reads, READERS);
        publish(&shared->members[number], &fsm, serving);
        clock_sleep_ms(2);
    }
}

/* ---- the driver ---- */

static void start(unsigned number)
{
    atomic_store(&shared->members[number].serving, false);
    pids[number] = fork();
    CHECK(pids[number] >= 0);
    if (pids[number] == 0)
        run_member(number);
}

static void kill_member(unsigned number)
{
    int status;
    if (pids[number] == 0)
        return;
    kill(pids[number], SIGKILL);
    CHECK(waitpid(pids[number], &status, 0) == pids[number]);
    pids[number] = 0;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        fprintf(stderr, "member %u ended by itself: %s %d\n", number + 1, WIFSIGNALED(status) ? "signal" : "exit",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        failures++;
    }
}

static void pause_member(unsigned number, int64_t duration_ms)
{
    if (pids[number] == 0)
        return;
    kill(pids[number], SIGSTOP);
    clock_sleep_ms(duration_ms);
    kill(pids[number], SIGCONT);
}

static void disturb(struct prng *prng)
{
    unsigned number = (unsigned)prng_below(prng, MEMBERS);
    switch (prng_below(prng, 6)) {
    case 0:
        pause_member(number, 100 + (int64_t)prng_below(prng, 1500));
        break;
    case 1: /* everybody at once */
        for (unsigned i = 0; i < MEMBERS; i++)
            kill_member(i);
        break;
    case 2: /* the leader */
        for (unsigned i = 0; i < MEMBERS; i++)
            if (pids[i] != 0 && atomic_load(&shared->members[i].serving))
                kill_member(i);
        break;
    default:
        kill_member(number);
    }
    clock_sleep_ms((int64_t)prng_below(prng, 600));
    for (unsigned i = 0; i < MEMBERS; i++)
        if (pids[i] == 0)
            start(i);
}

static bool all_equal(void)
{
    const struct published *first = &shared->members[0];
    bool serving = false;
    for (unsigned i = 0; i < MEMBERS; i++) {
        const struct published *member = &shared->members[i];
        serving = serving || atomic_load(&member->serving);
        if (atomic_load(&member->sequence) % 2 != 0 || member->applied != first->applied ||
            member->hash != first->hash || member->count != first->count)
            return false;
    }
    return serving;
}

static void settle(void)
{
    int64_t deadline_ms = deadline_after_ms(SETTLE_MS);
    unsigned equal_rounds = 0;
    atomic_store(&shared->load, false);
    while (equal_rounds < 100 && !deadline_passed(deadline_ms)) {
        equal_rounds = all_equal() ? equal_rounds + 1 : 0;
        clock_sleep_ms(10);
    }
    if (equal_rounds == 100)
        return;
    failures++;
    for (unsigned i = 0; i < MEMBERS; i++)
        fprintf(stderr, "member %u: applied %llu, %llu commands, hash %llx, serving %d\n", i + 1,
                (unsigned long long)shared->members[i].applied, (unsigned long long)shared->members[i].count,
                (unsigned long long)shared->members[i].hash, atomic_load(&shared->members[i].serving));
}

/* The final state, read by opening a member once more in this process. */
static void check_ids(void)
{
    static struct hash_fsm fsm;
    static struct hash_state end;
    char raft[128], state[128];
    unsigned counts[ID_UNKNOWN + 1] = {0};
    uint64_t applied = shared->members[0].applied;
    struct replica *replica;
    struct err err;
    for (unsigned i = 1; i < MEMBERS; i++)
        start(i);
    make_paths(0, raft, state, sizeof raft);
    hash_fsm_open(&fsm, state);
    struct replica_options options = {.dir = raft,
                                      .set_name = "fault",
                                      .id = 1,
                                      .address = addresses[0],
                                      .bind_host = "127.0.0.1",
                                      .fsm = hash_fsm_hooks(&fsm),
                                      .snapshot_entries = SNAPSHOT_ENTRIES};
    CHECK(replica_start(&replica, &options, &err));
    int64_t deadline_ms = deadline_after_ms(SETTLE_MS);
    while (replica_applied_index(replica) < applied && !deadline_passed(deadline_ms))
        clock_sleep_ms(10);
    hash_fsm_get(&fsm, &end);
    replica_stop(replica, 0);
    replica_free(replica);
    hash_fsm_close(&fsm);
    for (unsigned id = 0; id < HASH_FSM_IDS; id++) {
        uint8_t outcome = atomic_load(&shared->ids[id]);
        counts[outcome]++;
        if ((outcome == ID_ACKNOWLEDGED && end.times[id] != 1) || (outcome == ID_REFUSED && end.times[id] != 0) ||
            end.times[id] > 1) {
            fprintf(stderr, "command %u: outcome %u, applied %u times\n", id, outcome, end.times[id]);
            failures++;
        }
    }
    printf("%u acknowledged, %u refused, %u unknown, %u cut off by a kill; %llu applied, index %llu\n",
           counts[ID_ACKNOWLEDGED], counts[ID_REFUSED], counts[ID_UNKNOWN], counts[ID_PROPOSED],
           (unsigned long long)end.count, (unsigned long long)end.applied);
}

static void bootstrap(unsigned port)
{
    struct replica_member list[MEMBERS];
    char raft[128], state[128];
    struct err err;
    for (unsigned i = 0; i < MEMBERS; i++) {
        snprintf(addresses[i], sizeof addresses[i], "127.0.0.1:%u:%u", port + 10 + i, port + i);
        list[i] = (struct replica_member){.id = i + 1, .address = addresses[i]};
    }
    for (unsigned i = 0; i < MEMBERS; i++) {
        make_paths(i, raft, state, sizeof raft);
        CHECK(replica_bootstrap(raft, i + 1, list, MEMBERS, &err));
    }
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

int main(int argc, char **argv)
{
    double seconds = 15;
    unsigned port = 27470, disturbances = 0;
    struct prng prng = {.state = random_u64()};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0)
            seconds = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "--seed") == 0)
            prng.state = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--port") == 0)
            port = (unsigned)strtoul(argv[i + 1], NULL, 10);
    }
    log_set_level(LOG_LEVEL_ERROR);
    printf("seed %llu\n", (unsigned long long)prng.state);
    fflush(stdout);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED && mkdtemp(dir) != NULL);
    bootstrap(port);
    for (unsigned i = 0; i < MEMBERS; i++)
        start(i);
    atomic_store(&shared->load, true);
    int64_t deadline_ms = deadline_after_ms((int64_t)(seconds * 1000));
    for (; !deadline_passed(deadline_ms); disturbances++) {
        clock_sleep_ms(300 + (int64_t)prng_below(&prng, 1200));
        disturb(&prng);
    }
    settle();
    for (unsigned i = 0; i < MEMBERS; i++)
        kill_member(i);
    check_ids();
    for (unsigned i = 0; i < MEMBERS; i++)
        kill_member(i);
    if (atomic_load(&shared->stale_reads) > 0)
        failures++;
    printf("%u disturbances, %llu reads of which %llu stale, %u failures\n", disturbances,
           (unsigned long long)atomic_load(&shared->reads), (unsigned long long)atomic_load(&shared->stale_reads),
           failures);
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return failures == 0 ? 0 : 1;
}
