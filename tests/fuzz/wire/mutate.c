/* Runs a fuzz target over seeded mutations of good messages, for builds without libFuzzer.
 * Usage: fuzz_..._mutations [rounds] [seed] */
#include "tests/fuzz/wire/fuzz_wire.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

enum { DEFAULT_ROUNDS = 20000, MUTATIONS_MAX = 4 };

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : DEFAULT_ROUNDS;
    struct prng prng = {argc > 2 ? strtoull(argv[2], NULL, 10) : 1};
    for (long i = 0; i < rounds; i++) {
        struct wire_frame *frame = seed_message(&prng);
        size_t len = frame->len;
        for (uint64_t n = prng_below(&prng, MUTATIONS_MAX + 1); n > 0; n--)
            seed_mutate(&prng, frame->data, &len);
        uint8_t *exact = mem_copy(frame->data, len); /* so that the sanitizer sees one byte too far */
        (void)LLVMFuzzerTestOneInput(exact, len);
        mem_free(exact);
        wire_frame_unref(frame);
    }
    printf("%ld rounds\n", rounds);
    return 0;
}
