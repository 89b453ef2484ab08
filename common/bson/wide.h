/* 512-bit unsigned integers: the exact intermediate results of decimal arithmetic. */
#ifndef SHERD_BSON_WIDE_H
#define SHERD_BSON_WIDE_H

#include "bson/decnum.h"

enum { WIDE_LIMBS = 8 };

struct wide {
    uint64_t limb[WIDE_LIMBS]; /* the lowest first */
};

struct wide wide_from_u128(u128 value);
/* The lowest 128 bits. */
u128 wide_to_u128(const struct wide *value);
bool wide_is_zero(const struct wide *value);
int wide_compare(const struct wide *a, const struct wide *b);
void wide_add(struct wide *to, const struct wide *value);
/* `value` must not be larger. */
void wide_sub(struct wide *from, const struct wide *value);
void wide_mul_u64(struct wide *value, uint64_t factor);
void wide_mul_u128(struct wide *value, u128 factor);
/* times 10^n */
void wide_scale(struct wide *value, int n);
/* Divides in place, returns the remainder. */
uint64_t wide_div_u64(struct wide *value, uint64_t divisor);
/* The same for a divisor below 2^127. */
u128 wide_div_u128(struct wide *value, u128 divisor);
void wide_shift_left(struct wide *value);
void wide_shift_right(struct wide *value);
/* Decimal digits; zero has none. */
int wide_digits(const struct wide *value);
/* The whole part of the square root; *exact: nothing is left. */
struct wide wide_sqrt(const struct wide *value, bool *exact);

#endif
