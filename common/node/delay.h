/* Runs things later: one thread that sleeps until the next one is due. For retries and pauses of background work, not
 * for anything exact. Any thread. */
#ifndef SHERD_NODE_DELAY_H
#define SHERD_NODE_DELAY_H

#include <stdbool.h>
#include <stdint.h>

struct delay;

/* `run(arg)` is called on the delay's thread and must only hand over. */
struct delay *delay_start(void);
void delay_add(struct delay *delay, int64_t delay_ms, void (*run)(void *arg), void *arg);
/* Runs everything that still waits at once, then ends the thread. What is added later runs on the caller's thread. */
void delay_stop(struct delay *delay);
/* After delay_stop. Accepts NULL. */
void delay_free(struct delay *delay);

#endif
