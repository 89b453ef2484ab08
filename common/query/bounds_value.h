/* Intervals of one field's encoded values, the step between a filter's predicates and intervals of compound keys.
 * Private to bounds.c and bounds_value.c. */
#ifndef SHERD_QUERY_BOUNDS_VALUE_H
#define SHERD_QUERY_BOUNDS_VALUE_H

#include "expr/writer.h"
#include "query/bounds.h"
#include "query/filter_tree.h"

struct value_interval {
    struct bounds_interval bytes; /* [low, high) as in bounds.h */
    bool point;                   /* one value exactly */
};

/* Sorted, apart from each other. */
struct value_list {
    struct value_interval *items;
    uint32_t count;
    bool full;  /* every value: nothing is known */
    bool exact; /* a value inside satisfies the predicates that made the list */
};

/* What `node`, a leaf on the field's own path, allows. */
struct value_list value_list_of(struct arena *arena, const struct filter_node *node, const struct bounds_field *field,
                                bool shard_key);
/* One value; `exact` says whether the predicate asked for just that. */
struct value_list value_list_point(struct arena *arena, const struct bval *val, const struct bounds_field *field,
                                   bool exact);
struct value_list value_list_full(void);
struct value_list value_list_intersect(struct arena *arena, const struct value_list *a, const struct value_list *b);
/* Every interval is a point. */
bool value_list_is_points(const struct value_list *list);
/* Order of two ends; an empty high is the end of everything. */
int bounds_compare_bytes(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len);
bool bounds_high_below(const struct bounds_interval *a, const struct bounds_interval *b);

#endif
