#include "bson/decimal_math.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

/* glibc's functions of binary128. Declared here since clang hides them; on machines where long double is binary128 they
 * take the same type. */
#if defined(__x86_64__) || defined(__i386__)
__extension__ typedef __float128 f128;
#else
typedef long double f128;
#endif

extern f128 strtof128(const char *text, char **end);
extern int strfromf128(char *text, size_t size, const char *format, f128 value);
extern f128 expf128(f128), logf128(f128), log10f128(f128), powf128(f128, f128), atan2f128(f128, f128);
extern f128 sinf128(f128), cosf128(f128), tanf128(f128), asinf128(f128), acosf128(f128), atanf128(f128);
extern f128 sinhf128(f128), coshf128(f128), tanhf128(f128), asinhf128(f128), acoshf128(f128), atanhf128(f128);
extern f128 truncf128(f128), fabsf128(f128);

enum {
    TEXT_MAX = 64,
};

static f128 to_f128(bson_decimal128_t number)
{
    char text[BSON_DECIMAL128_STRING];
    decimal_to_str(&number, text);
    return strtof128(text, NULL);
}

/* A whole number is written without a fraction, as exact arithmetic would give it. */
static bson_decimal128_t from_f128(f128 value)
{
    char text[TEXT_MAX];
    bson_decimal128_t number;
    f128 limit = strtof128("1e33", NULL);
    bool whole = fabsf128(value) < limit && truncf128(value) == value;
    strfromf128(text, sizeof text, whole ? "%.0f" : "%.33e", value);
    if (strchr(text, 'n') != NULL)
        strcpy(text, strchr(text, 'i') != NULL ? (text[0] == '-' ? "-Infinity" : "Infinity") : "NaN");
    CHECK(decimal_from_str(text, strlen(text), &number));
    return number;
}

bson_decimal128_t decimal_function(enum decimal_function function, bson_decimal128_t number)
{
    static f128 (*const functions[])(f128) = {
        [DECIMAL_EXP] = expf128,     [DECIMAL_LN] = logf128,      [DECIMAL_LOG10] = log10f128,
        [DECIMAL_SIN] = sinf128,     [DECIMAL_COS] = cosf128,     [DECIMAL_TAN] = tanf128,
        [DECIMAL_ASIN] = asinf128,   [DECIMAL_ACOS] = acosf128,   [DECIMAL_ATAN] = atanf128,
        [DECIMAL_SINH] = sinhf128,   [DECIMAL_COSH] = coshf128,   [DECIMAL_TANH] = tanhf128,
        [DECIMAL_ASINH] = asinhf128, [DECIMAL_ACOSH] = acoshf128, [DECIMAL_ATANH] = atanhf128,
    };
    return from_f128(functions[function](to_f128(number)));
}

bson_decimal128_t decimal_pow(bson_decimal128_t base, bson_decimal128_t exponent)
{
    return from_f128(powf128(to_f128(base), to_f128(exponent)));
}

bson_decimal128_t decimal_atan2(bson_decimal128_t y, bson_decimal128_t x)
{
    return from_f128(atan2f128(to_f128(y), to_f128(x)));
}

bson_decimal128_t decimal_pi(void)
{
    static const char digits[] = "3.141592653589793238462643383279503";
    bson_decimal128_t pi;
    CHECK(decimal_from_str(digits, sizeof digits - 1, &pi));
    return pi;
}
