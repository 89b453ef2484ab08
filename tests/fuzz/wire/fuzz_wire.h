/* What the wire fuzzers share. */
#ifndef SHERD_TESTS_FUZZ_WIRE_FUZZ_WIRE_H
#define SHERD_TESTS_FUZZ_WIRE_FUZZ_WIRE_H

#include "base/random.h"
#include "wire/frame.h"

#include <stddef.h>
#include <stdint.h>

/* The entry point that libFuzzer calls, and the mutation tests in its place. Always 0; a failed check aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A good message of a random kind: OP_MSG with and without sequences, checksum and compression, OP_QUERY, OP_REPLY. The
 * caller unrefs it. */
struct wire_frame *seed_message(struct prng *prng);
/* Changes a few bytes, cuts, or puts lengths right and wrong. `len` may shrink, not grow. */
void seed_mutate(struct prng *prng, uint8_t *bytes, size_t *len);

#endif
