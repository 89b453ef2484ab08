/* An elastic pool of worker threads. A job is the caller's own struct with a struct pool_job inside, so that handing it
 * over allocates nothing. Threads are started, up to a maximum, while jobs wait and no thread is on its way to them;
 * the one that became idle last is reused first (its stack is warm), and one that stays idle for long ends. A burst of
 * short jobs is drained by few threads, jobs that block get a thread each. The queue is bounded. Any thread may submit.
 */
#ifndef SHERD_ASYNC_POOL_H
#define SHERD_ASYNC_POOL_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct pool;

struct pool_job {
    struct pool_job *next;             /* the pool's own */
    void (*run)(struct pool_job *job); /* called once on a worker; may block, may free the struct around the job */
};

struct pool_options {
    const char *name;     /* of the threads, at most 11 bytes; copied */
    unsigned max_threads; /* > 0 */
    unsigned max_queued;  /* jobs that wait for a thread; > 0 */
    int64_t idle_ms;      /* a thread with nothing to do for that long ends; 0: the default */
};

enum { POOL_DEFAULT_IDLE_MS = 10000 };

struct pool_stats {
    unsigned threads;
    unsigned idle;
    unsigned queued;
    uint64_t done;    /* jobs that have run */
    uint64_t refused; /* submissions that found the queue full or the pool stopped */
};

/* Starts no thread yet. The caller frees it with pool_free. */
struct pool *pool_new(const struct pool_options *options);
/* Never blocks. False when the queue is full or the pool is stopped: the job is still the caller's. */
bool pool_submit(struct pool *pool, struct pool_job *job) ERR_WARN_UNUSED;
/* No further job is taken; blocks until the queued and running ones have ended. Not from a worker. */
void pool_stop(struct pool *pool);
/* Stops first unless that was done. Accepts NULL. */
void pool_free(struct pool *pool);
void pool_stats_get(struct pool *pool, struct pool_stats *out);

#endif
