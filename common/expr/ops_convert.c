/* $toString, $toInt, $toLong, $toDouble, $toDecimal, $toBool, $toDate, $toObjectId and $convert. */
#include "expr/expr_tree.h"

#include "bson/decimal.h"
#include "expr/dates.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ERR_CONVERSION = 241,
    TEXT_MAX = 64,
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

/* Shortest digits that read back as the same double, as JavaScript prints them. */
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
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, TEXT_MAX, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
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

static bool i64_of_string(struct expr_scope *s, const struct bval *val, int64_t *out)
{
    uint32_t len;
    const char *text = bval_str(val, &len);
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (len == 0 || *end != 0 || end != text + len || text[0] == ' ')
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

static bool to_i64(struct expr_scope *s, const struct bval *val, const char *target, int64_t *out)
{
    if (bval_is_number(val))
        return whole_of_number(s, val, target, out);
    if (val->type == BT_STRING)
        return i64_of_string(s, val, out);
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
    if (len == 0 || end != text + len || text[0] == ' ' || strpbrk(text, "xX") != NULL)
        return unparsable(s, text, "Did not consume whole string.");
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
        if (!date_parse_iso(text, len, &ms))
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

static bool convert(struct expr_scope *s, const struct bval *val, uint8_t target, struct bval *out)
{
    int64_t whole;
    double number;
    switch (target) {
    case BT_STRING:
        return expr_to_string(s, val, out);
    case BT_INT32:
        if (!to_i64(s, val, "int", &whole))
            return false;
        if (whole < INT32_MIN || whole > INT32_MAX)
            return err_set(s->err, ERR_CONVERSION, "Conversion would overflow target type in $convert: %lld",
                           (long long)whole);
        *out = make_i32(s->scratch, (int32_t)whole);
        return true;
    case BT_INT64:
        if (!to_i64(s, val, "long", &whole))
            return false;
        *out = make_i64(s->scratch, whole);
        return true;
    case BT_DOUBLE:
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
    default:
        return cannot(s, val, bval_type_name(target));
    }
}

static bool op_to(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    *out = BVAL_NULL;
    return expr_is_nullish(&args[0]) || convert(s, &args[0], (uint8_t)call->op->tag, out);
}

static bool target_type(struct expr_scope *s, const struct bval *to, uint8_t *out)
{
    static const uint8_t types[] = {BT_DOUBLE, BT_STRING, BT_OBJECT_ID, BT_BOOL,
                                    BT_DATE,   BT_INT32,  BT_INT64,     BT_DECIMAL128};
    int64_t number = -1;
    if (bval_is_number(to) && !bval_to_i64(to, &number))
        return err_set(s->err, ERR_FailedToParse, "In $convert, numeric 'to' argument is not an integer");
    for (size_t i = 0; i < sizeof types; i++) {
        if (number == types[i] || bval_is_str(to, bval_type_name(types[i]))) {
            *out = types[i];
            return true;
        }
    }
    return err_set(s->err, ERR_BadValue, "Unknown type name in $convert");
}

/* Arguments: input, to, onError, onNull. */
static bool op_convert(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)args;
    struct bval input;
    struct bval to;
    uint8_t target = BT_EOO;
    *out = BVAL_NULL;
    if (!expr_run(s, call->args[0], &input) || !expr_run(s, call->args[1], &to))
        return false;
    if (expr_is_nullish(&input))
        return call->args[3] == NULL || expr_run(s, call->args[3], out);
    if (expr_is_nullish(&to))
        return true;
    if (!target_type(s, &to, &target))
        return false;
    if (convert(s, &input, target, out))
        return true;
    return call->args[2] != NULL && expr_run(s, call->args[2], out);
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
    {"$convert", 2, 4, true, op_convert, "input to onError onNull", NULL, 0},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
