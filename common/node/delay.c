#include "node/delay.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

struct delayed {
    struct delayed *next;
    int64_t due_ms;
    void (*run)(void *arg);
    void *arg;
};

struct delay {
    pthread_t thread;
    pthread_mutex_t mutex; /* protects everything below */
    pthread_cond_t cond;
    struct delayed *first; /* by due time */
    bool stopping;
};

static struct delayed *take_due_locked(struct delay *delay)
{
    struct delayed *first = delay->first;
    if (first == NULL || (!delay->stopping && first->due_ms > clock_now_ms()))
        return NULL;
    delay->first = first->next;
    return first;
}

static void *run(void *arg)
{
    struct delay *delay = arg;
    pthread_mutex_lock(&delay->mutex);
    while (!delay->stopping || delay->first != NULL) {
        struct delayed *due = take_due_locked(delay);
        if (due == NULL) {
            thread_cond_wait_until(&delay->cond, &delay->mutex,
                                   delay->first == NULL ? clock_now_ms() + 3600000 : delay->first->due_ms);
            continue;
        }
        pthread_mutex_unlock(&delay->mutex);
        due->run(due->arg);
        mem_free(due);
        pthread_mutex_lock(&delay->mutex);
    }
    pthread_mutex_unlock(&delay->mutex);
    return NULL;
}

struct delay *delay_start(void)
{
    struct delay *delay = mem_alloc(sizeof *delay);
    pthread_mutex_init(&delay->mutex, NULL);
    thread_cond_init(&delay->cond);
    thread_start(&delay->thread, "delay", run, delay);
    return delay;
}

void delay_add(struct delay *delay, int64_t delay_ms, void (*run_later)(void *arg), void *arg)
{
    struct delayed *delayed = mem_alloc(sizeof *delayed);
    *delayed = (struct delayed){.due_ms = clock_now_ms() + delay_ms, .run = run_later, .arg = arg};
    pthread_mutex_lock(&delay->mutex);
    bool stopping = delay->stopping;
    if (!stopping) {
        struct delayed **place = &delay->first;
        while (*place != NULL && (*place)->due_ms <= delayed->due_ms)
            place = &(*place)->next;
        delayed->next = *place;
        *place = delayed;
        pthread_cond_signal(&delay->cond);
    }
    pthread_mutex_unlock(&delay->mutex);
    if (stopping) {
        mem_free(delayed);
        run_later(arg);
    }
}

void delay_stop(struct delay *delay)
{
    pthread_mutex_lock(&delay->mutex);
    delay->stopping = true;
    pthread_cond_signal(&delay->cond);
    pthread_mutex_unlock(&delay->mutex);
    thread_join(delay->thread);
}

void delay_free(struct delay *delay)
{
    if (delay == NULL)
        return;
    pthread_cond_destroy(&delay->cond);
    pthread_mutex_destroy(&delay->mutex);
    mem_free(delay);
}
