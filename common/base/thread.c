#include "base/thread.h"

#include "base/check.h"
#include "base/clock.h"

#include <signal.h>

void thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
    pthread_attr_t attr;
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setstacksize(&attr, 512 << 10) == 0);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_BLOCK, &all, &before) == 0);
    CHECK(pthread_create(thread, &attr, run, arg) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    pthread_attr_destroy(&attr);
    pthread_setname_np(*thread, name);
}

void thread_join(pthread_t thread)
{
    CHECK(pthread_join(thread, NULL) == 0);
}

void thread_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    CHECK(pthread_condattr_init(&attr) == 0);
    CHECK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(cond, &attr) == 0);
    pthread_condattr_destroy(&attr);
}

void thread_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, long long deadline_ms)
{
    if (deadline_ms == DEADLINE_NEVER) {
        pthread_cond_wait(cond, mutex);
        return;
    }
    struct timespec until = {.tv_sec = deadline_ms / 1000, .tv_nsec = deadline_ms % 1000 * 1000000};
    pthread_cond_timedwait(cond, mutex, &until);
}
