#include "expr/number.h"

#include "bson/decimal.h"
#include "expr/writer.h"

#include <math.h>

struct number number_i32(int32_t value)
{
    return (struct number){.type = BT_INT32, .i64 = value};
}

struct number number_i64(int64_t value)
{
    return (struct number){.type = BT_INT64, .i64 = value};
}

struct number number_f64(double value)
{
    return (struct number){.type = BT_DOUBLE, .f64 = value};
}

struct number number_of(const struct bval *val)
{
    struct number number = {.type = val->type};
    switch (val->type) {
    case BT_INT32:
        number.i64 = bval_i32(val);
        break;
    case BT_INT64:
        number.i64 = bval_i64(val);
        break;
    case BT_DOUBLE:
        number.f64 = bval_f64(val);
        break;
    default:
        bval_decimal(val, &number.dec);
        break;
    }
    return number;
}

struct bval number_value(struct arena *arena, const struct number *number)
{
    switch (number->type) {
    case BT_INT32:
        return make_i32(arena, (int32_t)number->i64);
    case BT_INT64:
        return make_i64(arena, number->i64);
    case BT_DOUBLE:
        return make_f64(arena, number->f64);
    default:
        return make_decimal(arena, &number->dec);
    }
}

double number_to_f64(const struct number *number)
{
    if (number->type == BT_DOUBLE)
        return number->f64;
    if (number->type == BT_DECIMAL128)
        return decimal_to_f64(number->dec);
    return (double)number->i64;
}

bson_decimal128_t number_to_decimal(const struct number *number)
{
    if (number->type == BT_DECIMAL128)
        return number->dec;
    if (number->type == BT_DOUBLE)
        return decimal_from_f64(number->f64, false);
    return decimal_from_i64(number->i64);
}

bool number_is_nan(const struct number *number)
{
    if (number->type == BT_DOUBLE)
        return isnan(number->f64);
    return number->type == BT_DECIMAL128 && decimal_is_nan(number->dec);
}

bool number_is_finite(const struct number *number)
{
    if (number->type == BT_DOUBLE)
        return isfinite(number->f64);
    if (number->type == BT_DECIMAL128)
        return !decimal_is_nan(number->dec) && !decimal_is_infinite(number->dec);
    return true;
}

bool number_is_zero(const struct number *number)
{
    if (number->type == BT_DOUBLE)
        return number->f64 == 0;
    if (number->type == BT_DECIMAL128)
        return decimal_is_zero(number->dec);
    return number->i64 == 0;
}

bool number_is_negative(const struct number *number)
{
    if (number->type == BT_DOUBLE)
        return number->f64 < 0;
    if (number->type == BT_DECIMAL128)
        return decimal_is_negative(number->dec);
    return number->i64 < 0;
}

struct number number_narrow(int64_t value, uint8_t widest)
{
    if (widest == BT_INT32 && value >= INT32_MIN && value <= INT32_MAX)
        return number_i32((int32_t)value);
    return number_i64(value);
}

static int width(uint8_t type)
{
    return type == BT_DECIMAL128 ? 4 : type == BT_DOUBLE ? 3 : type == BT_INT64 ? 2 : type == BT_INT32 ? 1 : 0;
}

uint8_t number_wider(uint8_t a, uint8_t b)
{
    return width(a) >= width(b) ? a : b;
}

enum operation {
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
};

static double f64_apply(enum operation op, double a, double b)
{
    return op == OP_ADD ? a + b : op == OP_SUBTRACT ? a - b : a * b;
}

static bson_decimal128_t decimal_apply(enum operation op, bson_decimal128_t a, bson_decimal128_t b)
{
    return op == OP_ADD ? decimal_add(a, b) : op == OP_SUBTRACT ? decimal_sub(a, b) : decimal_mul(a, b);
}

static bool i64_apply(enum operation op, int64_t a, int64_t b, int64_t *out)
{
    if (op == OP_ADD)
        return !__builtin_add_overflow(a, b, out);
    if (op == OP_SUBTRACT)
        return !__builtin_sub_overflow(a, b, out);
    return !__builtin_mul_overflow(a, b, out);
}

static bool apply(enum operation op, const struct number *a, const struct number *b, enum number_overflow overflow,
                  struct number *out)
{
    uint8_t type = number_wider(a->type, b->type);
    int64_t exact;
    if (type == BT_DECIMAL128) {
        bson_decimal128_t result = decimal_apply(op, number_to_decimal(a), number_to_decimal(b));
        *out = (struct number){.type = BT_DECIMAL128, .dec = result};
    } else if (type == BT_DOUBLE) {
        *out = number_f64(f64_apply(op, number_to_f64(a), number_to_f64(b)));
    } else if (i64_apply(op, a->i64, b->i64, &exact)) {
        *out = number_narrow(exact, type);
    } else if (overflow == NUMBER_TO_DOUBLE) {
        *out = number_f64(f64_apply(op, (double)a->i64, (double)b->i64));
    } else {
        return false;
    }
    return true;
}

bool number_add(const struct number *a, const struct number *b, enum number_overflow overflow, struct number *out)
{
    return apply(OP_ADD, a, b, overflow, out);
}

bool number_subtract(const struct number *a, const struct number *b, enum number_overflow overflow, struct number *out)
{
    return apply(OP_SUBTRACT, a, b, overflow, out);
}

bool number_multiply(const struct number *a, const struct number *b, enum number_overflow overflow, struct number *out)
{
    return apply(OP_MULTIPLY, a, b, overflow, out);
}

static void add_double(struct number_sum *sum, double value)
{
    double total = sum->high + value;
    if (isfinite(total)) {
        double part = total - sum->high;
        sum->low += (sum->high - (total - part)) + (value - part);
    }
    sum->high = total;
}

void number_sum_add(struct number_sum *sum, const struct number *number)
{
    int64_t total;
    sum->widest = sum->widest == BT_EOO ? number->type : number_wider(sum->widest, number->type);
    if (number->type == BT_DECIMAL128) {
        sum->dec = sum->has_decimal ? decimal_add(sum->dec, number->dec) : number->dec;
        sum->has_decimal = true;
    } else if (number->type == BT_DOUBLE) {
        add_double(sum, number->f64);
        sum->has_double = true;
    } else if (!__builtin_add_overflow(sum->integers, number->i64, &total)) {
        sum->integers = total;
    } else {
        /* Both halves are exact as a pair of doubles or close to it. */
        add_double(sum, (double)sum->integers);
        sum->integers = number->i64;
        sum->overflowed = true;
    }
}

double number_sum_f64(const struct number_sum *sum)
{
    struct number_sum whole = *sum;
    /* An int64 splits into two exact doubles. */
    int64_t upper = sum->integers >> 32;
    add_double(&whole, (double)upper * 4294967296.0);
    add_double(&whole, (double)(sum->integers - upper * 4294967296));
    double result = isfinite(whole.high) ? whole.high + whole.low : whole.high;
    return sum->has_decimal ? result + decimal_to_f64(sum->dec) : result;
}

bson_decimal128_t number_sum_decimal(const struct number_sum *sum)
{
    bson_decimal128_t result = decimal_from_i64(sum->integers);
    if (sum->has_double || sum->overflowed) {
        /* Every digit of the doubles counts here, where a conversion gives 15. */
        result = decimal_add(result, decimal_from_f64(sum->high, true));
        if (isfinite(sum->high))
            result = decimal_add(result, decimal_from_f64(sum->low, true));
    }
    return sum->has_decimal ? decimal_add(sum->dec, result) : result;
}

struct number number_sum_result(const struct number_sum *sum)
{
    if (sum->widest == BT_DECIMAL128)
        return (struct number){.type = BT_DECIMAL128, .dec = number_sum_decimal(sum)};
    if (sum->widest == BT_DOUBLE || sum->overflowed)
        return number_f64(number_sum_f64(sum));
    return number_narrow(sum->integers, sum->widest == BT_EOO ? BT_INT32 : sum->widest);
}
