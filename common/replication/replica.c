/* The life of a member: start, the raft thread's rounds, stop. */
#include "replication/replica.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/thread.h"
#include "replication/internal.h"

#include <string.h>
#include <unistd.h>

enum {
    INSTALL_SNAPSHOT_TIMEOUT_MS = 2000, /* the library's 30 s would mean a standstill after a copy */
    CONNECT_RETRY_MS = 100,
    START_ELECTION_TIMEOUT_MS = 200, /* until a leader is known for the first time; see leader.c */
    DISK_RETRY_MS = 60000, /* longer than the watchdog: a retry of the library after a failed append crashes */
    WATCHDOG_MS = 5000,
    STOP_POLL_MS = 5,
};

void replica_die(struct replica *replica, enum replica_exit code, const char *what, const char *detail)
{
    log_error("REPL", 3090, what, LOG_I64("member", replica->options.id), LOG_STR("set", replica->options.set_name),
              LOG_STR("detail", detail), LOG_I64("exitCode", code));
    _exit((int)code);
}

void replica_wake(struct replica *replica)
{
    pthread_mutex_lock(&replica->mutex);
    if (!replica->wake_sent && !replica->closed) {
        replica->wake_sent = true;
        uv_async_send(&replica->async);
    }
    pthread_mutex_unlock(&replica->mutex);
}

/* A stored index that stays below the end of the log means a disk that fails without the library saying so. */
static void watch_disk(struct replica *replica)
{
    const struct raft *raft = &replica->raft;
    int64_t now = clock_now_ms();
    if (raft->last_stored != replica->stored_seen || raft->last_stored >= raft_last_index(&replica->raft) ||
        raft->snapshot.installing) {
        replica->stored_seen = raft->last_stored;
        replica->stored_moved_ms = now;
        return;
    }
    if (now - replica->stored_moved_ms > WATCHDOG_MS)
        replica_die(replica, REPLICA_EXIT_DISK, "The log makes no progress on disk", replica->io.errmsg);
}

static void end_step_down(struct replica *replica)
{
    raft_id leader;
    const char *address;
    raft_leader(&replica->raft, &leader, &address);
    pthread_mutex_lock(&replica->mutex);
    replica->step_down_done = true;
    replica->step_down_ok = replica->handover.target != 0 && leader == replica->handover.target;
    pthread_cond_broadcast(&replica->changed);
    pthread_mutex_unlock(&replica->mutex);
}

static void close_handles(struct replica *replica)
{
    uv_handle_t *handles[] = {(uv_handle_t *)&replica->async, (uv_handle_t *)&replica->check,
                              (uv_handle_t *)&replica->timer, (uv_handle_t *)&replica->stop_timer};
    pthread_mutex_lock(&replica->mutex);
    replica->closed = true;
    pthread_mutex_unlock(&replica->mutex);
    for (size_t i = 0; i < sizeof handles / sizeof *handles; i++)
        uv_close(handles[i], NULL);
}

static void on_raft_closed(struct raft *raft)
{
    close_handles(raft->data);
}

/* The end of a stop: everything that can be finished is, or its time is over. */
static void on_stop_timer(uv_timer_t *timer)
{
    struct replica *replica = timer->data;
    bool late = deadline_passed(replica->stop_deadline_ms);
    bool writing = replica->raft.last_stored < raft_last_index(&replica->raft);
    if (replica->closing)
        return;
    if (!late && (replica->inflight_count > 0 || writing || !handover_step(replica)))
        return;
    /* A checkpoint on its way is waited for in any case: the library holds its request. */
    if (!snapshot_cancel(replica))
        return;
    replica->closing = true;
    atomic_store(&replica->leading, false);
    atomic_store(&replica->serving, false);
    replica_publish(replica, true);
    raft_close(&replica->raft, on_raft_closed);
}

static void begin_stop(struct replica *replica, int64_t timeout_ms)
{
    replica->stop_deadline_ms = deadline_after_ms(timeout_ms);
    propose_refuse(replica, REPLICA_SHUTTING_DOWN);
    reads_fail(replica, REPLICA_SHUTTING_DOWN);
    if (raft_state(&replica->raft) == RAFT_LEADER)
        handover_begin(replica, replica->stop_deadline_ms);
    uv_timer_start(&replica->stop_timer, on_stop_timer, 0, STOP_POLL_MS);
}

static void take_incoming(struct replica *replica, struct proposal_list *proposals)
{
    proposal_list_append(&replica->packer.pending, proposals);
    if (replica->stop_deadline_ms != 0)
        propose_refuse(replica, REPLICA_SHUTTING_DOWN);
    else if (raft_state(&replica->raft) != RAFT_LEADER)
        propose_refuse(replica, REPLICA_NOT_LEADER);
}

static void on_wake(uv_async_t *async)
{
    struct replica *replica = async->data;
    pthread_mutex_lock(&replica->mutex);
    struct proposal_list proposals = replica->incoming;
    struct read *reads = replica->incoming_reads;
    bool stop = replica->stop_requested, step_down = replica->step_down_requested;
    int64_t stop_timeout_ms = replica->stop_timeout_ms, step_down_timeout_ms = replica->step_down_timeout_ms;
    replica->incoming = (struct proposal_list){0};
    replica->incoming_reads = NULL;
    replica->step_down_requested = false;
    replica->wake_sent = false;
    pthread_mutex_unlock(&replica->mutex);
    if (stop && replica->stop_deadline_ms == 0)
        begin_stop(replica, stop_timeout_ms);
    if (step_down)
        handover_begin(replica, deadline_after_ms(step_down_timeout_ms));
    if (proposals.head != NULL)
        take_incoming(replica, &proposals);
    reads_add(replica, reads);
}

/* After every round of events. */
static void on_check(uv_check_t *check)
{
    struct replica *replica = check->data;
    if (replica->closing)
        return;
    /* Set before the looks below, so that no progress between a look and the sleep is missed. */
    atomic_store(&replica->watches_apply, true);
    bridge_queue_index(replica);
    leader_step(replica);
    snapshot_step(replica);
    bool waits =
        replica->put.state == PUT_WAIT_APPLIED || (atomic_load(&replica->leading) && !atomic_load(&replica->serving));
    atomic_store(&replica->watches_apply, waits);
    propose_pump(replica);
    reads_step(replica, false);
    if (replica->handover.active && handover_step(replica)) {
        replica->handover.active = false;
        end_step_down(replica);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct replica *replica = timer->data;
    if (replica->closing)
        return;
    watch_disk(replica);
    reads_step(replica, true);
    replica_publish(replica, false);
}

static uint64_t current_term(void *arg)
{
    struct replica *replica = arg;
    return raft_current_term(&replica->raft);
}

static void on_term(void *arg, uint64_t peer, uint64_t sequence, uint64_t term)
{
    reads_on_term(arg, peer, sequence, term);
}

static void set_default(unsigned *value, unsigned by_default)
{
    if (*value == 0)
        *value = by_default;
}

static struct replica *replica_new(const struct replica_options *options)
{
    struct replica *replica = mem_alloc(sizeof *replica);
    struct replica_options *own = &replica->options;
    *own = *options;
    own->dir = mem_copy_str(options->dir);
    own->set_name = mem_copy_str(options->set_name);
    own->address = mem_copy_str(options->address);
    own->bind_host = options->bind_host == NULL ? NULL : mem_copy_str(options->bind_host);
    set_default(&own->election_timeout_ms, REPLICA_ELECTION_TIMEOUT_MS);
    set_default(&own->heartbeat_ms, REPLICA_HEARTBEAT_MS);
    set_default(&own->snapshot_entries, REPLICA_SNAPSHOT_ENTRIES);
    set_default(&own->trailing_entries, REPLICA_TRAILING_ENTRIES);
    if (own->hold_bytes == 0)
        own->hold_bytes = REPLICA_HOLD_BYTES;
    if (own->apply_queue_bytes == 0)
        own->apply_queue_bytes = REPLICA_APPLY_QUEUE_BYTES;
    if (own->pending_max == 0)
        own->pending_max = REPLICA_PENDING_MAX;
    if (own->pending_max_bytes == 0)
        own->pending_max_bytes = REPLICA_PENDING_MAX_BYTES;
    pthread_mutex_init(&replica->mutex, NULL);
    thread_cond_init(&replica->changed);
    replica->packer.origin = random_u64();
    replica->stored_moved_ms = clock_now_ms();
    apply_init(replica);
    replica->start_applied = atomic_load(&replica->apply.applied);
    replica->queued_index = replica->start_applied;
    return replica;
}

static void init_handles(struct replica *replica)
{
    uv_async_init(&replica->loop, &replica->async, on_wake);
    uv_check_init(&replica->loop, &replica->check);
    uv_timer_init(&replica->loop, &replica->timer);
    uv_timer_init(&replica->loop, &replica->stop_timer);
    replica->async.data = replica;
    replica->check.data = replica;
    replica->timer.data = replica;
    replica->stop_timer.data = replica;
}

static void configure(struct replica *replica)
{
    struct raft *raft = &replica->raft;
    raft->data = replica;
    /* With a tracer, and it has one by default, the library formats a text for each of its steps. */
    raft->tracer = NULL;
    raft_uv_set_tracer(&replica->io, NULL);
    raft_seed(raft, (unsigned)random_u64());
    raft_set_election_timeout(raft, START_ELECTION_TIMEOUT_MS < replica->options.election_timeout_ms
                                        ? START_ELECTION_TIMEOUT_MS
                                        : replica->options.election_timeout_ms);
    raft_set_heartbeat_timeout(raft, replica->options.heartbeat_ms);
    raft_set_install_snapshot_timeout(raft, INSTALL_SNAPSHOT_TIMEOUT_MS);
    raft_set_pre_vote(raft, true);
    raft_set_snapshot_threshold(raft, replica->options.snapshot_entries);
    raft_set_snapshot_trailing(raft, replica->options.trailing_entries);
    raft_uv_set_disk_retry(&replica->io, DISK_RETRY_MS);
    raft_uv_set_connect_retry_delay(&replica->io, CONNECT_RETRY_MS);
    snapshot_wrap(replica);
}

static bool check_loaded(const struct replica *replica, struct err *err)
{
    if (replica->raft.configuration.n == 0)
        return err_set(err, ERR_NotYetInitialized, "%s holds no log: it was never initialised as a member of a set",
                       replica->options.dir);
    if (replica->restore_index > replica->start_applied)
        return err_set(err, ERR_OperationFailed,
                       "the data is at log index %llu but the log in %s begins after %llu: restore the data directory "
                       "as a whole",
                       (unsigned long long)replica->start_applied, replica->options.dir,
                       (unsigned long long)replica->restore_index);
    return true;
}

/* Handles of the loop are open, its thread does not run. */
static void close_unstarted(struct replica *replica)
{
    replica->closing = true;
    raft_close(&replica->raft, on_raft_closed);
    uv_run(&replica->loop, UV_RUN_DEFAULT);
    raft_uv_close(&replica->io);
}

static int log_error_code(int rv)
{
    return rv == RAFT_NOTFOUND ? ERR_NotYetInitialized : ERR_OperationFailed;
}

/* The library doesn't pass every message up. */
static const char *start_error(struct replica *replica)
{
    if (replica->transport.base.errmsg[0] != '\0')
        return replica->transport.base.errmsg;
    return replica->io.errmsg[0] != '\0' ? replica->io.errmsg : raft_errmsg(&replica->raft);
}

static bool open_log(struct replica *replica, struct err *err)
{
    const struct replica_options *options = &replica->options;
    struct transport_hooks hooks = {.arg = replica, .current_term = current_term, .on_term = on_term};
    transport_init(&replica->transport, &replica->loop, options->set_name, options->bind_host, &hooks);
    int rv = raft_uv_init(&replica->io, &replica->loop, options->dir, &replica->transport.base);
    if (rv != 0)
        return err_set(err, log_error_code(rv), "the log directory %s: %s", options->dir, raft_strerror(rv));
    bridge_init(replica);
    rv = raft_init(&replica->raft, &replica->io, &replica->fsm, options->id, options->address);
    if (rv != 0) {
        err_set(err, log_error_code(rv), "the log directory %s: %s", options->dir, raft_errmsg(&replica->raft));
        raft_uv_close(&replica->io);
        return false;
    }
    configure(replica);
    init_handles(replica);
    rv = raft_start(&replica->raft);
    if (rv != 0)
        err_set(err, ERR_OperationFailed, "the member cannot start: %s", start_error(replica));
    if (rv == 0 && check_loaded(replica, err))
        return true;
    close_unstarted(replica);
    return false;
}

static void *run(void *arg)
{
    struct replica *replica = arg;
    uv_run(&replica->loop, UV_RUN_DEFAULT);
    raft_uv_close(&replica->io);
    return NULL;
}

bool replica_start(struct replica **out, const struct replica_options *options, struct err *err)
{
    struct replica *replica = replica_new(options);
    CHECK(uv_loop_init(&replica->loop) == 0);
    if (!open_log(replica, err)) {
        replica_free(replica);
        return false;
    }
    snapshot_count_loaded(replica);
    uv_check_start(&replica->check, on_check);
    uv_timer_start(&replica->timer, on_timer, replica->options.heartbeat_ms, replica->options.heartbeat_ms);
    bridge_queue_index(replica);
    leader_step(replica);
    replica_publish(replica, false);
    log_info("REPL", 3000, "Member started", LOG_STR("set", options->set_name), LOG_I64("id", options->id),
             LOG_STR("address", options->address), LOG_I64("appliedIndex", replica->start_applied),
             LOG_I64("lastIndex", raft_last_index(&replica->raft)));
    apply_start(replica);
    thread_start(&replica->raft_thread, "raft", run, replica);
    *out = replica;
    return true;
}

void replica_read_index(struct replica *replica, replica_read_cb done, void *arg)
{
    enum replica_outcome refusal = atomic_load(&replica->refusing)   ? REPLICA_SHUTTING_DOWN
                                   : !atomic_load(&replica->leading) ? REPLICA_NOT_LEADER
                                                                     : REPLICA_APPLIED;
    /* Nobody else can have acknowledged anything, and this member acknowledges what it has applied. */
    if (refusal == REPLICA_APPLIED && atomic_load(&replica->alone) && atomic_load(&replica->serving)) {
        done(arg, REPLICA_APPLIED);
        return;
    }
    if (refusal == REPLICA_APPLIED) {
        struct read *read = mem_alloc(sizeof *read);
        read->done = done;
        read->arg = arg;
        pthread_mutex_lock(&replica->mutex);
        if (replica->closed) {
            refusal = REPLICA_SHUTTING_DOWN;
            mem_free(read);
        } else {
            read->next = replica->incoming_reads;
            replica->incoming_reads = read;
        }
        pthread_mutex_unlock(&replica->mutex);
    }
    if (refusal == REPLICA_APPLIED)
        replica_wake(replica);
    else
        done(arg, refusal);
}

void replica_wait_applied(struct replica *replica, uint64_t index, replica_read_cb done, void *arg)
{
    apply_wait(replica, index, done, arg);
}

bool replica_step_down(struct replica *replica, int64_t timeout_ms, struct err *err)
{
    if (!atomic_load(&replica->leading))
        return err_set(err, ERR_NotWritablePrimary, "this member does not lead");
    /* The library gives up after an election timeout at the latest. */
    int64_t deadline_ms = deadline_after_ms(timeout_ms + 2 * (int64_t)replica->options.election_timeout_ms);
    pthread_mutex_lock(&replica->mutex);
    replica->step_down_requested = true;
    replica->step_down_done = false;
    replica->step_down_timeout_ms = timeout_ms;
    pthread_mutex_unlock(&replica->mutex);
    replica_wake(replica);
    pthread_mutex_lock(&replica->mutex);
    while (!replica->step_down_done && !deadline_passed(deadline_ms))
        thread_cond_wait_until(&replica->changed, &replica->mutex, deadline_ms);
    bool ok = replica->step_down_done && replica->step_down_ok;
    replica->step_down_requested = false;
    pthread_mutex_unlock(&replica->mutex);
    return ok ? true : err_set(err, ERR_ExceededTimeLimit, "no other member took over in time");
}

/* What came too late for the raft thread. */
static void finish_leftovers(struct replica *replica)
{
    struct proposal_list unknown = {0};
    while (replica->inflight_head != NULL) {
        struct inflight *inflight = replica->inflight_head;
        replica->inflight_head = inflight->next;
        proposal_list_append(&unknown, &inflight->proposals);
        mem_free(inflight);
    }
    propose_finish(replica, &unknown, REPLICA_UNKNOWN);
    propose_finish(replica, &replica->packer.pending, REPLICA_SHUTTING_DOWN);
    propose_finish(replica, &replica->incoming, REPLICA_SHUTTING_DOWN);
    reads_fail(replica, REPLICA_SHUTTING_DOWN);
    while (replica->incoming_reads != NULL) {
        struct read *read = replica->incoming_reads;
        replica->incoming_reads = read->next;
        read->done(read->arg, REPLICA_SHUTTING_DOWN);
        mem_free(read);
    }
}

void replica_stop(struct replica *replica, int64_t timeout_ms)
{
    atomic_store(&replica->refusing, true);
    pthread_mutex_lock(&replica->mutex);
    replica->stop_requested = true;
    replica->stop_timeout_ms = timeout_ms;
    pthread_mutex_unlock(&replica->mutex);
    replica_wake(replica);
    thread_join(replica->raft_thread);
    apply_stop(replica);
    finish_leftovers(replica);
    log_info("REPL", 3003, "Member stopped", LOG_I64("appliedIndex", atomic_load(&replica->apply.applied)));
}

void replica_free(struct replica *replica)
{
    if (replica == NULL)
        return;
    apply_deinit(replica);
    CHECK(uv_loop_close(&replica->loop) == 0);
    pthread_mutex_destroy(&replica->mutex);
    pthread_cond_destroy(&replica->changed);
    union {
        const char *borrowed;
        void *owned;
    } strings[] = {
        {replica->options.dir}, {replica->options.set_name}, {replica->options.address}, {replica->options.bind_host}};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        mem_free(strings[i].owned);
    mem_free(replica);
}
