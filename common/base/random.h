/* Random bytes from the kernel, for ids and nonces. Nothing inside apply may use them. */
#ifndef SHERD_BASE_RANDOM_H
#define SHERD_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

void random_bytes(void *out, size_t len);
uint64_t random_u64(void);
/* A version 4 UUID. */
void random_uuid(uint8_t out[16]);

/* A small seeded generator (splitmix64) for tests and simulations: equal seeds, equal numbers. */
struct prng {
    uint64_t state;
};
uint64_t prng_next(struct prng *prng);
/* 0 .. bound-1; bound > 0. */
uint64_t prng_below(struct prng *prng, uint64_t bound);

#endif
