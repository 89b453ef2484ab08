#include "bson/keytypes.h"

#include "bson/keyenc_tags.h"

#include <math.h>
#include <string.h>

enum {
    MARK_INT32 = 0,
    MARK_DOUBLE = 1,
    MARK_INT64 = 2,
    MARK_DECIMAL = 3,
    MARK_DOUBLE_BITS = 4,
    MARK_SYMBOL = 1,
    MARK_MISSING = 1,
    MARK_LOST = 0xff,
    DECIMAL_BYTES = 16,
    DECIMAL_PART = 17, /* of a key: what follows a number's bits when it is not a double */
};

/* ---- writing ---- */

void keytypes_begin(struct keytypes *types, struct buf *out)
{
    *types = (struct keytypes){.out = out, .start = out->len};
}

void keytypes_lose(struct keytypes *types)
{
    types->lost = true;
}

static void mark(struct keytypes *types, uint8_t value)
{
    buf_append_u8(types->out, value);
    types->needed |= value != 0;
}

static void mark_double(struct keytypes *types, const struct bval *val)
{
    double number = bval_f64(val);
    if (isnan(number) || (number == 0 && signbit(number))) {
        mark(types, MARK_DOUBLE_BITS);
        buf_append(types->out, val->data, sizeof number);
    } else {
        mark(types, MARK_DOUBLE);
    }
}

static void add_members(struct keytypes *types, struct bdoc doc, const struct bval_order *order)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (!types->lost && biter_next(&iter, &elem))
        keytypes_add(types, &elem.val, order);
}

void keytypes_add(struct keytypes *types, const struct bval *val, const struct bval_order *order)
{
    switch (val->type) {
    case BT_INT32:
        mark(types, MARK_INT32);
        break;
    case BT_INT64:
        mark(types, MARK_INT64);
        break;
    case BT_DOUBLE:
        mark_double(types, val);
        break;
    case BT_DECIMAL128:
        mark(types, MARK_DECIMAL);
        buf_append(types->out, val->data, DECIMAL_BYTES);
        break;
    case BT_STRING:
    case BT_SYMBOL:
        types->lost |= order != NULL;
        mark(types, val->type == BT_SYMBOL ? MARK_SYMBOL : 0);
        break;
    case BT_NULL:
    case BT_EOO:
        mark(types, val->type == BT_EOO ? MARK_MISSING : 0);
        break;
    case BT_DOCUMENT:
    case BT_ARRAY:
        add_members(types, bval_doc(val), order);
        break;
    case BT_CODE_WITH_SCOPE:
        types->lost = true;
        break;
    default: /* the key says it all */
        break;
    }
}

uint32_t keytypes_end(struct keytypes *types)
{
    if (types->lost) {
        types->out->len = types->start;
        buf_append_u8(types->out, MARK_LOST);
    } else if (!types->needed) {
        types->out->len = types->start;
    }
    return (uint32_t)(types->out->len - types->start);
}

/* ---- reading ---- */

static bool take_value(struct keytypes_reader *reader, const char *name, int name_len, bson_t *out, bool *missing,
                       int depth);

bool keytypes_reader_init(struct keytypes_reader *reader, const uint8_t *key, uint32_t key_len, const uint8_t *types,
                          uint32_t types_len)
{
    *reader = (struct keytypes_reader){.key = key, .key_end = key + key_len};
    if (types_len == 0)
        return true;
    reader->marks = types;
    reader->marks_end = types + types_len;
    return types[0] != MARK_LOST;
}

static size_t left(const struct keytypes_reader *reader)
{
    return (size_t)(reader->key_end - reader->key);
}

static bool take_byte(struct keytypes_reader *reader, uint8_t *out)
{
    if (left(reader) == 0)
        return false;
    *out = *reader->key++ ^ reader->flip;
    return true;
}

static bool take_bytes(struct keytypes_reader *reader, uint8_t *out, size_t len)
{
    if (left(reader) < len)
        return false;
    for (size_t i = 0; i < len; i++)
        out[i] = reader->key[i] ^ reader->flip;
    reader->key += len;
    return true;
}

/* `len` further bytes that belong to the mark; NULL: there aren't so many. */
static const uint8_t *mark_bytes(struct keytypes_reader *reader, size_t len)
{
    if (reader->marks == NULL || (size_t)(reader->marks_end - reader->marks) < len)
        return NULL;
    const uint8_t *bytes = reader->marks;
    reader->marks += len;
    return bytes;
}

static bool take_mark(struct keytypes_reader *reader, uint8_t *out)
{
    *out = 0;
    if (reader->marks == NULL)
        return true;
    const uint8_t *byte = mark_bytes(reader, 1);
    if (byte != NULL)
        *out = *byte;
    return byte != NULL;
}

/* ---- numbers ---- */

/* A number as the key has it: exact, unless it goes on in a decimal's part. */
struct number {
    bool negative;
    uint64_t whole;    /* of 1 up to 2^63 */
    uint64_t fraction; /* 52 bits */
    uint64_t bits;     /* of the double, when `is_bits` */
    bool is_bits;
};

static bool take_be(struct keytypes_reader *reader, uint32_t bytes, uint8_t flip, uint64_t *out)
{
    uint8_t at[8] = {0};
    if (!take_bytes(reader, at + 8 - bytes, bytes))
        return false;
    for (uint32_t i = 8 - bytes; i < 8; i++)
        at[i] ^= flip;
    *out = load_be64(at);
    return true;
}

static bool skip(struct keytypes_reader *reader, size_t len)
{
    if (left(reader) < len)
        return false;
    reader->key += len;
    return true;
}

/* The rest of a number of that tag. */
static bool take_number(struct keytypes_reader *reader, uint8_t tag, struct number *out)
{
    *out = (struct number){0};
    if (tag == TAG_NAN || tag == TAG_ZERO)
        return true;
    out->negative = tag < TAG_ZERO;
    uint8_t flip = out->negative ? 0xff : 0;
    uint8_t magnitude = out->negative ? (uint8_t)(TAG_NEGATIVE - tag) : tag;
    uint64_t bits = 0;
    if (magnitude == TAG_INFINITY) {
        out->is_bits = true;
        out->bits = UINT64_C(0x7ff) << 52;
        return true;
    }
    if (magnitude == TAG_SMALL || magnitude == TAG_LARGE) {
        out->is_bits = true;
        if (!take_be(reader, 8, flip, &bits))
            return false;
        out->bits = bits >> 1;
        return (bits & 1) == 0 || skip(reader, DECIMAL_PART);
    }
    if (!take_be(reader, (uint32_t)(magnitude - TAG_WHOLE), flip, &bits))
        return false;
    out->whole = bits >> 1;
    if ((bits & 1) == 0)
        return true;
    if (!take_be(reader, 7, flip, &bits))
        return false;
    out->fraction = bits >> 4;
    return (bits & 1) == 0 || skip(reader, DECIMAL_PART);
}

static double double_of(const struct number *number)
{
    double magnitude = (double)number->whole + (double)number->fraction * 0x1p-52;
    if (number->is_bits)
        memcpy(&magnitude, &number->bits, sizeof magnitude);
    return number->negative ? -magnitude : magnitude;
}

/* INT64_MIN is the only integer that stands as a double's bits. */
static int64_t integer_of(const struct number *number)
{
    if (number->is_bits)
        return INT64_MIN;
    return number->negative ? -(int64_t)number->whole : (int64_t)number->whole;
}

static bool append_decimal(struct keytypes_reader *reader, const char *name, int name_len, bson_t *out)
{
    const uint8_t *bytes = mark_bytes(reader, DECIMAL_BYTES);
    struct bval val = {.type = BT_DECIMAL128, .len = DECIMAL_BYTES, .data = bytes};
    if (bytes != NULL)
        bval_append(out, name, name_len, &val);
    return bytes != NULL;
}

static bool append_double_bits(struct keytypes_reader *reader, const char *name, int name_len, bson_t *out)
{
    const uint8_t *bytes = mark_bytes(reader, sizeof(double));
    struct bval val = {.type = BT_DOUBLE, .len = sizeof(double), .data = bytes};
    if (bytes != NULL)
        bval_append(out, name, name_len, &val);
    return bytes != NULL;
}

static bool append_number(struct keytypes_reader *reader, uint8_t tag, const char *name, int name_len, bson_t *out)
{
    struct number number;
    uint8_t kind;
    if (!take_number(reader, tag, &number) || !take_mark(reader, &kind))
        return false;
    switch (kind) {
    case MARK_INT32:
        return bson_append_int32(out, name, name_len, (int32_t)integer_of(&number));
    case MARK_INT64:
        return bson_append_int64(out, name, name_len, integer_of(&number));
    case MARK_DOUBLE:
        return bson_append_double(out, name, name_len, double_of(&number));
    case MARK_DECIMAL:
        return append_decimal(reader, name, name_len, out);
    case MARK_DOUBLE_BITS:
        return append_double_bits(reader, name, name_len, out);
    default:
        return false;
    }
}

/* ---- strings, documents ---- */

/* The bytes of a STRING, appended to `text` without their escapes, with a NUL behind that isn't counted in len. */
static bool take_string(struct keytypes_reader *reader, struct buf *text)
{
    for (;;) {
        uint8_t byte;
        if (!take_byte(reader, &byte))
            return false;
        if (byte == 0) {
            *buf_reserve(text, 1) = 0;
            return true;
        }
        if (byte == 1) {
            if (!take_byte(reader, &byte) || byte == 0)
                return false;
            byte--;
        }
        buf_append_u8(text, byte);
    }
}

static bool append_text(struct keytypes_reader *reader, uint8_t tag, const char *name, int name_len, bson_t *out)
{
    struct buf text = BUF_INIT;
    uint8_t kind = 0;
    buf_append_le32(&text, 0);
    bool ok = take_string(reader, &text) && (tag == TAG_CODE || take_mark(reader, &kind));
    if (ok) {
        text.len++; /* the NUL */
        store_le32(text.data, (uint32_t)text.len - 4);
        struct bval val = {.type = BT_STRING, .len = (uint32_t)text.len, .data = text.data};
        if (tag == TAG_CODE)
            val.type = BT_CODE;
        else if (kind == MARK_SYMBOL)
            val.type = BT_SYMBOL;
        bval_append(out, name, name_len, &val);
    }
    buf_deinit(&text);
    return ok;
}

static bool append_regex(struct keytypes_reader *reader, const char *name, int name_len, bson_t *out)
{
    struct buf text = BUF_INIT;
    bool ok = take_string(reader, &text);
    text.len += ok; /* the pattern's NUL */
    ok = ok && take_string(reader, &text);
    if (ok) {
        struct bval val = {.type = BT_REGEX, .len = (uint32_t)text.len + 1, .data = text.data};
        bval_append(out, name, name_len, &val);
    }
    buf_deinit(&text);
    return ok;
}

static bool take_fields(struct keytypes_reader *reader, bson_t *out, int depth)
{
    bool ok = true;
    struct buf name = BUF_INIT;
    while (ok) {
        uint8_t class_tag;
        bool missing;
        ok = take_byte(reader, &class_tag);
        if (!ok || class_tag == 0)
            break;
        buf_clear(&name);
        ok = take_string(reader, &name) &&
             take_value(reader, (const char *)name.data, (int)name.len, out, &missing, depth);
    }
    buf_deinit(&name);
    return ok;
}

static bool take_elements(struct keytypes_reader *reader, bson_t *out, int depth)
{
    for (uint32_t i = 0;; i++) {
        char digits[16];
        const char *name;
        bool missing;
        if (left(reader) == 0)
            return false;
        if ((*reader->key ^ reader->flip) == 0) {
            reader->key++;
            return true;
        }
        size_t name_len = bson_uint32_to_string(i, &name, digits, sizeof digits);
        if (!take_value(reader, name, (int)name_len, out, &missing, depth))
            return false;
    }
}

static bool append_members(struct keytypes_reader *reader, uint8_t tag, const char *name, int name_len, bson_t *out,
                           int depth)
{
    bson_t child;
    if (depth == 0)
        return false;
    if (tag == TAG_DOCUMENT) {
        bson_append_document_begin(out, name, name_len, &child);
        bool ok = take_fields(reader, &child, depth - 1);
        return bson_append_document_end(out, &child) && ok;
    }
    bson_append_array_begin(out, name, name_len, &child);
    bool ok = take_elements(reader, &child, depth - 1);
    return bson_append_array_end(out, &child) && ok;
}

/* ---- the others ---- */

/* A payload of `len` bytes that stands in the key as it is. */
static bool append_raw(struct keytypes_reader *reader, uint8_t type, uint32_t len, const char *name, int name_len,
                       bson_t *out)
{
    if (left(reader) < len)
        return false;
    struct buf payload = BUF_INIT;
    if (type == BT_BINARY)
        buf_append_le32(&payload, len - 1);
    uint8_t *to = buf_reserve(&payload, len);
    bool ok = take_bytes(reader, to, len);
    payload.len += len;
    struct bval val = {.type = type, .len = (uint32_t)payload.len, .data = payload.data};
    bval_append(out, name, name_len, &val);
    buf_deinit(&payload);
    return ok;
}

static bool append_sized(struct keytypes_reader *reader, uint8_t type, const char *name, int name_len, bson_t *out)
{
    uint64_t len;
    if (!take_be(reader, 4, 0, &len) || len >= left(reader) + (type == BT_DB_POINTER))
        return false;
    return append_raw(reader, type, (uint32_t)len + (type == BT_BINARY), name, name_len, out);
}

static bool append_be64(struct keytypes_reader *reader, uint8_t tag, const char *name, int name_len, bson_t *out)
{
    uint64_t bits;
    if (!take_be(reader, 8, 0, &bits))
        return false;
    if (tag == TAG_DATE)
        return bson_append_date_time(out, name, name_len, (int64_t)(bits ^ UINT64_C(1) << 63));
    return bson_append_timestamp(out, name, name_len, (uint32_t)(bits >> 32), (uint32_t)bits);
}

static bool append_null(struct keytypes_reader *reader, const char *name, int name_len, bson_t *out, bool *missing)
{
    uint8_t kind;
    if (!take_mark(reader, &kind))
        return false;
    *missing = kind == MARK_MISSING;
    return *missing || bson_append_null(out, name, name_len);
}

static bool append_bool(struct keytypes_reader *reader, const char *name, int name_len, bson_t *out)
{
    uint8_t value;
    return take_byte(reader, &value) && bson_append_bool(out, name, name_len, value != 0);
}

static bool take_value(struct keytypes_reader *reader, const char *name, int name_len, bson_t *out, bool *missing,
                       int depth)
{
    uint8_t tag;
    *missing = false;
    if (!take_byte(reader, &tag))
        return false;
    if (tag >= TAG_NAN && tag <= TAG_INFINITY)
        return append_number(reader, tag, name, name_len, out);
    switch (tag) {
    case TAG_MIN_KEY:
        return bson_append_minkey(out, name, name_len);
    case TAG_UNDEFINED:
        return bson_append_undefined(out, name, name_len);
    case TAG_NULL:
        return append_null(reader, name, name_len, out, missing);
    case TAG_STRING:
    case TAG_CODE:
        return append_text(reader, tag, name, name_len, out);
    case TAG_DOCUMENT:
    case TAG_ARRAY:
        return append_members(reader, tag, name, name_len, out, depth);
    case TAG_BINARY:
        return append_sized(reader, BT_BINARY, name, name_len, out);
    case TAG_OBJECT_ID:
        return append_raw(reader, BT_OBJECT_ID, 12, name, name_len, out);
    case TAG_BOOL:
        return append_bool(reader, name, name_len, out);
    case TAG_DATE:
    case TAG_TIMESTAMP:
        return append_be64(reader, tag, name, name_len, out);
    case TAG_REGEX:
        return append_regex(reader, name, name_len, out);
    case TAG_DB_POINTER:
        return append_sized(reader, BT_DB_POINTER, name, name_len, out);
    case TAG_MAX_KEY:
        return bson_append_maxkey(out, name, name_len);
    default:
        return false;
    }
}

bool keytypes_take(struct keytypes_reader *reader, bool descending, const char *name, bson_t *out, bool *missing)
{
    reader->flip = descending ? 0xff : 0;
    return take_value(reader, name, -1, out, missing, BDOC_MAX_WIRE_DEPTH);
}
