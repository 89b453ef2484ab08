#include "tests/sim/replication/member.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sim_fail(struct sim *sim, const char *what, uint64_t a, uint64_t b)
{
    fprintf(stderr, "seed %llu: %s (%llu, %llu)\n", (unsigned long long)sim->seed, what, (unsigned long long)a,
            (unsigned long long)b);
    sim->failures++;
}

/* ---- the state machine ---- */

static void begin(void *arg)
{
    struct sim_member *member = arg;
    CHECK(!member->open);
    member->open = true;
    member->next = member->state;
    if (member->sim->with_store)
        store_state_begin(&member->store);
}

static void apply(void *arg, uint64_t index, const uint8_t *command, size_t len, struct buf *result)
{
    struct sim_member *member = arg;
    CHECK(member->open && index > member->state.applied);
    hash_state_apply(&member->next, index, command, len);
    if (member->sim->with_store)
        store_state_apply(&member->store, command, len);
    buf_append_le64(result, load_le64(command));
}

static void commit(void *arg, uint64_t last_index)
{
    struct sim_member *member = arg;
    CHECK(member->open && last_index > member->state.applied);
    member->next.applied = last_index;
    member->state = member->next;
    if (member->sim->with_store)
        store_state_commit(&member->store, last_index);
    member->open = false;
}

static uint64_t applied_index(void *arg)
{
    struct sim_member *member = arg;
    return member->state.applied;
}

static bool checkpoint(void *arg, struct err *err)
{
    struct sim_member *member = arg;
    (void)err;
    if (member->checkpoint_count == SIM_CHECKPOINTS_MAX) {
        memmove(member->checkpoints, member->checkpoints + 1,
                (SIM_CHECKPOINTS_MAX - 1) * sizeof member->checkpoints[0]);
        member->checkpoint_count--;
    }
    member->checkpoints[member->checkpoint_count++] = member->state;
    if (member->sim->with_store)
        store_state_checkpoint(&member->store);
    return true;
}

static struct replica_fsm hooks_of(struct sim_member *member)
{
    return (struct replica_fsm){.arg = member,
                                .begin = begin,
                                .apply = apply,
                                .commit = commit,
                                .applied_index = applied_index,
                                .checkpoint = checkpoint};
}

/* ---- proposals ---- */

static void on_done(void *arg, enum replica_outcome outcome, uint64_t index, const uint8_t *result, size_t len)
{
    uint8_t *slot = arg;
    (void)index;
    (void)result;
    (void)len;
    CHECK(*slot == 0);
    *slot = (uint8_t)(1 + outcome);
}

static struct proposal_list take_proposals(struct sim_member *member, const uint8_t *data)
{
    struct proposal_list list = {0};
    if (load_le64(data + 16) != member->packer.origin)
        return list;
    for (struct sim_inflight *inflight = member->inflight; inflight != NULL; inflight = inflight->next)
        if (inflight->sequence == load_le64(data + 24))
            proposal_list_append(&list, &inflight->proposals);
    return list;
}

static void on_applied(struct raft_apply *request, int status, void *result)
{
    struct sim_inflight *inflight = request->data;
    struct sim_member *member = inflight->member;
    (void)result;
    proposal_list_finish(&inflight->proposals, status == 0 ? REPLICA_APPLIED : REPLICA_UNKNOWN);
    struct sim_inflight **link = &member->inflight;
    while (*link != inflight)
        link = &(*link)->next;
    *link = inflight->next;
    member->inflight_count--;
    mem_free(inflight);
}

static bool serving(const struct sim_member *member)
{
    return raft_state(member->raft) == RAFT_LEADER && member->barrier_index > 0 &&
           member->barrier_term == raft_current_term(member->raft) && member->applier.applied >= member->barrier_index;
}

static void pump(struct sim_member *member)
{
    while (member->packer.pending.head != NULL && serving(member) && member->inflight_count < PACKER_WINDOW_ENTRIES &&
           raft_last_index(member->raft) < SIM_ENTRIES_MAX - 64) {
        struct sim_inflight *inflight = mem_alloc(sizeof *inflight);
        struct buf bytes = BUF_INIT;
        packer_next(&member->packer, raft_current_term(member->raft), &bytes, &inflight->proposals);
        inflight->member = member;
        inflight->sequence = member->packer.sequence;
        inflight->request.data = inflight;
        struct raft_buffer buffer = {.base = raft_malloc(bytes.len), .len = bytes.len};
        memcpy(buffer.base, bytes.data, bytes.len);
        buf_deinit(&bytes);
        if (raft_apply(member->raft, &inflight->request, &buffer, 1, on_applied) != 0) {
            raft_free(buffer.base);
            proposal_list_finish(&inflight->proposals, REPLICA_NOT_LEADER);
            mem_free(inflight);
            break;
        }
        inflight->next = member->inflight;
        member->inflight = inflight;
        member->inflight_count++;
    }
}

void sim_member_propose(struct sim_member *member, size_t len)
{
    if (member->sim->next_id == HASH_FSM_IDS)
        return;
    uint64_t id = member->sim->next_id++;
    uint8_t *command = hash_fsm_command(id, len);
    proposal_list_push(&member->packer.pending, proposal_new(command, len, on_done, &member->sim->outcomes[id]));
}

/* ---- what the library calls ---- */

static void queue_entry(struct sim_member *member, uint64_t index, const void *data, size_t len)
{
    CHECK(member->entry_count < SIM_ENTRIES_MAX);
    member->entries[member->entry_count++] =
        (struct sim_entry){.index = index, .data = data == NULL ? NULL : mem_copy(data, len), .len = len};
    member->queued_index = index;
}

static int on_fsm_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    struct sim_member *member = fsm->data;
    uint64_t index = raft_last_applied(member->raft) + 1;
    struct entry entry;
    struct err err;
    *result = NULL;
    if (!entry_parse(buf->base, buf->len, &entry, &err))
        sim_fail(member->sim, err.msg, index, buf->len);
    bool more = entry.kind == ENTRY_FRAGMENT && entry.fragment_number + 1 < entry.fragment_count;
    member->fragment_index = more ? index : 0;
    queue_entry(member, index, buf->base, buf->len);
    return 0;
}

static void queue_index(struct sim_member *member)
{
    uint64_t index = raft_last_applied(member->raft);
    if (index > member->queued_index)
        queue_entry(member, index, NULL, 0);
}

static int on_fsm_snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *count)
{
    struct sim_member *member = fsm->data;
    uint64_t index = raft_last_applied(member->raft);
    if (raft_commit_index(member->raft) != index || member->fragment_index == index || member->put_waits ||
        member->ending)
        return RAFT_BUSY;
    queue_index(member);
    *bufs = raft_calloc(1, sizeof **bufs);
    (*bufs)[0].base = raft_calloc(1, 8);
    (*bufs)[0].len = 8;
    *count = 1;
    return 0;
}

static int on_fsm_restore(struct raft_fsm *fsm, struct raft_buffer *buf)
{
    struct sim_member *member = fsm->data;
    sim_fail(member->sim, "a snapshot was installed although the log is never cut so far", member->number, 0);
    raft_free(buf->base);
    return 0;
}

static struct sim_member *of_io(struct raft_io *io)
{
    struct raft *raft = io->data;
    return raft->data;
}

static int on_put(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *request,
                  const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb)
{
    struct sim_member *member = of_io(io);
    CHECK(!member->put_waits);
    member->put_waits = true;
    member->put_trailing = trailing;
    member->put_request = request;
    member->put_snapshot = snapshot;
    member->put_cb = cb;
    return 0;
}

/* ---- applying ---- */

struct results {
    struct proposal *next;
};

static struct buf *next_result(void *arg, size_t number)
{
    struct results *results = arg;
    (void)number;
    if (results->next == NULL)
        return NULL;
    struct proposal *proposal = results->next;
    results->next = proposal->next;
    return &proposal->result;
}

/* The state behind an entry is the same on every member. */
static void compare_digest(struct sim_member *member, uint64_t index)
{
    uint64_t hash = member->open ? member->next.hash : member->state.hash;
    uint64_t *digest = &member->sim->digests[index];
    if (*digest == 0)
        *digest = hash + 1;
    else if (*digest != hash + 1)
        sim_fail(member->sim, "states differ behind the same entry", index, member->number);
}

static void apply_entry(struct sim_member *member, const struct sim_entry *entry)
{
    struct applier_entry raw = {.index = entry->index, .data = entry->data, .len = entry->len};
    struct proposal_list list = {0};
    struct err err;
    if (entry->data != NULL)
        list = take_proposals(member, entry->data);
    struct results results = {.next = list.head};
    bool fresh = entry->index > member->applier.applied;
    if (!applier_add(&member->applier, &raw, next_result, &results, &err))
        sim_fail(member->sim, err.msg, entry->index, member->number);
    if (fresh)
        compare_digest(member, entry->index);
    for (struct proposal *proposal = list.head; proposal != NULL; proposal = proposal->next)
        if (proposal->result.len != 8)
            sim_fail(member->sim, "a proposal without its result", entry->index, member->number);
    /* They wait for the commit, which follows before anything else can happen to this member. */
    proposal_list_finish(&list, REPLICA_APPLIED);
}

static void apply_some(struct sim_member *member, size_t most)
{
    while (member->applied_count < member->entry_count && most-- > 0) {
        apply_entry(member, &member->entries[member->applied_count++]);
        if (prng_below(&member->sim->prng, 3) == 0)
            applier_commit(&member->applier);
    }
    applier_commit(&member->applier);
}

void sim_member_drain(struct sim_member *member)
{
    queue_index(member);
    apply_some(member, SIM_ENTRIES_MAX);
}

static void forward_put(struct sim_member *member)
{
    member->put_waits = false;
    int rv = member->io_put(member->raft->io, member->put_trailing, member->put_request, member->put_snapshot,
                            member->put_cb);
    CHECK(rv == 0);
}

static void finish_put(struct sim_member *member)
{
    if (!member->put_waits || member->applier.applied < member->put_snapshot->index)
        return;
    checkpoint(member, NULL);
    forward_put(member);
}

void sim_member_end(struct sim_member *member)
{
    member->ending = true;
    if (member->put_waits)
        forward_put(member);
}

/* ---- leading ---- */

struct sim_barrier {
    struct raft_barrier request;
    struct sim_member *member;
    uint64_t term;
};

static void on_barrier(struct raft_barrier *request, int status)
{
    struct sim_barrier *barrier = request->data;
    struct sim_member *member = barrier->member;
    if (barrier->term == member->barrier_term) {
        member->barrier_index = status == 0 ? request->index : 0;
        member->barrier_term = status == 0 ? barrier->term : 0;
    }
    mem_free(barrier);
}

static void lead(struct sim_member *member)
{
    uint64_t term = raft_current_term(member->raft);
    if (raft_state(member->raft) != RAFT_LEADER) {
        packer_restart(&member->packer);
        proposal_list_finish(&member->packer.pending, REPLICA_NOT_LEADER);
        return;
    }
    if (member->barrier_term == term)
        return;
    struct sim_barrier *barrier = mem_alloc(sizeof *barrier);
    barrier->member = member;
    barrier->term = term;
    barrier->request.data = barrier;
    member->barrier_term = term;
    member->barrier_index = 0;
    packer_restart(&member->packer);
    if (raft_barrier(member->raft, &barrier->request, on_barrier) != 0) {
        member->barrier_term = 0;
        mem_free(barrier);
    }
}

void sim_member_step(struct sim_member *member)
{
    if (member->down)
        return;
    queue_index(member);
    lead(member);
    pump(member);
    apply_some(member, prng_below(&member->sim->prng, 20));
    finish_put(member);
}

/* ---- life ---- */

void sim_member_init(struct sim_member *member, struct sim *sim, unsigned number)
{
    memset(member, 0, sizeof *member);
    member->sim = sim;
    member->number = number;
    member->packer.fragment_bytes = SIM_FRAGMENT_BYTES;
    member->packer.origin = sim->seed * 100 + number + 1;
    if (sim->with_store)
        store_state_init(&member->store);
    struct replica_fsm hooks = hooks_of(member);
    applier_init(&member->applier, &hooks);
    member->raft_fsm = (struct raft_fsm){
        .version = 1, .data = member, .apply = on_fsm_apply, .snapshot = on_fsm_snapshot, .restore = on_fsm_restore};
}

void sim_member_attach(struct sim_member *member)
{
    member->raft->data = member;
    member->raft->tracer = NULL;
    member->io_put = member->raft->io->snapshot_put;
    member->raft->io->snapshot_put = on_put;
}

void sim_member_deinit(struct sim_member *member)
{
    proposal_list_finish(&member->packer.pending, REPLICA_SHUTTING_DOWN);
    applier_deinit(&member->applier);
    if (member->sim->with_store)
        store_state_deinit(&member->store);
    for (size_t i = 0; i < member->entry_count; i++)
        mem_free(member->entries[i].data);
}

void sim_member_crash(struct sim_member *member)
{
    member->down = true;
    packer_restart(&member->packer);
    proposal_list_finish(&member->packer.pending, REPLICA_UNKNOWN);
    member->open = false;
    member->applier.open = false;
}

static void load(struct sim_member *member, const struct hash_state *from)
{
    struct replica_fsm hooks = hooks_of(member);
    if (from == NULL)
        memset(&member->state, 0, sizeof member->state);
    else
        member->state = *from;
    member->open = false;
    applier_deinit(&member->applier);
    applier_init(&member->applier, &hooks);
}

void sim_member_restart(struct sim_member *member)
{
    size_t last = member->checkpoint_count;
    load(member, last == 0 ? NULL : &member->checkpoints[last - 1]);
    if (member->sim->with_store) {
        store_state_crash(&member->store);
        if (store_applied_index(member->store.store) != member->state.applied)
            sim_fail(member->sim, "a store opened at another index than its checkpoint's", member->state.applied,
                     store_applied_index(member->store.store));
    }
    /* A new run of the process doesn't know the old one's proposals. */
    member->packer.origin += 1000003;
    member->applied_count = 0;
    member->down = false;
}

void sim_member_check_replay(struct sim_member *member)
{
    struct hash_state *end = mem_copy(&member->state, sizeof member->state);
    bool with_store = member->sim->with_store;
    member->sim->with_store = false; /* only the newest of its checkpoints exists */
    for (size_t i = 0; i <= member->checkpoint_count; i++) {
        load(member, i == 0 ? NULL : &member->checkpoints[i - 1]);
        member->applied_count = 0;
        apply_some(member, SIM_ENTRIES_MAX);
        if (memcmp(&member->state, end, sizeof *end) != 0)
            sim_fail(member->sim, "a replay ends in another state", i, member->number);
    }
    member->sim->with_store = with_store;
    mem_free(end);
}

void sim_member_check_store(struct sim_member *member)
{
    if (!member->sim->with_store)
        return;
    uint64_t hash = store_state_hash(&member->store);
    if (hash != store_state_hash(&member->sim->members[0].store))
        sim_fail(member->sim, "stores differ", member->number, 0);
    sim_member_crash(member);
    sim_member_restart(member);
    apply_some(member, SIM_ENTRIES_MAX);
    if (hash != store_state_hash(&member->store))
        sim_fail(member->sim, "a replayed store differs", member->number, 0);
}
