/* $bitAnd, $bitOr, $bitXor, $bitNot on int and long; $tsSecond, $tsIncrement; $binarySize, $bsonSize. */
#include "expr/expr_tree.h"

enum bit_tag {
    BIT_AND,
    BIT_OR,
    BIT_XOR,
};

static bool is_integer(const struct bval *val)
{
    return val->type == BT_INT32 || val->type == BT_INT64;
}

static bool op_bits(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    int64_t bits = call->op->tag == BIT_AND ? -1 : 0;
    uint8_t widest = BT_INT32;
    *out = BVAL_NULL;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (expr_is_nullish(&args[i]))
            return true;
        if (!is_integer(&args[i]))
            return err_set(s->err, ERR_TypeMismatch, "%s only supports int and long operands, not %s", call->op->name,
                           bval_type_name(args[i].type));
        struct number number = number_of(&args[i]);
        widest = number_wider(widest, number.type);
        bits = call->op->tag == BIT_AND  ? bits & number.i64
               : call->op->tag == BIT_OR ? bits | number.i64
                                         : bits ^ number.i64;
    }
    struct number result = number_narrow(bits, widest);
    *out = number_value(s->scratch, &result);
    return true;
}

static bool op_bit_not(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]))
        return true;
    if (!bval_is_number(&args[0]))
        return err_set(s->err, 28765, "%s only supports numeric types, not %s", call->op->name,
                       bval_type_name(args[0].type));
    if (!is_integer(&args[0]))
        return err_set(s->err, ERR_TypeMismatch, "%s only supports int and long, not %s", call->op->name,
                       bval_type_name(args[0].type));
    struct number number = number_of(&args[0]);
    number.i64 = ~number.i64;
    *out = number_value(s->scratch, &number);
    return true;
}

/* tag 0: seconds, 1: increment. */
static bool op_timestamp(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]))
        return true;
    if (args[0].type != BT_TIMESTAMP)
        return err_set(s->err, call->op->tag == 0 ? 5687301 : 5687302, "Argument to %s must be a timestamp, but is %s",
                       call->op->name, bval_type_name(args[0].type));
    *out = make_i64(s->scratch, load_le32(args[0].data + (call->op->tag == 0 ? 4 : 0)));
    return true;
}

static bool op_bson_size(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]))
        return true;
    if (args[0].type != BT_DOCUMENT)
        return err_set(s->err, 31393, "$bsonSize requires a document input, found: %s", bval_type_name(args[0].type));
    *out = make_i32(s->scratch, (int32_t)args[0].len);
    return true;
}

static bool op_binary_size(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    uint32_t len;
    uint8_t subtype;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]))
        return true;
    if (args[0].type == BT_STRING)
        bval_str(&args[0], &len);
    else if (args[0].type == BT_BINARY)
        bval_binary(&args[0], &subtype, &len);
    else
        return err_set(s->err, 51276, "$binarySize requires a string or BinData argument, found: %s",
                       bval_type_name(args[0].type));
    *out = make_i32(s->scratch, (int32_t)len);
    return true;
}

const struct expr_operator expr_ops_bits[] = {
    {"$bitAnd", 0, -1, false, op_bits, NULL, NULL, BIT_AND},
    {"$bitOr", 0, -1, false, op_bits, NULL, NULL, BIT_OR},
    {"$bitXor", 0, -1, false, op_bits, NULL, NULL, BIT_XOR},
    {"$bitNot", 1, 1, false, op_bit_not, NULL, NULL, 0},
    {"$tsSecond", 1, 1, false, op_timestamp, NULL, NULL, 0},
    {"$tsIncrement", 1, 1, false, op_timestamp, NULL, NULL, 1},
    {"$bsonSize", 1, 1, false, op_bson_size, NULL, NULL, 0},
    {"$binarySize", 1, 1, false, op_binary_size, NULL, NULL, 0},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
