/* The entry of each fuzzer in this folder: libFuzzer's, or that of drive.c, which feeds it with random bytes. */
#ifndef SHERD_TESTS_FUZZ_QUERY_FUZZ_H
#define SHERD_TESTS_FUZZ_QUERY_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
