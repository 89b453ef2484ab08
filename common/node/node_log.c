/* The document log over the replica: proposals, barriers, and continuations on the worker pool. */
#include "base/mem.h"
#include "node/node_internal.h"
#include "replication/address.h"

#include <string.h>

struct proposal {
    struct node *node;
    document_done_cb *done;
    void *arg;
};

/* "host:port" of the leader; false when unknown. */
static bool leader_address(struct node *node, char out[REPLICA_ADDRESS_MAX])
{
    struct replica_status status;
    struct address address;
    replica_get_status(node->replica, &status);
    return status.leader_address[0] != '\0' && address_parse(status.leader_address, &address, NULL) &&
           address_format_client(&address, out, REPLICA_ADDRESS_MAX);
}

static void set_not_leader(struct node *node, struct err *err)
{
    char leader[REPLICA_ADDRESS_MAX];
    bool known = leader_address(node, leader);
    err_set(err, ERR_NotWritablePrimary, "not the leader of the set");
    if (!known)
        return;
    bson_t details = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&details, "leader", leader);
    err_set_details(err, bson_get_data(&details), details.len);
    bson_destroy(&details);
}

bool node_check_leader(struct node *node, struct err *err)
{
    if (replica_is_serving(node->replica))
        return true;
    set_not_leader(node, err);
    return false;
}

static bool check_leader(void *arg, struct err *err)
{
    return node_check_leader(arg, err);
}

static void proposed(void *arg, enum replica_outcome outcome, uint64_t index, const uint8_t *data, size_t len)
{
    struct proposal *proposal = arg;
    struct document_result result = {.outcome = DOCUMENT_NOT_LEADER};
    (void)index;
    switch (outcome) {
    case REPLICA_APPLIED:
        if (!document_result_parse(data, len, &result)) {
            result.outcome = DOCUMENT_APPLIED;
            result.ok = err_set(&result.err, ERR_InternalError, "the result of a log command can't be read");
        }
        break;
    case REPLICA_NOT_LEADER:
        set_not_leader(proposal->node, &result.err);
        break;
    case REPLICA_SHUTTING_DOWN:
        err_set(&result.err, ERR_InterruptedAtShutdown, "this member is shutting down; nothing was executed");
        break;
    case REPLICA_BUSY:
        result.outcome = DOCUMENT_BUSY;
        document_busy_set(&result.err, "too many writes under way");
        break;
    case REPLICA_UNKNOWN:
        result.outcome = DOCUMENT_UNKNOWN;
        err_set(&result.err, ERR_InterruptedDueToReplStateChange,
                "leadership was lost while the write was on its way: it may or may not be executed");
        break;
    }
    proposal->done(proposal->arg, &result);
    mem_free(proposal);
}

static void propose(void *arg, uint8_t *command, size_t len, document_done_cb *done, void *done_arg)
{
    struct node *node = arg;
    struct proposal *proposal = mem_alloc(sizeof *proposal);
    *proposal = (struct proposal){.node = node, .done = done, .arg = done_arg};
    replica_propose(node->replica, command, len, proposed, proposal);
}

/* ---- barrier ---- */

struct barrier {
    void (*done)(void *arg, bool ok);
    void *arg;
};

static void barrier_over(void *arg, enum replica_outcome outcome)
{
    struct barrier *barrier = arg;
    barrier->done(barrier->arg, outcome == REPLICA_APPLIED);
    mem_free(barrier);
}

static void start_barrier(void *arg, void (*done)(void *done_arg, bool ok), void *done_arg)
{
    struct node *node = arg;
    struct barrier *barrier = mem_alloc(sizeof *barrier);
    *barrier = (struct barrier){.done = done, .arg = done_arg};
    replica_read_index(node->replica, barrier_over, barrier);
}

/* ---- continuations ---- */

struct continuation {
    struct pool_job job;
    struct node *node;
    void (*run)(void *arg);
    void *arg;
};

static void run_continuation(struct pool_job *job)
{
    struct continuation *continuation = (struct continuation *)job;
    struct node *node = continuation->node;
    continuation->run(continuation->arg);
    mem_free(continuation);
    atomic_fetch_sub(&node->continuations, 1);
}

static void enqueue(void *arg)
{
    struct continuation *continuation = arg;
    /* The queue has room for every request; only a pool that has stopped refuses, and then this thread does the work.
     */
    if (!pool_submit(continuation->node->pool, &continuation->job))
        run_continuation(&continuation->job);
}

static struct continuation *continuation_new(struct node *node, void (*run)(void *arg), void *arg)
{
    struct continuation *continuation = mem_alloc(sizeof *continuation);
    *continuation = (struct continuation){.job.run = run_continuation, .node = node, .run = run, .arg = arg};
    atomic_fetch_add(&node->continuations, 1);
    return continuation;
}

void node_submit(struct node *node, void (*run)(void *arg), void *arg)
{
    enqueue(continuation_new(node, run, arg));
}

static void submit(void *arg, void (*run)(void *run_arg), void *run_arg)
{
    node_submit(arg, run, run_arg);
}

static void submit_after(void *arg, int64_t delay_ms, void (*run)(void *run_arg), void *run_arg)
{
    struct node *node = arg;
    delay_add(node->delay, delay_ms, enqueue, continuation_new(node, run, run_arg));
}

void node_log_init(struct node *node)
{
    node->log = (struct document_log){
        .arg = node,
        .propose = propose,
        .submit = submit,
        .submit_after = submit_after,
        .barrier = start_barrier,
        .check_leader = check_leader,
    };
}

/* ---- for programs ---- */

static uint8_t *with_kind(const struct node_command *command)
{
    uint8_t *bytes = mem_alloc(command->len + 1);
    bytes[0] = command->kind;
    if (command->len > 0)
        memcpy(bytes + 1, command->payload, command->len);
    return bytes;
}

void node_propose(struct node *node, const struct node_command *command, document_done_cb *done, void *done_arg)
{
    propose(node, with_kind(command), command->len + 1, done, done_arg);
}

bool node_propose_wait(struct node *node, const struct node_command *command, int64_t deadline_ms, struct buf *result,
                       struct err *err)
{
    return document_log_wait(&node->log, with_kind(command), command->len + 1, deadline_ms, result, err);
}
