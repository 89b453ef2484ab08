/* The target: bytes become the options of a create and of a collMod. What is accepted has a normal form that is
 * accepted again and stays as it is; a change made twice changes nothing the second time. */
#ifndef SHERD_TESTS_FUZZ_DOCUMENT_FUZZ_OPTIONS_H
#define SHERD_TESTS_FUZZ_DOCUMENT_FUZZ_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
