#include "base/buf.h"

#include "base/mem.h"

void buf_deinit(struct buf *buf)
{
    mem_free(buf->data);
    *buf = BUF_INIT;
}

uint8_t *buf_reserve(struct buf *buf, size_t extra)
{
    size_t need = buf->len + extra;
    if (need > buf->cap || buf->data == NULL) {
        size_t cap = buf->cap * 2;
        if (cap < 64)
            cap = 64;
        if (cap < need)
            cap = need;
        buf->data = mem_realloc(buf->data, cap);
        buf->cap = cap;
    }
    return buf->data + buf->len;
}

void buf_append(struct buf *buf, const void *data, size_t len)
{
    if (len == 0)
        return;
    memcpy(buf_reserve(buf, len), data, len);
    buf->len += len;
}

void buf_append_u8(struct buf *buf, uint8_t value)
{
    *buf_reserve(buf, 1) = value;
    buf->len += 1;
}

void buf_append_le32(struct buf *buf, uint32_t value)
{
    store_le32(buf_reserve(buf, sizeof value), value);
    buf->len += sizeof value;
}

void buf_append_le64(struct buf *buf, uint64_t value)
{
    store_le64(buf_reserve(buf, sizeof value), value);
    buf->len += sizeof value;
}

void buf_append_be32(struct buf *buf, uint32_t value)
{
    store_be32(buf_reserve(buf, sizeof value), value);
    buf->len += sizeof value;
}

void buf_append_be64(struct buf *buf, uint64_t value)
{
    store_be64(buf_reserve(buf, sizeof value), value);
    buf->len += sizeof value;
}

uint8_t *buf_take(struct buf *buf, size_t *len)
{
    uint8_t *data = buf->data;
    *len = buf->len;
    *buf = BUF_INIT;
    return data;
}
