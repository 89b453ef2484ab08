/* A fuzzer without libFuzzer: random bytes, for every compiler and for the test suite. Arguments: rounds, seed. */
#include "base/random.h"
#include "tests/fuzz/query/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    DEFAULT_ROUNDS = 20000,
    MAX_BYTES = 512,
};

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : DEFAULT_ROUNDS;
    struct prng prng = {argc > 2 ? strtoull(argv[2], NULL, 10) : 1};
    for (long i = 0; i < rounds; i++) {
        uint8_t bytes[MAX_BYTES];
        size_t len = prng_below(&prng, sizeof bytes);
        for (size_t at = 0; at < len; at++)
            bytes[at] = (uint8_t)prng_next(&prng);
        (void)LLVMFuzzerTestOneInput(bytes, len);
    }
    printf("%ld rounds\n", rounds);
    return 0;
}
