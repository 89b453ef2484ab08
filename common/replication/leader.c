/* What a member does because of its role: a new leader's barrier, the end of a lost term, and handing leadership over.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "replication/internal.h"

#include <stdlib.h>

struct barrier {
    struct raft_barrier request;
    struct replica *replica;
    uint64_t term;
};

static void on_barrier(struct raft_barrier *request, int status)
{
    struct barrier *barrier = request->data;
    struct replica *replica = barrier->replica;
    if (status == 0 && barrier->term == replica->barrier_term)
        replica->barrier_index = request->index;
    else if (barrier->term == replica->barrier_term)
        replica->barrier_term = 0;
    free(barrier);
    bridge_queue_index(replica);
}

/* Entries of older terms count as committed only once one of our own term is. */
static void submit_barrier(struct replica *replica)
{
    struct barrier *barrier = calloc(1, sizeof *barrier);
    CHECK(barrier != NULL);
    barrier->replica = replica;
    barrier->term = raft_current_term(&replica->raft);
    barrier->request.data = barrier;
    replica->barrier_index = 0;
    replica->barrier_term = barrier->term;
    int rv = raft_barrier(&replica->raft, &barrier->request, on_barrier);
    if (rv == 0)
        return;
    free(barrier);
    replica->barrier_term = 0;
    if (rv != RAFT_NOTLEADER && rv != RAFT_NOSPACE)
        replica_die(replica, REPLICA_EXIT_RAFT, "The log refuses the barrier of a new leader", raft_strerror(rv));
}

static void stop_leading(struct replica *replica)
{
    if (atomic_exchange(&replica->leading, false))
        log_info("REPL", 3002, "Lost leadership", LOG_I64("term", replica->seen_term));
    atomic_store(&replica->serving, false);
    replica->barrier_term = 0;
    replica->barrier_index = 0;
    propose_refuse(replica, REPLICA_NOT_LEADER);
    reads_fail(replica, REPLICA_NOT_LEADER);
}

static void start_leading(struct replica *replica)
{
    if (raft_last_index(&replica->raft) < replica->start_applied)
        replica_die(replica, REPLICA_EXIT_STATE, "This member was elected but its state is ahead of every log",
                    "part of the logs is missing");
    atomic_store(&replica->leading, true);
    log_info("REPL", 3001, "Became leader", LOG_I64("term", raft_current_term(&replica->raft)),
             LOG_I64("lastIndex", raft_last_index(&replica->raft)));
}

/* A member starts with a short election timeout, so that a new group has its leader soon; an existing one is not
 * disturbed, because members that have a leader grant no pre-vote. From the first leader on the configured one holds.
 * The library's setter would also touch a leader's state. */
static void settle(struct replica *replica)
{
    struct raft *raft = &replica->raft;
    unsigned timeout = replica->options.election_timeout_ms;
    if (replica->settled)
        return;
    replica->settled = true;
    raft->election_timeout = timeout;
    if (raft_state(raft) == RAFT_FOLLOWER)
        raft->follower_state.randomized_election_timeout = raft_random(&raft->random, timeout, 2 * timeout);
}

static bool notice_change(struct replica *replica)
{
    struct raft *raft = &replica->raft;
    int state = (int)raft_state(raft);
    uint64_t term = raft_current_term(raft);
    raft_id leader;
    const char *address;
    raft_leader(raft, &leader, &address);
    bool other_term = term != replica->seen_term;
    if (state == replica->seen_state && !other_term && leader == replica->seen_leader)
        return false;
    if (replica->seen_state == RAFT_LEADER && (state != RAFT_LEADER || other_term))
        stop_leading(replica);
    bool begins = state == RAFT_LEADER && (replica->seen_state != RAFT_LEADER || other_term);
    replica->seen_state = state;
    replica->seen_term = term;
    replica->seen_leader = leader;
    if (leader != 0)
        settle(replica);
    if (begins)
        start_leading(replica);
    if (state == RAFT_UNAVAILABLE && !replica->closing)
        replica_die(replica, REPLICA_EXIT_RAFT, "The consensus library gave up", raft_errmsg(raft));
    return true;
}

void leader_step(struct replica *replica)
{
    bool changed = notice_change(replica);
    bool leads = raft_state(&replica->raft) == RAFT_LEADER;
    if (leads && replica->barrier_term == 0 && replica->handover.state == HANDOVER_NONE && !replica->closing)
        submit_barrier(replica);
    if (leads && !atomic_load(&replica->serving) && replica->barrier_index > 0 &&
        atomic_load(&replica->apply.applied) >= replica->barrier_index) {
        atomic_store(&replica->serving, true);
        changed = true;
    }
    if (changed)
        replica_publish(replica, true);
}

void handover_begin(struct replica *replica, int64_t deadline_ms)
{
    if (replica->handover.active)
        return;
    replica->handover.active = true;
    replica->handover.state = HANDOVER_DRAIN;
    replica->handover.deadline_ms = deadline_ms;
    replica->handover.target = 0;
}

/* The voter with the longest log, other than this one; 0: none. */
static uint64_t choose_successor(struct replica *replica, raft_index *match)
{
    struct raft *raft = &replica->raft;
    uint64_t best = 0;
    *match = 0;
    for (unsigned i = 0; i < raft->configuration.n; i++) {
        const struct raft_server *server = &raft->configuration.servers[i];
        raft_index index;
        if (server->id == raft->id || server->role != RAFT_VOTER || raft_match_index(raft, server->id, &index) != 0)
            continue;
        if (best == 0 || index > *match) {
            best = server->id;
            *match = index;
        }
    }
    return best;
}

static void on_transferred(struct raft_transfer *request)
{
    struct replica *replica = request->data;
    if (replica->handover.state == HANDOVER_TRANSFER)
        replica->handover.state = HANDOVER_NONE;
    replica_wake(replica);
}

static void try_transfer(struct replica *replica)
{
    struct handover *handover = &replica->handover;
    raft_index match;
    handover->target = choose_successor(replica, &match);
    if (handover->target == 0) {
        handover->state = HANDOVER_NONE;
        return;
    }
    if (match != raft_last_index(&replica->raft))
        return;
    handover->request.data = replica;
    handover->state = HANDOVER_TRANSFER;
    if (raft_transfer(&replica->raft, &handover->request, handover->target, on_transferred) != 0)
        handover->state = HANDOVER_NONE;
}

bool handover_step(struct replica *replica)
{
    struct handover *handover = &replica->handover;
    bool late = deadline_passed(handover->deadline_ms);
    switch (handover->state) {
    case HANDOVER_NONE:
        return true;
    case HANDOVER_DRAIN:
        if (replica->inflight_count > 0 && !late)
            return false;
        handover->state = HANDOVER_MATCH;
        /* fallthrough */
    case HANDOVER_MATCH:
        if (raft_state(&replica->raft) != RAFT_LEADER || late)
            handover->state = HANDOVER_NONE;
        else
            try_transfer(replica);
        break;
    case HANDOVER_TRANSFER:
        /* The library ends it when the next leader shows. There is none when all members stop at the same time. */
        if (late || (replica->stop_deadline_ms != 0 && raft_state(&replica->raft) != RAFT_LEADER))
            handover->state = HANDOVER_NONE;
        break;
    }
    return handover->state == HANDOVER_NONE;
}
