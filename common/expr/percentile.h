/* $percentile and $median: what their operands say, and the result. Any thread.
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/percentile/ */
#ifndef SHERD_EXPR_PERCENTILE_H
#define SHERD_EXPR_PERCENTILE_H

#include "base/arena.h"
#include "base/buf.h"
#include "bson/value.h"

enum {
    PERCENTILE_MAX = 1000, /* members of one `p` */
};

struct percentiles {
    double *p; /* each in [0, 1] */
    uint32_t count;
    bool single; /* $median: the result is a number, not an array */
};

/* `p` is the evaluated array (of $median: ignored, NULL). Errors 7750301, 7750302, 7750303. */
bool percentiles_read(struct arena *arena, const struct bval *p, struct percentiles *out,
                      struct err *err) ERR_WARN_UNUSED;
/* The method must be "approximate": 2. */
bool percentiles_check_method(const struct bval *method, struct err *err) ERR_WARN_UNUSED;
/* Adds a number to a list of doubles; other values and NaN are left out. */
void percentiles_add(struct buf *list, const struct bval *val);
/* The value of the nearest rank for each p; nulls when there is no number. Sorts the list. An array or one number, in
 * the arena. */
struct bval percentiles_result(const struct percentiles *wanted, double *list, size_t count, struct arena *arena);

#endif
