/* Accumulators of $group and $bucketAuto: values go in, a result comes out, or a partial state that another process
 * merges. One user at a time.
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/#accumulators---group---bucket---bucketauto---setwindowfields-
 */
#ifndef SHERD_AGGREGATE_ACCUMULATOR_H
#define SHERD_AGGREGATE_ACCUMULATOR_H

#include "base/map.h"
#include "expr/expr.h"
#include "expr/number.h"
#include "expr/writer.h"

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
};

/* {name: {$op: expression}}. */
struct accumulator_field {
    const char *name;
    enum accumulator_op op;
    struct expr *expr;
};

struct accumulator {
    struct number_sum sum; /* $sum, $avg, $count */
    int64_t count;         /* $avg and deviations: numbers seen */
    double mean;           /* deviations: running mean and sum of squares (Welford) */
    double squares;
    uint8_t type;     /* of the kept value; BT_EOO: missing or none */
    bool any;         /* $first: there was a document */
    struct buf bytes; /* kept value's payload; of arrays and documents: the unfinished one */
    uint32_t items;   /* elements of the array in `bytes` */
    struct map set;   /* $addToSet: encoded values */
    size_t set_bytes; /* held by `set` */
};

/* Reads {name: {$op: expression}}; errors 40234, 40235, 40236, 40238, 15952, 40237. */
bool accumulator_field_compile(struct arena *arena, const struct belem *elem, const struct expr_env *env,
                               struct accumulator_field *out, struct err *err) ERR_WARN_UNUSED;
void accumulator_deinit(struct accumulator *acc);
/* A missing value has type BT_EOO. */
bool accumulator_add(struct accumulator *acc, enum accumulator_op op, const struct bval *val,
                     struct err *err) ERR_WARN_UNUSED;
/* A state from accumulator_write_partial; checked, since it came over the network. */
bool accumulator_merge(struct accumulator *acc, enum accumulator_op op, const struct bval *partial,
                       struct err *err) ERR_WARN_UNUSED;
/* Appends the result, or the state, as a field. */
void accumulator_write(const struct accumulator *acc, enum accumulator_op op, const char *name, struct buf *out);
void accumulator_write_partial(const struct accumulator *acc, enum accumulator_op op, const char *name,
                               struct buf *out);
/* Heap bytes held, roughly. */
size_t accumulator_bytes(const struct accumulator *acc);

#endif
