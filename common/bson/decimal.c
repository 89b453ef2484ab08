#include "bson/decimal.h"

#include "base/check.h"
#include "bson/decnum.h"
#include "bson/wide.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    F64_DIGITS = 15,     /* what a conversion from double keeps */
    ALIGN_MAX = 100,     /* a summand this many digits below the other can only decide how the last digit rounds */
    QUOTIENT_DIGITS = 36 /* at least: 34 and something to round by */
};

/* How the digits that are dropped compare with half a unit of the last kept one. */
enum rest { REST_NONE, REST_BELOW_HALF, REST_HALF, REST_ABOVE_HALF };

static bson_decimal128_t nan_decimal(void)
{
    return decnum_to_decimal((struct decnum){.kind = DECNUM_NAN});
}

static bson_decimal128_t infinite_decimal(bool negative)
{
    return decnum_to_decimal((struct decnum){.kind = DECNUM_INFINITE, .negative = negative});
}

/* --- rounding ----------------------------------------------------------------------------------------------------- */

/* Divides by 10^count; `sticky`: there were further digits below already. */
static enum rest drop_digits(struct wide *value, int count, bool sticky)
{
    uint64_t last = 0;
    for (; count > 0; count--) {
        sticky |= last != 0;
        last = wide_div_u64(value, 10);
    }
    if (last == 5)
        return sticky ? REST_ABOVE_HALF : REST_HALF;
    if (last > 5)
        return REST_ABOVE_HALF;
    return last > 0 || sticky ? REST_BELOW_HALF : REST_NONE;
}

static bool rounds_up(const struct wide *kept, enum rest rest, bool negative, enum decimal_rounding rounding)
{
    switch (rounding) {
    case DECIMAL_HALF_EVEN:
        return rest == REST_ABOVE_HALF || (rest == REST_HALF && (kept->limb[0] & 1) != 0);
    case DECIMAL_FLOOR:
        return rest != REST_NONE && negative;
    case DECIMAL_CEIL:
        return rest != REST_NONE && !negative;
    case DECIMAL_TRUNCATE:
        break;
    }
    return false;
}

static void drop_and_round(struct wide *value, int count, bool sticky, bool negative, enum decimal_rounding rounding)
{
    static const struct wide one = {{1}};
    enum rest rest = drop_digits(value, count, sticky);
    if (rounds_up(value, rest, negative, rounding))
        wide_add(value, &one);
}

/* value * 10^exponent, plus a little when `sticky`, as the nearest decimal. `sticky` only with more than 34 digits. */
static bson_decimal128_t finish(bool negative, struct wide value, int exponent, bool sticky)
{
    int excess = wide_digits(&value) - DECNUM_DIGITS;
    if (exponent + (excess > 0 ? excess : 0) < DECNUM_EXPONENT_MIN)
        excess = DECNUM_EXPONENT_MIN - exponent;
    if (excess > 0) {
        drop_and_round(&value, excess, sticky, negative, DECIMAL_HALF_EVEN);
        exponent += excess;
        if (wide_digits(&value) > DECNUM_DIGITS) { /* 999... became 1000... */
            wide_div_u64(&value, 10);
            exponent++;
        }
    }
    if (wide_is_zero(&value) && exponent > DECNUM_EXPONENT_MAX)
        exponent = DECNUM_EXPONENT_MAX;
    while (exponent > DECNUM_EXPONENT_MAX && wide_digits(&value) < DECNUM_DIGITS) {
        wide_mul_u64(&value, 10);
        exponent--;
    }
    if (exponent > DECNUM_EXPONENT_MAX)
        return infinite_decimal(negative);
    return decnum_to_decimal(
        (struct decnum){.negative = negative, .exponent = exponent, .coefficient = wide_to_u128(&value)});
}

/* Takes trailing zeros off while the exponent is below `wanted`. */
static void strip_zeros(struct wide *value, int *exponent, int wanted)
{
    while (*exponent < wanted) {
        struct wide tenth = *value;
        if (wide_is_zero(value) || wide_div_u64(&tenth, 10) != 0)
            break;
        *value = tenth;
        ++*exponent;
    }
    if (wide_is_zero(value))
        *exponent = wanted;
}

/* --- conversion --------------------------------------------------------------------------------------------------- */

bson_decimal128_t decimal_from_i64(int64_t number)
{
    return decnum_to_decimal(decnum_from_i64(number));
}

bson_decimal128_t decimal_from_f64(double number, bool exact)
{
    if (isnan(number))
        return nan_decimal();
    if (isinf(number))
        return infinite_decimal(number < 0);
    if (number == 0)
        return decnum_to_decimal((struct decnum){.negative = signbit(number) != 0});
    int digits = exact ? DECNUM_DIGITS : F64_DIGITS;
    char text[64];
    snprintf(text, sizeof text, "%.*e", digits - 1, fabs(number));
    struct wide value = {{0}};
    const char *at = text;
    for (; *at != 'e'; at++) {
        if (*at < '0' || *at > '9')
            continue;
        wide_mul_u64(&value, 10);
        wide_add(&value, &(struct wide){{(uint64_t)(*at - '0')}});
    }
    int exponent = atoi(at + 1) - (digits - 1);
    if (exact)
        strip_zeros(&value, &exponent, exponent < 0 ? 0 : exponent);
    return finish(number < 0, value, exponent, false);
}

bson_decimal128_t decimal_from_bval(const struct bval *val)
{
    bson_decimal128_t out;
    switch (val->type) {
    case BT_INT32:
        return decimal_from_i64(bval_i32(val));
    case BT_INT64:
        return decimal_from_i64(bval_i64(val));
    case BT_DOUBLE:
        return decimal_from_f64(bval_f64(val), false);
    default:
        CHECK(val->type == BT_DECIMAL128);
        bval_decimal(val, &out);
        return out;
    }
}

bool decimal_from_str(const char *text, size_t len, bson_decimal128_t *out)
{
    return len > 0 && len < INT32_MAX && bson_decimal128_from_string_w_len(text, (int)len, out);
}

void decimal_to_str(const bson_decimal128_t *number, char text[BSON_DECIMAL128_STRING])
{
    bson_decimal128_to_string(number, text);
}

double decimal_to_f64(bson_decimal128_t number)
{
    struct decnum parts = decnum_from_decimal(number);
    return decnum_to_f64(&parts);
}

bool decimal_to_i64(bson_decimal128_t number, enum decimal_rounding rounding, int64_t *out)
{
    struct decnum parts = decnum_from_decimal(decimal_round(number, 0, rounding));
    return decnum_to_i64(&parts, out);
}

struct bval decimal_to_bval(bson_decimal128_t number, uint8_t storage[16])
{
    store_le64(storage, number.low);
    store_le64(storage + 8, number.high);
    return (struct bval){.type = BT_DECIMAL128, .len = 16, .data = storage};
}

/* --- arithmetic -----------------------------------------------------------------------------------------------------
 */

/* Adds two finite numbers whose exponents are at most ALIGN_MAX apart. */
static bson_decimal128_t add_aligned(const struct decnum *a, const struct decnum *b)
{
    int exponent = a->exponent < b->exponent ? a->exponent : b->exponent;
    struct wide left = wide_from_u128(a->coefficient);
    struct wide right = wide_from_u128(b->coefficient);
    wide_scale(&left, a->exponent - exponent);
    wide_scale(&right, b->exponent - exponent);
    bool negative = a->negative;
    if (a->negative == b->negative) {
        wide_add(&left, &right);
    } else if (wide_compare(&left, &right) >= 0) {
        wide_sub(&left, &right);
    } else {
        wide_sub(&right, &left);
        left = right;
        negative = b->negative;
    }
    if (wide_is_zero(&left) && a->negative != b->negative)
        negative = false;
    return finish(negative, left, exponent, false);
}

bson_decimal128_t decimal_add(bson_decimal128_t a, bson_decimal128_t b)
{
    struct decnum left = decnum_from_decimal(a);
    struct decnum right = decnum_from_decimal(b);
    if (left.kind == DECNUM_NAN || right.kind == DECNUM_NAN)
        return nan_decimal();
    if (left.kind == DECNUM_INFINITE)
        return right.kind == DECNUM_INFINITE && right.negative != left.negative ? nan_decimal() : a;
    if (right.kind == DECNUM_INFINITE)
        return b;
    struct decnum *high = left.exponent >= right.exponent ? &left : &right;
    struct decnum *low = high == &left ? &right : &left;
    if (high->exponent - low->exponent > ALIGN_MAX) {
        if (high->coefficient == 0) {
            high->exponent = low->exponent;
        } else {
            low->exponent = high->exponent - ALIGN_MAX;
            low->coefficient = low->coefficient != 0;
        }
    }
    return add_aligned(&left, &right);
}

bson_decimal128_t decimal_sub(bson_decimal128_t a, bson_decimal128_t b)
{
    return decimal_is_nan(b) ? b : decimal_add(a, decimal_neg(b));
}

bson_decimal128_t decimal_mul(bson_decimal128_t a, bson_decimal128_t b)
{
    struct decnum left = decnum_from_decimal(a);
    struct decnum right = decnum_from_decimal(b);
    bool negative = left.negative != right.negative;
    if (left.kind == DECNUM_NAN || right.kind == DECNUM_NAN)
        return nan_decimal();
    if (left.kind == DECNUM_INFINITE || right.kind == DECNUM_INFINITE) {
        bool zero = decimal_is_zero(a) || decimal_is_zero(b);
        return zero ? nan_decimal() : infinite_decimal(negative);
    }
    struct wide product = wide_from_u128(left.coefficient);
    wide_mul_u128(&product, right.coefficient);
    return finish(negative, product, left.exponent + right.exponent, false);
}

bson_decimal128_t decimal_div(bson_decimal128_t a, bson_decimal128_t b)
{
    struct decnum left = decnum_from_decimal(a);
    struct decnum right = decnum_from_decimal(b);
    bool negative = left.negative != right.negative;
    if (left.kind == DECNUM_NAN || right.kind == DECNUM_NAN ||
        (left.kind == DECNUM_INFINITE && right.kind == DECNUM_INFINITE))
        return nan_decimal();
    if (left.kind == DECNUM_INFINITE)
        return infinite_decimal(negative);
    int wanted = left.exponent - right.exponent;
    if (right.kind == DECNUM_INFINITE)
        return decnum_to_decimal((struct decnum){.negative = negative, .exponent = DECNUM_EXPONENT_MIN});
    if (right.coefficient == 0)
        return left.coefficient == 0 ? nan_decimal() : infinite_decimal(negative);
    int scale = QUOTIENT_DIGITS + decnum_digits(right.coefficient) - decnum_digits(left.coefficient);
    if (scale < 0)
        scale = 0;
    struct wide quotient = wide_from_u128(left.coefficient);
    wide_scale(&quotient, scale);
    bool sticky = wide_div_u128(&quotient, right.coefficient) != 0;
    int exponent = wanted - scale;
    if (!sticky)
        strip_zeros(&quotient, &exponent, wanted);
    return finish(negative, quotient, exponent, sticky);
}

/* a mod b for exponents that put `a` at or above b's last digit: by Horner's scheme, one digit at a time. */
static u128 mod_scaled(u128 a, int zeros, u128 b)
{
    u128 rest = a % b;
    for (; zeros > 0 && rest != 0; zeros--)
        rest = rest * 10 % b;
    return rest;
}

bson_decimal128_t decimal_mod(bson_decimal128_t a, bson_decimal128_t b)
{
    struct decnum left = decnum_from_decimal(a);
    struct decnum right = decnum_from_decimal(b);
    if (left.kind != DECNUM_FINITE || right.kind == DECNUM_NAN ||
        (right.kind == DECNUM_FINITE && right.coefficient == 0))
        return nan_decimal();
    if (right.kind == DECNUM_INFINITE)
        return a;
    if (decnum_compare_magnitude(&left, &right) < 0) /* `a`, written with the finer of the two exponents if that fits */
        return decimal_add(a,
                           decnum_to_decimal((struct decnum){.negative = left.negative, .exponent = right.exponent}));
    struct decnum out = {.negative = left.negative};
    if (left.exponent >= right.exponent) {
        out.exponent = right.exponent;
        out.coefficient = mod_scaled(left.coefficient, left.exponent - right.exponent, right.coefficient);
    } else { /* |a| >= |b|, so b has no more digits than a when both are written to a's last place */
        out.exponent = left.exponent;
        u128 divisor = right.coefficient * decnum_power_of_ten(right.exponent - left.exponent);
        out.coefficient = left.coefficient % divisor;
    }
    return decnum_to_decimal(out);
}

bson_decimal128_t decimal_neg(bson_decimal128_t number)
{
    number.high ^= UINT64_C(1) << 63;
    return number;
}

bson_decimal128_t decimal_abs(bson_decimal128_t number)
{
    number.high &= ~(UINT64_C(1) << 63);
    return number;
}

bson_decimal128_t decimal_sqrt(bson_decimal128_t number)
{
    struct decnum parts = decnum_from_decimal(number);
    int wanted = parts.exponent >= 0 ? parts.exponent / 2 : -((1 - parts.exponent) / 2);
    if (parts.kind == DECNUM_FINITE && parts.coefficient == 0)
        return decnum_to_decimal((struct decnum){.negative = parts.negative, .exponent = wanted});
    if (parts.kind == DECNUM_NAN || parts.negative)
        return nan_decimal();
    if (parts.kind == DECNUM_INFINITE)
        return number;
    int scale = 2 * QUOTIENT_DIGITS - decnum_digits(parts.coefficient);
    if ((parts.exponent - scale) % 2 != 0)
        scale++;
    struct wide square = wide_from_u128(parts.coefficient);
    wide_scale(&square, scale);
    bool exact;
    struct wide root = wide_sqrt(&square, &exact);
    int exponent = (parts.exponent - scale) / 2;
    if (exact)
        strip_zeros(&root, &exponent, wanted);
    return finish(false, root, exponent, !exact);
}

bson_decimal128_t decimal_round(bson_decimal128_t number, int places, enum decimal_rounding rounding)
{
    struct decnum parts = decnum_from_decimal(number);
    if (parts.kind != DECNUM_FINITE || parts.exponent >= -places)
        return number;
    struct wide value = wide_from_u128(parts.coefficient);
    int drop = -places - parts.exponent;
    if (drop > DECNUM_DIGITS + 1) { /* all digits go, none is near half a unit */
        value = (struct wide){{parts.coefficient != 0}};
        drop = 2;
    }
    drop_and_round(&value, drop, false, parts.negative, rounding);
    return finish(parts.negative, value, -places, false);
}

bool decimal_is_nan(bson_decimal128_t number)
{
    return decnum_from_decimal(number).kind == DECNUM_NAN;
}

bool decimal_is_infinite(bson_decimal128_t number)
{
    return decnum_from_decimal(number).kind == DECNUM_INFINITE;
}

bool decimal_is_zero(bson_decimal128_t number)
{
    struct decnum parts = decnum_from_decimal(number);
    return parts.kind == DECNUM_FINITE && parts.coefficient == 0;
}

bool decimal_is_negative(bson_decimal128_t number)
{
    return !decimal_is_nan(number) && number.high >> 63 != 0;
}
