/* Building messages; the other half of wire/message.h is message.c. */
#include "base/check.h"
#include "base/crc32c.h"
#include "wire/message.h"

enum { REPLY_FLAG_AWAIT_CAPABLE = 8 };

static void append_header(struct buf *out, uint32_t request_id, uint32_t response_to, uint32_t opcode)
{
    buf_append_le32(out, 0);
    buf_append_le32(out, request_id);
    buf_append_le32(out, response_to);
    buf_append_le32(out, opcode);
}

size_t wire_msg_begin(struct buf *out, uint32_t request_id, uint32_t response_to, uint32_t flags)
{
    size_t start = out->len;
    append_header(out, request_id, response_to, WIRE_OP_MSG);
    buf_append_le32(out, flags);
    return start;
}

void wire_msg_body(struct buf *out, struct bdoc body)
{
    buf_append_u8(out, 0);
    buf_append(out, body.data, body.len);
}

size_t wire_msg_sequence_begin(struct buf *out, const char *name)
{
    buf_append_u8(out, 1);
    size_t at = out->len;
    buf_append_le32(out, 0);
    buf_append(out, name, strlen(name) + 1);
    return at;
}

void wire_msg_sequence_end(struct buf *out, size_t at)
{
    store_le32(out->data + at, (uint32_t)(out->len - at));
}

void wire_msg_end(struct buf *out, size_t start)
{
    uint8_t *message = out->data + start;
    bool with_checksum = (load_le32(message + WIRE_HEADER_BYTES) & WIRE_CHECKSUM_PRESENT) != 0;
    size_t len = out->len - start + (with_checksum ? sizeof(uint32_t) : 0);
    CHECK(len <= INT32_MAX);
    store_le32(message, (uint32_t)len);
    if (with_checksum)
        buf_append_le32(out, crc32c(0, message, out->len - start));
}

void wire_reply_append(struct buf *out, uint32_t response_to, struct bdoc body)
{
    size_t start = out->len;
    append_header(out, 0, response_to, WIRE_OP_REPLY);
    buf_append_le32(out, REPLY_FLAG_AWAIT_CAPABLE);
    buf_append_le64(out, 0); /* cursor */
    buf_append_le32(out, 0); /* starting from */
    buf_append_le32(out, 1); /* documents */
    buf_append(out, body.data, body.len);
    store_le32(out->data + start, (uint32_t)(out->len - start));
}

void wire_set_ids(uint8_t *message, uint32_t request_id, uint32_t response_to)
{
    store_le32(message + 4, request_id);
    store_le32(message + 8, response_to);
}

struct wire_frame *wire_frame_of_doc(struct bdoc body)
{
    enum { BODY_AT = WIRE_HEADER_BYTES + sizeof(uint32_t) + 1 };
    struct wire_frame *frame = wire_frame_new(BODY_AT + body.len);
    memset(frame->data, 0, BODY_AT);
    store_le32(frame->data, frame->len);
    store_le32(frame->data + 12, WIRE_OP_MSG);
    memcpy(frame->data + BODY_AT, body.data, body.len);
    return frame;
}
