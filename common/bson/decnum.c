#include "bson/decnum.h"

#include "base/check.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXPONENT_BIAS = 6176, F64_DIGITS_MAX = 767 };

u128 decnum_power_of_ten(int n)
{
    static const uint64_t powers[] = {1u,
                                      10u,
                                      100u,
                                      1000u,
                                      10000u,
                                      100000u,
                                      1000000u,
                                      10000000u,
                                      100000000u,
                                      1000000000u,
                                      10000000000u,
                                      100000000000u,
                                      1000000000000u,
                                      10000000000000u,
                                      100000000000000u,
                                      1000000000000000u,
                                      10000000000000000u,
                                      100000000000000000u,
                                      1000000000000000000u,
                                      10000000000000000000u};
    CHECK(n >= 0 && n <= 38);
    return n <= 19 ? powers[n] : (u128)powers[19] * powers[n - 19];
}

int decnum_digits(u128 value)
{
    int digits = 0;
    while (digits < 38 && value >= decnum_power_of_ten(digits))
        digits++;
    return digits;
}

struct decnum decnum_from_decimal(bson_decimal128_t decimal)
{
    struct decnum out = {.negative = (decimal.high >> 63) != 0};
    unsigned combination = (unsigned)(decimal.high >> 58) & 0x1f;
    if (combination >= 30) {
        out.kind = combination == 31 ? DECNUM_NAN : DECNUM_INFINITE;
        return out;
    }
    if ((combination >> 3) == 3) { /* a coefficient above 2^113: not canonical, stands for zero */
        out.exponent = (int32_t)((decimal.high >> 47) & 0x3fff) - EXPONENT_BIAS;
        return out;
    }
    out.exponent = (int32_t)((decimal.high >> 49) & 0x3fff) - EXPONENT_BIAS;
    out.coefficient = ((u128)(decimal.high & 0x1ffffffffffff) << 64) | decimal.low;
    if (out.coefficient >= decnum_power_of_ten(DECNUM_DIGITS))
        out.coefficient = 0;
    return out;
}

struct decnum decnum_from_i64(int64_t number)
{
    uint64_t magnitude = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    return (struct decnum){.negative = number < 0, .coefficient = magnitude};
}

bson_decimal128_t decnum_to_decimal(struct decnum number)
{
    uint64_t sign = (uint64_t)number.negative << 63;
    if (number.kind == DECNUM_NAN)
        return (bson_decimal128_t){.high = 0x7c00000000000000u};
    if (number.kind == DECNUM_INFINITE)
        return (bson_decimal128_t){.high = sign | 0x7800000000000000u};
    CHECK(number.exponent >= DECNUM_EXPONENT_MIN && number.exponent <= DECNUM_EXPONENT_MAX);
    CHECK(number.coefficient < decnum_power_of_ten(DECNUM_DIGITS));
    bson_decimal128_t out;
    out.low = (uint64_t)number.coefficient;
    out.high = sign | ((uint64_t)(number.exponent + EXPONENT_BIAS) << 49) | (uint64_t)(number.coefficient >> 64);
    return out;
}

void decnum_normalize(const struct decnum *number, int32_t *exponent, u128 *coefficient)
{
    int digits = decnum_digits(number->coefficient);
    *exponent = number->exponent + digits - 1;
    *coefficient = number->coefficient * decnum_power_of_ten(DECNUM_DIGITS - digits);
}

int decnum_compare_magnitude(const struct decnum *a, const struct decnum *b)
{
    if (a->coefficient == 0 || b->coefficient == 0)
        return (a->coefficient != 0) - (b->coefficient != 0);
    int32_t exponent_a;
    int32_t exponent_b;
    u128 coefficient_a;
    u128 coefficient_b;
    decnum_normalize(a, &exponent_a, &coefficient_a);
    decnum_normalize(b, &exponent_b, &coefficient_b);
    if (exponent_a != exponent_b)
        return exponent_a < exponent_b ? -1 : 1;
    return (coefficient_a > coefficient_b) - (coefficient_a < coefficient_b);
}

/* A finite, positive double has at most 767 significant digits, and printf gives them all. */
static int compare_digits_f64(const struct decnum *a, double b)
{
    int32_t exponent;
    u128 coefficient;
    decnum_normalize(a, &exponent, &coefficient);
    char text[F64_DIGITS_MAX + 16];
    snprintf(text, sizeof text, "%.*e", F64_DIGITS_MAX - 1, b);
    int32_t exponent_b = atoi(strchr(text, 'e') + 1);
    if (exponent != exponent_b)
        return exponent < exponent_b ? -1 : 1;
    u128 head = 0;
    bool more = false;
    int digits = 0;
    for (const char *at = text; *at != 'e'; at++) {
        if (*at < '0' || *at > '9') /* the decimal point of whatever locale */
            continue;
        if (digits++ < DECNUM_DIGITS)
            head = head * 10 + (unsigned)(*at - '0');
        else
            more |= *at != '0';
    }
    if (coefficient != head)
        return coefficient < head ? -1 : 1;
    return more ? -1 : 0;
}

int decnum_compare_magnitude_f64(const struct decnum *a, double b)
{
    if (a->coefficient == 0 || b == 0)
        return (a->coefficient != 0) - (b != 0);
    if (isinf(b))
        return -1;
    /* Rounding to the nearest double keeps the order, except that neighbours may become equal. */
    struct decnum magnitude = *a;
    magnitude.negative = false;
    double rounded = decnum_to_f64(&magnitude);
    if (rounded != b)
        return rounded < b ? -1 : 1;
    return compare_digits_f64(a, b);
}

/* 10^exponent times a coefficient that a double holds exactly; powers up to 10^22 are exact too, so one operation
 * rounds right. */
static bool small_to_f64(const struct decnum *number, double *out)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (number->coefficient > (UINT64_C(1) << 53) || number->exponent < -22 || number->exponent > 22)
        return false;
    double coefficient = (double)(uint64_t)number->coefficient;
    *out = number->exponent < 0 ? coefficient / powers[-number->exponent] : coefficient * powers[number->exponent];
    return true;
}

static double text_to_f64(const struct decnum *number)
{
    const uint64_t half = UINT64_C(1000000000000000000); /* 10^18 */
    char text[64];
    snprintf(text, sizeof text, "%" PRIu64 "%018" PRIu64 "e%d", (uint64_t)(number->coefficient / half),
             (uint64_t)(number->coefficient % half), (int)number->exponent);
    return strtod(text, NULL);
}

double decnum_to_f64(const struct decnum *number)
{
    if (number->kind == DECNUM_NAN)
        return (double)NAN;
    double magnitude;
    if (number->kind == DECNUM_INFINITE)
        magnitude = (double)INFINITY;
    else if (!small_to_f64(number, &magnitude))
        magnitude = text_to_f64(number);
    return number->negative ? -magnitude : magnitude;
}

double decnum_magnitude_towards_zero(const struct decnum *number)
{
    struct decnum magnitude = *number;
    magnitude.negative = false;
    double rounded = decnum_to_f64(&magnitude);
    if (isinf(rounded))
        return DBL_MAX;
    return decnum_compare_magnitude_f64(&magnitude, rounded) < 0 ? nextafter(rounded, 0) : rounded;
}

bool decnum_to_i64(const struct decnum *number, int64_t *out)
{
    u128 magnitude = number->coefficient;
    *out = 0;
    if (number->kind != DECNUM_FINITE || magnitude == 0)
        return number->kind == DECNUM_FINITE;
    if (decnum_digits(magnitude) + number->exponent > 19 || number->exponent < -DECNUM_DIGITS)
        return false;
    u128 scale = decnum_power_of_ten(number->exponent < 0 ? -number->exponent : number->exponent);
    if (number->exponent < 0 && magnitude % scale != 0)
        return false;
    magnitude = number->exponent < 0 ? magnitude / scale : magnitude * scale;
    if (magnitude > (u128)INT64_MAX + number->negative)
        return false;
    *out = (int64_t)(number->negative ? 0 - (uint64_t)magnitude : (uint64_t)magnitude);
    return true;
}
