#include "wire/compress.h"

#include "base/check.h"
#include "wire/message.h"

#include <snappy-c.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum {
    COMPRESSED_AT = WIRE_HEADER_BYTES + 9, /* after original opcode, original size, compressor */
    ZLIB_LEVEL = 1,                        /* replies are compressed while a client waits */
    ZSTD_LEVEL = 1,
    ZLIB_RATIO_MAX = 1040, /* deflate can't do better than 1032:1 */
    SNAPPY_RATIO_MAX = 64, /* a copy element of 3 bytes yields at most 64 */
};

static const char *const names[] = {
    [WIRE_COMPRESSOR_NOOP] = "noop",
    [WIRE_COMPRESSOR_SNAPPY] = "snappy",
    [WIRE_COMPRESSOR_ZLIB] = "zlib",
    [WIRE_COMPRESSOR_ZSTD] = "zstd",
};

int wire_compressor_parse(const char *name)
{
    for (int i = WIRE_COMPRESSOR_SNAPPY; i <= WIRE_COMPRESSOR_ZSTD; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

const char *wire_compressor_name(enum wire_compressor compressor)
{
    CHECK((unsigned)compressor <= WIRE_COMPRESSOR_ZSTD);
    return names[compressor];
}

void wire_compression_negotiate(struct bdoc hello, bson_t *reply)
{
    struct bval offer;
    if (!bdoc_find(hello, "compression", &offer) || offer.type != BT_ARRAY)
        return;
    bson_t agreed;
    bson_init(&agreed);
    unsigned seen = 0;
    uint32_t count = 0;
    struct biter iter;
    struct belem elem;
    for (biter_init(&iter, bval_doc(&offer)); biter_next(&iter, &elem);) {
        uint32_t len;
        int compressor = elem.val.type == BT_STRING ? wire_compressor_parse(bval_str(&elem.val, &len)) : -1;
        if (compressor < 0 || (seen & (1U << compressor)) != 0)
            continue;
        seen |= 1U << compressor;
        char buffer[12];
        const char *key;
        size_t key_len = bson_uint32_to_string(count++, &key, buffer, sizeof buffer);
        bson_append_utf8(&agreed, key, (int)key_len, names[compressor], -1);
    }
    if (count > 0)
        BSON_APPEND_ARRAY(reply, "compression", &agreed);
    bson_destroy(&agreed);
}

static bool inflate_into(const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len)
{
    uLongf got = (uLongf)out_len;
    return uncompress(out, &got, in, (uLong)in_len) == Z_OK && got == out_len;
}

static bool unsnappy_into(const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len)
{
    size_t got = 0;
    if (snappy_uncompressed_length((const char *)in, in_len, &got) != SNAPPY_OK || got != out_len)
        return false;
    return snappy_uncompress((const char *)in, in_len, (char *)out, &got) == SNAPPY_OK && got == out_len;
}

static bool decompress_into(enum wire_compressor compressor, const uint8_t *in, size_t in_len, uint8_t *out,
                            size_t out_len)
{
    switch (compressor) {
    case WIRE_COMPRESSOR_NOOP:
        if (in_len != out_len)
            return false;
        memcpy(out, in, out_len);
        return true;
    case WIRE_COMPRESSOR_SNAPPY:
        return unsnappy_into(in, in_len, out, out_len);
    case WIRE_COMPRESSOR_ZLIB:
        return inflate_into(in, in_len, out, out_len);
    case WIRE_COMPRESSOR_ZSTD:
        return ZSTD_decompress(out, out_len, in, in_len) == out_len;
    default:
        return false;
    }
}

/* What so many compressed bytes can stand for at most, as far as the format says it. */
static bool size_is_plausible(enum wire_compressor compressor, size_t in_len, size_t out_len)
{
    switch (compressor) {
    case WIRE_COMPRESSOR_NOOP:
        return out_len == in_len;
    case WIRE_COMPRESSOR_SNAPPY:
        return out_len <= in_len * SNAPPY_RATIO_MAX;
    case WIRE_COMPRESSOR_ZLIB:
        return out_len <= in_len * ZLIB_RATIO_MAX;
    case WIRE_COMPRESSOR_ZSTD:
        return true;
    default:
        return false;
    }
}

struct wire_frame *wire_decompress(const uint8_t *data, size_t len, enum wire_compressor *compressor, struct err *err)
{
    struct wire_header header;
    if (len < COMPRESSED_AT) {
        err_set(err, ERR_ProtocolError, "OP_COMPRESSED of %zu bytes", len);
        return NULL;
    }
    if (!wire_header_parse(data, &header, err))
        return NULL;
    uint32_t opcode = load_le32(data + WIRE_HEADER_BYTES);
    uint32_t size = load_le32(data + WIRE_HEADER_BYTES + 4);
    *compressor = data[WIRE_HEADER_BYTES + 8];
    if (header.length != len || header.opcode != WIRE_OP_COMPRESSED || opcode == WIRE_OP_COMPRESSED ||
        size > WIRE_MAX_MESSAGE_BYTES - WIRE_HEADER_BYTES ||
        !size_is_plausible(*compressor, len - COMPRESSED_AT, size)) {
        err_set(err, ERR_ProtocolError, "OP_COMPRESSED with opcode %u, %u bytes from %zu, compressor %d", opcode, size,
                len, (int)*compressor);
        return NULL;
    }
    struct wire_frame *frame = wire_frame_new(size + WIRE_HEADER_BYTES);
    if (!decompress_into(*compressor, data + COMPRESSED_AT, len - COMPRESSED_AT, frame->data + WIRE_HEADER_BYTES,
                         size)) {
        wire_frame_unref(frame);
        err_set(err, ERR_ProtocolError, "OP_COMPRESSED: the %s data is broken", names[*compressor]);
        return NULL;
    }
    store_le32(frame->data, frame->len);
    wire_set_ids(frame->data, header.request_id, header.response_to);
    store_le32(frame->data + 12, opcode);
    return frame;
}

/* 0 when it can't be done. `out` has room for compress_bound. */
static size_t compress_into(enum wire_compressor compressor, const uint8_t *in, size_t in_len, uint8_t *out,
                            size_t out_len)
{
    switch (compressor) {
    case WIRE_COMPRESSOR_SNAPPY: {
        size_t got = out_len;
        return snappy_compress((const char *)in, in_len, (char *)out, &got) == SNAPPY_OK ? got : 0;
    }
    case WIRE_COMPRESSOR_ZLIB: {
        uLongf got = (uLongf)out_len;
        return compress2(out, &got, in, (uLong)in_len, ZLIB_LEVEL) == Z_OK ? (size_t)got : 0;
    }
    case WIRE_COMPRESSOR_ZSTD: {
        size_t got = ZSTD_compress(out, out_len, in, in_len, ZSTD_LEVEL);
        return ZSTD_isError(got) != 0 ? 0 : got;
    }
    case WIRE_COMPRESSOR_NOOP:
    default:
        return 0;
    }
}

static size_t compress_bound(enum wire_compressor compressor, size_t len)
{
    switch (compressor) {
    case WIRE_COMPRESSOR_SNAPPY:
        return snappy_max_compressed_length(len);
    case WIRE_COMPRESSOR_ZLIB:
        return compressBound((uLong)len);
    case WIRE_COMPRESSOR_ZSTD:
        return ZSTD_compressBound(len);
    case WIRE_COMPRESSOR_NOOP:
    default:
        return 0;
    }
}

struct wire_frame *wire_compress(const struct wire_frame *message, enum wire_compressor compressor)
{
    size_t in_len = message->len - WIRE_HEADER_BYTES;
    size_t bound = compress_bound(compressor, in_len);
    if (bound == 0)
        return NULL;
    struct buf out = BUF_INIT;
    uint8_t *data = buf_reserve(&out, COMPRESSED_AT + bound);
    size_t got = compress_into(compressor, message->data + WIRE_HEADER_BYTES, in_len, data + COMPRESSED_AT, bound);
    if (got == 0 || COMPRESSED_AT + got >= message->len) {
        buf_deinit(&out);
        return NULL;
    }
    out.len = COMPRESSED_AT + got;
    memcpy(data, message->data, WIRE_HEADER_BYTES);
    store_le32(data, (uint32_t)out.len);
    memcpy(data + WIRE_HEADER_BYTES, message->data + 12, sizeof(uint32_t)); /* the original opcode */
    store_le32(data + 12, WIRE_OP_COMPRESSED);
    store_le32(data + WIRE_HEADER_BYTES + 4, (uint32_t)in_len);
    data[WIRE_HEADER_BYTES + 8] = (uint8_t)compressor;
    return wire_frame_take(&out);
}
