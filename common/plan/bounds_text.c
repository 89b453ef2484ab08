/* Bounds as people read them: explain's indexBounds. */
#include "plan/tree.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    VALUE_TEXT_MAX = 4096,      /* bytes of one value; what is longer ends in dots */
    VALUE_DEPTH_MAX = 20,       /* levels of nested values */
    INTERVALS_SHOWN_MAX = 2000, /* of one field */
};

struct text {
    struct buf bytes;
    int depth;
    const struct bval_order *order; /* strings show as their sort keys; NULL: as they are */
};

static void put(struct text *text, const char *what)
{
    if (text->bytes.len < VALUE_TEXT_MAX)
        buf_append(&text->bytes, what, strlen(what));
}

static void put_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put_format(struct text *text, const char *format, ...)
{
    char bytes[400];
    va_list args;
    va_start(args, format);
    vsnprintf(bytes, sizeof bytes, format, args);
    va_end(args);
    put(text, bytes);
}

static void put_value(struct text *text, const struct bval *val);

static void put_members(struct text *text, struct bdoc doc, bool names)
{
    struct biter iter;
    struct belem elem;
    bool first = true;
    biter_init(&iter, doc);
    while (text->bytes.len < VALUE_TEXT_MAX && biter_next(&iter, &elem)) {
        put(text, first ? " " : ", ");
        if (names)
            put_format(text, "%.300s: ", elem.key);
        put_value(text, &elem.val);
        first = false;
    }
    put(text, first ? "" : " ");
}

static void put_nested(struct text *text, const struct bval *val)
{
    bool array = val->type == BT_ARRAY;
    put(text, array ? "[" : "{");
    if (text->depth < VALUE_DEPTH_MAX) {
        text->depth++;
        put_members(text, bval_doc(val), !array);
        text->depth--;
    } else {
        put(text, "...");
    }
    put(text, array ? "]" : "}");
}

static void put_double(struct text *text, double value)
{
    if (isnan(value))
        put(text, "nan.0");
    else if (isinf(value))
        put(text, value < 0 ? "-inf.0" : "inf.0");
    else if (value == floor(value) && fabs(value) < 1e15)
        put_format(text, "%.1f", value);
    else
        put_format(text, "%.15g", value);
}

static void put_hex(struct text *text, const uint8_t *data, uint32_t len)
{
    for (uint32_t i = 0; i < len && text->bytes.len < VALUE_TEXT_MAX; i++)
        put_format(text, "%02x", data[i]);
}

static void put_text(struct text *text, const struct bval *val)
{
    uint32_t len;
    const char *from = bval_str(val, &len);
    if (text->order != NULL) {
        struct buf key = BUF_INIT;
        text->order->append_key(text->order->arg, from, len, &key);
        put(text, "CollationKey(0x");
        put_hex(text, key.data, (uint32_t)key.len);
        put(text, ")");
        buf_deinit(&key);
        return;
    }
    put(text, "\"");
    if (text->bytes.len < VALUE_TEXT_MAX)
        buf_append(&text->bytes, from, len < VALUE_TEXT_MAX ? len : VALUE_TEXT_MAX);
    put(text, "\"");
}

static void put_binary(struct text *text, const struct bval *val)
{
    uint8_t subtype;
    uint32_t len;
    const uint8_t *data = bval_binary(val, &subtype, &len);
    put_format(text, "BinData(%d, ", subtype);
    put_hex(text, data, len);
    put(text, ")");
}

static void put_decimal(struct text *text, const struct bval *val)
{
    bson_decimal128_t decimal;
    char digits[BSON_DECIMAL128_STRING];
    bval_decimal(val, &decimal);
    bson_decimal128_to_string(&decimal, digits);
    put_format(text, "NumberDecimal('%s')", digits);
}

static void put_timestamp(struct text *text, const struct bval *val)
{
    uint64_t bits = (uint64_t)bval_i64(val);
    put_format(text, "Timestamp(%" PRIu32 ", %" PRIu32 ")", (uint32_t)(bits >> 32), (uint32_t)bits);
}

/* Ends of classes have a type and no bytes. */
static void put_scalar(struct text *text, const struct bval *val)
{
    switch (val->type) {
    case BT_DOUBLE:
        put_double(text, bval_f64(val));
        break;
    case BT_INT32:
        put_format(text, "%" PRId32, bval_i32(val));
        break;
    case BT_INT64:
        put_format(text, "%" PRId64, bval_i64(val));
        break;
    case BT_DECIMAL128:
        put_decimal(text, val);
        break;
    case BT_STRING:
    case BT_SYMBOL:
    case BT_CODE:
        put_text(text, val);
        break;
    case BT_OBJECT_ID:
        put(text, "ObjectId('");
        put_hex(text, val->data, val->len);
        put(text, "')");
        break;
    case BT_BOOL:
        put(text, bval_bool(val) ? "true" : "false");
        break;
    case BT_DATE:
        put_format(text, "new Date(%" PRId64 ")", bval_i64(val));
        break;
    case BT_TIMESTAMP:
        put_timestamp(text, val);
        break;
    case BT_BINARY:
        put_binary(text, val);
        break;
    default:
        put(text, bval_type_name(val->type));
    }
}

static void put_value(struct text *text, const struct bval *val)
{
    const char *flags;
    if (val->type == BT_MIN_KEY || val->type == BT_MAX_KEY) {
        put(text, val->type == BT_MIN_KEY ? "MinKey" : "MaxKey");
    } else if (val->type == BT_NULL || val->type == BT_EOO) {
        put(text, "null");
    } else if (val->data == NULL) {
        put(text, bval_type_name(val->type));
    } else if (val->type == BT_DOCUMENT || val->type == BT_ARRAY) {
        put_nested(text, val);
    } else if (val->type == BT_REGEX) {
        const char *pattern = bval_regex(val, &flags);
        put_format(text, "/%.300s/%.20s", pattern, flags);
    } else {
        put_scalar(text, val);
    }
}

/* Backward walks meet the last value first. */
static void put_interval(struct text *text, const struct value_interval *interval, bool backward)
{
    bool open_first = backward ? interval->last_open : interval->first_open;
    bool open_last = backward ? interval->first_open : interval->last_open;
    put(text, open_first ? "(" : "[");
    put_value(text, backward ? &interval->last : &interval->first);
    put(text, ", ");
    put_value(text, backward ? &interval->first : &interval->last);
    buf_append(&text->bytes, open_last ? ")" : "]", 1);
}

static void append_field(bson_t *out, const char *name, const struct plan_scan *scan, uint32_t field)
{
    const struct value_list *list = &scan->bounds.fields[field];
    bool descending = (scan->bounds.descending >> field & 1) != 0;
    bool backward = scan->backward;
    bson_t array;
    struct text text = {.order = strcmp(name, "$_path") == 0 ? NULL : scan->order};
    char digits[16];
    const char *key;
    bson_append_array_begin(out, name, -1, &array);
    if (list->full)
        BSON_APPEND_UTF8(&array, "0", descending != backward ? "[MaxKey, MinKey]" : "[MinKey, MaxKey]");
    for (uint32_t i = 0; !list->full && i < list->count && i < INTERVALS_SHOWN_MAX; i++) {
        buf_clear(&text.bytes);
        put_interval(&text, &list->items[backward ? list->count - 1 - i : i], backward);
        bson_uint32_to_string(i, &key, digits, sizeof digits);
        bson_append_utf8(&array, key, -1, (const char *)text.bytes.data, (int)text.bytes.len);
    }
    bson_append_array_end(out, &array);
    buf_deinit(&text.bytes);
}

/* One end of a range of whole keys. */
static void append_end(bson_t *out, const char *name, const struct plan_scan *scan, struct bdoc end, bool low)
{
    bson_t keys;
    struct biter iter;
    struct belem elem;
    uint32_t at = 0;
    bool given = end.data != NULL && !bdoc_is_empty(end);
    bson_append_document_begin(out, name, -1, &keys);
    biter_init(&iter, given ? end : scan->key_pattern);
    for (; biter_next(&iter, &elem); at++) {
        bool descending = (scan->bounds.descending >> at & 1) != 0;
        const struct bval *open = low != descending ? &BVAL_MIN_KEY : &BVAL_MAX_KEY;
        bval_append(&keys, elem.key, (int)elem.key_len, given ? &elem.val : open);
    }
    bson_append_document_end(out, &keys);
}

void plan_bounds_append(const struct plan_scan *scan, bson_t *out)
{
    if (scan->min_len > 0 || scan->max_len > 0) {
        append_end(out, "startKey", scan, scan->min_key, true);
        append_end(out, "endKey", scan, scan->max_key, false);
        return;
    }
    struct biter iter;
    struct belem elem;
    uint32_t at = 0;
    biter_init(&iter, scan->key_pattern);
    while (at < scan->bounds.field_count && biter_next(&iter, &elem)) {
        const char *name = elem.key;
        if (scan->bounds.field_count > scan->field_count && strstr(elem.key, "$**") != NULL) {
            append_field(out, "$_path", scan, at);
            at++;
            name = scan->wildcard_path != NULL ? scan->wildcard_path : elem.key;
        }
        append_field(out, name, scan, at);
        at++;
    }
}
