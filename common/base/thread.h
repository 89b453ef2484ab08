/* Threads with a fixed, named role. */
#ifndef SHERD_BASE_THREAD_H
#define SHERD_BASE_THREAD_H

#include <pthread.h>

/* Starts `run(arg)`; `name` (at most 15 bytes) shows in ps and in logs. Aborts when the system has no thread left.
 * Signals are blocked in it: the main thread alone handles them. The stack is 512 KiB. */
void thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);
void thread_join(pthread_t thread);

/* pthread_cond_timedwait on the monotonic clock; the condition must come from thread_cond_init.
 * Returns when signalled or when `deadline_ms` (base/clock.h) has passed. */
void thread_cond_init(pthread_cond_t *cond);
void thread_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, long long deadline_ms);

#endif
