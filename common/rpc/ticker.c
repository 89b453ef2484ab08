#include "rpc/ticker.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdbool.h>

struct ticker {
    pthread_mutex_t mutex;
    pthread_cond_t wake;     /* next_ms went down, or stop */
    _Atomic int64_t next_ms; /* of the next tick; written under the mutex, read without to save most pokes the lock */
    bool stop;               /* asked to end */
    pthread_t thread;
    int64_t (*tick)(void *arg, int64_t now_ms);
    void *arg; /* the callback's */
};

static void *ticker_run(void *arg)
{
    struct ticker *ticker = arg;
    pthread_mutex_lock(&ticker->mutex);
    while (!ticker->stop) {
        int64_t next_ms = atomic_load(&ticker->next_ms);
        int64_t now_ms = clock_now_ms();
        if (now_ms < next_ms) {
            thread_cond_wait_until(&ticker->wake, &ticker->mutex, next_ms);
            continue;
        }
        /* A poke during the tick must survive it, so the time is reset before. */
        atomic_store(&ticker->next_ms, DEADLINE_NEVER);
        pthread_mutex_unlock(&ticker->mutex);
        next_ms = ticker->tick(ticker->arg, now_ms);
        pthread_mutex_lock(&ticker->mutex);
        if (next_ms < atomic_load(&ticker->next_ms))
            atomic_store(&ticker->next_ms, next_ms);
    }
    pthread_mutex_unlock(&ticker->mutex);
    return NULL;
}

struct ticker *ticker_start(const char *name, int64_t (*tick)(void *arg, int64_t now_ms), void *arg)
{
    struct ticker *ticker = mem_alloc(sizeof *ticker);
    pthread_mutex_init(&ticker->mutex, NULL);
    thread_cond_init(&ticker->wake);
    ticker->tick = tick;
    ticker->arg = arg;
    thread_start(&ticker->thread, name, ticker_run, ticker);
    return ticker;
}

void ticker_poke(struct ticker *ticker, int64_t at_ms)
{
    if (at_ms >= atomic_load(&ticker->next_ms))
        return;
    pthread_mutex_lock(&ticker->mutex);
    if (at_ms < atomic_load(&ticker->next_ms)) {
        atomic_store(&ticker->next_ms, at_ms);
        pthread_cond_signal(&ticker->wake);
    }
    pthread_mutex_unlock(&ticker->mutex);
}

void ticker_stop(struct ticker *ticker)
{
    if (ticker == NULL)
        return;
    pthread_mutex_lock(&ticker->mutex);
    ticker->stop = true;
    pthread_cond_signal(&ticker->wake);
    pthread_mutex_unlock(&ticker->mutex);
    thread_join(ticker->thread);
    pthread_cond_destroy(&ticker->wake);
    pthread_mutex_destroy(&ticker->mutex);
    mem_free(ticker);
}
