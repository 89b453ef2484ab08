#include "base/random.h"

#include "base/check.h"

#include <errno.h>
#include <sys/random.h>

void random_bytes(void *out, size_t len)
{
    uint8_t *to = out;
    while (len > 0) {
        ssize_t got = getrandom(to, len, 0);
        if (got < 0) {
            CHECK(errno == EINTR);
            continue;
        }
        to += got;
        len -= (size_t)got;
    }
}

uint64_t random_u64(void)
{
    uint64_t value;
    random_bytes(&value, sizeof value);
    return value;
}

void random_uuid(uint8_t out[16])
{
    random_bytes(out, 16);
    out[6] = (uint8_t)((out[6] & 0x0f) | 0x40);
    out[8] = (uint8_t)((out[8] & 0x3f) | 0x80);
}

uint64_t prng_next(struct prng *prng)
{
    uint64_t z = (prng->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t prng_below(struct prng *prng, uint64_t bound)
{
    CHECK(bound > 0);
    return prng_next(prng) % bound;
}
