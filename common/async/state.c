#include "async/state.h"

#include "base/check.h"

#include <stdio.h>

void state_init(struct state *state, const struct state_table *table, unsigned first)
{
    CHECK(table->count <= STATE_MAX && first < table->count);
    state->table = table;
    state->now = first;
}

bool state_may_move(const struct state *state, unsigned to)
{
    return to < state->table->count && (state->table->next[state->now] & STATE_BIT(to)) != 0;
}

void state_move(struct state *state, unsigned to)
{
    if (!state_may_move(state, to)) {
        char what[160];
        snprintf(what, sizeof what, "%s: step from %s to %s", state->table->machine, state_name(state),
                 to < state->table->count ? state->table->names[to] : "an unknown state");
        check_failed(__FILE__, __LINE__, what);
    }
    state->now = to;
}

const char *state_name(const struct state *state)
{
    return state->table->names[state->now];
}
