/* $sortArray, and the first, last, least or greatest n elements of an array. */
#include "base/interrupt.h"
#include "expr/expr_tree.h"

#include <stdlib.h>
#include <string.h>

struct sort_part {
    struct expr_name *names; /* components of the path */
    uint32_t name_count;
    bool descending;
};

/* In call->extra. */
struct sort_by {
    struct sort_part *parts; /* NULL: whole values are compared */
    uint32_t count;
    bool descending; /* of whole values */
};

/* An element with its place, which keeps equal ones in order. */
struct sort_item {
    struct bval val;
    struct bval *keys; /* one for each part */
    size_t place;
};

struct sort_context {
    const struct sort_by *by;
    const struct bval_order *order;
};

static int compare_keys(const void *a, const void *b, void *arg)
{
    const struct sort_item *x = a;
    const struct sort_item *y = b;
    const struct sort_context *context = arg;
    const struct sort_by *by = context->by;
    for (uint32_t i = 0; i < by->count; i++) {
        int order = bval_compare_ordered(&x->keys[i], &y->keys[i], context->order);
        if (order != 0)
            return by->parts[i].descending ? -order : order;
    }
    if (by->parts == NULL) {
        int order = bval_compare_ordered(&x->val, &y->val, context->order);
        if (order != 0)
            return by->descending ? -order : order;
    }
    return (x->place > y->place) - (x->place < y->place);
}

/* Through documents only; what isn't there is null. */
static struct bval key_of(const struct bval *val, const struct sort_part *part)
{
    struct bval at = *val;
    for (uint32_t i = 0; i < part->name_count; i++)
        if (at.type != BT_DOCUMENT || !bdoc_find_n(bval_doc(&at), part->names[i].text, part->names[i].len, &at))
            return BVAL_NULL;
    return at;
}

static bool sort_values(struct expr_scope *s, struct expr_items *items, const struct sort_by *by)
{
    struct sort_item *sorted = arena_alloc(s->scratch, (items->count + 1) * sizeof *sorted);
    struct bval *keys = arena_alloc(s->scratch, (items->count * by->count + 1) * sizeof *keys);
    for (size_t i = 0; i < items->count; i++) {
        sorted[i] = (struct sort_item){.val = items->items[i], .keys = keys + i * by->count, .place = i};
        for (uint32_t j = 0; j < by->count; j++)
            sorted[i].keys[j] = key_of(&items->items[i], &by->parts[j]);
    }
    if (!expr_check_scratch(s) || !interrupt_check(s->err))
        return false;
    struct sort_context context = {.by = by, .order = s->order};
    qsort_r(sorted, items->count, sizeof *sorted, compare_keys, &context);
    for (size_t i = 0; i < items->count; i++)
        items->items[i] = sorted[i].val;
    return true;
}

static bool op_sort_array(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]))
        return true;
    if (args[0].type != BT_ARRAY)
        return err_set(s->err, 2942504, "The input argument to $sortArray must be an array, but was of type: %s",
                       bval_type_name(args[0].type));
    struct expr_items items = expr_array_items(s, &args[0]);
    return sort_values(s, &items, call->extra) && expr_make_array(s, items.items, items.count, out);
}

static bool direction(struct expr_compiler *c, const struct bval *val, int32_t code, bool *descending)
{
    int64_t number;
    if (!bval_is_number(val) || !bval_to_i64(val, &number) || (number != 1 && number != -1))
        return err_set(c->err, code, "$sortArray: the order must be 1 (for ascending) or -1 (for descending)");
    *descending = number < 0;
    return true;
}

static bool split_part(struct expr_compiler *c, const struct belem *elem, struct sort_part *out)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < elem->key_len; i++)
        count += elem->key[i] == '.' ? 1 : 0;
    out->names = arena_alloc(c->arena, count * sizeof *out->names);
    const char *at = elem->key;
    for (uint32_t i = 0; i < count; i++) {
        size_t len = strcspn(at, ".");
        if (len == 0)
            return err_set(c->err, 15998, "FieldPath field names may not be empty strings.");
        if (at[0] == '$')
            return err_set(c->err, 16410, "FieldPath field names may not start with '$'.");
        out->names[i] = (struct expr_name){at, (uint32_t)len};
        at += len + 1;
    }
    out->name_count = count;
    return direction(c, &elem->val, 15975, &out->descending);
}

static bool compile_sort_by(struct expr_compiler *c, struct sort_by *by, const struct bval *spec)
{
    struct biter iter;
    struct belem elem;
    if (spec->type != BT_DOCUMENT)
        return direction(c, spec, ERR_BadValue, &by->descending);
    struct bdoc doc = bval_doc(spec);
    if (bdoc_is_empty(doc))
        return err_set(c->err, 15976, "$sortArray's 'sortBy' must have at least one sort key");
    by->parts = arena_alloc(c->arena, bdoc_count(doc) * sizeof *by->parts);
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem))
        if (!split_part(c, &elem, &by->parts[by->count++]))
            return false;
    return true;
}

/* {input: expression, sortBy: constant}. */
static bool compile_sort_array(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    struct biter iter;
    struct belem elem;
    struct bval sort_by = BVAL_MISSING;
    struct sort_by *by = arena_alloc(c->arena, sizeof *by);
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, 2942500, "$sortArray requires an object as an argument, found: %s",
                       bval_type_name(operand->type));
    expr_reserve_args(c, call, 1);
    biter_init(&iter, bval_doc(operand));
    while (biter_next(&iter, &elem)) {
        if (strcmp(elem.key, "sortBy") == 0)
            sort_by = elem.val;
        else if (strcmp(elem.key, "input") != 0)
            return err_set(c->err, 2942501, "$sortArray found an unknown argument: %s", elem.key);
        else if (!expr_compile_arg(c, call, 0, &elem.val))
            return false;
    }
    if (call->args[0] == NULL)
        return err_set(c->err, 2942502, "$sortArray requires 'input' to be specified");
    if (sort_by.type == BT_EOO)
        return err_set(c->err, 2942503, "$sortArray requires 'sortBy' to be specified");
    call->extra = by;
    return compile_sort_by(c, by, &sort_by);
}

enum n_tag {
    N_FIRST,
    N_LAST,
    N_MIN,
    N_MAX,
};

bool expr_read_n(const struct bval *val, int64_t *out, struct err *err)
{
    if (!bval_is_number(val))
        return err_set(err, 5787902, "Value for 'n' must be of integral type, but found %s", bval_type_name(val->type));
    if (!bval_to_i64(val, out))
        return err_set(err, 5787903, "Value for 'n' must be of integral type");
    if (*out <= 0)
        return err_set(err, 5787908, "'n' must be greater than 0, found %lld", (long long)*out);
    return true;
}

/* Arguments: n, input. */
static bool op_n(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    int64_t n;
    if (!expr_read_n(&args[0], &n, s->err))
        return false;
    if (args[1].type != BT_ARRAY)
        return err_set(s->err, 5788200, "Input must be an array, but found %s", bval_type_name(args[1].type));
    struct expr_items items = expr_array_items(s, &args[1]);
    bool extreme = call->op->tag == N_MIN || call->op->tag == N_MAX;
    if (extreme) {
        size_t kept = 0;
        for (size_t i = 0; i < items.count; i++)
            if (!expr_is_nullish(&items.items[i]))
                items.items[kept++] = items.items[i];
        items.count = kept;
        struct sort_by by = {.descending = call->op->tag == N_MAX};
        if (!sort_values(s, &items, &by))
            return false;
    }
    size_t take = (uint64_t)n < items.count ? (size_t)n : items.count;
    size_t from = call->op->tag == N_LAST ? items.count - take : 0;
    return expr_make_array(s, items.items + from, take, out);
}

const struct expr_operator expr_ops_sort[] = {
    {"$sortArray", 2, 2, false, op_sort_array, NULL, compile_sort_array, 0},
    {"$firstN", 2, 2, false, op_n, "n input", NULL, N_FIRST},
    {"$lastN", 2, 2, false, op_n, "n input", NULL, N_LAST},
    {"$minN", 2, 2, false, op_n, "n input", NULL, N_MIN},
    {"$maxN", 2, 2, false, op_n, "n input", NULL, N_MAX},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
