/* OP_COMPRESSED: zlib, zstd and snappy. Any thread.
 * Format: https://github.com/mongodb/specifications/blob/master/source/compression/OP_COMPRESSED.md */
#ifndef SHERD_WIRE_COMPRESS_H
#define SHERD_WIRE_COMPRESS_H

#include "base/err.h"
#include "bson/value.h"
#include "wire/frame.h"

enum wire_compressor {
    WIRE_COMPRESSOR_NOOP = 0,
    WIRE_COMPRESSOR_SNAPPY = 1,
    WIRE_COMPRESSOR_ZLIB = 2,
    WIRE_COMPRESSOR_ZSTD = 3,
};

enum { WIRE_COMPRESSORS_MAX = 3 };

/* "zlib", "zstd" or "snappy" into a number; -1 for anything else. */
int wire_compressor_parse(const char *name);
const char *wire_compressor_name(enum wire_compressor compressor);
/* The `compression` array of a hello reply: appends those of the client's offer (hello.compression, may be missing)
 * that are spoken here, in the client's order. Appends nothing when there is none. */
void wire_compression_negotiate(struct bdoc hello, bson_t *reply);

/* Undoes OP_COMPRESSED: a new frame with the original message (ids from the outer header). The announced size is
 * checked before memory is taken and must come out exactly. *compressor: what was used. ERR_ProtocolError. */
struct wire_frame *wire_decompress(const uint8_t *data, size_t len, enum wire_compressor *compressor,
                                   struct err *err) ERR_WARN_UNUSED;
/* A compressed copy of a whole message, or NULL when it would not be smaller. */
struct wire_frame *wire_compress(const struct wire_frame *message, enum wire_compressor compressor);

#endif
