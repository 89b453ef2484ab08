/* $getField, $setField, $unsetField: fields by names that dotted paths cannot spell. */
#include "expr/expr_tree.h"

#include <string.h>

static bool op_get_field(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    uint32_t len;
    if (args[0].type != BT_STRING)
        return err_set(s->err, 3041704, "$getField requires 'field' to evaluate to type String, but got %s",
                       bval_type_name(args[0].type));
    const char *name = bval_str(&args[0], &len);
    *out = BVAL_MISSING;
    if (args[1].type == BT_NULL || args[1].type == BT_UNDEFINED)
        *out = BVAL_NULL;
    else if (args[1].type == BT_DOCUMENT)
        bdoc_find_n(bval_doc(&args[1]), name, len, out);
    return true;
}

static bool get_field_args(struct expr_compiler *c, struct expr *call, struct bdoc operand)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, operand);
    while (biter_next(&iter, &elem)) {
        uint32_t place = strcmp(elem.key, "field") == 0 ? 0 : strcmp(elem.key, "input") == 0 ? 1 : 2;
        if (place == 2)
            return err_set(c->err, 3041701, "$getField found an unknown argument: %s", elem.key);
        if (!expr_compile_arg(c, call, place, &elem.val))
            return false;
    }
    if (call->args[0] == NULL)
        return err_set(c->err, 3041702, "$getField requires 'field' to be specified");
    if (call->args[1] == NULL)
        return err_set(c->err, 3041703, "$getField requires 'input' to be specified");
    return true;
}

/* {$getField: "a"}, {$getField: {$concat: ...}}, {$getField: {field: "a", input: ...}}. */
static bool compile_get_field(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    struct biter iter;
    struct belem first;
    bool named = operand->type == BT_DOCUMENT;
    if (named) {
        biter_init(&iter, bval_doc(operand));
        named = !biter_next(&iter, &first) || first.key[0] != '$';
    }
    struct bval current = make_str(c->arena, "$$CURRENT", 9);
    expr_reserve_args(c, call, 2);
    if (named ? !get_field_args(c, call, bval_doc(operand))
              : !expr_compile_arg(c, call, 0, operand) || !expr_compile_arg(c, call, 1, &current))
        return false;
    const struct expr *field = call->args[0];
    if (field->kind == EXPR_CONSTANT && field->value.type != BT_STRING)
        return err_set(c->err, 5654602, "$getField requires 'field' to evaluate to type String, but got %s",
                       bval_type_name(field->value.type));
    return true;
}

/* Arguments: field, input, value. The name is taken as it is: dots and dollars are part of it. */
static bool op_set_field(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct biter iter;
    struct belem elem;
    uint32_t len;
    bool done = false;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[1]))
        return true;
    if (args[1].type != BT_DOCUMENT)
        return err_set(s->err, 4161105, "%s requires 'input' to evaluate to type Object", call->op->name);
    const char *name = bval_str(&args[0], &len);
    struct bdoc doc = bval_doc(&args[1]);
    uint32_t count = bdoc_count(doc);
    struct expr_name *names = arena_alloc(s->scratch, (count + 1) * sizeof *names);
    struct bval *values = arena_alloc(s->scratch, (count + 1) * sizeof *values);
    count = 0;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        bool same = !done && elem.key_len == len && memcmp(elem.key, name, len) == 0;
        done = done || same;
        names[count] = (struct expr_name){elem.key, elem.key_len};
        values[count++] = same ? args[2] : elem.val;
    }
    if (!done) {
        names[count] = (struct expr_name){name, len};
        values[count++] = args[2];
    }
    return expr_make_document(s, names, values, count, out);
}

/* {field: ..., input: ..., value: ...}; $unsetField is $setField with a missing value. */
static bool compile_set_field(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    static const char *const names[] = {"field", "input", "value"};
    uint32_t count = (uint32_t)call->op->tag;
    struct biter iter;
    struct belem elem;
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, 4161100, "%s only supports an object as its argument", call->op->name);
    expr_reserve_args(c, call, 3);
    biter_init(&iter, bval_doc(operand));
    while (biter_next(&iter, &elem)) {
        uint32_t place = 0;
        while (place < count && strcmp(names[place], elem.key) != 0)
            place++;
        if (place == count)
            return err_set(c->err, 4161101, "%s found an unknown argument: %s", call->op->name, elem.key);
        if (!expr_compile_arg(c, call, place, &elem.val))
            return false;
    }
    for (uint32_t i = 0; i < count; i++)
        if (call->args[i] == NULL)
            return err_set(c->err, 4161102, "%s requires '%s' to be specified", call->op->name, names[i]);
    const struct expr *field = call->args[0];
    if (field->kind == EXPR_PATH && field->arg_count == 0)
        return err_set(c->err, 4161108, "%s: 'field' is a path; write {$literal: ...} for such a name", call->op->name);
    if (field->kind != EXPR_CONSTANT)
        return err_set(c->err, 4161106, "%s requires 'field' to evaluate to a constant", call->op->name);
    if (field->value.type != BT_STRING)
        return err_set(c->err, 4161107, "%s requires 'field' to evaluate to type String", call->op->name);
    uint32_t len;
    if (strlen(bval_str(&field->value, &len)) != len)
        return err_set(c->err, 9534700, "%s: 'field' cannot contain an embedded null byte", call->op->name);
    return true;
}

const struct expr_operator expr_ops_fields[] = {
    {"$getField", 1, 2, false, op_get_field, NULL, compile_get_field, 0},
    {"$setField", 3, 3, false, op_set_field, NULL, compile_set_field, 3},
    {"$unsetField", 2, 2, false, op_set_field, NULL, compile_set_field, 2},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
