/* Comparison, boolean operators and conditions. */
#include "expr/expr_tree.h"

#include <string.h>

enum compare_tag {
    COMPARE_EQ,
    COMPARE_NE,
    COMPARE_LT,
    COMPARE_LTE,
    COMPARE_GT,
    COMPARE_GTE,
    COMPARE_CMP,
};

/* Expressions put a missing value before null; everywhere else the two are equal. */
static int compare_values(const struct expr_scope *s, const struct bval *a, const struct bval *b)
{
    if (a->type == BT_EOO || b->type == BT_EOO) {
        if (a->type == b->type)
            return 0;
        const struct bval *other = a->type == BT_EOO ? b : a;
        int order = other->type == BT_MIN_KEY ? 1 : -1;
        return a->type == BT_EOO ? order : -order;
    }
    return bval_compare_ordered(a, b, s->order);
}

static bool op_compare(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    int order = compare_values(s, &args[0], &args[1]);
    bool truth = false;
    switch (call->op->tag) {
    case COMPARE_EQ:
        truth = order == 0;
        break;
    case COMPARE_NE:
        truth = order != 0;
        break;
    case COMPARE_LT:
        truth = order < 0;
        break;
    case COMPARE_LTE:
        truth = order <= 0;
        break;
    case COMPARE_GT:
        truth = order > 0;
        break;
    case COMPARE_GTE:
        truth = order >= 0;
        break;
    default:
        *out = make_i32(s->scratch, (order > 0) - (order < 0));
        return true;
    }
    *out = make_bool(truth);
    return true;
}

/* $and stops at the first false, $or at the first true. */
static bool op_and_or(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)args;
    bool stop_at = call->op->tag == 1;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        struct bval value;
        if (!expr_run(s, call->args[i], &value))
            return false;
        if (expr_value_is_true(&value) == stop_at) {
            *out = make_bool(stop_at);
            return true;
        }
    }
    *out = make_bool(!stop_at);
    return true;
}

static bool op_not(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)s;
    (void)call;
    *out = make_bool(!expr_value_is_true(&args[0]));
    return true;
}

static bool op_cond(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)args;
    struct bval truth;
    if (!expr_run(s, call->args[0], &truth))
        return false;
    return expr_run(s, call->args[expr_value_is_true(&truth) ? 1 : 2], out);
}

static bool op_if_null(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)args;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (!expr_run(s, call->args[i], out))
            return false;
        if (!expr_is_nullish(out))
            return true;
    }
    return true;
}

/* Arguments in pairs of case and then; an odd one at the end is the default. */
static bool op_switch(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)args;
    uint32_t i = 0;
    for (; i + 1 < call->arg_count; i += 2) {
        struct bval truth;
        if (!expr_run(s, call->args[i], &truth))
            return false;
        if (expr_value_is_true(&truth))
            return expr_run(s, call->args[i + 1], out);
    }
    if (i < call->arg_count)
        return expr_run(s, call->args[i], out);
    return err_set(s->err, 40066,
                   "$switch could not find a matching branch for an input, and no default was specified.");
}

static bool compile_branch(struct expr_compiler *c, struct expr *call, uint32_t at, const struct bval *branch)
{
    if (branch->type != BT_DOCUMENT)
        return err_set(c->err, 40062, "$switch expected each branch to be an object, found: %s",
                       bval_type_name(branch->type));
    struct biter iter;
    struct belem elem;
    biter_init(&iter, bval_doc(branch));
    while (biter_next(&iter, &elem)) {
        uint32_t place = strcmp(elem.key, "case") == 0 ? at : strcmp(elem.key, "then") == 0 ? at + 1 : UINT32_MAX;
        if (place == UINT32_MAX)
            return err_set(c->err, 40063, "$switch found an unknown argument to a branch: %s", elem.key);
        if (!expr_compile_arg(c, call, place, &elem.val))
            return false;
    }
    if (call->args[at] == NULL)
        return err_set(c->err, 40064, "$switch requires each branch have a 'case' expression");
    if (call->args[at + 1] == NULL)
        return err_set(c->err, 40065, "$switch requires each branch have a 'then' expression.");
    return true;
}

static bool compile_switch(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    struct biter iter;
    struct belem elem;
    struct bval branches = BVAL_MISSING;
    struct bval otherwise = BVAL_MISSING;
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, 40060, "$switch requires an object as an argument, found: %s",
                       bval_type_name(operand->type));
    biter_init(&iter, bval_doc(operand));
    while (biter_next(&iter, &elem)) {
        if (strcmp(elem.key, "branches") == 0)
            branches = elem.val;
        else if (strcmp(elem.key, "default") == 0)
            otherwise = elem.val;
        else
            return err_set(c->err, 40067, "$switch found an unknown argument: %s", elem.key);
    }
    if (branches.type == BT_EOO)
        return err_set(c->err, 40068, "$switch requires at least one branch");
    if (branches.type != BT_ARRAY)
        return err_set(c->err, 40061, "$switch expected an array for 'branches', found: %s",
                       bval_type_name(branches.type));
    uint32_t count = bdoc_count(bval_doc(&branches));
    if (count == 0)
        return err_set(c->err, 40068, "$switch requires at least one branch.");
    expr_reserve_args(c, call, count * 2 + (otherwise.type != BT_EOO ? 1 : 0));
    biter_init(&iter, bval_doc(&branches));
    for (uint32_t i = 0; biter_next(&iter, &elem); i += 2)
        if (!compile_branch(c, call, i, &elem.val))
            return false;
    return otherwise.type == BT_EOO || expr_compile_arg(c, call, count * 2, &otherwise);
}

static bool can_be_implied(const struct bval *val)
{
    return val->type != BT_ARRAY && val->type != BT_REGEX && val->type != BT_UNDEFINED && val->type != BT_EOO;
}

/* {$eq: ["$path", constant]} in either order, {$in: ["$path", [constants]]}. */
static bool imply_one(const struct expr *call, struct expr_implied *out)
{
    struct biter iter;
    struct belem item;
    bool in = strcmp(call->op->name, "$in") == 0;
    bool equal = call->op->eval == op_compare && call->op->tag == COMPARE_EQ;
    if ((!in && !equal) || call->arg_count != 2)
        return false;
    const struct expr *path = call->args[0];
    const struct expr *value = call->args[1];
    if (equal && path->kind == EXPR_CONSTANT) {
        path = call->args[1];
        value = call->args[0];
    }
    if (expr_field_path(path) == NULL || value->kind != EXPR_CONSTANT)
        return false;
    *out = (struct expr_implied){.path = expr_field_path(path), .in = in, .value = value->value};
    if (!in)
        return can_be_implied(&value->value);
    if (value->value.type != BT_ARRAY)
        return false;
    biter_init(&iter, bval_doc(&value->value));
    while (biter_next(&iter, &item))
        if (!can_be_implied(&item.val))
            return false;
    return true;
}

static uint32_t imply(const struct expr *expr, struct expr_implied *out, uint32_t count)
{
    if (expr->kind != EXPR_CALL || count == EXPR_MAX_IMPLIED)
        return count;
    bool both = expr->op->eval == op_and_or && expr->op->tag == 0;
    for (uint32_t i = 0; both && i < expr->arg_count; i++)
        count = imply(expr->args[i], out, count);
    return !both && imply_one(expr, &out[count]) ? count + 1 : count;
}

uint32_t expr_implied(const struct expr *expr, struct expr_implied out[EXPR_MAX_IMPLIED])
{
    return imply(expr, out, 0);
}

const struct expr_operator expr_ops_logic[] = {
    {"$eq", 2, 2, false, op_compare, NULL, NULL, COMPARE_EQ},
    {"$ne", 2, 2, false, op_compare, NULL, NULL, COMPARE_NE},
    {"$lt", 2, 2, false, op_compare, NULL, NULL, COMPARE_LT},
    {"$lte", 2, 2, false, op_compare, NULL, NULL, COMPARE_LTE},
    {"$gt", 2, 2, false, op_compare, NULL, NULL, COMPARE_GT},
    {"$gte", 2, 2, false, op_compare, NULL, NULL, COMPARE_GTE},
    {"$cmp", 2, 2, false, op_compare, NULL, NULL, COMPARE_CMP},
    {"$and", 0, -1, true, op_and_or, NULL, NULL, 0},
    {"$or", 0, -1, true, op_and_or, NULL, NULL, 1},
    {"$not", 1, 1, false, op_not, NULL, NULL, 0},
    {"$cond", 3, 3, true, op_cond, "if then else", NULL, 0},
    {"$ifNull", 2, -1, true, op_if_null, NULL, NULL, 0},
    {"$switch", 0, -1, true, op_switch, NULL, compile_switch, 0},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
