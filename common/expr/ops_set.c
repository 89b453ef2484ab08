/* Arrays seen as sets: order and repetition don't count. Results are sorted. */
#include "base/interrupt.h"
#include "expr/expr_tree.h"

#include <stdlib.h>

enum set_tag {
    SET_EQUALS,
    SET_UNION,
    SET_INTERSECTION,
    SET_DIFFERENCE,
    SET_SUBSET,
    SET_ALL,
    SET_ANY,
};

static int compare_items(const void *a, const void *b, void *order)
{
    return bval_compare_ordered(a, b, order);
}

static void sort_items(const struct expr_scope *s, struct expr_items *items)
{
    struct bval_order order = s->order != NULL ? *s->order : (struct bval_order){0};
    qsort_r(items->items, items->count, sizeof *items->items, compare_items, s->order != NULL ? &order : NULL);
}

/* Sorted, without duplicates. */
static void make_set(const struct expr_scope *s, struct expr_items *items)
{
    if (items->count == 0)
        return;
    sort_items(s, items);
    size_t kept = 1;
    for (size_t i = 1; i < items->count; i++)
        if (bval_compare_ordered(&items->items[i], &items->items[kept - 1], s->order) != 0)
            items->items[kept++] = items->items[i];
    items->count = kept;
}

static bool contains(const struct expr_scope *s, const struct expr_items *set, const struct bval *val)
{
    return bval_in_sorted(val, set->items, set->count, s->order);
}

static bool need_array(struct expr_scope *s, const struct expr *call, const struct bval *arg, int code)
{
    if (arg->type == BT_ARRAY)
        return true;
    return err_set(s->err, code, "All operands of %s must be arrays. One argument is of type: %s", call->op->name,
                   bval_type_name(arg->type));
}

static bool op_set_equals(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct expr_items first = {0};
    bool equal = true;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (!need_array(s, call, &args[i], 17044) || !expr_check_room(s, bdoc_count(bval_doc(&args[i]))))
            return false;
        struct expr_items set = expr_array_items(s, &args[i]);
        make_set(s, &set);
        if (i == 0) {
            first = set;
            continue;
        }
        equal = equal && set.count == first.count;
        for (size_t j = 0; equal && j < set.count; j++)
            equal = bval_compare_ordered(&set.items[j], &first.items[j], s->order) == 0;
    }
    *out = make_bool(equal);
    return true;
}

static bool op_set_union(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct expr_items all = {0};
    size_t total = 0;
    *out = BVAL_NULL;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (expr_is_nullish(&args[i]))
            return true;
        if (!need_array(s, call, &args[i], 17043))
            return false;
        total += bdoc_count(bval_doc(&args[i]));
        if (!expr_check_room(s, total))
            return false;
    }
    all.items = arena_alloc(s->scratch, (total + 1) * sizeof *all.items);
    for (uint32_t i = 0; i < call->arg_count; i++) {
        struct biter iter;
        struct belem elem;
        biter_init(&iter, bval_doc(&args[i]));
        while (biter_next(&iter, &elem))
            all.items[all.count++] = elem.val;
    }
    make_set(s, &all);
    return expr_make_array(s, all.items, all.count, out);
}

static bool op_set_intersection(struct expr_scope *s, const struct expr *call, const struct bval *args,
                                struct bval *out)
{
    struct expr_items kept = {0};
    *out = BVAL_NULL;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (expr_is_nullish(&args[i]))
            return true;
        if (!need_array(s, call, &args[i], 17047) || !expr_check_room(s, bdoc_count(bval_doc(&args[i]))))
            return false;
        struct expr_items set = expr_array_items(s, &args[i]);
        make_set(s, &set);
        if (i == 0) {
            kept = set;
            continue;
        }
        size_t count = 0;
        for (size_t j = 0; j < kept.count; j++)
            if (contains(s, &set, &kept.items[j]))
                kept.items[count++] = kept.items[j];
        kept.count = count;
        if (count == 0)
            break;
    }
    return expr_make_array(s, kept.items, kept.count, out);
}

/* Elements of the first that the second lacks, in the order of the first, once each. */
static bool op_set_difference(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]) || expr_is_nullish(&args[1]))
        return true;
    if (!need_array(s, call, &args[0], 17048) || !need_array(s, call, &args[1], 17049))
        return false;
    struct expr_items left = expr_array_items(s, &args[0]);
    struct expr_items right = expr_array_items(s, &args[1]);
    make_set(s, &right);
    size_t kept = 0;
    for (size_t i = 0; i < left.count; i++) {
        bool seen = contains(s, &right, &left.items[i]);
        for (size_t j = 0; !seen && j < kept; j++) {
            if (!interrupt_step(s->err))
                return false;
            seen = bval_compare_ordered(&left.items[i], &left.items[j], s->order) == 0;
        }
        if (!seen)
            left.items[kept++] = left.items[i];
    }
    return expr_make_array(s, left.items, kept, out);
}

static bool op_set_subset(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    if (!need_array(s, call, &args[0], 17046) || !need_array(s, call, &args[1], 17042))
        return false;
    struct expr_items left = expr_array_items(s, &args[0]);
    struct expr_items right = expr_array_items(s, &args[1]);
    make_set(s, &right);
    bool subset = true;
    for (size_t i = 0; subset && i < left.count; i++)
        subset = contains(s, &right, &left.items[i]);
    *out = make_bool(subset);
    return true;
}

static bool op_elements_true(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    bool any = call->op->tag == SET_ANY;
    if (args[0].type != BT_ARRAY)
        return err_set(s->err, any ? 17041 : 17040, "%s's argument must be an array, but is %s", call->op->name,
                       bval_type_name(args[0].type));
    struct biter iter;
    struct belem item;
    bool result = !any;
    biter_init(&iter, bval_doc(&args[0]));
    while (result != any && biter_next(&iter, &item))
        if (expr_value_is_true(&item.val) == any)
            result = any;
    *out = make_bool(result);
    return true;
}

const struct expr_operator expr_ops_set[] = {
    {"$setEquals", 2, -1, false, op_set_equals, NULL, NULL, SET_EQUALS},
    {"$setUnion", 0, -1, false, op_set_union, NULL, NULL, SET_UNION},
    {"$setIntersection", 0, -1, false, op_set_intersection, NULL, NULL, SET_INTERSECTION},
    {"$setDifference", 2, 2, false, op_set_difference, NULL, NULL, SET_DIFFERENCE},
    {"$setIsSubset", 2, 2, false, op_set_subset, NULL, NULL, SET_SUBSET},
    {"$allElementsTrue", 1, 1, false, op_elements_true, NULL, NULL, SET_ALL},
    {"$anyElementTrue", 1, 1, false, op_elements_true, NULL, NULL, SET_ANY},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
