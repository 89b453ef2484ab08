/* A growable run of bytes. The caller owns the struct; the bytes are the buffer's own until buf_take. */
#ifndef SHERD_BASE_BUF_H
#define SHERD_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct buf {
    uint8_t *data;
    size_t len;
    size_t cap;
};

#define BUF_INIT ((struct buf){0})

void buf_deinit(struct buf *buf);
/* Room for `extra` more bytes; returns the place where they go (len is not moved). */
uint8_t *buf_reserve(struct buf *buf, size_t extra);
void buf_append(struct buf *buf, const void *data, size_t len);
void buf_append_u8(struct buf *buf, uint8_t value);
/* Little-endian (wire, BSON) and big-endian (ordered keys). */
void buf_append_le32(struct buf *buf, uint32_t value);
void buf_append_le64(struct buf *buf, uint64_t value);
void buf_append_be32(struct buf *buf, uint32_t value);
void buf_append_be64(struct buf *buf, uint64_t value);
/* Moves the bytes out: the caller frees them with mem_free, the buffer is empty afterwards. */
uint8_t *buf_take(struct buf *buf, size_t *len);

static inline void buf_clear(struct buf *buf)
{
    buf->len = 0;
}

static inline uint32_t load_le32(const void *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline uint64_t load_le64(const void *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline void store_le32(void *to, uint32_t value)
{
    memcpy(to, &value, sizeof value);
}

static inline void store_le64(void *to, uint64_t value)
{
    memcpy(to, &value, sizeof value);
}

static inline uint32_t load_be32(const void *from)
{
    return __builtin_bswap32(load_le32(from));
}

static inline uint64_t load_be64(const void *from)
{
    return __builtin_bswap64(load_le64(from));
}

static inline void store_be32(void *to, uint32_t value)
{
    store_le32(to, __builtin_bswap32(value));
}

static inline void store_be64(void *to, uint64_t value)
{
    store_le64(to, __builtin_bswap64(value));
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the loads above assume a little-endian machine");

#endif
