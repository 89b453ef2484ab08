#include "async/loop.h"

#include "base/check.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

struct loop_signal {
    uv_signal_t handle;
    void (*run)(void *arg, int signum);
    void *arg; /* the callback's */
};

struct loop {
    uv_loop_t uv;
    uv_async_t wake;                              /* the mailbox has mail, or a stop was asked for */
    pthread_mutex_t mutex;                        /* of the mailbox */
    struct loop_mail *first;                      /* mailbox, in order */
    struct loop_mail *last;                       /* valid when first is not NULL */
    atomic_bool stop;                             /* loop_stop was called */
    struct loop_signal signals[LOOP_SIGNALS_MAX]; /* the first signal_count are in use */
    unsigned signal_count;
};

struct loop_timer {
    uv_timer_t handle;
    void (*run)(void *arg);
    void *arg; /* the callback's */
};

static void loop_deliver(struct loop *loop)
{
    pthread_mutex_lock(&loop->mutex);
    struct loop_mail *mail = loop->first;
    loop->first = NULL;
    pthread_mutex_unlock(&loop->mutex);
    while (mail != NULL) {
        struct loop_mail *next = mail->next; /* run may free the mail, or post it again */
        mail->run(mail);
        mail = next;
    }
}

static void on_wake(uv_async_t *wake)
{
    struct loop *loop = wake->data;
    loop_deliver(loop);
    if (atomic_exchange(&loop->stop, false))
        uv_stop(&loop->uv);
}

struct loop *loop_new(void)
{
    struct loop *loop = mem_alloc(sizeof *loop);
    CHECK(uv_loop_init(&loop->uv) == 0);
    CHECK(uv_async_init(&loop->uv, &loop->wake, on_wake) == 0);
    loop->wake.data = loop;
    CHECK(pthread_mutex_init(&loop->mutex, NULL) == 0);
    return loop;
}

void loop_run(struct loop *loop)
{
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
    atomic_store(&loop->stop, true);
    uv_async_send(&loop->wake);
}

void loop_post(struct loop *loop, struct loop_mail *mail)
{
    mail->next = NULL;
    pthread_mutex_lock(&loop->mutex);
    bool was_empty = loop->first == NULL;
    if (was_empty)
        loop->first = mail;
    else
        loop->last->next = mail;
    loop->last = mail;
    /* Under the mutex: whoever takes the mail may free the loop as soon as it was run. */
    if (was_empty)
        uv_async_send(&loop->wake);
    pthread_mutex_unlock(&loop->mutex);
}

void loop_free(struct loop *loop)
{
    if (loop == NULL)
        return;
    loop_deliver(loop);
    uv_close((uv_handle_t *)&loop->wake, NULL);
    for (unsigned i = 0; i < loop->signal_count; i++)
        uv_close((uv_handle_t *)&loop->signals[i].handle, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop->uv) == 0);
    pthread_mutex_destroy(&loop->mutex);
    mem_free(loop);
}

struct uv_loop_s *loop_uv(struct loop *loop)
{
    return &loop->uv;
}

static void on_timer(uv_timer_t *handle)
{
    struct loop_timer *timer = handle->data;
    timer->run(timer->arg);
}

struct loop_timer *loop_timer_new(struct loop *loop, int64_t delay_ms, int64_t repeat_ms, void (*run)(void *arg),
                                  void *arg)
{
    CHECK(delay_ms >= 0 && repeat_ms >= 0);
    struct loop_timer *timer = mem_alloc(sizeof *timer);
    timer->run = run;
    timer->arg = arg;
    CHECK(uv_timer_init(&loop->uv, &timer->handle) == 0);
    timer->handle.data = timer;
    CHECK(uv_timer_start(&timer->handle, on_timer, (uint64_t)delay_ms, (uint64_t)repeat_ms) == 0);
    return timer;
}

static void on_timer_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

void loop_timer_free(struct loop_timer *timer)
{
    if (timer != NULL)
        uv_close((uv_handle_t *)&timer->handle, on_timer_closed);
}

static void on_signal(uv_signal_t *handle, int signum)
{
    struct loop_signal *entry = handle->data;
    entry->run(entry->arg, signum);
}

bool loop_on_signal(struct loop *loop, int signum, void (*run)(void *arg, int signum), void *arg, struct err *err)
{
    CHECK(loop->signal_count < LOOP_SIGNALS_MAX);
    struct loop_signal *entry = &loop->signals[loop->signal_count];
    CHECK(uv_signal_init(&loop->uv, &entry->handle) == 0);
    loop->signal_count++;
    entry->run = run;
    entry->arg = arg;
    entry->handle.data = entry;
    int rc = uv_signal_start(&entry->handle, on_signal, signum);
    if (rc != 0)
        return err_set(err, ERR_InternalError, "cannot handle signal %d: %s", signum, uv_strerror(rc));
    return true;
}
