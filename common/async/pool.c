#include "async/pool.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#include <string.h>

/* One thread. The struct outlives the thread (a late signal may still touch `wake`) and is used again for the next one.
 */
struct worker {
    struct worker *next; /* in pool->idle, pool->ended or pool->spare */
    struct pool *pool;   /* whose it is */
    bool called;         /* taken off the idle list to look for a job */
    pthread_cond_t wake; /* called, or the pool stops */
    pthread_t thread;    /* valid until joined */
};

/* A job goes into the queue, and one thread is called unless one is on its way already. That thread takes a job and
 * calls the next if the queue is not empty. So a burst of short jobs is drained by as many threads as there are
 * processors to run them, while jobs that block get a thread each: whenever jobs wait and threads may be had, one is on
 * its way. */
struct pool {
    pthread_mutex_t mutex;
    struct worker *idle;        /* last in, first out */
    struct worker *ended;       /* threads to join */
    struct worker *spare;       /* joined */
    struct pool_job *first;     /* queue */
    struct pool_job *last;      /* valid when first is not NULL */
    struct pool_stats stats;    /* kept under the mutex */
    bool calling;               /* a called or new thread has not come to the queue yet */
    bool stopping;              /* no job is accepted any more */
    pthread_cond_t thread_gone; /* stats.threads went down */
    struct pool_options options;
    char name[12]; /* of the threads */
};

static void *worker_run(void *arg);

struct pool *pool_new(const struct pool_options *options)
{
    CHECK(options->max_threads > 0 && options->max_queued > 0);
    struct pool *pool = mem_alloc(sizeof *pool);
    CHECK(pthread_mutex_init(&pool->mutex, NULL) == 0);
    thread_cond_init(&pool->thread_gone);
    pool->options = *options;
    if (options->idle_ms == 0)
        pool->options.idle_ms = POOL_DEFAULT_IDLE_MS;
    memcpy(pool->name, options->name, strnlen(options->name, sizeof pool->name - 1));
    pool->options.name = pool->name;
    return pool;
}

static struct pool_job *pool_pop_locked(struct pool *pool)
{
    struct pool_job *job = pool->first;
    if (job != NULL) {
        pool->first = job->next;
        pool->stats.queued--;
    }
    return job;
}

static void pool_remove_idle_locked(struct pool *pool, struct worker *worker)
{
    struct worker **at = &pool->idle;
    while (*at != worker)
        at = &(*at)->next;
    *at = worker->next;
    pool->stats.idle--;
}

/* Joins the threads that have ended: each has only an unlock left to do, so this doesn't wait. */
static void pool_reap_locked(struct pool *pool)
{
    struct worker *worker = pool->ended;
    pool->ended = NULL;
    while (worker != NULL) {
        struct worker *next = worker->next;
        pthread_mutex_unlock(&pool->mutex);
        thread_join(worker->thread);
        pthread_mutex_lock(&pool->mutex);
        worker->next = pool->spare;
        pool->spare = worker;
        worker = next;
    }
}

/* A worker whose thread is not started yet; counts as a thread from here. */
static struct worker *pool_take_worker_locked(struct pool *pool)
{
    pool->stats.threads++;
    if (pool->ended != NULL)
        pool_reap_locked(pool);
    struct worker *worker = pool->spare;
    if (worker != NULL) {
        pool->spare = worker->next;
        return worker;
    }
    worker = mem_alloc(sizeof *worker);
    worker->pool = pool;
    thread_cond_init(&worker->wake);
    return worker;
}

/* Sees to it that a thread is on its way to the queue. Returns the one to signal, if that takes a signal, once the
 * mutex is free. */
static struct worker *pool_call_locked(struct pool *pool)
{
    if (pool->calling || pool->first == NULL)
        return NULL;
    struct worker *worker = pool->idle;
    if (worker != NULL) {
        pool->idle = worker->next;
        pool->stats.idle--;
        worker->called = true;
        pool->calling = true;
        return worker;
    }
    if (pool->stats.threads < pool->options.max_threads && !pool->stopping) {
        pool->calling = true; /* first: the mutex may be given up below */
        worker = pool_take_worker_locked(pool);
        /* Under the mutex: the thread could otherwise end, and be joined, before its id is stored. */
        thread_start(&worker->thread, pool->name, worker_run, worker);
    }
    return NULL;
}

static void worker_signal(struct worker *worker)
{
    if (worker != NULL)
        pthread_cond_signal(&worker->wake);
}

/* Waits until called; false when the thread should end. */
static bool worker_idle_locked(struct worker *worker)
{
    struct pool *pool = worker->pool;
    worker->called = false;
    worker->next = pool->idle;
    pool->idle = worker;
    pool->stats.idle++;
    int64_t deadline_ms = deadline_after_ms(pool->options.idle_ms);
    while (!worker->called) {
        thread_cond_wait_until(&worker->wake, &pool->mutex, deadline_ms);
        if (!worker->called && (pool->stopping || deadline_passed(deadline_ms))) {
            pool_remove_idle_locked(pool, worker);
            return false;
        }
    }
    pool->calling = false;
    return true;
}

/* The next job; NULL when the thread should end. Gives the mutex up for a moment to call another thread. */
static struct pool_job *worker_next_locked(struct worker *worker)
{
    struct pool *pool = worker->pool;
    struct pool_job *job;
    while ((job = pool_pop_locked(pool)) == NULL)
        if (pool->stopping || !worker_idle_locked(worker))
            return NULL;
    struct worker *other = pool_call_locked(pool);
    if (other != NULL) {
        pthread_mutex_unlock(&pool->mutex);
        worker_signal(other);
        pthread_mutex_lock(&pool->mutex);
    }
    return job;
}

static void *worker_run(void *arg)
{
    struct worker *worker = arg;
    struct pool *pool = worker->pool;
    pthread_mutex_lock(&pool->mutex);
    pool->calling = false;
    struct pool_job *job;
    while ((job = worker_next_locked(worker)) != NULL) {
        pthread_mutex_unlock(&pool->mutex);
        job->run(job);
        pthread_mutex_lock(&pool->mutex);
        pool->stats.done++;
    }
    pool->stats.threads--;
    worker->next = pool->ended;
    pool->ended = worker;
    pthread_cond_broadcast(&pool->thread_gone);
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

static void pool_queue_locked(struct pool *pool, struct pool_job *job)
{
    job->next = NULL;
    if (pool->first == NULL)
        pool->first = job;
    else
        pool->last->next = job;
    pool->last = job;
    pool->stats.queued++;
}

bool pool_submit(struct pool *pool, struct pool_job *job)
{
    pthread_mutex_lock(&pool->mutex);
    /* A job that a thread will take at once doesn't count as waiting. */
    unsigned free_threads = pool->stats.idle + (pool->options.max_threads - pool->stats.threads);
    if (pool->stopping || pool->stats.queued >= pool->options.max_queued + free_threads + pool->calling) {
        pool->stats.refused++;
        pthread_mutex_unlock(&pool->mutex);
        return false;
    }
    pool_queue_locked(pool, job);
    struct worker *worker = pool_call_locked(pool);
    pthread_mutex_unlock(&pool->mutex);
    worker_signal(worker);
    return true;
}

void pool_stop(struct pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->stopping = true;
    for (struct worker *worker = pool->idle; worker != NULL; worker = worker->next)
        pthread_cond_signal(&worker->wake);
    while (pool->stats.threads > 0)
        pthread_cond_wait(&pool->thread_gone, &pool->mutex);
    pool_reap_locked(pool);
    pthread_mutex_unlock(&pool->mutex);
}

void pool_free(struct pool *pool)
{
    if (pool == NULL)
        return;
    pool_stop(pool);
    for (struct worker *worker = pool->spare; worker != NULL;) {
        struct worker *next = worker->next;
        pthread_cond_destroy(&worker->wake);
        mem_free(worker);
        worker = next;
    }
    pthread_cond_destroy(&pool->thread_gone);
    pthread_mutex_destroy(&pool->mutex);
    mem_free(pool);
}

void pool_stats_get(struct pool *pool, struct pool_stats *out)
{
    pthread_mutex_lock(&pool->mutex);
    *out = pool->stats;
    pthread_mutex_unlock(&pool->mutex);
}
