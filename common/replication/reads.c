/* Linearizable reads. A leader that was deposed without noticing would answer old data, so every read waits for one
 * round to the other voters that began after the read came: "what is your term?". A majority, this member included,
 * whose term is still ours means that no newer leader had been elected when the read came: it would have needed the
 * vote, and so the term, of one of them. No disk is involved. One round serves all the reads that came before it. */
#include "base/check.h"
#include "base/mem.h"
#include "replication/internal.h"

static void fail_list(struct read **list, enum replica_outcome outcome)
{
    while (*list != NULL) {
        struct read *read = *list;
        *list = read->next;
        read->done(read->arg, outcome);
        mem_free(read);
    }
}

void reads_fail(struct replica *replica, enum replica_outcome outcome)
{
    fail_list(&replica->reads.waiting, outcome);
    fail_list(&replica->reads.in_round, outcome);
}

static unsigned majority(const struct raft *raft)
{
    unsigned voters = 0;
    for (unsigned i = 0; i < raft->configuration.n; i++)
        voters += raft->configuration.servers[i].role == RAFT_VOTER;
    return voters / 2 + 1;
}

static void ask_all(struct replica *replica)
{
    struct read_rounds *reads = &replica->reads;
    const struct raft_configuration *members = &replica->raft.configuration;
    for (unsigned i = 0; i < members->n && i < 64; i++) {
        const struct raft_server *server = &members->servers[i];
        if (server->id != replica->raft.id && server->role == RAFT_VOTER && (reads->answered & (1ull << i)) == 0)
            transport_ask_term(&replica->transport, server->id, server->address, reads->sequence, reads->term);
    }
}

static void finish_round(struct replica *replica)
{
    struct read *list = replica->reads.in_round;
    replica->reads.in_round = NULL;
    while (list != NULL) {
        struct read *read = list;
        list = read->next;
        /* A read that came before this leader served saw an old commit index. */
        uint64_t index = read->commit_index > replica->barrier_index ? read->commit_index : replica->barrier_index;
        apply_wait(replica, index, read->done, read->arg);
        mem_free(read);
    }
}

static void start_round(struct replica *replica)
{
    struct read_rounds *reads = &replica->reads;
    reads->in_round = reads->waiting;
    reads->waiting = NULL;
    reads->sequence++;
    reads->term = raft_current_term(&replica->raft);
    reads->votes = raft_role(&replica->raft) == RAFT_VOTER ? 1 : 0;
    reads->answered = 0;
    if (reads->votes >= majority(&replica->raft))
        finish_round(replica);
    else
        ask_all(replica);
}

void reads_add(struct replica *replica, struct read *list)
{
    while (list != NULL) {
        struct read *read = list;
        list = read->next;
        if (raft_state(&replica->raft) != RAFT_LEADER) {
            read->done(read->arg, REPLICA_NOT_LEADER);
            mem_free(read);
            continue;
        }
        read->commit_index = raft_commit_index(&replica->raft);
        read->next = replica->reads.waiting;
        replica->reads.waiting = read;
    }
}

void reads_step(struct replica *replica, bool resend)
{
    struct read_rounds *reads = &replica->reads;
    if (!atomic_load(&replica->serving) || raft_state(&replica->raft) != RAFT_LEADER)
        return;
    if (reads->in_round != NULL && resend)
        ask_all(replica);
    while (reads->in_round == NULL && reads->waiting != NULL)
        start_round(replica);
}

void reads_on_term(struct replica *replica, uint64_t peer, uint64_t sequence, uint64_t term)
{
    struct read_rounds *reads = &replica->reads;
    const struct raft_configuration *members = &replica->raft.configuration;
    /* An answer to an earlier round may be older than this round's reads. */
    if (reads->in_round == NULL || sequence != reads->sequence || term > reads->term ||
        raft_state(&replica->raft) != RAFT_LEADER || raft_current_term(&replica->raft) != reads->term)
        return;
    for (unsigned i = 0; i < members->n && i < 64; i++) {
        if (members->servers[i].id != peer || members->servers[i].role != RAFT_VOTER)
            continue;
        if ((reads->answered & (1ull << i)) == 0)
            reads->votes++;
        reads->answered |= 1ull << i;
    }
    if (reads->votes >= majority(&replica->raft)) {
        finish_round(replica);
        reads_step(replica, false);
    }
}
