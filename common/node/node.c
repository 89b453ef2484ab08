#include "node/node.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "command/context.h"
#include "node/node_internal.h"
#include "replication/address.h"

struct node *node_of(const struct command_ctx *ctx)
{
    return ctx->daemon;
}

void *node_plugin(const struct node *node)
{
    return node->plugin;
}

struct document_engine *node_engine(const struct node *node)
{
    return node->host.engine;
}

struct store *node_store(const struct node *node)
{
    return node->store;
}

const char *node_address(const struct node *node)
{
    return node->address;
}

const char *node_set_name(const struct node *node)
{
    return node->config.set_name;
}

bool node_test_commands(const struct node *node)
{
    return node->config.test_commands;
}

void node_state_get(const struct node *node, struct node_state *out)
{
    struct replica_status status;
    struct address address;
    replica_get_status(node->replica, &status);
    *out = (struct node_state){
        .leading = status.serving,
        .term = status.term,
        .member_id = (int64_t)status.id,
        .applied = status.applied_index,
        .committed = status.commit_index,
    };
    if (status.leader_address[0] != '\0' && address_parse(status.leader_address, &address, NULL))
        (void)!address_format_client(&address, out->leader, sizeof out->leader);
}

/* Shared by the waiting thread and the replica's callback; the last of the two frees it. */
struct barrier_wait {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int refs;
    bool over;
    bool ok;
};

static void barrier_unref(struct barrier_wait *wait)
{
    pthread_mutex_lock(&wait->mutex);
    bool last = --wait->refs == 0;
    pthread_mutex_unlock(&wait->mutex);
    if (!last)
        return;
    pthread_cond_destroy(&wait->cond);
    pthread_mutex_destroy(&wait->mutex);
    mem_free(wait);
}

static void barrier_over(void *arg, enum replica_outcome outcome)
{
    struct barrier_wait *wait = arg;
    pthread_mutex_lock(&wait->mutex);
    wait->over = true;
    wait->ok = outcome == REPLICA_APPLIED;
    pthread_cond_signal(&wait->cond);
    pthread_mutex_unlock(&wait->mutex);
    barrier_unref(wait);
}

bool node_read_barrier(struct node *node, int64_t deadline_ms, struct err *err)
{
    struct barrier_wait *wait = mem_alloc(sizeof *wait);
    pthread_mutex_init(&wait->mutex, NULL);
    thread_cond_init(&wait->cond);
    wait->refs = 2;
    replica_read_index(node->replica, barrier_over, wait);
    pthread_mutex_lock(&wait->mutex);
    while (!wait->over && !deadline_passed(deadline_ms))
        thread_cond_wait_until(&wait->cond, &wait->mutex, deadline_ms);
    bool over = wait->over;
    bool ok = wait->ok;
    pthread_mutex_unlock(&wait->mutex);
    barrier_unref(wait);
    if (!over)
        return err_set(err, ERR_MaxTimeMSExpired, "no majority confirmed the leader in time");
    if (!ok && node_check_leader(node, err))
        return err_set(err, ERR_NotWritablePrimary, "leadership changed");
    return ok;
}
