/* A decimal128 taken apart, for the files of this folder. Encoding: IEEE 754-2008, binary integer decimal, as
 * https://github.com/mongodb/specifications/blob/master/source/bson-decimal128/decimal128.md describes it. */
#ifndef SHERD_BSON_DECNUM_H
#define SHERD_BSON_DECNUM_H

#include <bson/bson.h>

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 u128;

enum {
    DECNUM_DIGITS = 34,
    DECNUM_EXPONENT_MIN = -6176,
    DECNUM_EXPONENT_MAX = 6111,
};

enum decnum_kind { DECNUM_FINITE, DECNUM_INFINITE, DECNUM_NAN };

/* (-1)^negative * coefficient * 10^exponent */
struct decnum {
    enum decnum_kind kind;
    bool negative;
    int32_t exponent;
    u128 coefficient; /* below 10^34 */
};

/* 10^n for n = 0..38. */
u128 decnum_power_of_ten(int n);
/* Decimal digits of `value`; 0 has none. */
int decnum_digits(u128 value);

struct decnum decnum_from_decimal(bson_decimal128_t decimal);
struct decnum decnum_from_i64(int64_t number);
/* The parts must be in range already: an exact, unrounded packing. */
bson_decimal128_t decnum_to_decimal(struct decnum number);

/* A finite, non-zero number's exponent of its first digit (1.5e7 has 7) and its coefficient scaled to 34 digits. */
void decnum_normalize(const struct decnum *number, int32_t *exponent, u128 *coefficient);
/* Magnitudes of two finite numbers: below 0, 0, above 0. */
int decnum_compare_magnitude(const struct decnum *a, const struct decnum *b);
/* Magnitude of a finite decimal against a finite double that is not negative, exactly. */
int decnum_compare_magnitude_f64(const struct decnum *a, double b);
/* A whole number within int64, exactly. */
bool decnum_to_i64(const struct decnum *number, int64_t *out);
/* The nearest double. */
double decnum_to_f64(const struct decnum *number);
/* The magnitude of a finite number, rounded down, never above DBL_MAX. */
double decnum_magnitude_towards_zero(const struct decnum *number);

#endif
