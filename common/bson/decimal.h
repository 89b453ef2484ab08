/* Arithmetic on decimal128 (IEEE 754-2008, 34 digits, half to even), deterministic on every machine: integers only. Any
 * thread. Debian 12 has no libmpdec; logarithms and powers are left to doubles. A result that is too large is infinite,
 * an invalid operation gives NaN, as in MongoDB. */
#ifndef SHERD_BSON_DECIMAL_H
#define SHERD_BSON_DECIMAL_H

#include "bson/value.h"

enum decimal_rounding {
    DECIMAL_HALF_EVEN,
    DECIMAL_TRUNCATE,
    DECIMAL_FLOOR,
    DECIMAL_CEIL,
};

bson_decimal128_t decimal_from_i64(int64_t number);
/* As MongoDB converts: rounded to 15 significant digits unless the double needs more and `exact` is set (then 34). */
bson_decimal128_t decimal_from_f64(double number, bool exact);
/* Any number type; a double as with `exact` false. The value must be a number. */
bson_decimal128_t decimal_from_bval(const struct bval *val);
/* "1.50", "NaN", "-Infinity", "1E+3"; false when `text` is no number. */
bool decimal_from_str(const char *text, size_t len, bson_decimal128_t *out) ERR_WARN_UNUSED;
void decimal_to_str(const bson_decimal128_t *number, char text[BSON_DECIMAL128_STRING]);

bson_decimal128_t decimal_add(bson_decimal128_t a, bson_decimal128_t b);
bson_decimal128_t decimal_sub(bson_decimal128_t a, bson_decimal128_t b);
bson_decimal128_t decimal_mul(bson_decimal128_t a, bson_decimal128_t b);
bson_decimal128_t decimal_div(bson_decimal128_t a, bson_decimal128_t b);
/* Remainder of the truncated division: has the sign of `a`. */
bson_decimal128_t decimal_mod(bson_decimal128_t a, bson_decimal128_t b);
bson_decimal128_t decimal_neg(bson_decimal128_t number);
bson_decimal128_t decimal_abs(bson_decimal128_t number);
bson_decimal128_t decimal_sqrt(bson_decimal128_t number);
/* Rounds to `places` digits after the point (negative: before it). */
bson_decimal128_t decimal_round(bson_decimal128_t number, int places, enum decimal_rounding rounding);

bool decimal_is_nan(bson_decimal128_t number);
bool decimal_is_infinite(bson_decimal128_t number);
bool decimal_is_zero(bson_decimal128_t number);
bool decimal_is_negative(bson_decimal128_t number);
/* The nearest double. */
double decimal_to_f64(bson_decimal128_t number);
/* False when the rounded number is outside int64, or not finite. */
bool decimal_to_i64(bson_decimal128_t number, enum decimal_rounding rounding, int64_t *out) ERR_WARN_UNUSED;

/* A decimal as a value; its 16 bytes of payload go to `storage`. */
struct bval decimal_to_bval(bson_decimal128_t number, uint8_t storage[16]);

#endif
