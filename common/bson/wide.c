#include "bson/wide.h"

#include "base/check.h"

enum { WIDE_BITS = 64 * WIDE_LIMBS, DIGITS_PER_LIMB = 19 };

static const uint64_t limb_power = 10000000000000000000u; /* 10^19 */

struct wide wide_from_u128(u128 value)
{
    return (struct wide){.limb = {(uint64_t)value, (uint64_t)(value >> 64)}};
}

u128 wide_to_u128(const struct wide *value)
{
    return (u128)value->limb[1] << 64 | value->limb[0];
}

bool wide_is_zero(const struct wide *value)
{
    uint64_t any = 0;
    for (int i = 0; i < WIDE_LIMBS; i++)
        any |= value->limb[i];
    return any == 0;
}

int wide_compare(const struct wide *a, const struct wide *b)
{
    for (int i = WIDE_LIMBS - 1; i >= 0; i--) {
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    }
    return 0;
}

void wide_add(struct wide *to, const struct wide *value)
{
    u128 carry = 0;
    for (int i = 0; i < WIDE_LIMBS; i++) {
        carry += (u128)to->limb[i] + value->limb[i];
        to->limb[i] = (uint64_t)carry;
        carry >>= 64;
    }
    CHECK(carry == 0);
}

void wide_sub(struct wide *from, const struct wide *value)
{
    uint64_t borrow = 0;
    for (int i = 0; i < WIDE_LIMBS; i++) {
        u128 difference = (u128)from->limb[i] - value->limb[i] - borrow;
        from->limb[i] = (uint64_t)difference;
        borrow = (uint64_t)(difference >> 64) & 1;
    }
    CHECK(borrow == 0);
}

void wide_mul_u64(struct wide *value, uint64_t factor)
{
    u128 carry = 0;
    for (int i = 0; i < WIDE_LIMBS; i++) {
        carry += (u128)value->limb[i] * factor;
        value->limb[i] = (uint64_t)carry;
        carry >>= 64;
    }
    CHECK(carry == 0);
}

void wide_mul_u128(struct wide *value, u128 factor)
{
    struct wide high = *value;
    wide_mul_u64(value, (uint64_t)factor);
    wide_mul_u64(&high, (uint64_t)(factor >> 64));
    CHECK(high.limb[WIDE_LIMBS - 1] == 0);
    for (int i = WIDE_LIMBS - 1; i > 0; i--)
        high.limb[i] = high.limb[i - 1];
    high.limb[0] = 0;
    wide_add(value, &high);
}

void wide_scale(struct wide *value, int n)
{
    for (; n > DIGITS_PER_LIMB; n -= DIGITS_PER_LIMB)
        wide_mul_u64(value, limb_power);
    wide_mul_u64(value, (uint64_t)decnum_power_of_ten(n));
}

uint64_t wide_div_u64(struct wide *value, uint64_t divisor)
{
    u128 rest = 0;
    for (int i = WIDE_LIMBS - 1; i >= 0; i--) {
        rest = rest << 64 | value->limb[i];
        value->limb[i] = (uint64_t)(rest / divisor);
        rest %= divisor;
    }
    return (uint64_t)rest;
}

u128 wide_div_u128(struct wide *value, u128 divisor)
{
    u128 rest = 0;
    for (int i = 0; i < WIDE_BITS; i++) {
        rest = rest << 1 | value->limb[WIDE_LIMBS - 1] >> 63;
        wide_shift_left(value);
        if (rest >= divisor) {
            rest -= divisor;
            value->limb[0] |= 1;
        }
    }
    return rest;
}

void wide_shift_left(struct wide *value)
{
    for (int i = WIDE_LIMBS - 1; i > 0; i--)
        value->limb[i] = value->limb[i] << 1 | value->limb[i - 1] >> 63;
    value->limb[0] <<= 1;
}

void wide_shift_right(struct wide *value)
{
    for (int i = 0; i < WIDE_LIMBS - 1; i++)
        value->limb[i] = value->limb[i] >> 1 | value->limb[i + 1] << 63;
    value->limb[WIDE_LIMBS - 1] >>= 1;
}

int wide_digits(const struct wide *value)
{
    struct wide rest = *value;
    int digits = 0;
    while (rest.limb[1] != 0 || rest.limb[2] != 0 || rest.limb[3] != 0 || rest.limb[4] != 0 || rest.limb[5] != 0 ||
           rest.limb[6] != 0 || rest.limb[7] != 0) {
        wide_div_u64(&rest, limb_power);
        digits += DIGITS_PER_LIMB;
    }
    return digits + decnum_digits(rest.limb[0]);
}

struct wide wide_sqrt(const struct wide *value, bool *exact)
{
    struct wide rest = *value;
    struct wide root = {{0}};
    struct wide bit = {{0}};
    bit.limb[WIDE_LIMBS - 1] = UINT64_C(1) << 62; /* the highest power of four */
    for (int i = 0; i < WIDE_BITS / 2; i++) {
        struct wide trial = root;
        wide_add(&trial, &bit);
        wide_shift_right(&root);
        if (wide_compare(&rest, &trial) >= 0) {
            wide_sub(&rest, &trial);
            wide_add(&root, &bit);
        }
        wide_shift_right(&bit);
        wide_shift_right(&bit);
    }
    *exact = wide_is_zero(&rest);
    return root;
}
