/* One thread for what has to happen now and then: cursors, background builds, checkpoints by size, and telling the
 * program who leads. */
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "node/node_internal.h"

static void tell_leadership(struct node *node)
{
    bool leads = replica_is_serving(node->replica);
    if (leads == node->led)
        return;
    node->led = leads;
    log_info("NODE", 5301, leads ? "This member leads the set" : "This member no longer leads the set",
             LOG_STR("set", node->config.set_name), LOG_I64("id", node->config.member_id));
    if (node->program->lead != NULL)
        node->program->lead(node->plugin, leads);
}

static void tick(struct node *node)
{
    struct err err;
    tell_leadership(node);
    document_engine_tick(node->host.engine);
    if (node->program->tick != NULL)
        node->program->tick(node->plugin);
    if (store_checkpoint_due(node->store) && !store_checkpoint(node->store, NULL, &err))
        log_warn("NODE", 5302, "No checkpoint could be made; it will be tried again", LOG_STR("error", err.msg));
}

static void *run(void *arg)
{
    struct node *node = arg;
    pthread_mutex_lock(&node->tick_mutex);
    while (!node->tick_stop) {
        node->tick_now = false;
        pthread_mutex_unlock(&node->tick_mutex);
        tick(node);
        int64_t next_ms = clock_now_ms() + NODE_TICK_MS;
        pthread_mutex_lock(&node->tick_mutex);
        while (!node->tick_stop && !node->tick_now && !deadline_passed(next_ms))
            thread_cond_wait_until(&node->tick_cond, &node->tick_mutex, next_ms);
    }
    pthread_mutex_unlock(&node->tick_mutex);
    return NULL;
}

void node_housekeeping_start(struct node *node)
{
    thread_start(&node->housekeeper, "housekeeper", run, node);
}

void node_housekeeping_wake(struct node *node)
{
    pthread_mutex_lock(&node->tick_mutex);
    node->tick_now = true;
    pthread_cond_signal(&node->tick_cond);
    pthread_mutex_unlock(&node->tick_mutex);
}

void node_housekeeping_stop(struct node *node)
{
    pthread_mutex_lock(&node->tick_mutex);
    node->tick_stop = true;
    pthread_cond_signal(&node->tick_cond);
    pthread_mutex_unlock(&node->tick_mutex);
    thread_join(node->housekeeper);
}
