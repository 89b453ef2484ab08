/* The apply thread: the only one that changes the state machine. It takes what is queued, applies it in transactions of
 * bounded size and time, and after each commit ends the proposals and the reads that waited for it. An empty queue ends
 * a transaction at once: nothing waits for company. */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "replication/internal.h"

#include <stdio.h>
#include <string.h>

struct apply_item *apply_item_new(uint64_t index, const uint8_t *data, size_t len)
{
    /* Not mem_alloc: the bytes need no zeros before they are copied over. */
    struct apply_item *item = mem_realloc(NULL, sizeof *item + len);
    *item = (struct apply_item){.index = index, .has_data = data != NULL, .len = len};
    if (data != NULL)
        memcpy(item->data, data, len);
    return item;
}

void apply_push(struct replica *replica, struct apply_item *item)
{
    struct apply_thread *apply = &replica->apply;
    item->next = NULL;
    pthread_mutex_lock(&apply->mutex);
    bool was_empty = apply->head == NULL;
    if (was_empty)
        apply->head = item;
    else
        apply->tail->next = item;
    apply->tail = item;
    atomic_fetch_add(&apply->queued_bytes, item->len);
    pthread_mutex_unlock(&apply->mutex);
    if (was_empty)
        pthread_cond_signal(&apply->wake);
}

size_t apply_queued_bytes(struct replica *replica)
{
    return atomic_load(&replica->apply.queued_bytes);
}

/* Waits for work. NULL: the queue is empty for good. */
static struct apply_item *take_all(struct apply_thread *apply)
{
    pthread_mutex_lock(&apply->mutex);
    while (apply->head == NULL && !apply->stopping)
        pthread_cond_wait(&apply->wake, &apply->mutex);
    struct apply_item *items = apply->head;
    apply->head = apply->tail = NULL;
    pthread_mutex_unlock(&apply->mutex);
    return items;
}

/* The proposals of an entry hand out their result buffers one after the other. */
struct result_cursor {
    struct proposal *next;
    uint64_t index;
};

static struct buf *next_result(void *arg, size_t number)
{
    struct result_cursor *cursor = arg;
    struct proposal *proposal = cursor->next;
    (void)number;
    if (proposal == NULL)
        return NULL;
    cursor->next = proposal->next;
    proposal->index = cursor->index;
    return &proposal->result;
}

static void serve_waiters(struct apply_thread *apply, bool all, enum replica_outcome outcome)
{
    uint64_t applied = atomic_load(&apply->applied);
    struct waiter *ready = NULL;
    pthread_mutex_lock(&apply->mutex);
    if (all)
        apply->ended = true;
    for (struct waiter **link = &apply->waiters; *link != NULL;) {
        struct waiter *waiter = *link;
        if (!all && waiter->index > applied) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        waiter->next = ready;
        ready = waiter;
    }
    pthread_mutex_unlock(&apply->mutex);
    while (ready != NULL) {
        struct waiter *waiter = ready;
        ready = waiter->next;
        waiter->done(waiter->arg, outcome);
        mem_free(waiter);
    }
}

static void commit(struct replica *replica, struct proposal_list *done)
{
    struct apply_thread *apply = &replica->apply;
    applier_commit(&apply->applier);
    atomic_store(&apply->applied, apply->applier.applied);
    if (atomic_load(&replica->watches_apply))
        replica_wake(replica);
    propose_finish(replica, done, REPLICA_APPLIED);
    serve_waiters(apply, false, REPLICA_APPLIED);
}

static void apply_one(struct replica *replica, struct apply_item *item, struct proposal_list *done)
{
    struct err err;
    struct result_cursor cursor = {.next = item->proposals.head, .index = item->index};
    struct applier_entry raw = {.index = item->index, .data = item->has_data ? item->data : NULL, .len = item->len};
    if (!applier_add(&replica->apply.applier, &raw, next_result, &cursor, &err)) {
        char where[ERR_MSG_MAX + 64];
        snprintf(where, sizeof where, "entry %llu: %s", (unsigned long long)item->index, err.msg);
        replica_die(replica, REPLICA_EXIT_LOG, "The log holds an entry that cannot be read", where);
    }
    proposal_list_append(done, &item->proposals);
}

static void apply_all(struct replica *replica, struct apply_item *items)
{
    struct proposal_list done = {0};
    size_t bytes = 0;
    int64_t start_ms = clock_now_ms();
    while (items != NULL) {
        struct apply_item *item = items;
        items = item->next;
        if (item->failed != REPLICA_APPLIED)
            propose_finish(replica, &item->proposals, item->failed);
        else
            apply_one(replica, item, &done);
        bytes += item->len;
        atomic_fetch_sub(&replica->apply.queued_bytes, item->len);
        mem_free(item);
        if (items != NULL && bytes + items->len <= REPLICA_APPLY_BATCH_BYTES &&
            clock_now_ms() - start_ms < REPLICA_APPLY_BATCH_MS)
            continue;
        commit(replica, &done);
        bytes = 0;
        start_ms = clock_now_ms();
    }
}

static void *run(void *arg)
{
    struct replica *replica = arg;
    struct apply_item *items;
    while ((items = take_all(&replica->apply)) != NULL)
        apply_all(replica, items);
    serve_waiters(&replica->apply, true, REPLICA_SHUTTING_DOWN);
    return NULL;
}

void apply_wait(struct replica *replica, uint64_t index, replica_read_cb done, void *arg)
{
    struct apply_thread *apply = &replica->apply;
    pthread_mutex_lock(&apply->mutex);
    bool ready = atomic_load(&apply->applied) >= index;
    bool ended = apply->ended;
    if (!ready && !ended) {
        struct waiter *waiter = mem_alloc(sizeof *waiter);
        *waiter = (struct waiter){.next = apply->waiters, .index = index, .done = done, .arg = arg};
        apply->waiters = waiter;
    }
    pthread_mutex_unlock(&apply->mutex);
    if (ready || ended)
        done(arg, ready ? REPLICA_APPLIED : REPLICA_SHUTTING_DOWN);
}

void apply_init(struct replica *replica)
{
    struct apply_thread *apply = &replica->apply;
    pthread_mutex_init(&apply->mutex, NULL);
    thread_cond_init(&apply->wake);
    applier_init(&apply->applier, &replica->options.fsm);
    atomic_store(&apply->applied, apply->applier.applied);
}

void apply_start(struct replica *replica)
{
    replica->apply.started = true;
    thread_start(&replica->apply.thread, "apply", run, replica);
}

void apply_stop(struct replica *replica)
{
    struct apply_thread *apply = &replica->apply;
    pthread_mutex_lock(&apply->mutex);
    apply->stopping = true;
    pthread_mutex_unlock(&apply->mutex);
    pthread_cond_signal(&apply->wake);
    if (apply->started)
        thread_join(apply->thread);
    apply->started = false;
}

void apply_deinit(struct replica *replica)
{
    struct apply_thread *apply = &replica->apply;
    while (apply->head != NULL) {
        struct apply_item *item = apply->head;
        apply->head = item->next;
        propose_finish(replica, &item->proposals, REPLICA_UNKNOWN);
        mem_free(item);
    }
    applier_deinit(&apply->applier);
    pthread_mutex_destroy(&apply->mutex);
    pthread_cond_destroy(&apply->wake);
}
