/* The entry point that libFuzzer calls, and the mutation test in its place. */
#ifndef SHERD_TESTS_FUZZ_BSON_FUZZ_VALIDATE_H
#define SHERD_TESTS_FUZZ_BSON_FUZZ_VALIDATE_H

#include <stddef.h>
#include <stdint.h>

/* Always 0; a failed check aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
