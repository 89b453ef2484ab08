#include "expr/expr_tree.h"

#include "base/check.h"
#include "base/interrupt.h"

#include <string.h>

enum {
    STACK_ARGS = 4,      /* calls with more arguments keep them in scratch */
    LEVEL_MIN_BYTES = 7, /* of one level of nesting: type, empty name, length, end */
    EMPTY_BYTES = 5,     /* of a document without fields */
    FIELD_BYTES = 2,     /* of a field beside its name and payload: type and NUL */
};

bool expr_is_nullish(const struct bval *val)
{
    return val->type == BT_EOO || val->type == BT_NULL || val->type == BT_UNDEFINED;
}

bool expr_value_is_true(const struct bval *value)
{
    if (expr_is_nullish(value))
        return false;
    if (value->type == BT_BOOL)
        return bval_bool(value);
    if (bval_is_number(value)) {
        struct number number = number_of(value);
        return !number_is_zero(&number);
    }
    return true;
}

static bool is_deeper(struct bdoc doc, int levels)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        bool container = elem.val.type == BT_DOCUMENT || elem.val.type == BT_ARRAY;
        if (container && (levels <= 1 || is_deeper(bval_doc(&elem.val), levels - 1)))
            return true;
    }
    return false;
}

bool expr_check_depth(struct bdoc doc, struct err *err)
{
    if (doc.len <= BDOC_MAX_WIRE_DEPTH * LEVEL_MIN_BYTES || !is_deeper(doc, BDOC_MAX_WIRE_DEPTH))
        return true;
    return err_set(err, ERR_Overflow, "a result nests deeper than %d levels", BDOC_MAX_WIRE_DEPTH);
}

bool expr_check_scratch(struct expr_scope *scope)
{
    if (scope->scratch->used_bytes <= EXPR_MAX_SCRATCH_BYTES)
        return true;
    return err_set(scope->err, ERR_ExceededMemoryLimit, "an expression needs more than %d bytes for one document",
                   EXPR_MAX_SCRATCH_BYTES);
}

bool expr_check_room(struct expr_scope *scope, size_t count)
{
    size_t used = scope->scratch->used_bytes;
    if (used <= EXPR_MAX_SCRATCH_BYTES && count <= (EXPR_MAX_SCRATCH_BYTES - used) / sizeof(struct bval))
        return interrupt_check(scope->err);
    return err_set(scope->err, ERR_ExceededMemoryLimit, "an expression needs more than %d bytes for one document",
                   EXPR_MAX_SCRATCH_BYTES);
}

bool expr_check_size(struct expr_scope *scope, size_t bytes)
{
    if (bytes <= EXPR_MAX_RESULT_BYTES)
        return true;
    return err_set(scope->err, ERR_BSONObjectTooLarge, "an expression's result of %zu bytes is larger than %d", bytes,
                   EXPR_MAX_RESULT_BYTES);
}

/* Type, name and payload of one field at `to`; returns the place behind it. */
static uint8_t *put_field(uint8_t *to, const char *key, size_t key_len, const struct bval *val)
{
    *to++ = val->type;
    memcpy(to, key, key_len);
    to[key_len] = 0;
    to += key_len + 1;
    if (val->len > 0)
        memcpy(to, val->data, val->len);
    return to + val->len;
}

static struct bval finished(uint8_t *data, uint32_t bytes, uint8_t type)
{
    store_le32(data, bytes);
    return (struct bval){.type = type, .len = bytes, .data = data};
}

bool expr_make_array(struct expr_scope *scope, const struct bval *items, size_t count, struct bval *out)
{
    size_t bytes = EMPTY_BYTES;
    size_t digits = 1;
    size_t next_width = 10;
    for (size_t i = 0; i < count; i++) {
        if (i == next_width) {
            digits++;
            next_width *= 10;
        }
        bytes += FIELD_BYTES + digits + items[i].len;
        if (!expr_check_size(scope, bytes))
            return false;
    }
    uint8_t *data = arena_alloc(scope->scratch, bytes);
    uint8_t *at = data + 4;
    for (size_t i = 0; i < count; i++) {
        char name[WRITER_INDEX_BYTES];
        size_t len = write_index_name(name, (uint32_t)i);
        at = put_field(at, name, len, items[i].type == BT_EOO ? &BVAL_NULL : &items[i]);
    }
    *out = finished(data, (uint32_t)bytes, BT_ARRAY);
    return true;
}

bool expr_make_document(struct expr_scope *scope, const struct expr_name *names, const struct bval *values,
                        size_t count, struct bval *out)
{
    size_t bytes = EMPTY_BYTES;
    for (size_t i = 0; i < count; i++)
        if (values[i].type != BT_EOO)
            bytes += FIELD_BYTES + names[i].len + values[i].len;
    if (!expr_check_size(scope, bytes))
        return false;
    uint8_t *data = arena_alloc(scope->scratch, bytes);
    uint8_t *at = data + 4;
    for (size_t i = 0; i < count; i++)
        if (values[i].type != BT_EOO)
            at = put_field(at, names[i].text, names[i].len, &values[i]);
    *out = finished(data, (uint32_t)bytes, BT_DOCUMENT);
    return true;
}

struct expr_items expr_array_items(struct expr_scope *scope, const struct bval *array)
{
    struct bdoc list = bval_doc(array);
    struct expr_items items = {0};
    struct biter iter;
    struct belem elem;
    items.items = arena_alloc(scope->scratch, (bdoc_count(list) + 1) * sizeof *items.items);
    biter_init(&iter, list);
    while (biter_next(&iter, &elem))
        items.items[items.count++] = elem.val;
    return items;
}

bool expr_walk(struct expr_scope *scope, struct bdoc doc, const struct expr_name *names, uint32_t count,
               struct bval *out)
{
    struct bdoc at = doc;
    for (uint32_t i = 0; i < count; i++) {
        if (!bdoc_find_n(at, names[i].text, names[i].len, out) || i + 1 == count)
            return true;
        if (out->type == BT_DOCUMENT) {
            at = bval_doc(out);
            continue;
        }
        if (out->type != BT_ARRAY) {
            *out = BVAL_MISSING;
            return true;
        }
        struct expr_items items = expr_array_items(scope, out);
        size_t kept = 0;
        for (size_t j = 0; j < items.count; j++) {
            if (items.items[j].type != BT_DOCUMENT)
                continue;
            struct bval inner;
            if (!expr_walk(scope, bval_doc(&items.items[j]), names + i + 1, count - i - 1, &inner))
                return false;
            if (inner.type != BT_EOO)
                items.items[kept++] = inner;
        }
        return expr_make_array(scope, items.items, kept, out);
    }
    return true;
}

static bool run_path(struct expr_scope *scope, const struct expr *expr, struct bval *out)
{
    struct bdoc doc = scope->root;
    if (expr->slot != EXPR_SLOT_ROOT || expr->arg_count > 0) {
        struct bval value = expr->arg_count > 0 ? expr->args[0]->value : scope->vars[expr->slot];
        if (expr->name_count == 0) {
            *out = value;
            return true;
        }
        if (value.type == BT_ARRAY) {
            /* As if the array stood at a field of its own. */
            struct buf buf = BUF_INIT;
            size_t start = write_begin(&buf);
            write_value(&buf, "v", 1, &value);
            write_end(&buf, start);
            struct bval wrapped = make_doc(scope->scratch, &buf, BT_DOCUMENT);
            struct expr_name *names = arena_alloc(scope->scratch, (expr->name_count + 1) * sizeof *names);
            names[0] = (struct expr_name){"v", 1};
            memcpy(names + 1, expr->names, expr->name_count * sizeof *names);
            return expr_walk(scope, bval_doc(&wrapped), names, expr->name_count + 1, out);
        }
        if (value.type != BT_DOCUMENT) {
            *out = BVAL_MISSING;
            return true;
        }
        doc = bval_doc(&value);
    } else if (expr->name_count == 0) {
        *out = bval_from_doc(doc);
        return true;
    }
    return expr_walk(scope, doc, expr->names, expr->name_count, out);
}

static bool run_args(struct expr_scope *scope, const struct expr *expr, struct bval *args)
{
    for (uint32_t i = 0; i < expr->arg_count; i++) {
        args[i] = BVAL_MISSING;
        if (expr->args[i] != NULL && !expr_run(scope, expr->args[i], &args[i]))
            return false;
    }
    return true;
}

static struct bval *room_for_args(struct expr_scope *scope, const struct expr *expr, struct bval *few)
{
    if (expr->arg_count <= STACK_ARGS)
        return few;
    return arena_alloc(scope->scratch, expr->arg_count * sizeof *few);
}

static bool run_document(struct expr_scope *scope, const struct expr *expr, struct bval *out)
{
    struct bval few[STACK_ARGS];
    struct bval *values = room_for_args(scope, expr, few);
    return run_args(scope, expr, values) && expr_make_document(scope, expr->names, values, expr->arg_count, out);
}

static bool run_array(struct expr_scope *scope, const struct expr *expr, struct bval *out)
{
    struct bval few[STACK_ARGS];
    struct bval *args = room_for_args(scope, expr, few);
    return run_args(scope, expr, args) && expr_make_array(scope, args, expr->arg_count, out);
}

static bool run_call(struct expr_scope *scope, const struct expr *expr, struct bval *out)
{
    if (!expr_check_scratch(scope) || !interrupt_step(scope->err))
        return false;
    if (expr->op->lazy)
        return expr->op->eval(scope, expr, NULL, out);
    struct bval few[STACK_ARGS];
    struct bval *args = room_for_args(scope, expr, few);
    return run_args(scope, expr, args) && expr->op->eval(scope, expr, args, out);
}

bool expr_run(struct expr_scope *scope, const struct expr *expr, struct bval *out)
{
    *out = BVAL_MISSING;
    switch (expr->kind) {
    case EXPR_CONSTANT:
        *out = expr->value;
        return true;
    case EXPR_PATH:
        return run_path(scope, expr, out);
    case EXPR_DOCUMENT:
        return run_document(scope, expr, out);
    case EXPR_ARRAY:
        return run_array(scope, expr, out);
    case EXPR_CALL:
        return run_call(scope, expr, out);
    }
    UNREACHABLE();
}

bool expr_eval_meta(const struct expr *expr, struct bdoc root, const struct expr_meta *meta, struct arena *scratch,
                    struct bval *out, struct err *err)
{
    struct expr_scope scope; /* variables are written before they are read */
    scope.root = root;
    scope.scratch = scratch;
    scope.err = err;
    scope.order = expr->order;
    scope.meta = meta;
    return expr_run(&scope, expr, out);
}

bool expr_eval(const struct expr *expr, struct bdoc root, struct arena *scratch, struct bval *out, struct err *err)
{
    return expr_eval_meta(expr, root, NULL, scratch, out, err);
}
