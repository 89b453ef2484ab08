/* Parts of a compiled filter: for plans that split it (an index answers one part, a union has one scan for each branch
 * of an $or), for the question whether a query finds only what a partial index holds, and for the shape under which a
 * plan is remembered. Called by the planner on any thread; the parts lie in the arena that is given, share the nodes of
 * the filter and live no longer than it. */
#ifndef SHERD_QUERY_FILTER_PART_H
#define SHERD_QUERY_FILTER_PART_H

#include "base/buf.h"
#include "query/filter.h"

struct filter_node;

/* The predicates together; `count` is not 0. For the files of this folder. */
struct filter *filter_part_new(struct arena *arena, const struct filter *whole, const struct filter_node *const *nodes,
                               uint32_t count);

struct filter_branch {
    const struct filter *whole; /* this branch and every other predicate of the query */
    const struct filter *part;  /* this branch alone */
};

/* The branches of the query's first $or that holds together with all else it asks; false when there is none (or one of
 * a single branch, or of more than `max`). */
bool filter_branches(struct arena *arena, const struct filter *filter, uint32_t max, struct filter_branch **out,
                     uint32_t *count);
/* True when every document that matches `query` matches `partial` too, as far as can be told. */
bool filter_implies(struct arena *arena, const struct filter *query, const struct filter *partial);
/* The paths that the query has predicates on, each once, at most `max`; those inside an $or or a negation of several
 * predicates are left out. They lie in the arena. */
uint32_t filter_paths(struct arena *arena, const struct filter *filter, const char **out, uint32_t max);
/* The collation that its strings are compared in; NULL: by bytes. */
const struct bval_order *filter_order(const struct filter *filter);
/* Appends bytes that are equal for filters that differ in their constants only. */
void filter_append_shape(const struct filter *filter, struct buf *out);

#endif
