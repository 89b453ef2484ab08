/* Operators on arrays: $push, $addToSet, $pull, $pullAll, $pop. */
#include "base/map.h"
#include "bson/compare.h"
#include "bson/keyenc.h"
#include "bson/path.h"
#include "update/update_tree.h"

#include <stdlib.h>
#include <string.h>

enum { SEARCHED_ONE_BY_ONE = 64 }; /* values: beyond that many on both sides a table is made of them */

struct items {
    struct bval *vals;
    size_t count;
};

static struct items items_of(struct arena *arena, const struct bval *array, size_t extra)
{
    struct items items = {0};
    struct biter iter;
    struct belem elem;
    size_t count = array->type == BT_ARRAY ? bdoc_count(bval_doc(array)) : 0;
    items.vals = arena_alloc(arena, (count + extra + 1) * sizeof *items.vals);
    if (count == 0)
        return items;
    biter_init(&iter, bval_doc(array));
    while (biter_next(&iter, &elem))
        items.vals[items.count++] = elem.val;
    return items;
}

static void set_items(struct applier *a, const struct items *items, size_t from, size_t to, struct outcome *out)
{
    struct buf buf = BUF_INIT;
    size_t start = write_begin(&buf);
    for (size_t i = from; i < to; i++)
        write_item(&buf, (uint32_t)(i - from), &items->vals[i]);
    write_end(&buf, start);
    *out = (struct outcome){.kind = OUTCOME_SET, .value = make_doc(&a->scratch, &buf, BT_ARRAY)};
}

static bool whole_number(const struct bval *val, int64_t *out)
{
    return bval_is_number(val) && bval_to_i64(val, out);
}

static void take_items(struct update_compiler *c, struct push_options *push, const struct bval *array)
{
    struct items items = items_of(c->arena, array, 0);
    push->items = items.vals;
    push->item_count = (uint32_t)items.count;
}

static bool compile_push_sort(struct update_compiler *c, struct push_options *push, const struct bval *arg)
{
    int64_t direction;
    push->has_sort = true;
    /* Whatever the array holds. */
    c->update->deterministic = c->update->deterministic && c->update->order == NULL;
    if (bval_is_number(arg)) {
        if (!whole_number(arg, &direction) || (direction != 1 && direction != -1))
            return err_set(c->err, ERR_BadValue, "The $sort element value must be either 1 or -1");
        push->sort_whole = true;
        push->whole_direction = (int)direction;
        return true;
    }
    if (arg->type != BT_DOCUMENT)
        return err_set(c->err, ERR_BadValue,
                       "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to "
                       "sort embedded fields");
    if (bdoc_is_empty(bval_doc(arg)))
        return err_set(c->err, ERR_BadValue, "The $sort pattern is empty when it should be a set of fields.");
    if (!sort_spec_compile(c->arena, bval_doc(arg), c->update->order, &push->sort_spec, c->err)) {
        if (c->err != NULL)
            c->err->code = ERR_BadValue;
        return false;
    }
    return true;
}

static bool compile_push_clause(struct update_compiler *c, struct push_options *push, const struct belem *elem)
{
    if (strcmp(elem->key, "$each") == 0)
        return true;
    if (strcmp(elem->key, "$slice") == 0) {
        if (!whole_number(&elem->val, &push->slice))
            return err_set(c->err, ERR_BadValue, "The value for $slice must be an integer value but was given type: %s",
                           bval_type_name(elem->val.type));
        push->has_slice = true;
        return true;
    }
    if (strcmp(elem->key, "$position") == 0) {
        if (!whole_number(&elem->val, &push->position))
            return err_set(c->err, ERR_BadValue, "The value for $position must be an integer value, not of type: %s",
                           bval_type_name(elem->val.type));
        push->has_position = true;
        return true;
    }
    if (strcmp(elem->key, "$sort") == 0)
        return compile_push_sort(c, push, &elem->val);
    return err_set(c->err, ERR_BadValue, "Unrecognized clause in $push: %s", elem->key);
}

static bool compile_push(struct update_compiler *c, struct update_op *op)
{
    struct bval each;
    struct biter iter;
    struct belem elem;
    op->push = arena_alloc(c->arena, sizeof *op->push);
    bool clauses = op->arg.type == BT_DOCUMENT && bdoc_find(bval_doc(&op->arg), "$each", &each);
    if (!clauses) {
        op->push->items = &op->arg;
        op->push->item_count = 1;
        return true;
    }
    if (each.type != BT_ARRAY)
        return err_set(c->err, ERR_BadValue, "The argument to $each in $push must be an array but it was of type: %s",
                       bval_type_name(each.type));
    take_items(c, op->push, &each);
    biter_init(&iter, bval_doc(&op->arg));
    while (biter_next(&iter, &elem))
        if (!compile_push_clause(c, op->push, &elem))
            return false;
    return true;
}

struct sort_entry {
    struct bval val;
    struct buf key;
    size_t place;
    int direction;
    const struct bval_order *order;
};

static int compare_entries(const void *a, const void *b)
{
    const struct sort_entry *x = a;
    const struct sort_entry *y = b;
    int order = x->direction != 0 ? bval_compare_ordered(&x->val, &y->val, x->order) * x->direction
                                  : keyenc_compare(x->key.data, x->key.len, y->key.data, y->key.len);
    return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

/* Keys are the fields' values as they stand: an array is compared as a whole here. */
static void push_key(const struct sort_spec *spec, const struct bval *val, struct buf *key)
{
    for (uint32_t i = 0; i < spec->field_count; i++) {
        struct bval field = BVAL_MISSING;
        if (val->type == BT_DOCUMENT)
            path_get_str(bval_doc(val), spec->fields[i].path, &field);
        keyenc_append_ordered(key, &field, spec->fields[i].descending, spec->order);
    }
}

static void sort_items(struct applier *a, const struct push_options *push, struct items *items)
{
    struct sort_entry *entries = arena_alloc(&a->scratch, (items->count + 1) * sizeof *entries);
    for (size_t i = 0; i < items->count; i++) {
        entries[i] = (struct sort_entry){
            .val = items->vals[i], .place = i, .direction = push->whole_direction, .order = a->update->order};
        if (!push->sort_whole)
            push_key(push->sort_spec, &items->vals[i], &entries[i].key);
    }
    qsort(entries, items->count, sizeof *entries, compare_entries);
    for (size_t i = 0; i < items->count; i++) {
        items->vals[i] = entries[i].val;
        buf_deinit(&entries[i].key);
    }
}

static void insert_items(const struct push_options *push, struct items *items)
{
    size_t at = items->count;
    if (push->has_position && push->position >= 0 && (uint64_t)push->position < items->count)
        at = (size_t)push->position;
    if (push->has_position && push->position < 0)
        at = 0 - (uint64_t)push->position < items->count ? items->count - (size_t)(0 - (uint64_t)push->position) : 0;
    memmove(items->vals + at + push->item_count, items->vals + at, (items->count - at) * sizeof *items->vals);
    if (push->item_count > 0)
        memcpy(items->vals + at, push->items, push->item_count * sizeof *items->vals);
    items->count += push->item_count;
}

static bool apply_push(struct applier *a, const struct update_op *op, const struct bval *existing, struct outcome *out)
{
    const struct push_options *push = op->push;
    if (existing->type != BT_EOO && existing->type != BT_ARRAY)
        return err_set(a->err, ERR_BadValue, "The field '%s' must be an array but is of type %s in document {%s}",
                       op->path, bval_type_name(existing->type), update_id_text(a));
    struct items items = items_of(&a->scratch, existing, push->item_count);
    insert_items(push, &items);
    if (push->has_sort)
        sort_items(a, push, &items);
    size_t from = 0;
    size_t to = items.count;
    if (push->has_slice && push->slice >= 0 && (uint64_t)push->slice < items.count)
        to = (size_t)push->slice;
    if (push->has_slice && push->slice < 0 && 0 - (uint64_t)push->slice < items.count)
        from = items.count - (size_t)(0 - (uint64_t)push->slice);
    set_items(a, &items, from, to, out);
    /* Counted as a change even when the array comes out as it was. */
    if (push->item_count > 0 || (push->has_sort && items.count > 0) || from > 0 || to < items.count)
        out->kind = OUTCOME_CHANGE;
    return true;
}

static bool compile_add_to_set(struct update_compiler *c, struct update_op *op)
{
    struct biter iter;
    struct belem first;
    op->push = arena_alloc(c->arena, sizeof *op->push);
    op->push->items = &op->arg;
    op->push->item_count = 1;
    update_note_order(c, &op->arg);
    if (op->arg.type != BT_DOCUMENT)
        return true;
    biter_init(&iter, bval_doc(&op->arg));
    if (!biter_next(&iter, &first) || strcmp(first.key, "$each") != 0)
        return true;
    if (first.val.type != BT_ARRAY)
        return err_set(c->err, ERR_TypeMismatch,
                       "The argument to $each in $addToSet must be an array but it was of type %s",
                       bval_type_name(first.val.type));
    take_items(c, op->push, &first.val);
    if (biter_next(&iter, &first))
        return err_set(c->err, ERR_BadValue, "Found unexpected fields after $each in $addToSet: %s", first.key);
    return true;
}

/* Values that others are looked for in. Many look-ups in many values go by a table of their keys, which are the same
 * iff the values are equal: two long arrays must not hold up the applying thread. */
struct value_set {
    const struct items *items;
    const struct bval_order *order;
    bool by_key;
    struct map keys;
    struct buf key; /* of the value at hand */
};

static void value_set_add(struct value_set *set, const struct bval *val)
{
    if (!set->by_key)
        return;
    buf_clear(&set->key);
    keyenc_append_ordered(&set->key, val, false, set->order);
    map_put(&set->keys, set->key.data, set->key.len, set);
}

/* `most`: how many values it may come to hold. */
static void value_set_init(struct value_set *set, const struct items *items, size_t most, size_t looked_for,
                           const struct bval_order *order)
{
    *set = (struct value_set){.items = items, .order = order, .keys = MAP_INIT, .key = BUF_INIT};
    set->by_key = most > SEARCHED_ONE_BY_ONE && looked_for > SEARCHED_ONE_BY_ONE;
    for (size_t i = 0; set->by_key && i < items->count; i++)
        value_set_add(set, &items->vals[i]);
}

static void value_set_deinit(struct value_set *set)
{
    map_deinit(&set->keys);
    buf_deinit(&set->key);
}

static bool value_set_has(struct value_set *set, const struct bval *val)
{
    if (set->by_key) {
        buf_clear(&set->key);
        keyenc_append_ordered(&set->key, val, false, set->order);
        return map_get(&set->keys, set->key.data, set->key.len) != NULL;
    }
    for (size_t i = 0; i < set->items->count; i++)
        if (bval_equal_ordered(&set->items->vals[i], val, set->order))
            return true;
    return false;
}

static bool apply_add_to_set(struct applier *a, const struct update_op *op, const struct bval *existing,
                             struct outcome *out)
{
    if (existing->type != BT_EOO && existing->type != BT_ARRAY)
        return err_set(a->err, ERR_BadValue,
                       "Cannot apply $addToSet to non-array field. Field named '%s' has non-array type %s", op->path,
                       bval_type_name(existing->type));
    struct items items = items_of(&a->scratch, existing, op->push->item_count);
    size_t old_count = items.count;
    struct value_set there;
    value_set_init(&there, &items, items.count + op->push->item_count, op->push->item_count, a->update->order);
    for (uint32_t i = 0; i < op->push->item_count; i++) {
        const struct bval *item = &op->push->items[i];
        if (value_set_has(&there, item))
            continue;
        items.vals[items.count++] = *item;
        value_set_add(&there, item);
    }
    value_set_deinit(&there);
    if (items.count > old_count || existing->type == BT_EOO)
        set_items(a, &items, 0, items.count, out);
    return true;
}

/* {$gt: 5} is a condition on the element itself; {$or: [...]} and {x: 1} look at the element as a document. */
static bool by_element(const struct bval *arg)
{
    /* Not $eq and $not: there MongoDB sees a (malformed) document filter. */
    static const char *const trees[] = {"$and", "$or", "$nor", "$expr", "$comment", "$where", "$eq", "$not"};
    struct biter iter;
    struct belem first;
    if (arg->type == BT_REGEX)
        return true;
    if (!filter_is_condition(arg))
        return false;
    biter_init(&iter, bval_doc(arg));
    if (!biter_next(&iter, &first))
        return false;
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
        if (strcmp(first.key, trees[i]) == 0)
            return false;
    return true;
}

/* The condition is compiled as a filter on the element under the empty name, or on the element as a document. */
static bool compile_pull(struct update_compiler *c, struct update_op *op)
{
    bool by_value = by_element(&op->arg);
    update_note_order(c, &op->arg);
    if (!by_value && op->arg.type != BT_DOCUMENT)
        return true;
    struct bdoc query;
    if (by_value) {
        struct buf buf = BUF_INIT;
        size_t start = write_begin(&buf);
        write_value(&buf, "", 0, &op->arg);
        write_end(&buf, start);
        struct bval doc = make_doc(c->arena, &buf, BT_DOCUMENT);
        query = bval_doc(&doc);
    } else {
        query = bval_doc(&op->arg);
    }
    op->filter_by_value = by_value;
    if (!filter_compile(c->arena, query, c->options->env, &op->filter, c->err))
        return false;
    c->update->deterministic = c->update->deterministic && filter_is_deterministic(op->filter);
    return true;
}

static bool pulls(const struct update_op *op, const struct bval *val, const struct bval_order *order, bool *pulled,
                  struct err *err)
{
    *pulled = false;
    if (op->filter == NULL)
        *pulled = bval_equal_ordered(&op->arg, val, order);
    else if (op->filter_by_value)
        return filter_eval_value(op->filter, "", val, pulled, err);
    else if (val->type == BT_DOCUMENT)
        return filter_eval(op->filter, bval_doc(val), NULL, pulled, err);
    return true;
}

static bool apply_pull(struct applier *a, const struct update_op *op, const struct bval *existing, struct outcome *out)
{
    if (existing->type == BT_EOO)
        return true;
    if (existing->type != BT_ARRAY)
        return err_set(a->err, ERR_BadValue, "Cannot apply %s to a non-array value", op->operator_of->name);
    struct items items = items_of(&a->scratch, existing, 0);
    struct items unwanted = {0};
    if (op->push != NULL)
        unwanted = (struct items){op->push->items, op->push->item_count};
    size_t kept = 0;
    struct value_set gone_values;
    value_set_init(&gone_values, &unwanted, unwanted.count, items.count, a->update->order);
    bool ok = true;
    for (size_t i = 0; ok && i < items.count; i++) {
        bool gone = op->push != NULL && value_set_has(&gone_values, &items.vals[i]);
        ok = op->push != NULL || pulls(op, &items.vals[i], a->update->order, &gone, a->err);
        if (!gone)
            items.vals[kept++] = items.vals[i];
    }
    value_set_deinit(&gone_values);
    a->failed |= !ok;
    if (!ok)
        return false;
    if (kept < items.count)
        set_items(a, &items, 0, kept, out);
    return true;
}

static bool compile_pull_all(struct update_compiler *c, struct update_op *op)
{
    if (op->arg.type != BT_ARRAY)
        return err_set(c->err, ERR_BadValue, "$pullAll requires an array argument but was given a %s",
                       bval_type_name(op->arg.type));
    op->push = arena_alloc(c->arena, sizeof *op->push);
    update_note_order(c, &op->arg);
    take_items(c, op->push, &op->arg);
    return true;
}

static bool compile_pop(struct update_compiler *c, struct update_op *op)
{
    int64_t direction;
    if (!bval_is_number(&op->arg))
        return err_set(c->err, ERR_FailedToParse, "Expected a number in: %s: %s", op->path,
                       bval_type_name(op->arg.type));
    if (!bval_to_i64(&op->arg, &direction) || (direction != 1 && direction != -1))
        return err_set(c->err, ERR_FailedToParse, "$pop expects 1 or -1 (field '%s')", op->path);
    return true;
}

static bool apply_pop(struct applier *a, const struct update_op *op, const struct bval *existing, struct outcome *out)
{
    int64_t direction = 1;
    if (existing->type == BT_EOO)
        return true;
    if (existing->type != BT_ARRAY)
        return err_set(a->err, ERR_TypeMismatch, "Path '%s' contains an element of non-array type '%s'", op->path,
                       bval_type_name(existing->type));
    struct items items = items_of(&a->scratch, existing, 0);
    if (items.count == 0)
        return true;
    bval_to_i64(&op->arg, &direction);
    set_items(a, &items, direction < 0 ? 1 : 0, direction < 0 ? items.count : items.count - 1, out);
    return true;
}

const struct update_operator update_operators_array[] = {
    {"$push", compile_push, apply_push, CREATES_ALWAYS, true},
    {"$addToSet", compile_add_to_set, apply_add_to_set, CREATES_ALWAYS, true},
    {"$pull", compile_pull, apply_pull, CREATES_NEVER, true},
    {"$pullAll", compile_pull_all, apply_pull, CREATES_NEVER, true},
    {"$pop", compile_pop, apply_pop, CREATES_NEVER, true},
    {NULL, NULL, NULL, CREATES_NEVER, false},
};
