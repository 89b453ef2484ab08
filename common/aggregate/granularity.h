/* Preferred numbers: the series that $bucketAuto rounds its boundaries to. Pure; any thread.
 * Series: https://en.wikipedia.org/wiki/Preferred_number */
#ifndef SHERD_AGGREGATE_GRANULARITY_H
#define SHERD_AGGREGATE_GRANULARITY_H

#include <stdbool.h>
#include <stddef.h>

struct granularity {
    const char *name;
    const double *series; /* ascending, over one decade; NULL: powers of two */
    size_t count;
};

/* NULL for a name that isn't known. */
const struct granularity *granularity_find(const char *name);
/* The least number of the series above `value`, which isn't negative; 0 stays 0. */
double granularity_round_up(const struct granularity *granularity, double value);
/* The greatest number of the series below `value`. */
double granularity_round_down(const struct granularity *granularity, double value);

#endif
