/* Time. Deadlines are points on the monotonic clock, so that a jump of the wall clock ends nothing early. */
#ifndef SHERD_BASE_CLOCK_H
#define SHERD_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define DEADLINE_NEVER INT64_MAX

/* Monotonic, from an arbitrary start. */
int64_t clock_now_ns(void);
int64_t clock_now_ms(void);
/* Wall clock, milliseconds since 1970. */
int64_t clock_wall_ms(void);
void clock_sleep_ms(int64_t duration_ms);

/* A deadline is a clock_now_ms() value, or DEADLINE_NEVER. */
int64_t deadline_after_ms(int64_t duration_ms);
bool deadline_passed(int64_t deadline_ms);
/* 0 when passed; capped at one day. */
int64_t deadline_remaining_ms(int64_t deadline_ms);

#endif
