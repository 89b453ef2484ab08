#include "tests/unit/replication/group.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 20000,
};

/* libuv is not instrumented: a file that its pool closes and a socket that gets the same number on another loop look
 * like a race inside it. Stacks with a frame of ours are still reported. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:libuv.so.1\n";
}

static void fail(const char *what, const struct err *err)
{
    fprintf(stderr, "group: %s: %s\n", what, err == NULL ? "" : err->msg);
    abort();
}

static void member_dir(const struct group *group, unsigned member, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/%u%s", group->dir, member + 1, name);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void group_init(struct group *group, unsigned count, unsigned port)
{
    group_init_host(group, count, port, "127.0.0.1");
}

void group_init_host(struct group *group, unsigned count, unsigned port, const char *host)
{
    struct replica_member list[GROUP_MEMBERS_MAX];
    struct err err;
    char path[256];
    memset(group, 0, sizeof *group);
    group->count = count;
    snprintf(group->dir, sizeof group->dir, "/tmp/sherd-group-XXXXXX");
    CHECK(mkdtemp(group->dir) != NULL);
    for (unsigned i = 0; i < count; i++) {
        snprintf(group->members[i].address, sizeof group->members[i].address, "%s:%u:%u", host, port + 50 + i,
                 port + i);
        list[i] = (struct replica_member){.id = i + 1, .address = group->members[i].address};
    }
    for (unsigned i = 0; i < count; i++) {
        member_dir(group, i, "", path, sizeof path);
        if (!file_make_dir(path, &err))
            fail("directory", &err);
        member_dir(group, i, "/raft", path, sizeof path);
        if (!replica_bootstrap(path, i + 1, list, count, &err))
            fail("bootstrap", &err);
    }
}

static void on_change(void *arg, const struct replica_status *status)
{
    struct group_member *member = arg;
    (void)status;
    atomic_fetch_add(&member->changes, 1);
}

void group_start(struct group *group, unsigned number)
{
    struct group_member *member = &group->members[number];
    char dir[256], path[256];
    struct err err;
    CHECK(member->replica == NULL);
    member_dir(group, number, "/raft", dir, sizeof dir);
    member_dir(group, number, "/state", path, sizeof path);
    hash_fsm_open(&member->fsm, path);
    struct replica_options options = {
        .dir = dir,
        .set_name = group->set_names[number] == NULL ? "test" : group->set_names[number],
        .id = number + 1,
        .address = member->address,
        .bind_host = strncmp(member->address, "127", 3) == 0 ? "127.0.0.1" : NULL,
        .fsm = hash_fsm_hooks(&member->fsm),
        .on_change = on_change,
        .on_change_arg = member,
        .snapshot_entries = group->snapshot_entries,
        .trailing_entries = group->trailing_entries,
        .pending_max = group->pending_max,
        .hold_bytes = group->hold_bytes,
        .apply_queue_bytes = group->apply_queue_bytes,
    };
    if (!replica_start(&member->replica, &options, &err))
        fail("start", &err);
}

void group_start_all(struct group *group)
{
    for (unsigned i = 0; i < group->count; i++)
        if (group->members[i].replica == NULL)
            group_start(group, i);
}

void group_stop(struct group *group, unsigned number, int64_t timeout_ms)
{
    struct group_member *member = &group->members[number];
    replica_stop(member->replica, timeout_ms);
    replica_free(member->replica);
    member->replica = NULL;
    hash_fsm_close(&member->fsm);
}

void group_deinit(struct group *group)
{
    for (unsigned i = 0; i < group->count; i++)
        if (group->members[i].replica != NULL)
            group_stop(group, i, 0);
    nftw(group->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Every running member of the set names it. */
static bool leads_all(struct group *group, unsigned leader)
{
    struct replica_status status;
    for (unsigned i = 0; i < group->count; i++) {
        if (group->members[i].replica == NULL || group->set_names[i] != NULL)
            continue;
        replica_get_status(group->members[i].replica, &status);
        if (status.leader_id != leader + 1)
            return false;
    }
    return true;
}

unsigned group_wait_leader(struct group *group)
{
    int64_t deadline_ms = deadline_after_ms(PATIENCE_MS);
    while (!deadline_passed(deadline_ms)) {
        for (unsigned i = 0; i < group->count; i++)
            if (group->members[i].replica != NULL && replica_is_serving(group->members[i].replica) &&
                leads_all(group, i))
                return i;
        clock_sleep_ms(2);
    }
    fail("no leader", NULL);
    return 0;
}

static void on_done(void *arg, enum replica_outcome result, uint64_t index, const uint8_t *bytes, size_t len)
{
    struct outcome *outcome = arg;
    outcome->outcome = result;
    outcome->index = index;
    outcome->id = len == 16 ? load_le64(bytes) : 0;
    outcome->count = len == 16 ? load_le64(bytes + 8) : 0;
    atomic_store(&outcome->done, 1);
}

void group_propose(struct group *group, unsigned member, uint64_t id, size_t len, struct outcome *outcome)
{
    memset(outcome, 0, sizeof *outcome);
    replica_propose(group->members[member].replica, hash_fsm_command(id, len), len, on_done, outcome);
}

bool outcome_wait(struct outcome *outcome)
{
    int64_t deadline_ms = deadline_after_ms(PATIENCE_MS);
    while (atomic_load(&outcome->done) == 0 && !deadline_passed(deadline_ms))
        usleep(200);
    return atomic_load(&outcome->done) != 0;
}

void group_propose_wait(struct group *group, uint64_t id, size_t len)
{
    int64_t deadline_ms = deadline_after_ms(PATIENCE_MS);
    while (!deadline_passed(deadline_ms)) {
        struct outcome outcome;
        group_propose(group, group_wait_leader(group), id, len, &outcome);
        CHECK(outcome_wait(&outcome));
        CHECK(outcome.outcome != REPLICA_APPLIED || outcome.id == id);
        if (outcome.outcome == REPLICA_APPLIED)
            return;
        clock_sleep_ms(10);
    }
    fail("a proposal was not applied", NULL);
}

bool group_equal(struct group *group)
{
    int64_t deadline_ms = deadline_after_ms(PATIENCE_MS);
    struct hash_state *first = mem_alloc(sizeof *first), *other = mem_alloc(sizeof *other);
    bool settled = false, equal = false;
    while (!settled && !deadline_passed(deadline_ms)) {
        bool have = false;
        settled = equal = true;
        for (unsigned i = 0; i < group->count; i++) {
            if (group->members[i].replica == NULL)
                continue;
            hash_fsm_get(&group->members[i].fsm, have ? other : first);
            settled = settled && (!have || other->applied == first->applied);
            equal = equal && (!have || memcmp(first, other, sizeof *first) == 0);
            have = true;
        }
        if (!settled)
            clock_sleep_ms(20);
    }
    mem_free(first);
    mem_free(other);
    return settled && equal;
}

static void on_read(void *arg, enum replica_outcome result)
{
    struct outcome *outcome = arg;
    outcome->outcome = result;
    atomic_store(&outcome->done, 1);
}

enum replica_outcome group_read(struct group *group, unsigned member)
{
    struct outcome outcome = {0};
    replica_read_index(group->members[member].replica, on_read, &outcome);
    CHECK(outcome_wait(&outcome));
    return outcome.outcome;
}
