#include "bson/compare.h"

#include "bson/decnum.h"

#include <math.h>
#include <string.h>

enum bclass bval_class(uint8_t type)
{
    switch (type) {
    case BT_MIN_KEY:
        return BCLASS_MIN_KEY;
    case BT_MAX_KEY:
        return BCLASS_MAX_KEY;
    case BT_UNDEFINED:
        return BCLASS_UNDEFINED;
    case BT_DOUBLE:
    case BT_INT32:
    case BT_INT64:
    case BT_DECIMAL128:
        return BCLASS_NUMBER;
    case BT_STRING:
    case BT_SYMBOL:
        return BCLASS_STRING;
    case BT_DOCUMENT:
        return BCLASS_DOCUMENT;
    case BT_ARRAY:
        return BCLASS_ARRAY;
    case BT_BINARY:
        return BCLASS_BINARY;
    case BT_OBJECT_ID:
        return BCLASS_OBJECT_ID;
    case BT_BOOL:
        return BCLASS_BOOL;
    case BT_DATE:
        return BCLASS_DATE;
    case BT_TIMESTAMP:
        return BCLASS_TIMESTAMP;
    case BT_REGEX:
        return BCLASS_REGEX;
    case BT_DB_POINTER:
        return BCLASS_DB_POINTER;
    case BT_CODE:
        return BCLASS_CODE;
    case BT_CODE_WITH_SCOPE:
        return BCLASS_CODE_WITH_SCOPE;
    default:
        return BCLASS_NULL;
    }
}

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* --- numbers ---------------------------------------------------------------------------------------------------- */

static int compare_f64(double a, double b)
{
    if (isnan(a) || isnan(b))
        return (isnan(b) != 0) - (isnan(a) != 0);
    return (a > b) - (a < b);
}

static int compare_i64_f64(int64_t a, double b)
{
    if (isnan(b) || b < -0x1p63)
        return 1;
    if (b >= 0x1p63)
        return -1;
    int64_t whole = (int64_t)b; /* towards zero */
    if (a != whole)
        return a < whole ? -1 : 1;
    double fraction = b - (double)whole;
    return (fraction < 0) - (fraction > 0);
}

static int compare_decnum(const struct decnum *a, const struct decnum *b)
{
    if (a->kind == DECNUM_NAN || b->kind == DECNUM_NAN)
        return (b->kind == DECNUM_NAN) - (a->kind == DECNUM_NAN);
    int sign_a = a->kind == DECNUM_FINITE && a->coefficient == 0 ? 0 : a->negative ? -1 : 1;
    int sign_b = b->kind == DECNUM_FINITE && b->coefficient == 0 ? 0 : b->negative ? -1 : 1;
    if (sign_a != sign_b || sign_a == 0)
        return compare_i64(sign_a, sign_b);
    if (a->kind == DECNUM_INFINITE || b->kind == DECNUM_INFINITE)
        return sign_a * ((a->kind == DECNUM_INFINITE) - (b->kind == DECNUM_INFINITE));
    return sign_a * decnum_compare_magnitude(a, b);
}

static int compare_decnum_f64(const struct decnum *a, double b)
{
    if (a->kind == DECNUM_NAN || isnan(b))
        return (isnan(b) != 0) - (a->kind == DECNUM_NAN);
    if (a->kind == DECNUM_INFINITE)
        return compare_f64(a->negative ? -(double)INFINITY : (double)INFINITY, b);
    int sign_a = a->coefficient == 0 ? 0 : a->negative ? -1 : 1;
    int sign_b = (b > 0) - (b < 0);
    if (sign_a != sign_b || sign_a == 0)
        return compare_i64(sign_a, sign_b);
    return sign_a * decnum_compare_magnitude_f64(a, fabs(b));
}

static bool is_integer(const struct bval *val)
{
    return val->type == BT_INT32 || val->type == BT_INT64;
}

static int64_t integer_of(const struct bval *val)
{
    return val->type == BT_INT32 ? bval_i32(val) : bval_i64(val);
}

static struct decnum decnum_of(const struct bval *val)
{
    if (is_integer(val))
        return decnum_from_i64(integer_of(val));
    bson_decimal128_t decimal;
    bval_decimal(val, &decimal);
    return decnum_from_decimal(decimal);
}

int bval_compare_numbers(const struct bval *a, const struct bval *b)
{
    if (is_integer(a) && is_integer(b))
        return compare_i64(integer_of(a), integer_of(b));
    if (a->type == BT_DOUBLE && b->type == BT_DOUBLE)
        return compare_f64(bval_f64(a), bval_f64(b));
    if (is_integer(a) && b->type == BT_DOUBLE)
        return compare_i64_f64(integer_of(a), bval_f64(b));
    if (a->type == BT_DOUBLE && is_integer(b))
        return -compare_i64_f64(integer_of(b), bval_f64(a));
    if (b->type == BT_DOUBLE) {
        struct decnum left = decnum_of(a);
        return compare_decnum_f64(&left, bval_f64(b));
    }
    struct decnum right = decnum_of(b);
    if (a->type == BT_DOUBLE)
        return -compare_decnum_f64(&right, bval_f64(a));
    struct decnum left = decnum_of(a);
    return compare_decnum(&left, &right);
}

/* --- the other classes -------------------------------------------------------------------------------------------- */

static int compare_bytes(const void *a, size_t a_len, const void *b, size_t b_len)
{
    int sign = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return sign != 0 ? sign : compare_u64(a_len, b_len);
}

static int compare_strings(const struct bval *a, const struct bval *b, const struct bval_order *order)
{
    uint32_t a_len;
    uint32_t b_len;
    const char *a_text = bval_str(a, &a_len);
    const char *b_text = bval_str(b, &b_len);
    if (order != NULL)
        return order->compare_strings(order->arg, a_text, a_len, b_text, b_len);
    return compare_bytes(a_text, a_len, b_text, b_len);
}

static int compare_binary(const struct bval *a, const struct bval *b)
{
    uint32_t a_len = load_le32(a->data);
    uint32_t b_len = load_le32(b->data);
    if (a_len != b_len)
        return a_len < b_len ? -1 : 1;
    return memcmp(a->data + 4, b->data + 4, (size_t)a_len + 1); /* subtype, then bytes */
}

static int compare_regex(const struct bval *a, const struct bval *b)
{
    const char *a_options;
    const char *b_options;
    int sign = strcmp(bval_regex(a, &a_options), bval_regex(b, &b_options));
    return sign != 0 ? sign : strcmp(a_options, b_options);
}

static int compare_db_pointer(const struct bval *a, const struct bval *b)
{
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    return memcmp(a->data, b->data, a->len);
}

static int compare_fields(struct bdoc a, struct bdoc b, bool with_names, const struct bval_order *order)
{
    struct biter a_iter;
    struct biter b_iter;
    struct belem a_elem;
    struct belem b_elem;
    biter_init(&a_iter, a);
    biter_init(&b_iter, b);
    for (;;) {
        bool a_more = biter_next(&a_iter, &a_elem);
        bool b_more = biter_next(&b_iter, &b_elem);
        if (!a_more || !b_more)
            return a_more - b_more;
        int sign = (int)bval_class(a_elem.val.type) - (int)bval_class(b_elem.val.type);
        if (sign == 0 && with_names)
            sign = strcmp(a_elem.key, b_elem.key);
        if (sign == 0)
            sign = bval_compare_ordered(&a_elem.val, &b_elem.val, order);
        if (sign != 0)
            return sign;
    }
}

static int compare_code_with_scope(const struct bval *a, const struct bval *b, const struct bval_order *order)
{
    uint32_t a_len = load_le32(a->data + 4);
    uint32_t b_len = load_le32(b->data + 4);
    int sign = compare_bytes(a->data + 8, a_len, b->data + 8, b_len);
    if (sign != 0)
        return sign;
    struct bdoc a_scope = {.data = a->data + 8 + a_len, .len = a->len - 8 - a_len};
    struct bdoc b_scope = {.data = b->data + 8 + b_len, .len = b->len - 8 - b_len};
    return compare_fields(a_scope, b_scope, true, order);
}

int bval_compare_ordered(const struct bval *a, const struct bval *b, const struct bval_order *order)
{
    enum bclass class = bval_class(a->type);
    int sign = (int)class - (int)bval_class(b->type);
    if (sign != 0)
        return sign;
    switch (class) {
    case BCLASS_NUMBER:
        return bval_compare_numbers(a, b);
    case BCLASS_STRING:
        return compare_strings(a, b, order);
    case BCLASS_DOCUMENT:
        return compare_fields(bval_doc(a), bval_doc(b), true, order);
    case BCLASS_ARRAY:
        return compare_fields(bval_doc(a), bval_doc(b), false, order);
    case BCLASS_BINARY:
        return compare_binary(a, b);
    case BCLASS_OBJECT_ID:
        return memcmp(a->data, b->data, 12);
    case BCLASS_BOOL:
        return (int)bval_bool(a) - (int)bval_bool(b);
    case BCLASS_DATE:
        return compare_i64(bval_i64(a), bval_i64(b));
    case BCLASS_TIMESTAMP:
        return compare_u64(load_le64(a->data), load_le64(b->data));
    case BCLASS_REGEX:
        return compare_regex(a, b);
    case BCLASS_DB_POINTER:
        return compare_db_pointer(a, b);
    case BCLASS_CODE:
        return compare_strings(a, b, NULL);
    case BCLASS_CODE_WITH_SCOPE:
        return compare_code_with_scope(a, b, order);
    default: /* classes of one value each */
        return 0;
    }
}

int bval_compare(const struct bval *a, const struct bval *b)
{
    return bval_compare_ordered(a, b, NULL);
}

bool bval_equal(const struct bval *a, const struct bval *b)
{
    return bval_compare_ordered(a, b, NULL) == 0;
}

bool bval_equal_ordered(const struct bval *a, const struct bval *b, const struct bval_order *order)
{
    return bval_compare_ordered(a, b, order) == 0;
}

int bdoc_compare_ordered(struct bdoc a, struct bdoc b, const struct bval_order *order)
{
    return compare_fields(a, b, true, order);
}

int bdoc_compare(struct bdoc a, struct bdoc b)
{
    return compare_fields(a, b, true, NULL);
}

bool bval_order_same(const struct bval_order *a, const struct bval_order *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a->name, b->name) == 0);
}

static bool concerns_a_field(struct bdoc doc)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem))
        if (bval_order_concerns(&elem.val))
            return true;
    return false;
}

bool bval_order_concerns(const struct bval *val)
{
    switch (val->type) {
    case BT_STRING:
    case BT_SYMBOL:
    case BT_CODE_WITH_SCOPE:
        return true;
    case BT_DOCUMENT:
    case BT_ARRAY:
        return concerns_a_field(bval_doc(val));
    default:
        return false;
    }
}

bool bval_in_sorted(const struct bval *val, const struct bval *values, size_t count, const struct bval_order *order)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int compared = bval_compare_ordered(val, &values[middle], order);
        if (compared == 0)
            return true;
        if (compared < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}
