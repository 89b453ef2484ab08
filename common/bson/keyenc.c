#include "bson/keyenc.h"

#include "base/check.h"
#include "bson/compare.h"
#include "bson/decnum.h"
#include "bson/keyenc_tags.h"

#include <math.h>
#include <string.h>

enum {
    NUMBER_BYTES_MAX = 1 + 8 + 7 + 17,
    FRACTION_BITS = 52,
    EXPONENT_OFFSET = 0x4000,
};

static void append_value(struct buf *to, const struct bval *val, const struct bval_order *order);

static uint8_t tag_of(uint8_t type)
{
    switch (bval_class(type)) {
    case BCLASS_MIN_KEY:
        return TAG_MIN_KEY;
    case BCLASS_UNDEFINED:
        return TAG_UNDEFINED;
    case BCLASS_NULL:
        return TAG_NULL;
    case BCLASS_NUMBER:
        return TAG_NAN;
    case BCLASS_STRING:
        return TAG_STRING;
    case BCLASS_DOCUMENT:
        return TAG_DOCUMENT;
    case BCLASS_ARRAY:
        return TAG_ARRAY;
    case BCLASS_BINARY:
        return TAG_BINARY;
    case BCLASS_OBJECT_ID:
        return TAG_OBJECT_ID;
    case BCLASS_BOOL:
        return TAG_BOOL;
    case BCLASS_DATE:
        return TAG_DATE;
    case BCLASS_TIMESTAMP:
        return TAG_TIMESTAMP;
    case BCLASS_REGEX:
        return TAG_REGEX;
    case BCLASS_DB_POINTER:
        return TAG_DB_POINTER;
    case BCLASS_CODE:
        return TAG_CODE;
    case BCLASS_CODE_WITH_SCOPE:
        return TAG_CODE_WITH_SCOPE;
    case BCLASS_MAX_KEY:
        return TAG_MAX_KEY;
    }
    UNREACHABLE();
}

/* --- numbers ---------------------------------------------------------------------------------------------------- */

/* A number under construction as a magnitude; `finish_number` inverts it if it is negative. */
struct number {
    uint8_t bytes[NUMBER_BYTES_MAX];
    uint32_t len;
};

static void finish_number(struct buf *to, struct number *number, bool negative)
{
    if (negative) {
        number->bytes[0] = (uint8_t)(TAG_NEGATIVE - number->bytes[0]);
        for (uint32_t i = 1; i < number->len; i++)
            number->bytes[i] = (uint8_t)~number->bytes[i];
    }
    buf_append(to, number->bytes, number->len);
}

/* Tag and integer part; `whole` is 1 up to 2^63 - 1. */
static void put_whole(struct number *number, uint64_t whole, bool fraction_follows)
{
    uint64_t shifted = whole << 1 | fraction_follows;
    uint32_t bytes = (uint32_t)(71 - __builtin_clzll(shifted)) / 8;
    number->bytes[0] = (uint8_t)(TAG_WHOLE + bytes);
    store_be64(number->bytes + 1, shifted << (64 - 8 * bytes));
    number->len = 1 + bytes;
}

/* Tag and a double that is not below 1 and 2^63, or is below 1. */
static void put_double_bits(struct number *number, uint8_t tag, double magnitude, bool more)
{
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    number->bytes[0] = tag;
    store_be64(number->bytes + 1, bits << 1 | more);
    number->len = 9;
}

/* 52 bits, three zero bits, `more`. */
static void put_fraction(struct number *number, uint64_t fraction, bool more)
{
    uint8_t bytes[8];
    store_be64(bytes, fraction << 4 | more);
    memcpy(number->bytes + number->len, bytes + 1, 7);
    number->len += 7;
}

static void put_decimal(struct number *number, const struct decnum *decimal)
{
    int32_t exponent;
    u128 coefficient;
    decnum_normalize(decimal, &exponent, &coefficient);
    uint8_t *at = number->bytes + number->len;
    uint32_t offset = (uint32_t)(exponent + EXPONENT_OFFSET);
    at[0] = (uint8_t)(offset >> 8);
    at[1] = (uint8_t)offset;
    for (int i = 0; i < 15; i++)
        at[2 + i] = (uint8_t)(coefficient >> (8 * (14 - i)));
    number->len += 17;
}

/* The fast paths write straight into the buffer; `flip` is all ones for a negative number. */
static uint32_t write_whole(uint8_t *out, uint64_t whole, bool fraction_follows, uint64_t flip)
{
    uint64_t shifted = whole << 1 | fraction_follows;
    uint32_t bytes = (uint32_t)(71 - __builtin_clzll(shifted)) / 8;
    uint8_t tag = (uint8_t)(TAG_WHOLE + bytes);
    out[0] = flip != 0 ? (uint8_t)(TAG_NEGATIVE - tag) : tag;
    store_be64(out + 1, shifted << (64 - 8 * bytes) ^ flip);
    return 1 + bytes;
}

static void append_i64(struct buf *to, int64_t value)
{
    uint8_t *out = buf_reserve(to, 9);
    if (value == 0) {
        *out = TAG_ZERO;
        to->len++;
    } else if (value == INT64_MIN) {
        struct number number;
        put_double_bits(&number, TAG_LARGE, 0x1p63, false);
        finish_number(to, &number, true);
    } else {
        to->len += write_whole(out, (uint64_t)(value < 0 ? -value : value), false, (uint64_t)(value >> 63));
    }
}

/* Not a number, infinite, below 1, or 2^63 and above. */
static void append_f64_at_the_ends(struct buf *to, double value)
{
    struct number number;
    double magnitude = fabs(value);
    if (isnan(value)) {
        buf_append_u8(to, TAG_NAN);
        return;
    }
    if (magnitude == 0) {
        buf_append_u8(to, TAG_ZERO);
        return;
    }
    if (isinf(value)) {
        number.bytes[0] = TAG_INFINITY;
        number.len = 1;
    } else {
        put_double_bits(&number, magnitude < 1 ? TAG_SMALL : TAG_LARGE, magnitude, false);
    }
    finish_number(to, &number, value < 0);
}

static void append_f64(struct buf *to, double value)
{
    double magnitude = fabs(value);
    if (!(magnitude >= 1 && magnitude < 0x1p63)) {
        append_f64_at_the_ends(to, value);
        return;
    }
    uint8_t *out = buf_reserve(to, 9 + 8);
    uint64_t flip = value < 0 ? UINT64_MAX : 0;
    uint64_t whole = (uint64_t)magnitude;
    double fraction = magnitude - (double)whole;
    uint32_t len = write_whole(out, whole, fraction != 0, flip);
    if (fraction != 0) { /* 7 bytes: 52 bits and four zeros */
        store_be64(out + len, (uint64_t)(fraction * 0x1p52) << 12 ^ flip);
        len += 7;
    }
    to->len += len;
}

/* First 52 bits of numerator / denominator, which is below 1. *more: the quotient has further bits. */
static uint64_t fraction_bits(u128 numerator, u128 denominator, bool *more)
{
    uint64_t bits = 0;
    for (int i = 0; i < FRACTION_BITS; i++) {
        numerator *= 2;
        bool bit = numerator >= denominator;
        if (bit)
            numerator -= denominator;
        bits = bits << 1 | bit;
    }
    *more = numerator != 0;
    return bits;
}

/* A magnitude of 1 up to 2^63, given as whole part and fraction. */
static void put_decimal_whole(struct number *number, const struct decnum *decimal, u128 whole, u128 rest, u128 unit)
{
    put_whole(number, (uint64_t)whole, rest != 0);
    if (rest == 0)
        return;
    bool more;
    uint64_t fraction = fraction_bits(rest, unit, &more);
    put_fraction(number, fraction, more);
    if (more)
        put_decimal(number, decimal);
}

static void put_decimal_double(struct number *number, const struct decnum *decimal, uint8_t tag)
{
    double magnitude = decnum_magnitude_towards_zero(decimal);
    bool more = decnum_compare_magnitude_f64(decimal, magnitude) != 0;
    put_double_bits(number, tag, magnitude, more);
    if (more)
        put_decimal(number, decimal);
}

static void put_decimal_magnitude(struct number *number, const struct decnum *decimal)
{
    int exponent = decimal->exponent;
    int digits = decnum_digits(decimal->coefficient);
    if (digits + exponent <= 0) {
        put_decimal_double(number, decimal, TAG_SMALL);
        return;
    }
    if (digits + exponent <= 19) { /* below 10^19 */
        u128 unit = exponent < 0 ? decnum_power_of_ten(-exponent) : 1;
        u128 scaled = exponent > 0 ? decimal->coefficient * decnum_power_of_ten(exponent) : decimal->coefficient;
        if (scaled / unit < (u128)1 << 63) {
            put_decimal_whole(number, decimal, scaled / unit, scaled % unit, unit);
            return;
        }
    }
    put_decimal_double(number, decimal, TAG_LARGE);
}

static void append_decimal(struct buf *to, const struct bval *val)
{
    bson_decimal128_t bits;
    bval_decimal(val, &bits);
    struct decnum decimal = decnum_from_decimal(bits);
    if (decimal.kind == DECNUM_NAN) {
        buf_append_u8(to, TAG_NAN);
        return;
    }
    if (decimal.kind == DECNUM_FINITE && decimal.coefficient == 0) {
        buf_append_u8(to, TAG_ZERO);
        return;
    }
    struct number number;
    if (decimal.kind == DECNUM_INFINITE) {
        number.bytes[0] = TAG_INFINITY;
        number.len = 1;
    } else {
        put_decimal_magnitude(&number, &decimal);
    }
    finish_number(to, &number, decimal.negative);
}

/* --- strings, documents --------------------------------------------------------------------------------------------
 */

/* The bytes with 0 and 1 escaped, and the end; `out` has room for 2 * len + 1. Eight bytes at a time while none of them
 * is 0 or
 * 1. Returns the place behind. */
static uint8_t *write_string(uint8_t *out, const char *text, size_t len)
{
    const uint8_t *from = (const uint8_t *)text;
    const uint8_t *end = from + len;
    while (end - from >= 8) {
        uint64_t word = load_le64(from);
        uint64_t zero_for_0_or_1 = word & 0xfefefefefefefefe;
        if (((zero_for_0_or_1 - 0x0101010101010101) & ~zero_for_0_or_1 & 0x8080808080808080) != 0)
            break;
        store_le64(out, word);
        out += 8;
        from += 8;
    }
    for (; from < end; from++) {
        if (*from > 1) {
            *out++ = *from;
        } else {
            *out++ = 1;
            *out++ = (uint8_t)(1 + *from);
        }
    }
    *out++ = 0;
    return out;
}

static void append_string(struct buf *to, const char *text, size_t len)
{
    uint8_t *out = buf_reserve(to, 2 * len + 1);
    to->len += (size_t)(write_string(out, text, len) - out);
}

static void append_fields(struct buf *to, struct bdoc doc, const struct bval_order *order)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        buf_append_u8(to, tag_of(elem.val.type));
        append_string(to, elem.key, elem.key_len);
        append_value(to, &elem.val, order);
    }
    buf_append_u8(to, 0);
}

static void append_elements(struct buf *to, struct bdoc array, const struct bval_order *order)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, array);
    while (biter_next(&iter, &elem))
        append_value(to, &elem.val, order);
    buf_append_u8(to, 0);
}

static void append_code_with_scope(struct buf *to, const struct bval *val, const struct bval_order *order)
{
    uint32_t code_len = load_le32(val->data + 4);
    append_string(to, (const char *)val->data + 8, code_len - 1);
    append_fields(to, (struct bdoc){.data = val->data + 8 + code_len, .len = val->len - 8 - code_len}, order);
}

static void append_regex(struct buf *to, const struct bval *val)
{
    const char *options;
    const char *pattern = bval_regex(val, &options);
    append_string(to, pattern, strlen(pattern));
    append_string(to, options, strlen(options));
}

static void append_text(struct buf *to, const struct bval *val)
{
    uint32_t len;
    const char *text = bval_str(val, &len);
    append_string(to, text, len);
}

/* In a collation: its sort key takes the place of the bytes. It is made in the buffer and escaped there, from its end
 * on. */
static void append_ordered_text(struct buf *to, const struct bval *val, const struct bval_order *order)
{
    if (order == NULL) {
        append_text(to, val);
        return;
    }
    uint32_t len;
    const char *text = bval_str(val, &len);
    size_t start = to->len;
    order->append_key(order->arg, text, len, to);
    size_t escapes = 0;
    for (size_t i = start; i < to->len; i++)
        escapes += to->data[i] <= 1;
    (void)buf_reserve(to, escapes + 1);
    uint8_t *from = to->data + to->len;
    to->len += escapes + 1;
    uint8_t *out = to->data + to->len;
    for (*--out = 0; out != from;) {
        *--out = *--from;
        if (*from <= 1) {
            *out = (uint8_t)(1 + *from);
            *--out = 1;
        }
    }
}

/* --- values --------------------------------------------------------------------------------------------------------
 */

/* What follows the type byte of a value that is no number. */
static void append_payload(struct buf *to, const struct bval *val, const struct bval_order *order)
{
    switch (bval_class(val->type)) {
    case BCLASS_STRING:
        append_ordered_text(to, val, order);
        break;
    case BCLASS_CODE:
        append_text(to, val);
        break;
    case BCLASS_DOCUMENT:
        append_fields(to, bval_doc(val), order);
        break;
    case BCLASS_ARRAY:
        append_elements(to, bval_doc(val), order);
        break;
    case BCLASS_BINARY:
        buf_append_be32(to, load_le32(val->data));
        buf_append(to, val->data + 4, val->len - 4);
        break;
    case BCLASS_BOOL:
        buf_append_u8(to, bval_bool(val));
        break;
    case BCLASS_DATE:
        buf_append_be64(to, load_le64(val->data) ^ UINT64_C(1) << 63);
        break;
    case BCLASS_TIMESTAMP:
        buf_append_be64(to, load_le64(val->data));
        break;
    case BCLASS_REGEX:
        append_regex(to, val);
        break;
    case BCLASS_DB_POINTER:
        buf_append_be32(to, val->len);
        buf_append(to, val->data, val->len);
        break;
    case BCLASS_CODE_WITH_SCOPE:
        append_code_with_scope(to, val, order);
        break;
    default: /* the type byte says it all */
        break;
    }
}

static void append_value(struct buf *to, const struct bval *val, const struct bval_order *order)
{
    switch (val->type) {
    case BT_INT32:
        append_i64(to, bval_i32(val));
        break;
    case BT_INT64:
        append_i64(to, bval_i64(val));
        break;
    case BT_DOUBLE:
        append_f64(to, bval_f64(val));
        break;
    case BT_DECIMAL128:
        append_decimal(to, val);
        break;
    case BT_STRING: {
        if (order != NULL) {
            buf_append_u8(to, TAG_STRING);
            append_ordered_text(to, val, order);
            break;
        }
        uint32_t len;
        const char *text = bval_str(val, &len);
        uint8_t *out = buf_reserve(to, 2 + 2 * (size_t)len);
        out[0] = TAG_STRING;
        to->len += (size_t)(write_string(out + 1, text, len) - out);
        break;
    }
    case BT_OBJECT_ID: {
        uint8_t *out = buf_reserve(to, 13);
        out[0] = TAG_OBJECT_ID;
        memcpy(out + 1, val->data, 12);
        to->len += 13;
        break;
    }
    default:
        buf_append_u8(to, tag_of(val->type));
        append_payload(to, val, order);
    }
}

static void invert_from(struct buf *buf, size_t start)
{
    for (size_t i = start; i < buf->len; i++)
        buf->data[i] = (uint8_t)~buf->data[i];
}

void keyenc_append_ordered(struct buf *to, const struct bval *val, bool descending, const struct bval_order *order)
{
    size_t start = to->len;
    append_value(to, val, order);
    if (descending)
        invert_from(to, start);
}

void keyenc_append(struct buf *to, const struct bval *val, bool descending)
{
    keyenc_append_ordered(to, val, descending, NULL);
}

void keyenc_append_i64(struct buf *to, int64_t number, bool descending)
{
    size_t start = to->len;
    append_i64(to, number);
    if (descending)
        invert_from(to, start);
}

void keyenc_append_doc_key(struct buf *to, struct bdoc values, uint64_t descending)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, values);
    for (; biter_next(&iter, &elem); descending >>= 1)
        keyenc_append(to, &elem.val, (descending & 1) != 0);
}

uint64_t keyenc_descending(struct bdoc key_pattern)
{
    struct biter iter;
    struct belem elem;
    uint64_t mask = 0;
    biter_init(&iter, key_pattern);
    for (int i = 0; i < 64 && biter_next(&iter, &elem); i++) {
        double sign;
        if (bval_to_f64(&elem.val, &sign) && sign < 0)
            mask |= UINT64_C(1) << i;
    }
    return mask;
}

void keyenc_append_bound(struct buf *to, struct bdoc bound)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, bound);
    while (biter_next(&iter, &elem)) {
        if (elem.val.type == BT_MAX_KEY)
            buf_append_u8(to, TAG_ABOVE_ALL);
        else
            append_value(to, &elem.val, NULL);
    }
}

void keyenc_append_before_class(struct buf *to, uint8_t type, bool descending)
{
    uint8_t tag = (uint8_t)(tag_of(type) - 1);
    buf_append_u8(to, descending ? (uint8_t)~tag : tag);
}

void keyenc_append_after_class(struct buf *to, uint8_t type, bool descending)
{
    uint8_t first = tag_of(type);
    uint8_t tag = (uint8_t)(first == TAG_NAN ? TAG_INFINITY + 1 : first + 1);
    buf_append_u8(to, descending ? (uint8_t)~tag : tag);
}

int keyenc_compare(const void *a, size_t a_len, const void *b, size_t b_len)
{
    int sign = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return sign != 0 ? sign : (a_len > b_len) - (a_len < b_len);
}
