/* Intervals of one field's encoded values, the step between a filter's predicates and bounds of keys. Private to the
 * bounds files of this folder and to filter_implies.c. */
#ifndef SHERD_QUERY_BOUNDS_VALUE_H
#define SHERD_QUERY_BOUNDS_VALUE_H

#include "expr/writer.h"
#include "query/bounds.h"
#include "query/filter_tree.h"

/* What the values of a list are encoded for. */
struct value_target {
    struct arena *arena;
    const struct bounds_field *field;
    const struct bval_order *index_order;
    const struct bval_order *query_order;
    bool shard_key;
};

/* What `node`, a leaf on the field's own path (or a NOT, AND or ELEM_VALUE of such), allows. */
struct value_list value_list_of(const struct value_target *target, const struct filter_node *node);
/* One value; `exact` says whether the predicate asked for just that. */
struct value_list value_list_point(const struct value_target *target, const struct bval *val, bool exact);
struct value_list value_list_full(void);
struct value_list value_list_intersect(struct arena *arena, const struct value_list *a, const struct value_list *b);
struct value_list value_list_union(struct arena *arena, const struct value_list *a, const struct value_list *b);
struct value_list value_list_complement(const struct value_target *target, const struct value_list *list);
/* Every value of `inner` lies in `outer`. */
bool value_list_is_subset(const struct value_list *inner, const struct value_list *outer);
/* An empty high is the end of everything. */
bool bounds_high_below(const struct bounds_interval *a, const struct bounds_interval *b);

#endif
