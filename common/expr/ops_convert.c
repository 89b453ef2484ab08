/* $toString, $toInt, $toLong, $toDouble, $toDecimal, $toBool, $toDate, $toObjectId, $toUUID and $convert. */
#include "bson/decimal.h"
#include "expr/convert_binary.h"
#include "expr/date_text.h"
#include "expr/dates.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_MAX = 400, /* a double's digits without an exponent, 64 binary digits */
    PLAIN_MAX_EXPONENT = 16,
    PLAIN_MIN_EXPONENT = -5,
};

static bool cannot(struct expr_scope *s, const struct bval *val, const char *target)
{
    return err_set(s->err, ERR_CONVERSION, "Unsupported conversion from %s to %s in $convert with no onError value",
                   bval_type_name(val->type), target);
}

static bool unparsable(struct expr_scope *s, const char *text, const char *why)
{
    return err_set(s->err, ERR_CONVERSION, "Failed to parse '%.64s' in $convert with no onError value: %s", text, why);
}

/* The shortest digits that read back as the same double. */
static void print_f64(double value, char *text)
{
    if (isnan(value)) {
        strcpy(text, "NaN");
        return;
    }
    if (isinf(value)) {
        strcpy(text, value < 0 ? "-Infinity" : "Infinity");
        return;
    }
    char scientific[32];
    int digits = 0;
    do
        snprintf(scientific, sizeof scientific, "%.*e", digits, value);
    while (strtod(scientific, NULL) != value && ++digits < 17);
    int exponent = atoi(strchr(scientific, 'e') + 1);
    if (exponent >= PLAIN_MAX_EXPONENT || exponent < PLAIN_MIN_EXPONENT)
        snprintf(text, TEXT_MAX, "%.*g", digits + 1, value);
    else
        snprintf(text, TEXT_MAX, "%.*f", digits > exponent ? digits - exponent : 0, value);
}

bool expr_to_string(struct expr_scope *s, const struct bval *val, struct bval *out)
{
    char text[TEXT_MAX];
    switch (val->type) {
    case BT_STRING:
        *out = *val;
        return true;
    case BT_INT32:
        snprintf(text, sizeof text, "%d", bval_i32(val));
        break;
    case BT_INT64:
        snprintf(text, sizeof text, "%lld", (long long)bval_i64(val));
        break;
    case BT_DOUBLE:
        print_f64(bval_f64(val), text);
        break;
    case BT_DECIMAL128: {
        bson_decimal128_t dec;
        bval_decimal(val, &dec);
        decimal_to_str(&dec, text);
        break;
    }
    case BT_BOOL:
        strcpy(text, bval_bool(val) ? "true" : "false");
        break;
    case BT_OBJECT_ID:
        bson_oid_to_string(bval_oid(val), text);
        break;
    case BT_DATE:
        if (!date_print_iso(bval_i64(val), text, sizeof text))
            return err_set(s->err, 18537,
                           "Could not convert date to string: date component was outside the supported range");
        break;
    case BT_TIMESTAMP:
        snprintf(text, sizeof text, "Timestamp(%u, %u)", load_le32(val->data + 4), load_le32(val->data));
        break;
    default:
        return cannot(s, val, "string");
    }
    *out = make_str(s->scratch, text, strlen(text));
    return true;
}

static bool i64_of_string(struct expr_scope *s, const struct bval *val, int base, int64_t *out)
{
    uint32_t len;
    const char *text = bval_str(val, &len);
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, base == 0 ? 10 : base);
    bool prefixed = base == 16 && strpbrk(text, "xX") != NULL;
    if (len == 0 || end != text + len || isspace((unsigned char)text[0]) || prefixed)
        return unparsable(s, text, "Did not consume whole string.");
    if (errno == ERANGE)
        return unparsable(s, text, "Out of range");
    *out = number;
    return true;
}

static bool whole_of_number(struct expr_scope *s, const struct bval *val, const char *target, int64_t *out)
{
    if (val->type == BT_INT32 || val->type == BT_INT64)
        return bval_to_i64(val, out);
    if (val->type == BT_DECIMAL128) {
        bson_decimal128_t dec;
        bval_decimal(val, &dec);
        if (!decimal_to_i64(dec, DECIMAL_TRUNCATE, out))
            return err_set(s->err, ERR_CONVERSION, "Conversion would overflow target type in $convert (%s)", target);
        return true;
    }
    double number = bval_f64(val);
    if (!isfinite(number))
        return err_set(s->err, ERR_CONVERSION,
                       "Attempt to convert %s value to integer type in $convert with no onError value",
                       isnan(number) ? "NaN" : "infinity");
    if (number >= 9223372036854775808.0 || number < -9223372036854775808.0)
        return err_set(s->err, ERR_CONVERSION, "Conversion would overflow target type in $convert (%s)", target);
    *out = (int64_t)number;
    return true;
}

static bool to_i64(struct expr_scope *s, const struct bval *val, const char *target, int base, int64_t *out)
{
    if (bval_is_number(val))
        return whole_of_number(s, val, target, out);
    if (val->type == BT_STRING)
        return i64_of_string(s, val, base, out);
    if (val->type == BT_BOOL) {
        *out = bval_bool(val) ? 1 : 0;
        return true;
    }
    if (val->type == BT_DATE && strcmp(target, "long") == 0) {
        *out = bval_i64(val);
        return true;
    }
    return cannot(s, val, target);
}

static bool to_f64(struct expr_scope *s, const struct bval *val, double *out)
{
    if (bval_is_number(val))
        return bval_to_f64(val, out);
    if (val->type == BT_BOOL) {
        *out = bval_bool(val) ? 1 : 0;
        return true;
    }
    if (val->type == BT_DATE) {
        *out = (double)bval_i64(val);
        return true;
    }
    if (val->type != BT_STRING)
        return cannot(s, val, "double");
    uint32_t len;
    const char *text = bval_str(val, &len);
    char *end;
    *out = strtod(text, &end);
    if (len == 0 || end != text + len || isspace((unsigned char)text[0]) || strpbrk(text, "xX") != NULL)
        return unparsable(s, text, "Did not consume whole string.");
    bool named = strpbrk(text, "iI") != NULL;
    if (isinf(*out) && !named)
        return unparsable(s, text, "Out of range");
    return true;
}

static bool to_decimal(struct expr_scope *s, const struct bval *val, struct bval *out)
{
    bson_decimal128_t dec;
    uint32_t len;
    if (bval_is_number(val)) {
        dec = decimal_from_bval(val);
    } else if (val->type == BT_BOOL) {
        dec = decimal_from_i64(bval_bool(val) ? 1 : 0);
    } else if (val->type == BT_DATE) {
        dec = decimal_from_i64(bval_i64(val));
    } else if (val->type == BT_STRING) {
        const char *text = bval_str(val, &len);
        if (!decimal_from_str(text, len, &dec))
            return unparsable(s, text, "Failed to parse string to decimal");
    } else {
        return cannot(s, val, "decimal");
    }
    *out = make_decimal(s->scratch, &dec);
    return true;
}

static bool to_date(struct expr_scope *s, const struct bval *val, struct bval *out)
{
    int64_t ms;
    uint32_t len;
    if (val->type == BT_DATE) {
        *out = *val;
        return true;
    }
    if (val->type == BT_OBJECT_ID) {
        *out = make_date(s->scratch, (int64_t)load_be32(val->data) * 1000);
        return true;
    }
    if (val->type == BT_TIMESTAMP) {
        *out = make_date(s->scratch, (int64_t)load_le32(val->data + 4) * 1000);
        return true;
    }
    if (val->type == BT_STRING) {
        const char *text = bval_str(val, &len);
        if (date_text_read(text, len, NULL, &ms) != DATE_READ)
            return err_set(s->err, ERR_CONVERSION, "Error parsing date string '%.64s'", text);
        *out = make_date(s->scratch, ms);
        return true;
    }
    if (val->type == BT_INT32 || !bval_is_number(val))
        return cannot(s, val, "date");
    if (!whole_of_number(s, val, "date", &ms))
        return false;
    *out = make_date(s->scratch, ms);
    return true;
}

static bool to_object_id(struct expr_scope *s, const struct bval *val, struct bval *out)
{
    uint32_t len;
    bson_oid_t oid;
    if (val->type == BT_OBJECT_ID) {
        *out = *val;
        return true;
    }
    if (val->type != BT_STRING)
        return cannot(s, val, "objectId");
    const char *text = bval_str(val, &len);
    if (!bson_oid_is_valid(text, len) || len != 24)
        return unparsable(s, text, "Invalid string length for parsing to OID, expected 24");
    bson_oid_init_from_string(&oid, text);
    *out = (struct bval){.type = BT_OBJECT_ID, .len = 12, .data = arena_copy(s->scratch, &oid, 12)};
    return true;
}

/* An integer in another base than ten. */
static bool print_in_base(struct expr_scope *s, const struct bval *val, int base, struct bval *out)
{
    char text[TEXT_MAX];
    size_t at = sizeof text;
    int64_t number;
    if (!bval_is_number(val) || !bval_to_i64(val, &number))
        return err_set(s->err, ERR_CONVERSION, "$convert: only whole numbers are printed in base %d", base);
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        text[--at] = "0123456789ABCDEF"[rest % (unsigned)base];
        rest /= (unsigned)base;
    } while (rest > 0);
    if (number < 0)
        text[--at] = '-';
    *out = make_str(s->scratch, text + at, sizeof text - at);
    return true;
}

static bool to_integer(struct expr_scope *s, const struct bval *val, const struct convert_options *options,
                       struct bval *out)
{
    int64_t whole;
    bool narrow = options->type == BT_INT32;
    if (val->type == BT_BINARY)
        return convert_binary_to_number(s, val, options, out);
    if (!to_i64(s, val, narrow ? "int" : "long", options->base, &whole))
        return false;
    if (narrow && (whole < INT32_MIN || whole > INT32_MAX))
        return err_set(s->err, ERR_CONVERSION, "Conversion would overflow target type in $convert: %lld",
                       (long long)whole);
    *out = narrow ? make_i32(s->scratch, (int32_t)whole) : make_i64(s->scratch, whole);
    return true;
}

static bool convert(struct expr_scope *s, const struct bval *val, const struct convert_options *options,
                    struct bval *out)
{
    double number;
    switch (options->type) {
    case BT_STRING:
        if (val->type == BT_BINARY)
            return convert_binary_to_string(s, val, options, out);
        return options->base != 0 && bval_is_number(val) ? print_in_base(s, val, options->base, out)
                                                         : expr_to_string(s, val, out);
    case BT_INT32:
    case BT_INT64:
        return to_integer(s, val, options, out);
    case BT_DOUBLE:
        if (val->type == BT_BINARY)
            return convert_binary_to_number(s, val, options, out);
        if (!to_f64(s, val, &number))
            return false;
        *out = make_f64(s->scratch, number);
        return true;
    case BT_DECIMAL128:
        return to_decimal(s, val, out);
    case BT_BOOL:
        *out = make_bool(bval_is_number(val) || val->type == BT_BOOL ? expr_value_is_true(val) : true);
        return true;
    case BT_DATE:
        return to_date(s, val, out);
    case BT_OBJECT_ID:
        return to_object_id(s, val, out);
    case BT_BINARY:
        return convert_to_binary(s, val, options, out);
    default:
        return cannot(s, val, bval_type_name(options->type));
    }
}

static bool op_to(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct convert_options options = {.type = (uint8_t)call->op->tag, .format = FORMAT_AUTO};
    if (options.type == BT_BINARY) {
        options.subtype = BINARY_UUID;
        options.format = FORMAT_UUID;
    }
    *out = BVAL_NULL;
    return expr_is_nullish(&args[0]) || convert(s, &args[0], &options, out);
}

static bool target_type(struct expr_scope *s, const struct bval *to, uint8_t *out)
{
    static const uint8_t types[] = {BT_DOUBLE, BT_STRING, BT_OBJECT_ID, BT_BOOL,      BT_DATE,
                                    BT_INT32,  BT_INT64,  BT_BINARY,    BT_DECIMAL128};
    int64_t number = -1;
    if (to->type != BT_STRING && !bval_is_number(to))
        return err_set(s->err, ERR_FailedToParse, "$convert's 'to' argument must be a string or number, but is %s",
                       bval_type_name(to->type));
    if (bval_is_number(to) && !bval_to_i64(to, &number))
        return err_set(s->err, ERR_FailedToParse, "In $convert, numeric 'to' argument is not an integer");
    for (size_t i = 0; i < sizeof types; i++) {
        if (number == types[i] || bval_is_str(to, bval_type_name(types[i]))) {
            *out = types[i];
            return true;
        }
    }
    for (unsigned type = 1; type < 256; type++) {
        if (number == (int64_t)type || bval_is_str(to, bval_type_name((uint8_t)type))) {
            *out = (uint8_t)type;
            return true; /* a type that nothing converts to */
        }
    }
    return err_set(s->err, bval_is_number(to) ? ERR_FailedToParse : ERR_BadValue, "Unknown type name in $convert");
}

/* A name, a number, or {type, subtype}. */
static bool read_target(struct expr_scope *s, const struct bval *to, struct convert_options *options)
{
    struct bval type = *to;
    struct bval subtype = BVAL_MISSING;
    int64_t number = 0;
    if (to->type == BT_DOCUMENT) {
        if (!bdoc_find(bval_doc(to), "type", &type))
            return err_set(s->err, ERR_FailedToParse, "$convert: 'to' has no 'type'");
        bdoc_find(bval_doc(to), "subtype", &subtype);
    }
    if (!target_type(s, &type, &options->type))
        return false;
    if (subtype.type == BT_EOO)
        return true;
    bool known = bval_is_number(&subtype) && bval_to_i64(&subtype, &number) &&
                 ((number >= 0 && number <= 8) || (number >= 128 && number <= 255));
    if (!known)
        return err_set(s->err, 4341107, "In $convert, 'subtype' is no subtype of binary data");
    options->subtype = (uint8_t)number;
    return true;
}

enum convert_argument {
    CONVERT_INPUT,
    CONVERT_TO,
    CONVERT_ON_ERROR,
    CONVERT_ON_NULL,
    CONVERT_FORMAT,
    CONVERT_BYTE_ORDER,
    CONVERT_BASE,
};

static bool read_options(struct expr_scope *s, const struct expr *call, struct convert_options *options)
{
    struct bval val;
    uint32_t len;
    int64_t base = 0;
    if (call->args[CONVERT_FORMAT] != NULL) {
        if (!expr_run(s, call->args[CONVERT_FORMAT], &val))
            return false;
        if (!expr_is_nullish(&val) && val.type != BT_STRING)
            return err_set(s->err, 4341114, "$convert requires that 'format' be a string, found: %s",
                           bval_type_name(val.type));
        if (val.type == BT_STRING && !convert_format_of_name(bval_str(&val, &len), &options->format))
            return err_set(s->err, 4341125, "Invalid 'format' argument for $convert");
    }
    if (call->args[CONVERT_BYTE_ORDER] != NULL) {
        if (!expr_run(s, call->args[CONVERT_BYTE_ORDER], &val))
            return false;
        options->big_endian = bval_is_str(&val, "big");
        if (!options->big_endian && !bval_is_str(&val, "little"))
            return err_set(s->err, 9130001, "$convert: 'byteOrder' must be \"little\" or \"big\"");
    }
    if (call->args[CONVERT_BASE] != NULL) {
        if (!expr_run(s, call->args[CONVERT_BASE], &val))
            return false;
        bool known =
            bval_is_number(&val) && bval_to_i64(&val, &base) && (base == 2 || base == 8 || base == 10 || base == 16);
        if (!known)
            return err_set(s->err, 3501301, "In $convert, 'base' must be 2, 8, 10 or 16");
        options->base = (int)base;
    }
    return true;
}

static bool op_convert(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)args;
    struct bval input;
    struct bval to;
    struct convert_options options = {.type = BT_EOO};
    *out = BVAL_NULL;
    if (!expr_run(s, call->args[CONVERT_INPUT], &input) || !expr_run(s, call->args[CONVERT_TO], &to))
        return false;
    if (!expr_is_nullish(&to) && !read_target(s, &to, &options))
        return false;
    if (!read_options(s, call, &options))
        return false;
    if (expr_is_nullish(&input))
        return call->args[CONVERT_ON_NULL] == NULL || expr_run(s, call->args[CONVERT_ON_NULL], out);
    if (expr_is_nullish(&to))
        return true;
    if (convert(s, &input, &options, out))
        return true;
    return call->args[CONVERT_ON_ERROR] != NULL && s->err->code == ERR_CONVERSION &&
           expr_run(s, call->args[CONVERT_ON_ERROR], out);
}

const struct expr_operator expr_ops_convert[] = {
    {"$toString", 1, 1, false, op_to, NULL, NULL, BT_STRING},
    {"$toInt", 1, 1, false, op_to, NULL, NULL, BT_INT32},
    {"$toLong", 1, 1, false, op_to, NULL, NULL, BT_INT64},
    {"$toDouble", 1, 1, false, op_to, NULL, NULL, BT_DOUBLE},
    {"$toDecimal", 1, 1, false, op_to, NULL, NULL, BT_DECIMAL128},
    {"$toBool", 1, 1, false, op_to, NULL, NULL, BT_BOOL},
    {"$toDate", 1, 1, false, op_to, NULL, NULL, BT_DATE},
    {"$toObjectId", 1, 1, false, op_to, NULL, NULL, BT_OBJECT_ID},
    {"$toUUID", 1, 1, false, op_to, NULL, NULL, BT_BINARY},
    {"$convert", 2, 7, true, op_convert, "input to onError onNull format byteOrder base", NULL, 0},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
