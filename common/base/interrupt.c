#include "base/interrupt.h"

#include "base/clock.h"

#include <stddef.h>

_Thread_local unsigned interrupt_steps;

static _Thread_local struct interrupt *current;

struct interrupt *interrupt_enter(struct interrupt *interrupt)
{
    struct interrupt *before = current;
    current = interrupt;
    return before;
}

struct interrupt *interrupt_current(void)
{
    return current;
}

void interrupt_kill(struct interrupt *interrupt, int32_t code)
{
    int32_t alive = 0;
    (void)atomic_compare_exchange_strong(&interrupt->killed, &alive, code);
}

bool interrupt_check_one(const struct interrupt *interrupt, struct err *err)
{
    int32_t killed = atomic_load_explicit(&interrupt->killed, memory_order_relaxed);
    if (killed == ERR_MaxTimeMSExpired || (killed == 0 && deadline_passed(interrupt->deadline_ms)))
        return err_set(err, ERR_MaxTimeMSExpired, "operation exceeded time limit");
    if (killed != 0)
        return err_set(err, killed, "operation was interrupted");
    if (interrupt->gone != NULL && interrupt->gone(interrupt->gone_arg))
        return err_set(err, ERR_ClientDisconnect, "operation was interrupted because a client disconnected");
    return true;
}

bool interrupt_check(struct err *err)
{
    return current == NULL || interrupt_check_one(current, err);
}
