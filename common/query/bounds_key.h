/* Conjunctions of predicates, and what they say about a key. Private to the bounds files of this folder. */
#ifndef SHERD_QUERY_BOUNDS_KEY_H
#define SHERD_QUERY_BOUNDS_KEY_H

#include "query/bounds_value.h"

/* The predicates that hold together: leaves of nested $and. */
struct conjunction {
    const struct filter_node **leaves;
    uint32_t count;
    uint32_t capacity;
};

void conjunction_add(struct arena *arena, struct conjunction *conj, const struct filter_node *leaf);
/* Takes $and apart, and $nor into negations. */
void conjunction_flatten(struct arena *arena, struct conjunction *conj, const struct filter_node *node);
/* One of them can't be met. */
bool conjunction_is_never(const struct conjunction *conj);
/* As key_bounds_of; `filter` is where the predicates come from. */
void key_bounds_of_conjunction(struct arena *arena, const struct filter *filter, const struct conjunction *conj,
                               const struct bounds_pattern *pattern, struct key_bounds *out);

#endif
