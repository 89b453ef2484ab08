/* Powers, logarithms and trigonometry of decimal128: computed in IEEE binary128 (113 bits hold every 34-digit
 * coefficient) and rounded to 34 digits. Any thread. The last digit may depend on the C library: nothing inside apply
 * may use these. */
#ifndef SHERD_BSON_DECIMAL_MATH_H
#define SHERD_BSON_DECIMAL_MATH_H

#include "bson/decimal.h"

enum decimal_function {
    DECIMAL_EXP,
    DECIMAL_LN,
    DECIMAL_LOG10,
    DECIMAL_SIN,
    DECIMAL_COS,
    DECIMAL_TAN,
    DECIMAL_ASIN,
    DECIMAL_ACOS,
    DECIMAL_ATAN,
    DECIMAL_SINH,
    DECIMAL_COSH,
    DECIMAL_TANH,
    DECIMAL_ASINH,
    DECIMAL_ACOSH,
    DECIMAL_ATANH,
};

/* NaN outside the function's domain. */
bson_decimal128_t decimal_function(enum decimal_function function, bson_decimal128_t number);
bson_decimal128_t decimal_pow(bson_decimal128_t base, bson_decimal128_t exponent);
bson_decimal128_t decimal_atan2(bson_decimal128_t y, bson_decimal128_t x);
/* 3.14159..., 34 digits. */
bson_decimal128_t decimal_pi(void);

#endif
