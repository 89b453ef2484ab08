/* Roots, powers, logarithms and trigonometry. Doubles by the C library, decimals by bson/decimal_math.h. */
#include "expr/expr_tree.h"

#include "bson/decimal.h"
#include "bson/decimal_math.h"

#include <float.h>
#include <math.h>

enum {
    ERR_DOMAIN = 50989,
};

struct function {
    double (*f64)(double);
    enum decimal_function dec;
    double least; /* the domain of trigonometric functions, bounds included */
    double most;
};

static const struct function functions[] = {
    {exp, DECIMAL_EXP, -INFINITY, INFINITY},
    {log, DECIMAL_LN, 0, INFINITY},
    {log10, DECIMAL_LOG10, 0, INFINITY},
    {sin, DECIMAL_SIN, -DBL_MAX, DBL_MAX},
    {cos, DECIMAL_COS, -DBL_MAX, DBL_MAX},
    {tan, DECIMAL_TAN, -DBL_MAX, DBL_MAX},
    {asin, DECIMAL_ASIN, -1, 1},
    {acos, DECIMAL_ACOS, -1, 1},
    {atan, DECIMAL_ATAN, -INFINITY, INFINITY},
    {sinh, DECIMAL_SINH, -INFINITY, INFINITY},
    {cosh, DECIMAL_COSH, -INFINITY, INFINITY},
    {tanh, DECIMAL_TANH, -INFINITY, INFINITY},
    {asinh, DECIMAL_ASINH, -INFINITY, INFINITY},
    {acosh, DECIMAL_ACOSH, 1, INFINITY},
    {atanh, DECIMAL_ATANH, -1, 1},
};

enum function_index {
    FUNCTION_EXP,
    FUNCTION_LN,
    FUNCTION_LOG10,
    FUNCTION_SIN,
    FUNCTION_COS,
    FUNCTION_TAN,
    FUNCTION_ASIN,
    FUNCTION_ACOS,
    FUNCTION_ATAN,
    FUNCTION_SINH,
    FUNCTION_COSH,
    FUNCTION_TANH,
    FUNCTION_ASINH,
    FUNCTION_ACOSH,
    FUNCTION_ATANH,
};

static bool is_positive(const struct number *number)
{
    return number_is_nan(number) || (!number_is_negative(number) && !number_is_zero(number));
}

static void apply(struct expr_scope *s, enum function_index which, const struct number *number, struct bval *out)
{
    if (number->type == BT_DECIMAL128) {
        bson_decimal128_t dec = decimal_function(functions[which].dec, number->dec);
        *out = make_decimal(s->scratch, &dec);
    } else {
        *out = make_f64(s->scratch, functions[which].f64(number_to_f64(number)));
    }
}

static bool op_function(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    bool null;
    struct number n;
    enum function_index which = (enum function_index)call->op->tag;
    *out = BVAL_NULL;
    if (!expr_one_number(s, call, &args[0], &null, &n) || null)
        return null;
    if (which == FUNCTION_LN && !is_positive(&n))
        return err_set(s->err, 28766, "$ln's argument must be a positive number");
    if (which == FUNCTION_LOG10 && !is_positive(&n))
        return err_set(s->err, 28761, "$log10's argument must be a positive number");
    double number = number_to_f64(&n);
    const struct function *function = &functions[which];
    bool inside = number >= function->least && number <= function->most;
    if (n.type == BT_DECIMAL128 && isinf(number) && number_is_finite(&n))
        inside = true; /* beyond a double, within decimal */
    if (which >= FUNCTION_SIN && !number_is_nan(&n) && !inside)
        return err_set(s->err, ERR_DOMAIN, "cannot apply %s to %g, value must be in [%g,%g]", call->op->name, number,
                       function->least, function->most);
    apply(s, which, &n, out);
    return true;
}

static bool op_sqrt(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    bool null;
    struct number n;
    *out = BVAL_NULL;
    if (!expr_one_number(s, call, &args[0], &null, &n) || null)
        return null;
    if (number_is_negative(&n) && !number_is_nan(&n))
        return err_set(s->err, 28714, "$sqrt's argument must be greater than or equal to 0");
    if (n.type == BT_DECIMAL128)
        n.dec = decimal_sqrt(n.dec);
    else
        n = number_f64(sqrt(number_to_f64(&n)));
    *out = number_value(s->scratch, &n);
    return true;
}

static bool op_log(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]) || expr_is_nullish(&args[1]))
        return true;
    if (!bval_is_number(&args[0]))
        return err_set(s->err, 28756, "$log's argument must be numeric, not %s", bval_type_name(args[0].type));
    if (!bval_is_number(&args[1]))
        return err_set(s->err, 28757, "$log's base must be numeric, not %s", bval_type_name(args[1].type));
    struct number x = number_of(&args[0]);
    struct number base = number_of(&args[1]);
    if (!is_positive(&x))
        return err_set(s->err, 28758, "$log's argument must be a positive number");
    double base_f64 = number_to_f64(&base);
    if (!isnan(base_f64) && (base_f64 <= 0 || base_f64 == 1))
        return err_set(s->err, 28759, "$log's base must be a positive number not equal to 1");
    if (number_wider(x.type, base.type) != BT_DECIMAL128) {
        *out = make_f64(s->scratch, log(number_to_f64(&x)) / log(base_f64));
        return true;
    }
    bson_decimal128_t dec = number_to_decimal(&x);
    dec = base_f64 == 10
              ? decimal_function(DECIMAL_LOG10, dec)
              : decimal_div(decimal_function(DECIMAL_LN, dec), decimal_function(DECIMAL_LN, number_to_decimal(&base)));
    *out = make_decimal(s->scratch, &dec);
    return true;
}

/* Exact when it fits an int64. */
static bool pow_i64(int64_t base, int64_t exponent, int64_t *out)
{
    int64_t value = 1;
    if (exponent < 0 && (base == 1 || base == -1))
        exponent = exponent % 2 == 0 ? 0 : 1;
    if (exponent < 0 || (exponent > 63 && base != 0 && base != 1 && base != -1))
        return false;
    if (exponent > 63)
        exponent = 2 + exponent % 2;
    for (int64_t i = 0; i < exponent; i++)
        if (__builtin_mul_overflow(value, base, &value))
            return false;
    *out = value;
    return true;
}

static bool op_pow(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]) || expr_is_nullish(&args[1]))
        return true;
    if (!bval_is_number(&args[0]))
        return err_set(s->err, 28762, "$pow's base must be numeric, not %s", bval_type_name(args[0].type));
    if (!bval_is_number(&args[1]))
        return err_set(s->err, 28763, "$pow's exponent must be numeric, not %s", bval_type_name(args[1].type));
    struct number a = number_of(&args[0]);
    struct number b = number_of(&args[1]);
    uint8_t type = number_wider(a.type, b.type);
    int64_t exact;
    struct number value;
    if (number_is_zero(&a) && number_is_negative(&b))
        return err_set(s->err, 28764, "$pow cannot take a base of 0 and a negative exponent");
    if (type == BT_DECIMAL128)
        value = (struct number){.type = type, .dec = decimal_pow(number_to_decimal(&a), number_to_decimal(&b))};
    else if (type != BT_DOUBLE && pow_i64(a.i64, b.i64, &exact))
        value = number_narrow(exact, type);
    else
        value = number_f64(pow(number_to_f64(&a), number_to_f64(&b)));
    *out = number_value(s->scratch, &value);
    return true;
}

static bool op_atan2(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]) || expr_is_nullish(&args[1]))
        return true;
    for (int i = 0; i < 2; i++)
        if (!bval_is_number(&args[i]))
            return err_set(s->err, 51044 + i, "$atan2 only supports numeric types, not %s",
                           bval_type_name(args[i].type));
    struct number y = number_of(&args[0]);
    struct number x = number_of(&args[1]);
    if (number_wider(y.type, x.type) == BT_DECIMAL128) {
        bson_decimal128_t dec = decimal_atan2(number_to_decimal(&y), number_to_decimal(&x));
        *out = make_decimal(s->scratch, &dec);
    } else {
        *out = make_f64(s->scratch, atan2(number_to_f64(&y), number_to_f64(&x)));
    }
    return true;
}

/* tag 0: degrees to radians, 1: back. */
static bool op_angle(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    bool null;
    struct number n;
    bool to_degrees = call->op->tag == 1;
    *out = BVAL_NULL;
    if (!expr_one_number(s, call, &args[0], &null, &n) || null)
        return null;
    if (n.type == BT_DECIMAL128) {
        bson_decimal128_t half_turn = decimal_from_i64(180);
        bson_decimal128_t pi = decimal_pi();
        bson_decimal128_t dec = to_degrees ? decimal_mul(n.dec, decimal_div(half_turn, pi))
                                           : decimal_mul(n.dec, decimal_div(pi, half_turn));
        *out = make_decimal(s->scratch, &dec);
    } else {
        *out = make_f64(s->scratch, number_to_f64(&n) * (to_degrees ? 180.0 / M_PI : M_PI / 180.0));
    }
    return true;
}

const struct expr_operator expr_ops_math[] = {
    {"$sqrt", 1, 1, false, op_sqrt, NULL, NULL, 0},
    {"$exp", 1, 1, false, op_function, NULL, NULL, FUNCTION_EXP},
    {"$ln", 1, 1, false, op_function, NULL, NULL, FUNCTION_LN},
    {"$log10", 1, 1, false, op_function, NULL, NULL, FUNCTION_LOG10},
    {"$log", 2, 2, false, op_log, NULL, NULL, 0},
    {"$pow", 2, 2, false, op_pow, NULL, NULL, 0},
    {"$sin", 1, 1, false, op_function, NULL, NULL, FUNCTION_SIN},
    {"$cos", 1, 1, false, op_function, NULL, NULL, FUNCTION_COS},
    {"$tan", 1, 1, false, op_function, NULL, NULL, FUNCTION_TAN},
    {"$asin", 1, 1, false, op_function, NULL, NULL, FUNCTION_ASIN},
    {"$acos", 1, 1, false, op_function, NULL, NULL, FUNCTION_ACOS},
    {"$atan", 1, 1, false, op_function, NULL, NULL, FUNCTION_ATAN},
    {"$sinh", 1, 1, false, op_function, NULL, NULL, FUNCTION_SINH},
    {"$cosh", 1, 1, false, op_function, NULL, NULL, FUNCTION_COSH},
    {"$tanh", 1, 1, false, op_function, NULL, NULL, FUNCTION_TANH},
    {"$asinh", 1, 1, false, op_function, NULL, NULL, FUNCTION_ASINH},
    {"$acosh", 1, 1, false, op_function, NULL, NULL, FUNCTION_ACOSH},
    {"$atanh", 1, 1, false, op_function, NULL, NULL, FUNCTION_ATANH},
    {"$atan2", 2, 2, false, op_atan2, NULL, NULL, 0},
    {"$degreesToRadians", 1, 1, false, op_angle, NULL, NULL, 0},
    {"$radiansToDegrees", 1, 1, false, op_angle, NULL, NULL, 1},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
