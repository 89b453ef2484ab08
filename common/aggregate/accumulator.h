/* Accumulators of $group and $bucketAuto: values go in, a result comes out, or a partial state that another process
 * merges. One user at a time.
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/#accumulators---group---bucket---bucketauto---setwindowfields-
 */
#ifndef SHERD_AGGREGATE_ACCUMULATOR_H
#define SHERD_AGGREGATE_ACCUMULATOR_H

#include "aggregate/value_list.h"
#include "base/map.h"
#include "expr/expr.h"
#include "expr/number.h"
#include "expr/percentile.h"
#include "expr/writer.h"
#include "query/sort.h"

enum accumulator_op {
    ACCUMULATOR_SUM,
    ACCUMULATOR_COUNT,
    ACCUMULATOR_AVG,
    ACCUMULATOR_MIN,
    ACCUMULATOR_MAX,
    ACCUMULATOR_FIRST,
    ACCUMULATOR_LAST,
    ACCUMULATOR_PUSH,
    ACCUMULATOR_ADD_TO_SET,
    ACCUMULATOR_DEV_POP,
    ACCUMULATOR_DEV_SAMP,
    ACCUMULATOR_MERGE_OBJECTS,
    /* those that keep a list; see accumulator_is_list */
    ACCUMULATOR_FIRST_N,
    ACCUMULATOR_LAST_N,
    ACCUMULATOR_MIN_N,
    ACCUMULATOR_MAX_N,
    ACCUMULATOR_TOP,
    ACCUMULATOR_TOP_N,
    ACCUMULATOR_BOTTOM,
    ACCUMULATOR_BOTTOM_N,
    /* and those that keep numbers */
    ACCUMULATOR_MEDIAN,
    ACCUMULATOR_PERCENTILE,
};

/* {name: {$op: expression}}. */
struct accumulator_field {
    const char *name;
    enum accumulator_op op;
    struct expr *expr;              /* the input; of $top and its like the output */
    struct expr *n;                 /* of lists: how many, out of the group's _id; NULL: one */
    struct sort_spec *sort;         /* $top, $topN, $bottom, $bottomN */
    const struct bval_order *order; /* how strings compare; NULL: by bytes */
    struct percentiles percentiles; /* $median, $percentile */
};

struct accumulator {
    struct number_sum sum; /* $sum, $avg, $count */
    int64_t count;         /* $avg and deviations: numbers seen */
    double mean;           /* deviations: running mean and sum of squares (Welford) */
    double squares;
    uint8_t type;     /* of the kept value; BT_EOO: missing or none */
    bool any;         /* $first: there was a document */
    struct buf bytes; /* kept value's payload; of arrays and documents: the unfinished one; of $percentile: doubles */
    uint32_t items;   /* elements of the array in `bytes` */
    struct map set;   /* $addToSet: encoded values */
    size_t set_bytes; /* held by `set` */
    struct value_list list; /* $firstN, $top ... */
};

/* Reads {name: {$op: expression}}; errors 40234, 40235, 40236, 40238, 15952, 40237, 31264 and those of each operator.
 */
bool accumulator_field_compile(struct arena *arena, const struct belem *elem, const struct expr_env *env,
                               struct accumulator_field *out, struct err *err) ERR_WARN_UNUSED;
bool accumulator_is_list(enum accumulator_op op);
/* Before the first value of a zeroed accumulator. `id` is the group's _id, which n may depend on. */
bool accumulator_begin(struct accumulator *acc, const struct accumulator_field *field, const struct bval *id,
                       struct arena *scratch, struct err *err) ERR_WARN_UNUSED;
void accumulator_deinit(struct accumulator *acc);
/* Evaluates the field's expressions on a document and takes what comes out. */
bool accumulator_add(struct accumulator *acc, const struct accumulator_field *field, struct bdoc doc,
                     struct arena *scratch, struct err *err) ERR_WARN_UNUSED;
/* A state from accumulator_write_partial; checked, since it came over the network. */
bool accumulator_merge(struct accumulator *acc, const struct accumulator_field *field, const struct bval *partial,
                       struct err *err) ERR_WARN_UNUSED;
/* Appends the result, or the state, as a field. Both may put the list in order. */
void accumulator_write(struct accumulator *acc, const struct accumulator_field *field, struct buf *out);
void accumulator_write_partial(struct accumulator *acc, const struct accumulator_field *field, struct buf *out);
/* Heap bytes held, roughly. */
size_t accumulator_bytes(const struct accumulator *acc);

#endif
