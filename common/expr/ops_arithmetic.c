/* $add, $subtract, $multiply, $divide, $mod and roundings. */
#include "expr/expr_tree.h"

#include "bson/decimal.h"

#include <math.h>

enum {
    ERR_ADD_TYPE = 14, /* TypeMismatch since 5.0 */
    ERR_DIVIDE_ZERO = 2,
    ERR_MOD_ZERO = 16610,
    ERR_MOD_TYPE = 16611,
    ERR_UNARY_TYPE = 28765,
    ERR_MULTIPLE_DATES = 16612,
};

static struct bval result(struct expr_scope *s, const struct number *number)
{
    return number_value(s->scratch, number);
}

/* Milliseconds of a date after a number was added. */
static bool date_plus(struct expr_scope *s, int64_t date, const struct number *offset, int sign, struct bval *out)
{
    int64_t ms;
    if (offset->type == BT_DOUBLE || offset->type == BT_DECIMAL128) {
        double number = number_to_f64(offset);
        if (!isfinite(number) || fabs(number) >= 9.2e18)
            return err_set(s->err, ERR_Overflow, "date overflow");
        ms = (int64_t)llround(number);
    } else {
        ms = offset->i64;
    }
    int64_t total;
    bool overflow = sign > 0 ? __builtin_add_overflow(date, ms, &total) : __builtin_sub_overflow(date, ms, &total);
    if (overflow)
        return err_set(s->err, ERR_Overflow, "date overflow");
    *out = make_date(s->scratch, total);
    return true;
}

static bool op_add(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct number_sum sum = {0};
    bool has_date = false;
    int64_t date = 0;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (expr_is_nullish(&args[i])) {
            *out = BVAL_NULL;
            return true;
        }
        if (args[i].type == BT_DATE) {
            if (has_date)
                return err_set(s->err, ERR_MULTIPLE_DATES, "only one date allowed in an $add expression");
            has_date = true;
            date = bval_i64(&args[i]);
        } else if (bval_is_number(&args[i])) {
            struct number number = number_of(&args[i]);
            number_sum_add(&sum, &number);
        } else {
            return err_set(s->err, ERR_ADD_TYPE, "$add only supports numeric or date types, not %s",
                           bval_type_name(args[i].type));
        }
    }
    struct number total = number_sum_result(&sum);
    if (has_date)
        return date_plus(s, date, &total, 1, out);
    *out = result(s, &total);
    return true;
}

static bool op_subtract(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]) || expr_is_nullish(&args[1]))
        return true;
    bool left_date = args[0].type == BT_DATE;
    if (left_date && args[1].type == BT_DATE) {
        int64_t span;
        if (__builtin_sub_overflow(bval_i64(&args[0]), bval_i64(&args[1]), &span))
            return err_set(s->err, ERR_Overflow, "date overflow in $subtract");
        *out = make_i64(s->scratch, span);
        return true;
    }
    if (!bval_is_number(&args[1]) || (!left_date && !bval_is_number(&args[0])))
        return err_set(s->err, ERR_TypeMismatch, "can't $subtract %s from %s", bval_type_name(args[1].type),
                       bval_type_name(args[0].type));
    struct number b = number_of(&args[1]);
    if (left_date)
        return date_plus(s, bval_i64(&args[0]), &b, -1, out);
    struct number a = number_of(&args[0]);
    struct number difference;
    number_subtract(&a, &b, NUMBER_TO_DOUBLE, &difference);
    *out = result(s, &difference);
    return true;
}

static bool op_multiply(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct number product = number_i32(1);
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (expr_is_nullish(&args[i])) {
            *out = BVAL_NULL;
            return true;
        }
        if (!bval_is_number(&args[i]))
            return err_set(s->err, ERR_TypeMismatch, "$multiply only supports numeric types, not %s",
                           bval_type_name(args[i].type));
        struct number number = number_of(&args[i]);
        struct number next;
        number_multiply(&product, &number, NUMBER_TO_DOUBLE, &next);
        product = next;
    }
    *out = result(s, &product);
    return true;
}

/* The two operands of a numeric operator; *null when one of them is nullish. */
static bool two_numbers(struct expr_scope *s, const struct expr *call, const struct bval *args, bool *null,
                        struct number *pair)
{
    *null = expr_is_nullish(&args[0]) || expr_is_nullish(&args[1]);
    if (*null)
        return true;
    if (!bval_is_number(&args[0]) || !bval_is_number(&args[1]))
        return err_set(s->err, call->op->tag, "%s only supports numeric types, not %s and %s", call->op->name,
                       bval_type_name(args[0].type), bval_type_name(args[1].type));
    pair[0] = number_of(&args[0]);
    pair[1] = number_of(&args[1]);
    return true;
}

static bool op_divide(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    bool null;
    struct number n[2];
    *out = BVAL_NULL;
    if (!two_numbers(s, call, args, &null, n))
        return false;
    if (null)
        return true;
    if (number_is_zero(&n[1]))
        return err_set(s->err, ERR_DIVIDE_ZERO, "can't $divide by zero");
    if (number_wider(n[0].type, n[1].type) == BT_DECIMAL128) {
        bson_decimal128_t dec = decimal_div(number_to_decimal(&n[0]), number_to_decimal(&n[1]));
        *out = make_decimal(s->scratch, &dec);
    } else {
        *out = make_f64(s->scratch, number_to_f64(&n[0]) / number_to_f64(&n[1]));
    }
    return true;
}

static bool op_mod(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    bool null;
    struct number n[2];
    *out = BVAL_NULL;
    if (!two_numbers(s, call, args, &null, n))
        return false;
    if (null)
        return true;
    uint8_t type = number_wider(n[0].type, n[1].type);
    if (number_is_zero(&n[1]))
        return err_set(s->err, ERR_MOD_ZERO, "can't $mod by zero");
    if (type == BT_DECIMAL128) {
        bson_decimal128_t dec = decimal_mod(number_to_decimal(&n[0]), number_to_decimal(&n[1]));
        *out = make_decimal(s->scratch, &dec);
    } else if (type == BT_DOUBLE) {
        *out = make_f64(s->scratch, fmod(number_to_f64(&n[0]), number_to_f64(&n[1])));
    } else {
        int64_t rest = n[1].i64 == -1 ? 0 : n[0].i64 % n[1].i64;
        struct number number = number_narrow(rest, type);
        *out = result(s, &number);
    }
    return true;
}

bool expr_one_number(struct expr_scope *s, const struct expr *call, const struct bval *arg, bool *null,
                     struct number *out)
{
    *null = expr_is_nullish(arg);
    if (*null)
        return true;
    if (!bval_is_number(arg))
        return err_set(s->err, ERR_UNARY_TYPE, "%s only supports numeric types, not %s", call->op->name,
                       bval_type_name(arg->type));
    *out = number_of(arg);
    return true;
}

static bool op_abs(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    bool null;
    struct number n;
    *out = BVAL_NULL;
    if (!expr_one_number(s, call, &args[0], &null, &n) || null)
        return null;
    if (n.type == BT_DOUBLE)
        n.f64 = fabs(n.f64);
    else if (n.type == BT_DECIMAL128)
        n.dec = decimal_abs(n.dec);
    else if (n.i64 == INT64_MIN)
        return err_set(s->err, 28680, "can't take $abs of long long min");
    else
        n = number_narrow(n.i64 < 0 ? -n.i64 : n.i64, n.type);
    *out = result(s, &n);
    return true;
}

static bool op_floor_ceil(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    bool null;
    struct number n;
    *out = BVAL_NULL;
    if (!expr_one_number(s, call, &args[0], &null, &n) || null)
        return null;
    bool up = call->op->tag == 1;
    if (n.type == BT_DOUBLE)
        n.f64 = up ? ceil(n.f64) : floor(n.f64);
    else if (n.type == BT_DECIMAL128)
        n.dec = decimal_round(n.dec, 0, up ? DECIMAL_CEIL : DECIMAL_FLOOR);
    *out = result(s, &n);
    return true;
}

/* Rounds an integer to a power of ten; cut off or half to even. */
static bool round_integer(struct expr_scope *s, int64_t value, int digits, bool cut, uint8_t type, struct bval *out)
{
    if (digits >= 19) {
        *out = make_i32(s->scratch, 0);
        return true;
    }
    int64_t unit = 1;
    for (int i = 0; i < digits; i++)
        unit *= 10;
    int64_t rest = value % unit;
    int64_t base = value - rest;
    int64_t twice = rest < 0 ? -rest : rest;
    bool away = !cut && (twice > unit - twice || (twice == unit - twice && (base / unit) % 2 != 0));
    if (away && __builtin_add_overflow(base, value < 0 ? -unit : unit, &base))
        return err_set(s->err, 51080, "invalid conversion from Decimal128 result in $round resulting from arguments");
    struct number n = number_narrow(base, type);
    *out = number_value(s->scratch, &n);
    return true;
}

static bool round_places(struct expr_scope *s, const struct expr *call, const struct bval *arg, int64_t *places)
{
    if (!bval_is_number(arg) || !bval_to_i64(arg, places))
        return err_set(s->err, 51082, "precision argument to  %s must be a integral value", call->op->name);
    if (*places < -20 || *places > 100)
        return err_set(s->err, 51083, "cannot apply %s with precision value %lld value must be in [-20, 100]",
                       call->op->name, (long long)*places);
    return true;
}

static bool op_round(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    bool null;
    struct number n;
    int64_t places = 0;
    bool cut = call->op->tag == 1;
    *out = BVAL_NULL;
    if (!expr_one_number(s, call, &args[0], &null, &n) || null)
        return null;
    if (call->arg_count > 1) {
        if (expr_is_nullish(&args[1]))
            return true;
        if (!round_places(s, call, &args[1], &places))
            return false;
    }
    if (n.type == BT_DECIMAL128) {
        n.dec = decimal_round(n.dec, (int)places, cut ? DECIMAL_TRUNCATE : DECIMAL_HALF_EVEN);
    } else if (n.type == BT_DOUBLE) {
        if (!isfinite(n.f64) || places >= 100)
            places = 0;
        else if (places == 0)
            n.f64 = cut ? trunc(n.f64) : nearbyint(n.f64);
        else
            n.f64 = decimal_to_f64(
                decimal_round(decimal_from_f64(n.f64, true), (int)places, cut ? DECIMAL_TRUNCATE : DECIMAL_HALF_EVEN));
    } else if (places < 0) {
        return round_integer(s, n.i64, (int)-places, cut, n.type, out);
    }
    *out = result(s, &n);
    return true;
}

const struct expr_operator expr_ops_arithmetic[] = {
    {"$add", 0, -1, false, op_add, NULL, NULL, 0},
    {"$subtract", 2, 2, false, op_subtract, NULL, NULL, 0},
    {"$multiply", 0, -1, false, op_multiply, NULL, NULL, 0},
    {"$divide", 2, 2, false, op_divide, NULL, NULL, ERR_TypeMismatch},
    {"$mod", 2, 2, false, op_mod, NULL, NULL, ERR_MOD_TYPE},
    {"$abs", 1, 1, false, op_abs, NULL, NULL, 0},
    {"$floor", 1, 1, false, op_floor_ceil, NULL, NULL, 0},
    {"$ceil", 1, 1, false, op_floor_ceil, NULL, NULL, 1},
    {"$round", 1, 2, false, op_round, NULL, NULL, 0},
    {"$trunc", 1, 2, false, op_round, NULL, NULL, 1},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
