/* The fuzz target without a fuzzer: seeded random options, for ctest. usage: fuzz_options_mutations [ROUNDS [SEED]] */
#include "tests/fuzz/document/fuzz_options.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ROUNDS = 40000,
    BYTES_MAX = 16,
};

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : ROUNDS;
    uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) | 1 : 20261130;
    for (long i = 0; i < rounds; i++) {
        uint8_t data[BYTES_MAX];
        size_t len = (size_t)(next(&state) % (BYTES_MAX + 1));
        for (size_t j = 0; j < len; j++)
            data[j] = (uint8_t)(next(&state) >> 24);
        LLVMFuzzerTestOneInput(data, len);
    }
    printf("%ld rounds\n", rounds);
    return 0;
}
