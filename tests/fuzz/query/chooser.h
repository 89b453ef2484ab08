/* Where the generators of tests take their choices from: a seeded sequence, or the bytes of a fuzzer, so that it can
 * steer what is made. After the last byte every choice is the first one, which ends all recursion. */
#ifndef SHERD_TESTS_FUZZ_QUERY_CHOOSER_H
#define SHERD_TESTS_FUZZ_QUERY_CHOOSER_H

#include "base/random.h"

#include <stddef.h>

struct chooser {
    struct prng prng;    /* used when `data` is NULL */
    const uint8_t *data; /* borrowed */
    size_t len;
    size_t at;
};

static inline uint64_t chooser_next(struct chooser *choose)
{
    uint64_t value = 0;
    if (choose->data == NULL)
        return prng_next(&choose->prng);
    for (int i = 0; i < 8; i++)
        value = value << 8 | (choose->at < choose->len ? choose->data[choose->at++] : 0);
    return value;
}

/* 0 .. bound-1; bound > 0. */
static inline uint64_t chooser_below(struct chooser *choose, uint64_t bound)
{
    if (choose->data == NULL)
        return prng_below(&choose->prng, bound);
    return choose->at < choose->len ? choose->data[choose->at++] % bound : 0;
}

#endif
