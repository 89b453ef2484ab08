/* Operators that bring variables into scope: $let, $map, $filter, $reduce; and $literal. */
#include "base/interrupt.h"
#include "expr/expr_tree.h"

#include <string.h>

static bool op_literal(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)s;
    (void)args;
    *out = call->value;
    return true;
}

static bool compile_literal(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    (void)c;
    call->kind = EXPR_CONSTANT;
    call->value = *operand;
    return true;
}

/* The last argument is `in`, those before are the variables' values. */
static bool op_let(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)args;
    uint32_t last = call->arg_count - 1;
    struct bval *values = arena_alloc(s->scratch, call->arg_count * sizeof *values);
    for (uint32_t i = 0; i < last; i++)
        if (!expr_run(s, call->args[i], &values[i]))
            return false;
    for (uint32_t i = 0; i < last; i++)
        s->vars[call->slots[i]] = values[i];
    return expr_run(s, call->args[last], out);
}

static bool compile_let(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    struct bval vars = BVAL_MISSING;
    struct bval in = BVAL_MISSING;
    struct biter iter;
    struct belem elem;
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, 16874, "$let only supports an object as its argument");
    biter_init(&iter, bval_doc(operand));
    while (biter_next(&iter, &elem)) {
        if (strcmp(elem.key, "vars") == 0)
            vars = elem.val;
        else if (strcmp(elem.key, "in") == 0)
            in = elem.val;
        else
            return err_set(c->err, 16875, "Unrecognized parameter to $let: %s", elem.key);
    }
    if (vars.type == BT_EOO)
        return err_set(c->err, 16876, "Missing 'vars' parameter to $let");
    if (in.type == BT_EOO)
        return err_set(c->err, 16877, "Missing 'in' parameter to $let");
    if (vars.type != BT_DOCUMENT)
        return err_set(c->err, 10065, "invalid parameter: expected an object (vars)");
    uint32_t count = bdoc_count(bval_doc(&vars));
    expr_reserve_args(c, call, count + 1);
    call->slots = arena_alloc(c->arena, (count + 1) * sizeof *call->slots);
    biter_init(&iter, bval_doc(&vars));
    for (uint32_t i = 0; biter_next(&iter, &elem); i++)
        if (!expr_compile_arg(c, call, i, &elem.val))
            return false;
    int outer = c->var_count;
    biter_init(&iter, bval_doc(&vars));
    for (uint32_t i = 0; biter_next(&iter, &elem); i++) {
        call->slots[i] = expr_define(c, elem.key, elem.key_len);
        if (call->slots[i] < 0)
            return false;
    }
    bool ok = expr_compile_arg(c, call, count, &in);
    c->var_count = outer;
    return ok;
}

/* Codes of what is wrong with the operand of a loop. */
struct loop_codes {
    int32_t not_object;
    int32_t unknown;
    int32_t no_input;
    int32_t no_body;
    int32_t not_array;
};

enum loop_tag {
    LOOP_MAP,
    LOOP_FILTER,
    LOOP_REDUCE,
};

static const struct loop_codes loop_codes[] = {
    [LOOP_MAP] = {16878, 16879, 16880, 16882, 16883},
    [LOOP_FILTER] = {28646, 28647, 28648, 28650, 28651},
    [LOOP_REDUCE] = {40075, 40076, 40077, 40079, 40080},
};

/* What $map, $filter and $reduce have in common. */
struct loop_operand {
    struct bval input;
    struct bval as;
    struct bval body;  /* in or cond */
    struct bval extra; /* initialValue or limit */
};

static bool read_loop(struct expr_compiler *c, const struct expr *call, const struct bval *operand, const char *body,
                      const char *extra, struct loop_operand *out)
{
    *out = (struct loop_operand){BVAL_MISSING, BVAL_MISSING, BVAL_MISSING, BVAL_MISSING};
    const char *name = call->op->name;
    const struct loop_codes *codes = &loop_codes[call->op->tag];
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, codes->not_object, "%s only supports an object as its argument", name);
    struct biter iter;
    struct belem elem;
    biter_init(&iter, bval_doc(operand));
    while (biter_next(&iter, &elem)) {
        if (strcmp(elem.key, "input") == 0)
            out->input = elem.val;
        else if (strcmp(elem.key, "as") == 0 && call->op->tag != LOOP_REDUCE)
            out->as = elem.val;
        else if (strcmp(elem.key, body) == 0)
            out->body = elem.val;
        else if (extra != NULL && strcmp(elem.key, extra) == 0)
            out->extra = elem.val;
        else
            return err_set(c->err, codes->unknown, "Unrecognized parameter to %s: %s", name, elem.key);
    }
    if (out->input.type == BT_EOO)
        return err_set(c->err, codes->no_input, "Missing 'input' parameter to %s", name);
    if (out->body.type == BT_EOO)
        return err_set(c->err, codes->no_body, "Missing '%s' parameter to %s", body, name);
    return true;
}

/* Argument 0: input, 1: body, 2: limit ($filter) or initialValue ($reduce). */
static bool compile_each(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    bool filter = call->op->tag == LOOP_FILTER;
    struct loop_operand loop;
    if (!read_loop(c, call, operand, filter ? "cond" : "in", filter ? "limit" : NULL, &loop))
        return false;
    const char *name = "this";
    uint32_t name_len = 4;
    if (loop.as.type == BT_STRING)
        name = bval_str(&loop.as, &name_len);
    else if (loop.as.type != BT_EOO)
        return err_set(c->err, ERR_TypeMismatch, "'as' of %s must be a string", call->op->name);
    expr_reserve_args(c, call, 3);
    if (!expr_compile_arg(c, call, 0, &loop.input))
        return false;
    if (loop.extra.type != BT_EOO && !expr_compile_arg(c, call, 2, &loop.extra))
        return false;
    int outer = c->var_count;
    call->slot = expr_define(c, name, name_len);
    bool ok = call->slot >= 0 && expr_compile_arg(c, call, 1, &loop.body);
    c->var_count = outer;
    return ok;
}

static bool compile_reduce(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    struct loop_operand loop;
    if (!read_loop(c, call, operand, "in", "initialValue", &loop))
        return false;
    if (loop.extra.type == BT_EOO)
        return err_set(c->err, 40078, "$reduce requires 'initialValue' to be specified");
    expr_reserve_args(c, call, 3);
    if (!expr_compile_arg(c, call, 0, &loop.input) || !expr_compile_arg(c, call, 2, &loop.extra))
        return false;
    int outer = c->var_count;
    call->slot = expr_define(c, "this", 4);
    call->slot2 = expr_define(c, "value", 5);
    bool ok = call->slot >= 0 && call->slot2 >= 0 && expr_compile_arg(c, call, 1, &loop.body);
    c->var_count = outer;
    return ok;
}

/* The input array; *null when it is nullish. */
static bool loop_input(struct expr_scope *s, const struct expr *call, bool *null, struct expr_items *out)
{
    struct bval input;
    if (!expr_run(s, call->args[0], &input))
        return false;
    *null = expr_is_nullish(&input);
    if (*null)
        return true;
    if (input.type != BT_ARRAY)
        return err_set(s->err, loop_codes[call->op->tag].not_array, "input to %s must be an array not %s",
                       call->op->name, bval_type_name(input.type));
    *out = expr_array_items(s, &input);
    return true;
}

static bool op_map(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)args;
    bool null = false;
    struct expr_items items;
    *out = BVAL_NULL;
    if (!loop_input(s, call, &null, &items) || null)
        return null;
    for (size_t i = 0; i < items.count; i++) {
        s->vars[call->slot] = items.items[i];
        if (!interrupt_step(s->err) || !expr_run(s, call->args[1], &items.items[i]) || !expr_check_scratch(s))
            return false;
    }
    return expr_make_array(s, items.items, items.count, out);
}

static bool filter_limit(struct expr_scope *s, const struct expr *call, size_t *limit)
{
    struct bval value;
    int64_t number;
    *limit = SIZE_MAX;
    if (call->args[2] == NULL)
        return true;
    if (!expr_run(s, call->args[2], &value))
        return false;
    if (expr_is_nullish(&value))
        return true;
    if (!bval_is_number(&value) || !bval_to_i64(&value, &number) || number < INT32_MIN || number > INT32_MAX)
        return err_set(s->err, 327391, "$filter: limit must be represented as a 32-bit integral value, found %s",
                       bval_type_name(value.type));
    if (number < 1)
        return err_set(s->err, 327392, "$filter: limit must be greater than 0");
    *limit = (size_t)number;
    return true;
}

static bool op_filter(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)args;
    bool null = false;
    struct expr_items items;
    size_t limit;
    *out = BVAL_NULL;
    if (!loop_input(s, call, &null, &items) || null)
        return null;
    if (!filter_limit(s, call, &limit))
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < items.count && kept < limit; i++) {
        struct bval truth;
        s->vars[call->slot] = items.items[i];
        if (!interrupt_step(s->err) || !expr_run(s, call->args[1], &truth))
            return false;
        if (expr_value_is_true(&truth))
            items.items[kept++] = items.items[i];
    }
    return expr_make_array(s, items.items, kept, out);
}

/* Each step may wrap the value of the one before. */
static bool depth_ok(struct expr_scope *s, const struct bval *value)
{
    return (value->type != BT_DOCUMENT && value->type != BT_ARRAY) || expr_check_depth(bval_doc(value), s->err);
}

static bool op_reduce(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)args;
    bool null = false;
    struct expr_items items;
    struct bval total;
    *out = BVAL_NULL;
    if (!loop_input(s, call, &null, &items) || null)
        return null;
    if (!expr_run(s, call->args[2], &total))
        return false;
    for (size_t i = 0; i < items.count; i++) {
        s->vars[call->slot] = items.items[i];
        s->vars[call->slot2] = total;
        if (!interrupt_step(s->err) || !expr_run(s, call->args[1], &total) || !expr_check_scratch(s) ||
            !depth_ok(s, &total))
            return false;
    }
    *out = total;
    return true;
}

const struct expr_operator expr_ops_scope[] = {
    {"$literal", 1, 1, false, op_literal, NULL, compile_literal, 0},
    {"$const", 1, 1, false, op_literal, NULL, compile_literal, 0},
    {"$let", 1, -1, true, op_let, NULL, compile_let, 0},
    {"$map", 3, 3, true, op_map, NULL, compile_each, LOOP_MAP},
    {"$filter", 3, 3, true, op_filter, NULL, compile_each, LOOP_FILTER},
    {"$reduce", 3, 3, true, op_reduce, NULL, compile_reduce, LOOP_REDUCE},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
