/* Ending work early: the operation that a thread works for, its deadline, and whether somebody has killed it. Whatever
 * may run long (scans, sorts, expressions, regular expressions, waits for other daemons) asks here now and then,
 * without being told for whom it works. A thread that has entered nothing (the apply thread, background work) is never
 * interrupted: nothing inside apply depends on a clock. */
#ifndef SHERD_BASE_INTERRUPT_H
#define SHERD_BASE_INTERRUPT_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    INTERRUPT_EVERY = 256, /* calls of interrupt_step between two looks at the clock */
};

/* One per operation, in its owner's storage. */
struct interrupt {
    int64_t deadline_ms;     /* base/clock.h; written before a thread enters it, or by the thread that has */
    _Atomic int32_t killed;  /* error code that the operation ends with; 0: it may go on. Any thread */
    int64_t key;             /* what its parts in other daemons are called by; 0: nothing */
    bool (*gone)(void *arg); /* true once nobody wants the result any more; NULL: never. By the operation's thread */
    void *gone_arg;
};

/* The calling thread works for `interrupt` (NULL: for nobody) from now on. Returns the one before, which the caller
 * enters again when it is done. */
struct interrupt *interrupt_enter(struct interrupt *interrupt);
/* NULL: none. */
struct interrupt *interrupt_current(void);
/* The first kill counts. Any thread. */
void interrupt_kill(struct interrupt *interrupt, int32_t code);
/* False when the calling thread's operation has to end: 50 past its deadline, 279 when its client has gone, or the code
 * it was killed with. Looks at the clock. */
bool interrupt_check(struct err *err) ERR_WARN_UNUSED;
/* The same for a given operation. */
bool interrupt_check_one(const struct interrupt *interrupt, struct err *err) ERR_WARN_UNUSED;

/* `interrupt`, or with NULL the calling thread's operation: looks at the clock. */
static inline bool interrupt_poll(const struct interrupt *interrupt, struct err *err)
{
    return interrupt != NULL ? interrupt_check_one(interrupt, err) : interrupt_check(err);
}

extern _Thread_local unsigned interrupt_steps; /* of interrupt_step */

/* For inner loops: interrupt_check at every INTERRUPT_EVERYth call, else nothing but a count. */
static inline bool interrupt_step(struct err *err)
{
    return (++interrupt_steps & (INTERRUPT_EVERY - 1)) != 0 || interrupt_check(err);
}

#endif
