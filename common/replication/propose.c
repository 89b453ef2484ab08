/* From replica_propose to the log. The calling thread only queues; the raft thread packs what has come and submits it
 * at once while the window of uncommitted entries has room. */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "replication/entry.h"
#include "replication/internal.h"

enum {
    NOSPACE_PATIENCE_MS = 2000,
};

void propose_finish(struct replica *replica, struct proposal_list *list, enum replica_outcome outcome)
{
    size_t count = 0, bytes = 0;
    for (const struct proposal *proposal = list->head; proposal != NULL; proposal = proposal->next) {
        count++;
        bytes += proposal->len;
    }
    if (count == 0)
        return;
    atomic_fetch_sub(&replica->pending_count, count);
    atomic_fetch_sub(&replica->pending_bytes, bytes);
    proposal_list_finish(list, outcome);
}

static bool take_share(struct replica *replica, size_t len)
{
    size_t count = atomic_fetch_add(&replica->pending_count, 1);
    size_t bytes = atomic_fetch_add(&replica->pending_bytes, len);
    if (count < replica->options.pending_max && (bytes == 0 || bytes + len <= replica->options.pending_max_bytes))
        return true;
    atomic_fetch_sub(&replica->pending_count, 1);
    atomic_fetch_sub(&replica->pending_bytes, len);
    return false;
}

void replica_propose(struct replica *replica, uint8_t *command, size_t len, replica_done_cb done, void *arg)
{
    CHECK(len > 0 && len <= REPLICA_COMMAND_MAX_BYTES);
    enum replica_outcome refusal = REPLICA_APPLIED;
    if (atomic_load(&replica->refusing))
        refusal = REPLICA_SHUTTING_DOWN;
    else if (!atomic_load(&replica->leading))
        refusal = REPLICA_NOT_LEADER;
    else if (!take_share(replica, len))
        refusal = REPLICA_BUSY;
    if (refusal != REPLICA_APPLIED) {
        mem_free(command);
        done(arg, refusal, 0, NULL, 0);
        return;
    }
    struct proposal *proposal = proposal_new(command, len, done, arg);
    pthread_mutex_lock(&replica->mutex);
    bool closed = replica->closed;
    if (!closed)
        proposal_list_push(&replica->incoming, proposal);
    pthread_mutex_unlock(&replica->mutex);
    if (closed) {
        struct proposal_list list = {.head = proposal, .tail = proposal};
        propose_finish(replica, &list, REPLICA_SHUTTING_DOWN);
        return;
    }
    replica_wake(replica);
}

/* On the apply thread, like every other end of a proposal. */
static void end_later(struct replica *replica, struct proposal_list *list, enum replica_outcome outcome)
{
    if (list->head == NULL)
        return;
    struct apply_item *item = apply_item_new(0, NULL, 0);
    item->failed = outcome;
    proposal_list_append(&item->proposals, list);
    apply_push(replica, item);
}

void propose_refuse(struct replica *replica, enum replica_outcome outcome)
{
    packer_restart(&replica->packer);
    end_later(replica, &replica->packer.pending, outcome);
}

static void forget(struct replica *replica, struct inflight *inflight)
{
    struct inflight **link = &replica->inflight_head, *before = NULL;
    while (*link != inflight) {
        CHECK(*link != NULL);
        before = *link;
        link = &before->next;
    }
    *link = inflight->next;
    if (replica->inflight_tail == inflight)
        replica->inflight_tail = before;
    replica->inflight_count--;
    if (inflight->bytes >= PACKER_LARGE_ENTRY_BYTES)
        replica->inflight_large--;
    mem_free(inflight);
}

static void on_applied(struct raft_apply *request, int status, void *result)
{
    struct inflight *inflight = request->data;
    struct replica *replica = inflight->replica;
    (void)result;
    if (status != 0)
        end_later(replica, &inflight->proposals, REPLICA_UNKNOWN);
    CHECK(inflight->proposals.head == NULL);
    forget(replica, inflight);
    propose_pump(replica);
}

static void remember(struct replica *replica, struct inflight *inflight)
{
    inflight->next = NULL;
    if (replica->inflight_tail == NULL)
        replica->inflight_head = inflight;
    else
        replica->inflight_tail->next = inflight;
    replica->inflight_tail = inflight;
    replica->inflight_count++;
    if (inflight->bytes >= PACKER_LARGE_ENTRY_BYTES)
        replica->inflight_large++;
}

/* The library refused the entry, so it is not in the log. Space for the next segment usually comes within milliseconds:
 * only a disk that stays full ends the proposals. */
static void submit_failed(struct replica *replica, int rv)
{
    int64_t now = clock_now_ms();
    switch (rv) {
    case RAFT_NOTLEADER:
        propose_refuse(replica, REPLICA_NOT_LEADER);
        break;
    case RAFT_NOSPACE:
        if (replica->nospace_since_ms == 0)
            replica->nospace_since_ms = now;
        if (now - replica->nospace_since_ms > NOSPACE_PATIENCE_MS)
            propose_refuse(replica, REPLICA_BUSY);
        break;
    default:
        replica_die(replica, REPLICA_EXIT_RAFT, "The log refuses an entry", raft_strerror(rv));
    }
}

static void drop_commands(struct proposal_list *list)
{
    for (struct proposal *proposal = list->head; proposal != NULL; proposal = proposal->next) {
        mem_free(proposal->command);
        proposal->command = NULL;
    }
}

static bool submit_next(struct replica *replica)
{
    struct buf bytes = BUF_INIT;
    struct packer before = replica->packer;
    struct inflight *inflight = mem_alloc(sizeof *inflight);
    packer_next(&replica->packer, raft_current_term(&replica->raft), &bytes, &inflight->proposals);
    inflight->replica = replica;
    inflight->request.data = inflight;
    inflight->sequence = replica->packer.sequence;
    inflight->bytes = bytes.len;
    /* The library's allocator is the C library's, as ours: it frees these bytes. */
    struct raft_buffer buffer = {.len = bytes.len};
    buffer.base = buf_take(&bytes, &buffer.len);
    int rv = raft_apply(&replica->raft, &inflight->request, &buffer, 1, on_applied);
    if (rv != 0) {
        mem_free(buffer.base);
        packer_undo(&replica->packer, &before, &inflight->proposals);
        mem_free(inflight);
        submit_failed(replica, rv);
        return false;
    }
    replica->nospace_since_ms = 0;
    drop_commands(&inflight->proposals);
    remember(replica, inflight);
    return true;
}

static bool window_open(const struct replica *replica)
{
    if (replica->inflight_count >= PACKER_WINDOW_ENTRIES)
        return false;
    return replica->inflight_large < PACKER_WINDOW_LARGE_ENTRIES ||
           packer_next_bytes(&replica->packer) < PACKER_LARGE_ENTRY_BYTES;
}

void propose_pump(struct replica *replica)
{
    if (!atomic_load(&replica->serving) || replica->handover.state != HANDOVER_NONE || replica->closing)
        return;
    while (replica->packer.pending.head != NULL && window_open(replica) && submit_next(replica))
        ;
}

struct proposal_list propose_committed(struct replica *replica, const uint8_t *data, size_t len)
{
    struct proposal_list list = {0};
    if (len < ENTRY_HEADER_BYTES || load_le64(data + 16) != replica->packer.origin)
        return list;
    uint64_t sequence = load_le64(data + 24);
    for (struct inflight *inflight = replica->inflight_head; inflight != NULL; inflight = inflight->next) {
        if (inflight->sequence == sequence) {
            proposal_list_append(&list, &inflight->proposals);
            break;
        }
    }
    return list;
}
