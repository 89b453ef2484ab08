#include "document/codec.h"

#include <string.h>

enum {
    DOC_MIN_BYTES = 5,
};

void codec_reader_init(struct codec_reader *reader, const void *data, size_t len)
{
    *reader = (struct codec_reader){.pos = data, .end = (const uint8_t *)data + len};
}

const uint8_t *codec_read_bytes(struct codec_reader *reader, size_t len)
{
    if (reader->failed || (size_t)(reader->end - reader->pos) < len) {
        reader->failed = true;
        return NULL;
    }
    const uint8_t *bytes = reader->pos;
    reader->pos += len;
    return bytes;
}

uint8_t codec_read_u8(struct codec_reader *reader)
{
    const uint8_t *bytes = codec_read_bytes(reader, 1);
    return bytes == NULL ? 0 : *bytes;
}

uint32_t codec_read_u32(struct codec_reader *reader)
{
    const uint8_t *bytes = codec_read_bytes(reader, 4);
    return bytes == NULL ? 0 : load_le32(bytes);
}

uint64_t codec_read_u64(struct codec_reader *reader)
{
    const uint8_t *bytes = codec_read_bytes(reader, 8);
    return bytes == NULL ? 0 : load_le64(bytes);
}

const char *codec_read_str(struct codec_reader *reader)
{
    uint32_t len = codec_read_u32(reader);
    const uint8_t *bytes = codec_read_bytes(reader, (size_t)len + 1);
    if (bytes == NULL || bytes[len] != '\0') {
        reader->failed = true;
        return "";
    }
    return (const char *)bytes;
}

struct bdoc codec_read_doc(struct codec_reader *reader)
{
    uint32_t len = codec_read_u32(reader);
    if (reader->failed || len == 0)
        return (struct bdoc){0};
    reader->pos -= 4;
    const uint8_t *bytes = len < DOC_MIN_BYTES ? NULL : codec_read_bytes(reader, len);
    if (bytes == NULL || bytes[len - 1] != '\0') {
        reader->failed = true;
        return (struct bdoc){0};
    }
    return (struct bdoc){.data = bytes, .len = len};
}

void codec_write_str(struct buf *out, const char *text)
{
    size_t len = strlen(text);
    buf_append_le32(out, (uint32_t)len);
    buf_append(out, text, len + 1);
}

void codec_write_doc(struct buf *out, struct bdoc doc)
{
    if (doc.data == NULL)
        buf_append_le32(out, 0);
    else
        buf_append(out, doc.data, doc.len);
}

enum {
    BATCH_ORDERED = 1 << 0,
    BATCH_TESTED = 1 << 1, /* a version follows */
};

void codec_read_batch_flags(struct codec_reader *reader, bool *ordered, uint64_t *tested)
{
    uint8_t flags = codec_read_u8(reader);
    *ordered = (flags & BATCH_ORDERED) != 0;
    *tested = flags & BATCH_TESTED ? codec_read_u64(reader) : 0;
    reader->failed |= (flags & ~(BATCH_ORDERED | BATCH_TESTED)) != 0;
}

void codec_write_batch_flags(struct buf *out, bool ordered, uint64_t tested)
{
    buf_append_u8(out, (uint8_t)((ordered ? BATCH_ORDERED : 0) | (tested != 0 ? BATCH_TESTED : 0)));
    if (tested != 0)
        buf_append_le64(out, tested);
}
