#include "storage/shell_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { SHELL_TEXT_DEPTH = 10 };

static void print(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void print(struct buf *out, const char *format, ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len > 0)
        buf_append(out, text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
}

static void print_double(struct buf *out, double number)
{
    if (isnan(number) || isinf(number))
        print(out, "%s", isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
    else if (number == floor(number) && fabs(number) < 1e15)
        print(out, "%.1f", number);
    else
        print(out, "%.16g", number);
}

static void print_string(struct buf *out, const struct bval *val, size_t max_bytes)
{
    uint32_t len;
    const char *text = bval_str(val, &len);
    buf_append_u8(out, '"');
    for (uint32_t i = 0; i < len && out->len < max_bytes; i++) {
        if (text[i] == '"' || text[i] == '\\')
            buf_append_u8(out, '\\');
        buf_append_u8(out, (uint8_t)(text[i] == '\n' || text[i] == 0 ? ' ' : text[i]));
    }
    buf_append_u8(out, '"');
}

static void print_binary(struct buf *out, const struct bval *val)
{
    uint8_t subtype;
    uint32_t len;
    const uint8_t *data = bval_binary(val, &subtype, &len);
    if (subtype == BSON_SUBTYPE_UUID && len == 16) {
        print(out, "UUID(\"");
        for (uint32_t i = 0; i < len; i++)
            print(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", data[i]);
        print(out, "\")");
        return;
    }
    print(out, "BinData(%u, ", subtype);
    for (uint32_t i = 0; i < len && i < 64; i++)
        print(out, "%02X", data[i]);
    print(out, ")");
}

static void print_doc(struct buf *out, struct bdoc doc, bool array, size_t max_bytes, int depth);

static void print_value(struct buf *out, const struct bval *val, size_t max_bytes, int depth)
{
    char text[64];
    bson_decimal128_t decimal;
    switch ((enum btype)val->type) {
    case BT_DOUBLE:
        print_double(out, bval_f64(val));
        break;
    case BT_INT32:
        print(out, "%d", bval_i32(val));
        break;
    case BT_INT64:
        print(out, "%lld", (long long)bval_i64(val));
        break;
    case BT_DECIMAL128:
        bval_decimal(val, &decimal);
        bson_decimal128_to_string(&decimal, text);
        print(out, "%s", text);
        break;
    case BT_STRING:
    case BT_SYMBOL:
        print_string(out, val, max_bytes);
        break;
    case BT_DOCUMENT:
    case BT_ARRAY:
        print_doc(out, bval_doc(val), val->type == BT_ARRAY, max_bytes, depth);
        break;
    case BT_BINARY:
        print_binary(out, val);
        break;
    case BT_OBJECT_ID:
        bson_oid_to_string(bval_oid(val), text);
        print(out, "ObjectId('%s')", text);
        break;
    case BT_BOOL:
        print(out, "%s", bval_bool(val) ? "true" : "false");
        break;
    case BT_DATE:
        print(out, "new Date(%lld)", (long long)bval_i64(val));
        break;
    case BT_TIMESTAMP:
        print(out, "Timestamp(%u, %u)", (unsigned)((uint64_t)bval_i64(val) >> 32), (unsigned)bval_i64(val));
        break;
    case BT_NULL:
        print(out, "null");
        break;
    default:
        print(out, "%s", bval_type_name(val->type));
        break;
    }
}

static void print_doc(struct buf *out, struct bdoc doc, bool array, size_t max_bytes, int depth)
{
    if (depth == 0) {
        print(out, "...");
        return;
    }
    struct biter iter;
    struct belem elem;
    bool first = true;
    biter_init(&iter, doc);
    print(out, "%s", array ? "[" : "{");
    while (biter_next(&iter, &elem)) {
        print(out, "%s", first ? " " : ", ");
        first = false;
        if (out->len > max_bytes) {
            print(out, "...");
            break;
        }
        if (!array)
            print(out, "%s: ", elem.key);
        print_value(out, &elem.val, max_bytes, depth - 1);
    }
    print(out, "%s%s", first ? "" : " ", array ? "]" : "}");
}

void shell_text_append(struct buf *out, struct bdoc doc, size_t max_bytes)
{
    print_doc(out, doc, false, out->len + max_bytes, SHELL_TEXT_DEPTH);
}
