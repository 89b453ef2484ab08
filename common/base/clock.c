#include "base/clock.h"

#include <time.h>

static int64_t read_clock_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clock_now_ns(void)
{
    return read_clock_ns(CLOCK_MONOTONIC);
}

int64_t clock_now_ms(void)
{
    return clock_now_ns() / 1000000;
}

int64_t clock_wall_ms(void)
{
    return read_clock_ns(CLOCK_REALTIME) / 1000000;
}

void clock_sleep_ms(int64_t duration_ms)
{
    struct timespec left = {.tv_sec = duration_ms / 1000, .tv_nsec = duration_ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0)
        ;
}

int64_t deadline_after_ms(int64_t duration_ms)
{
    int64_t now = clock_now_ms();
    return duration_ms > DEADLINE_NEVER - now ? DEADLINE_NEVER : now + duration_ms;
}

bool deadline_passed(int64_t deadline_ms)
{
    return deadline_ms != DEADLINE_NEVER && clock_now_ms() >= deadline_ms;
}

int64_t deadline_remaining_ms(int64_t deadline_ms)
{
    const int64_t day_ms = 86400000;
    if (deadline_ms == DEADLINE_NEVER)
        return day_ms;
    int64_t remaining = deadline_ms - clock_now_ms();
    return remaining < 0 ? 0 : remaining > day_ms ? day_ms : remaining;
}
