/* The target: bytes become a specification and strings; what may be opened must be a total order that its sort keys
 * agree with. */
#ifndef SHERD_TESTS_FUZZ_COLLATION_FUZZ_COLLATION_H
#define SHERD_TESTS_FUZZ_COLLATION_FUZZ_COLLATION_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
