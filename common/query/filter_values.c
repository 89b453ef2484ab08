/* $type, $mod and the $bits operators: their operands are read here into masks and integers. */
#include "query/filter_tree.h"

#include <math.h>
#include <string.h>

enum {
    BITS_MAX_POSITION = 8 * 1024 * 1024, /* highest bit position of a list: a mask of 1 MiB */
    NUMBER_TYPES = 1 << BT_DOUBLE | 1 << BT_INT32 | 1 << BT_INT64 | 1 << BT_DECIMAL128,
};

uint32_t filter_type_bit(uint8_t type)
{
    if (type == BT_MIN_KEY)
        return 1u << 31;
    if (type == BT_MAX_KEY)
        return 1u << 30;
    return 1u << (type & 31);
}

static bool type_of_name(struct filter_compiler *c, const struct bval *arg, uint32_t *mask)
{
    static const uint8_t types[] = {
        BT_DOUBLE,          BT_STRING,  BT_DOCUMENT, BT_ARRAY, BT_BINARY,    BT_UNDEFINED,
        BT_OBJECT_ID,       BT_BOOL,    BT_DATE,     BT_NULL,  BT_REGEX,     BT_CODE,
        BT_DB_POINTER,      BT_SYMBOL,  BT_INT32,    BT_INT64, BT_TIMESTAMP, BT_DECIMAL128,
        BT_CODE_WITH_SCOPE, BT_MIN_KEY, BT_MAX_KEY,
    };
    uint32_t len;
    const char *name = bval_str(arg, &len);
    if (strcmp(name, "number") == 0) {
        *mask |= NUMBER_TYPES;
        return true;
    }
    for (size_t i = 0; i < sizeof types; i++) {
        if (strcmp(name, bval_type_name(types[i])) == 0) {
            *mask |= filter_type_bit(types[i]);
            return true;
        }
    }
    return err_set(c->err, ERR_BadValue, "Unknown type name alias: %s", name);
}

static bool type_of_number(struct filter_compiler *c, const struct bval *arg, uint32_t *mask)
{
    int64_t number;
    if (!bval_to_i64(arg, &number)) {
        double asked;
        bval_to_f64(arg, &asked);
        return err_set(c->err, ERR_BadValue, "Invalid numerical type code: %g", asked);
    }
    if (number == -1)
        *mask |= filter_type_bit(BT_MIN_KEY);
    else if (number == 127)
        *mask |= filter_type_bit(BT_MAX_KEY);
    else if (number >= BT_DOUBLE && number <= BT_DECIMAL128)
        *mask |= filter_type_bit((uint8_t)number);
    else
        return err_set(c->err, ERR_BadValue, "Invalid numerical type code: %lld", (long long)number);
    return true;
}

static bool add_type(struct filter_compiler *c, const struct bval *arg, uint32_t *mask)
{
    if (bval_is_number(arg))
        return type_of_number(c, arg, mask);
    if (arg->type == BT_STRING)
        return type_of_name(c, arg, mask);
    return err_set(c->err, ERR_TypeMismatch, "type must be represented as a number or a string");
}

bool filter_compile_type(struct filter_compiler *c, const char *path, const struct bval *arg, struct filter_nodes *out)
{
    struct filter_node *node = filter_leaf_new(c, FILTER_TYPE, path);
    if (node == NULL)
        return false;
    if (arg->type == BT_ARRAY) {
        struct biter iter;
        struct belem item;
        struct bdoc list = bval_doc(arg);
        if (bdoc_is_empty(list))
            return err_set(c->err, ERR_FailedToParse, "%s must match at least one type", path);
        biter_init(&iter, list);
        while (biter_next(&iter, &item))
            if (!add_type(c, &item.val, &node->types))
                return false;
    } else if (!add_type(c, arg, &node->types)) {
        return false;
    }
    filter_nodes_add(c->arena, out, node);
    return true;
}

/* A number cut to an int64; false when it is not finite or too large. */
static bool whole_part(const struct bval *val, int64_t *out)
{
    if (val->type == BT_INT32 || val->type == BT_INT64)
        return bval_to_i64(val, out);
    double number;
    if (bval_to_i64(val, out))
        return true;
    if (!bval_to_f64(val, &number) || !isfinite(number) || fabs(number) >= 9223372036854775808.0)
        return false;
    *out = (int64_t)number;
    return true;
}

bool filter_compile_mod(struct filter_compiler *c, const char *path, const struct bval *arg, struct filter_nodes *out)
{
    if (arg->type != BT_ARRAY)
        return err_set(c->err, ERR_BadValue, "malformed mod, needs to be an array");
    struct bval parts[2] = {BVAL_MISSING, BVAL_MISSING};
    uint32_t count = 0;
    struct biter iter;
    struct belem item;
    biter_init(&iter, bval_doc(arg));
    while (biter_next(&iter, &item)) {
        if (count == 2)
            return err_set(c->err, ERR_BadValue, "malformed mod, too many elements");
        parts[count++] = item.val;
    }
    if (count < 2)
        return err_set(c->err, ERR_BadValue, "malformed mod, not enough elements");
    struct filter_node *node = filter_leaf_new(c, FILTER_MOD, path);
    if (node == NULL)
        return false;
    if (!bval_is_number(&parts[0]))
        return err_set(c->err, ERR_BadValue, "malformed mod, divisor not a number");
    if (!bval_is_number(&parts[1]))
        return err_set(c->err, ERR_BadValue, "malformed mod, remainder not a number");
    if (!whole_part(&parts[0], &node->mod.divisor))
        return err_set(c->err, ERR_BadValue, "malformed mod, divisor value is invalid :: caused by :: Out of bounds");
    if (!whole_part(&parts[1], &node->mod.remainder))
        return err_set(c->err, ERR_BadValue, "malformed mod, remainder value is invalid :: caused by :: Out of bounds");
    if (node->mod.divisor == 0)
        return err_set(c->err, ERR_BadValue, "divisor cannot be 0");
    filter_nodes_add(c->arena, out, node);
    return true;
}

/* [0, 5, 9]: a mask as long as the highest position needs. */
static bool bits_from_positions(struct filter_compiler *c, struct filter_node *node, const char *name, struct bdoc list)
{
    struct biter iter;
    struct belem item;
    int64_t highest = 0;
    biter_init(&iter, list);
    while (biter_next(&iter, &item)) {
        int64_t position;
        if (!bval_is_number(&item.val) || !bval_to_i64(&item.val, &position) || position < 0)
            return err_set(c->err, ERR_BadValue,
                           "Failed to parse bit position. Expected a non-negative integer in: %s: [...]", name);
        if (position > INT32_MAX)
            return err_set(c->err, ERR_BadValue,
                           "Failed to parse bit position. Expected a number that fits a 32-bit integer in: %s", name);
        /* Every position beyond the limit reads the same bit: the sign, or nothing in binary data of any allowed size.
         */
        if (position > BITS_MAX_POSITION)
            return err_set(c->err, ERR_BadValue, "a bit position of %s is larger than %d", name, BITS_MAX_POSITION);
        if (position > highest)
            highest = position;
    }
    uint8_t *mask = arena_alloc(c->arena, (size_t)highest / 8 + 1);
    biter_init(&iter, list);
    while (biter_next(&iter, &item)) {
        int64_t position;
        if (bval_to_i64(&item.val, &position))
            mask[position / 8] = (uint8_t)(mask[position / 8] | 1u << (position % 8));
    }
    node->bits.mask = mask;
    node->bits.mask_len = (uint32_t)(highest / 8) + 1;
    return true;
}

bool filter_compile_bits(struct filter_compiler *c, const char *path, enum filter_bits_kind kind, const char *name,
                         const struct bval *arg, struct filter_nodes *out)
{
    struct filter_node *node = filter_leaf_new(c, FILTER_BITS, path);
    if (node == NULL)
        return false;
    node->bits.kind = kind;
    if (arg->type == BT_ARRAY) {
        if (!bits_from_positions(c, node, name, bval_doc(arg)))
            return false;
    } else if (arg->type == BT_BINARY) {
        uint8_t subtype;
        node->bits.mask = bval_binary(arg, &subtype, &node->bits.mask_len);
    } else if (bval_is_number(arg)) {
        int64_t number;
        if (!bval_to_i64(arg, &number) || number < 0)
            return err_set(c->err, ERR_FailedToParse, "Expected a non-negative integer in: %s", name);
        node->bits.mask = arena_copy(c->arena, &number, sizeof number);
        node->bits.mask_len = sizeof number;
    } else {
        return err_set(c->err, ERR_BadValue, "%s takes an Array, a number, or a BinData but received: %s", path,
                       bval_type_name(arg->type));
    }
    filter_nodes_add(c->arena, out, node);
    return true;
}
