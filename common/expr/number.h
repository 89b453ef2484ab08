/* Numbers of four types with MongoDB's promotion rules, for expressions, accumulators, $inc and $mul. Pure; any thread.
 */
#ifndef SHERD_EXPR_NUMBER_H
#define SHERD_EXPR_NUMBER_H

#include "base/arena.h"
#include "bson/value.h"

struct number {
    uint8_t type; /* BT_INT32, BT_INT64, BT_DOUBLE or BT_DECIMAL128 */
    union {
        int64_t i64; /* of both integer types */
        double f64;
        bson_decimal128_t dec;
    };
};

struct number number_i32(int32_t value);
struct number number_i64(int64_t value);
struct number number_f64(double value);
/* The value must be a number. */
struct number number_of(const struct bval *val);
struct bval number_value(struct arena *arena, const struct number *number);
double number_to_f64(const struct number *number);
bson_decimal128_t number_to_decimal(const struct number *number);
bool number_is_nan(const struct number *number);
bool number_is_finite(const struct number *number);
bool number_is_zero(const struct number *number);
bool number_is_negative(const struct number *number);
/* An int64 made as small as it may be: int32 when it fits and `widest` is BT_INT32. */
struct number number_narrow(int64_t value, uint8_t widest);
/* The wider of two number types: int32 < int64 < double < decimal. */
uint8_t number_wider(uint8_t a, uint8_t b);

/* What happens when int64 is too small. */
enum number_overflow {
    NUMBER_TO_DOUBLE, /* expressions */
    NUMBER_REFUSE,    /* updates */
};

/* int32 overflows into int64; int64 as `overflow` says. False only with NUMBER_REFUSE. */
bool number_add(const struct number *a, const struct number *b, enum number_overflow overflow, struct number *out);
bool number_subtract(const struct number *a, const struct number *b, enum number_overflow overflow, struct number *out);
bool number_multiply(const struct number *a, const struct number *b, enum number_overflow overflow, struct number *out);

/* A running sum that keeps integers exact, compensates doubles (Knuth's two-sum) and turns decimal with the first
 * decimal. */
struct number_sum {
    uint8_t widest;        /* widest type seen; BT_EOO: nothing yet */
    bool overflowed;       /* the integers are in `high` now */
    int64_t integers;      /* exact part */
    double high;           /* sum of doubles (and of integers after an overflow) */
    double low;            /* its error term */
    bson_decimal128_t dec; /* sum of decimals */
    bool has_decimal;
    bool has_double;
};

void number_sum_add(struct number_sum *sum, const struct number *number);
/* int32 0 for nothing. */
struct number number_sum_result(const struct number_sum *sum);
double number_sum_f64(const struct number_sum *sum);
bson_decimal128_t number_sum_decimal(const struct number_sum *sum);

#endif
