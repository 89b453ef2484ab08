#include "document/batch_reply.h"

#include "document/engine.h"
#include "wire/message.h"

#include <string.h>

enum {
    FIRST_CAPACITY = 4096,
    KEY_DIGITS_MAX = 10,
};

static size_t document_begin(struct buf *out, uint8_t type, const char *key)
{
    buf_append_u8(out, type);
    buf_append(out, key, strlen(key) + 1);
    size_t start = out->len;
    buf_append_le32(out, 0);
    return start;
}

static void document_end(struct buf *out, size_t start)
{
    buf_append_u8(out, 0);
    store_le32(out->data + start, (uint32_t)(out->len - start));
}

void batch_reply_begin(struct batch_reply *reply, bool first)
{
    *reply = (struct batch_reply){0};
    buf_reserve(&reply->bytes, FIRST_CAPACITY);
    reply->message_start = wire_msg_begin(&reply->bytes, 0, 0, 0);
    buf_append_u8(&reply->bytes, 0); /* section kind 0 */
    reply->body_start = reply->bytes.len;
    buf_append_le32(&reply->bytes, 0);
    reply->cursor_start = document_begin(&reply->bytes, BT_DOCUMENT, "cursor");
    reply->array_start = document_begin(&reply->bytes, BT_ARRAY, first ? "firstBatch" : "nextBatch");
}

/* The decimal index of the next element, with its NUL. */
static void append_index_key(struct buf *out, uint32_t index)
{
    char digits[KEY_DIGITS_MAX + 1];
    size_t at = sizeof digits;
    digits[--at] = '\0';
    do {
        digits[--at] = (char)('0' + index % 10);
        index /= 10;
    } while (index > 0);
    buf_append(out, digits + at, sizeof digits - at);
}

static bool fits(const struct batch_reply *reply, size_t bytes)
{
    return reply->count == 0 || bytes - reply->array_start <= DOCUMENT_BATCH_MAX_BYTES;
}

bool batch_reply_add(struct batch_reply *reply, struct bdoc doc)
{
    if (!fits(reply, reply->bytes.len + doc.len))
        return false;
    batch_reply_open(reply);
    buf_append(&reply->bytes, doc.data, doc.len);
    reply->count++;
    return true;
}

size_t batch_reply_open(struct batch_reply *reply)
{
    size_t opened_at = reply->bytes.len;
    buf_append_u8(&reply->bytes, BT_DOCUMENT);
    append_index_key(&reply->bytes, reply->count);
    return opened_at;
}

bool batch_reply_close(struct batch_reply *reply, size_t opened_at)
{
    if (fits(reply, reply->bytes.len)) {
        reply->count++;
        return true;
    }
    reply->bytes.len = opened_at;
    return false;
}

void batch_reply_add_sort_key(struct batch_reply *reply, const void *key, size_t len)
{
    struct buf *out = &reply->sort_keys;
    buf_append_u8(out, BT_BINARY);
    append_index_key(out, reply->sort_key_count++);
    buf_append_le32(out, (uint32_t)len);
    buf_append_u8(out, BSON_SUBTYPE_BINARY);
    buf_append(out, key, len);
}

struct wire_frame *batch_reply_end(struct batch_reply *reply, int64_t cursor_id, const char *ns)
{
    struct buf *out = &reply->bytes;
    document_end(out, reply->array_start);
    if (reply->sort_key_count > 0) {
        size_t start = document_begin(out, BT_ARRAY, "sortKeys");
        buf_append(out, reply->sort_keys.data, reply->sort_keys.len);
        document_end(out, start);
    }
    buf_deinit(&reply->sort_keys);
    buf_append_u8(out, BT_INT64);
    buf_append(out, "id", sizeof "id");
    buf_append_le64(out, (uint64_t)cursor_id);
    buf_append_u8(out, BT_STRING);
    buf_append(out, "ns", sizeof "ns");
    size_t ns_len = strlen(ns) + 1;
    buf_append_le32(out, (uint32_t)ns_len);
    buf_append(out, ns, ns_len);
    document_end(out, reply->cursor_start);
    buf_append_u8(out, BT_DOUBLE);
    buf_append(out, "ok", sizeof "ok");
    double one = 1.0;
    buf_append(out, &one, sizeof one);
    document_end(out, reply->body_start);
    wire_msg_end(out, reply->message_start);
    return wire_frame_take(out);
}

void batch_reply_deinit(struct batch_reply *reply)
{
    buf_deinit(&reply->bytes);
    buf_deinit(&reply->sort_keys);
}
