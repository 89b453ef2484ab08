#include "bson/extjson.h"

#include "base/check.h"
#include "bson/base64.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Relaxed dates are written as text from 1970 to the end of 9999. */
static const int64_t last_text_date_ms = INT64_C(253402300799999);

static void put(struct buf *to, const char *text)
{
    buf_append(to, text, strlen(text));
}

static void put_format(struct buf *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put_format(struct buf *to, const char *format, ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    CHECK(len >= 0 && (size_t)len < sizeof text);
    buf_append(to, text, (size_t)len);
}

static void put_escaped(struct buf *to, unsigned char byte)
{
    static const char named[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    for (const char *at = named; *at != 0; at += 2) {
        if ((unsigned char)*at == byte) {
            buf_append_u8(to, '\\');
            buf_append_u8(to, (uint8_t)at[1]);
            return;
        }
    }
    put_format(to, "\\u%04x", byte);
}

static void put_string(struct buf *to, const char *text, size_t len)
{
    buf_append_u8(to, '"');
    size_t run = 0; /* bytes since the last escape */
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte >= 0x20 && byte != '"' && byte != '\\') {
            run++;
            continue;
        }
        buf_append(to, text + i - run, run);
        put_escaped(to, byte);
        run = 0;
    }
    buf_append(to, text + len - run, run);
    buf_append_u8(to, '"');
}

static void put_text_value(struct buf *to, const struct bval *val)
{
    uint32_t len;
    const char *text = bval_str(val, &len);
    put_string(to, text, len);
}

/* The shortest decimal that reads back as the same double; whole numbers keep a ".0". */
static void put_f64(struct buf *to, double number)
{
    char text[40];
    if (isnan(number)) {
        put(to, "NaN");
        return;
    }
    if (isinf(number)) {
        put(to, number < 0 ? "-Infinity" : "Infinity");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*G", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    put(to, text);
    if (strpbrk(text, ".E") == NULL)
        put(to, ".0");
}

static void print_f64(struct buf *to, double number, enum extjson_mode mode)
{
    bool plain = mode == EXTJSON_RELAXED && isfinite(number);
    put(to, plain ? "" : "{\"$numberDouble\":\"");
    put_f64(to, number);
    put(to, plain ? "" : "\"}");
}

static void print_integer(struct buf *to, int64_t number, const char *wrapper, enum extjson_mode mode)
{
    if (mode == EXTJSON_RELAXED)
        put_format(to, "%" PRId64, number);
    else
        put_format(to, "{\"%s\":\"%" PRId64 "\"}", wrapper, number);
}

static void print_date(struct buf *to, int64_t ms, enum extjson_mode mode)
{
    if (mode == EXTJSON_CANONICAL || ms < 0 || ms > last_text_date_ms) {
        put_format(to, "{\"$date\":{\"$numberLong\":\"%" PRId64 "\"}}", ms);
        return;
    }
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    char text[32];
    gmtime_r(&seconds, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    put_format(to, "{\"$date\":\"%s", text);
    if (ms % 1000 != 0)
        put_format(to, ".%03d", (int)(ms % 1000));
    put(to, "Z\"}");
}

static void print_binary(struct buf *to, const struct bval *val)
{
    uint8_t subtype;
    uint32_t len;
    const uint8_t *data = bval_binary(val, &subtype, &len);
    if (subtype == BSON_SUBTYPE_BINARY_DEPRECATED) { /* its second length isn't part of the data */
        data += 4;
        len -= 4;
    }
    put(to, "{\"$binary\":{\"base64\":\"");
    base64_encode(to, data, len);
    put_format(to, "\",\"subType\":\"%02x\"}}", subtype);
}

static void print_oid(struct buf *to, const uint8_t *bytes)
{
    put(to, "{\"$oid\":\"");
    for (int i = 0; i < 12; i++)
        put_format(to, "%02x", bytes[i]);
    put(to, "\"}");
}

static void print_regex(struct buf *to, const struct bval *val)
{
    const char *options;
    const char *pattern = bval_regex(val, &options);
    put(to, "{\"$regularExpression\":{\"pattern\":");
    put_string(to, pattern, strlen(pattern));
    put(to, ",\"options\":");
    put_string(to, options, strlen(options));
    put(to, "}}");
}

static void print_db_pointer(struct buf *to, const struct bval *val)
{
    put(to, "{\"$dbPointer\":{\"$ref\":");
    put_text_value(to, val);
    put(to, ",\"$id\":");
    print_oid(to, val->data + val->len - 12);
    put(to, "}}");
}

static void print_code_with_scope(struct buf *to, const struct bval *val, enum extjson_mode mode)
{
    uint32_t code_size = load_le32(val->data + 4);
    put(to, "{\"$code\":");
    put_string(to, (const char *)val->data + 8, code_size - 1);
    put(to, ",\"$scope\":");
    extjson_print(to, (struct bdoc){.data = val->data + 8 + code_size, .len = val->len - 8 - code_size}, mode);
    put(to, "}");
}

static void print_wrapped_text(struct buf *to, const char *wrapper, const struct bval *val)
{
    put_format(to, "{\"%s\":", wrapper);
    put_text_value(to, val);
    put(to, "}");
}

static void print_decimal(struct buf *to, const struct bval *val)
{
    bson_decimal128_t decimal;
    char text[BSON_DECIMAL128_STRING];
    bval_decimal(val, &decimal);
    bson_decimal128_to_string(&decimal, text);
    put_format(to, "{\"$numberDecimal\":\"%s\"}", text);
}

static void print_array(struct buf *to, struct bdoc array, enum extjson_mode mode)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, array);
    buf_append_u8(to, '[');
    for (bool first = true; biter_next(&iter, &elem); first = false) {
        if (!first)
            buf_append_u8(to, ',');
        extjson_print_value(to, &elem.val, mode);
    }
    buf_append_u8(to, ']');
}

/* The types with bytes or text inside. */
static void print_compound(struct buf *to, const struct bval *val, enum extjson_mode mode)
{
    switch (val->type) {
    case BT_STRING:
        put_text_value(to, val);
        break;
    case BT_DOCUMENT:
        extjson_print(to, bval_doc(val), mode);
        break;
    case BT_ARRAY:
        print_array(to, bval_doc(val), mode);
        break;
    case BT_BINARY:
        print_binary(to, val);
        break;
    case BT_REGEX:
        print_regex(to, val);
        break;
    case BT_DB_POINTER:
        print_db_pointer(to, val);
        break;
    case BT_CODE:
        print_wrapped_text(to, "$code", val);
        break;
    case BT_SYMBOL:
        print_wrapped_text(to, "$symbol", val);
        break;
    case BT_CODE_WITH_SCOPE:
        print_code_with_scope(to, val, mode);
        break;
    default:
        UNREACHABLE();
    }
}

void extjson_print_value(struct buf *to, const struct bval *val, enum extjson_mode mode)
{
    switch (val->type) {
    case BT_DOUBLE:
        print_f64(to, bval_f64(val), mode);
        break;
    case BT_INT32:
        print_integer(to, bval_i32(val), "$numberInt", mode);
        break;
    case BT_INT64:
        print_integer(to, bval_i64(val), "$numberLong", mode);
        break;
    case BT_DECIMAL128:
        print_decimal(to, val);
        break;
    case BT_OBJECT_ID:
        print_oid(to, val->data);
        break;
    case BT_BOOL:
        put(to, bval_bool(val) ? "true" : "false");
        break;
    case BT_DATE:
        print_date(to, bval_i64(val), mode);
        break;
    case BT_TIMESTAMP:
        put_format(to, "{\"$timestamp\":{\"t\":%" PRIu32 ",\"i\":%" PRIu32 "}}", load_le32(val->data + 4),
                   load_le32(val->data));
        break;
    case BT_EOO:
    case BT_NULL:
        put(to, "null");
        break;
    case BT_UNDEFINED:
        put(to, "{\"$undefined\":true}");
        break;
    case BT_MIN_KEY:
        put(to, "{\"$minKey\":1}");
        break;
    case BT_MAX_KEY:
        put(to, "{\"$maxKey\":1}");
        break;
    default:
        print_compound(to, val, mode);
    }
}

void extjson_print(struct buf *to, struct bdoc doc, enum extjson_mode mode)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    buf_append_u8(to, '{');
    for (bool first = true; biter_next(&iter, &elem); first = false) {
        if (!first)
            buf_append_u8(to, ',');
        put_string(to, elem.key, elem.key_len);
        buf_append_u8(to, ':');
        extjson_print_value(to, &elem.val, mode);
    }
    buf_append_u8(to, '}');
}
