/* A checked state machine: the states have names, a table says which state may follow which, and any other step is a
 * bug. One thread at a time moves a machine. */
#ifndef SHERD_ASYNC_STATE_H
#define SHERD_ASYNC_STATE_H

#include <stdbool.h>
#include <stdint.h>

enum { STATE_MAX = 32 };

struct state_table {
    const char *machine;          /* name, for logs and crashes */
    unsigned count;               /* of states, at most STATE_MAX */
    const char *names[STATE_MAX]; /* of the states 0..count-1 */
    uint32_t next[STATE_MAX];     /* bit n: state n may follow */
};

struct state {
    const struct state_table *table;
    unsigned now; /* current state */
};

#define STATE_BIT(s) (UINT32_C(1) << (s))

void state_init(struct state *state, const struct state_table *table, unsigned first);
/* CHECKs that the table allows the step. */
void state_move(struct state *state, unsigned to);
bool state_may_move(const struct state *state, unsigned to);
const char *state_name(const struct state *state);

#endif
