/* CRC-32C (Castagnoli polynomial, RFC 3720 appendix B.4), as OP_MSG and our own files use it. */
#ifndef SHERD_BASE_CRC32C_H
#define SHERD_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues from `crc`, the result over the bytes before (0 at the start). */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);

#endif
