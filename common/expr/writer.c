#include "expr/writer.h"

size_t write_begin(struct buf *buf)
{
    size_t start = buf->len;
    buf_append_le32(buf, 0);
    return start;
}

/* Type byte and name of a field. */
static void write_head(struct buf *buf, uint8_t type, const char *key, size_t key_len)
{
    uint8_t *to = buf_reserve(buf, key_len + 2);
    to[0] = type;
    memcpy(to + 1, key, key_len);
    to[key_len + 1] = 0;
    buf->len += key_len + 2;
}

size_t write_begin_field(struct buf *buf, const char *key, size_t key_len, uint8_t type)
{
    write_head(buf, type, key, key_len);
    return write_begin(buf);
}

void write_end(struct buf *buf, size_t start)
{
    buf_append_u8(buf, 0);
    store_le32(buf->data + start, (uint32_t)(buf->len - start));
}

void write_value(struct buf *buf, const char *key, size_t key_len, const struct bval *val)
{
    if (val->type == BT_EOO)
        return;
    uint8_t *to = buf_reserve(buf, key_len + 2 + val->len);
    to[0] = val->type;
    memcpy(to + 1, key, key_len);
    to[key_len + 1] = 0;
    if (val->len > 0)
        memcpy(to + key_len + 2, val->data, val->len);
    buf->len += key_len + 2 + val->len;
}

void write_elem(struct buf *buf, const struct belem *elem)
{
    write_value(buf, elem->key, elem->key_len, &elem->val);
}

void write_i32(struct buf *buf, const char *key, int32_t value)
{
    write_head(buf, BT_INT32, key, strlen(key));
    buf_append_le32(buf, (uint32_t)value);
}

void write_i64(struct buf *buf, const char *key, int64_t value)
{
    write_head(buf, BT_INT64, key, strlen(key));
    buf_append_le64(buf, (uint64_t)value);
}

void write_f64(struct buf *buf, const char *key, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    write_head(buf, BT_DOUBLE, key, strlen(key));
    buf_append_le64(buf, bits);
}

void write_str(struct buf *buf, const char *key, const char *text, size_t len)
{
    write_head(buf, BT_STRING, key, strlen(key));
    buf_append_le32(buf, (uint32_t)len + 1);
    buf_append(buf, text, len);
    buf_append_u8(buf, 0);
}

size_t write_index_name(char *name, uint32_t index)
{
    char digits[WRITER_INDEX_BYTES];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + index % 10);
        index /= 10;
    } while (index > 0);
    for (size_t i = 0; i < count; i++)
        name[i] = digits[count - 1 - i];
    name[count] = 0;
    return count;
}

void write_item(struct buf *buf, uint32_t index, const struct bval *val)
{
    char name[WRITER_INDEX_BYTES];
    size_t len = write_index_name(name, index);
    write_value(buf, name, len, val);
}

struct bdoc write_view(const struct buf *buf, size_t start)
{
    return (struct bdoc){.data = buf->data + start, .len = load_le32(buf->data + start)};
}

static struct bval make_payload(struct arena *arena, uint8_t type, const void *data, uint32_t len)
{
    return (struct bval){.type = type, .len = len, .data = arena_copy(arena, data, len)};
}

struct bval make_i32(struct arena *arena, int32_t value)
{
    return make_payload(arena, BT_INT32, &value, sizeof value);
}

struct bval make_i64(struct arena *arena, int64_t value)
{
    return make_payload(arena, BT_INT64, &value, sizeof value);
}

struct bval make_f64(struct arena *arena, double value)
{
    return make_payload(arena, BT_DOUBLE, &value, sizeof value);
}

struct bval make_date(struct arena *arena, int64_t value_ms)
{
    return make_payload(arena, BT_DATE, &value_ms, sizeof value_ms);
}

struct bval make_timestamp(struct arena *arena, uint64_t bits)
{
    return make_payload(arena, BT_TIMESTAMP, &bits, sizeof bits);
}

struct bval make_decimal(struct arena *arena, const bson_decimal128_t *value)
{
    uint8_t *data = arena_alloc(arena, 16);
    store_le64(data, value->low);
    store_le64(data + 8, value->high);
    return (struct bval){.type = BT_DECIMAL128, .len = 16, .data = data};
}

struct bval make_str(struct arena *arena, const char *text, size_t len)
{
    uint8_t *data = arena_alloc(arena, len + 5);
    store_le32(data, (uint32_t)len + 1);
    if (len > 0)
        memcpy(data + 4, text, len);
    data[len + 4] = 0;
    return (struct bval){.type = BT_STRING, .len = (uint32_t)len + 5, .data = data};
}

struct bval make_bool(bool value)
{
    static const uint8_t bytes[2] = {0, 1};
    return (struct bval){.type = BT_BOOL, .len = 1, .data = &bytes[value ? 1 : 0]};
}

struct bval make_copy(struct arena *arena, const struct bval *val)
{
    if (val->len == 0)
        return *val;
    return make_payload(arena, val->type, val->data, val->len);
}

struct bval make_doc(struct arena *arena, struct buf *take, uint8_t type)
{
    struct bval doc = make_payload(arena, type, take->data, (uint32_t)take->len);
    buf_deinit(take);
    return doc;
}
