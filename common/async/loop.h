/* An event loop on one thread (libuv) with a mailbox. Everything runs on the thread that is in loop_run; only loop_post
 * and loop_stop may be called from elsewhere. Callbacks never block. */
#ifndef SHERD_ASYNC_LOOP_H
#define SHERD_ASYNC_LOOP_H

#include "base/err.h"

#include <stdint.h>

struct loop;
struct uv_loop_s; /* libuv's; only layers that may include uv.h use it */

/* A message to the loop: the sender's own struct with this inside, so posting allocates nothing. */
struct loop_mail {
    struct loop_mail *next;              /* the mailbox's own */
    void (*run)(struct loop_mail *mail); /* called once on the loop, in the order of posting */
};

struct loop_timer;

/* The caller frees it with loop_free. */
struct loop *loop_new(void);
/* Blocks until loop_stop. May be called again afterwards. */
void loop_run(struct loop *loop);
/* From any thread, also before loop_run: the loop returns after the callbacks at hand. */
void loop_stop(struct loop *loop);
/* From any thread. `mail` belongs to the loop until its run is called. Runs what was posted before loop_free at the
 * latest in loop_free. */
void loop_post(struct loop *loop, struct loop_mail *mail);
/* Only while nothing runs the loop. Timers and signal handlers are released; handles that others put on the uv loop
 * must be closed already. Accepts NULL. */
void loop_free(struct loop *loop);
struct uv_loop_s *loop_uv(struct loop *loop);

/* Calls `run(arg)` on the loop after `delay_ms`, then every `repeat_ms` (0: once). On the loop's thread, or before it
 * runs. The timer lives until loop_timer_free. */
struct loop_timer *loop_timer_new(struct loop *loop, int64_t delay_ms, int64_t repeat_ms, void (*run)(void *arg),
                                  void *arg);
/* On the loop's thread, or while nothing runs it. Accepts NULL. */
void loop_timer_free(struct loop_timer *timer);

/* Calls `run(arg, signum)` on the loop whenever the process gets the signal; a loop takes at most LOOP_SIGNALS_MAX. The
 * main thread must be the one with the signal unblocked (base/thread.h blocks them elsewhere). */
enum { LOOP_SIGNALS_MAX = 8 };
bool loop_on_signal(struct loop *loop, int signum, void (*run)(void *arg, int signum), void *arg,
                    struct err *err) ERR_WARN_UNUSED;

#endif
