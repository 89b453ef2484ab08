/* Arrays. */
#include "base/interrupt.h"
#include "expr/expr_tree.h"

#include <string.h>

enum {
    RANGE_MAX_ITEMS = 1000000, /* elements of one $range */
};

static bool is_i32(const struct bval *val, int64_t *out)
{
    return bval_is_number(val) && bval_to_i64(val, out) && *out >= INT32_MIN && *out <= INT32_MAX;
}

static bool op_size(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    if (args[0].type != BT_ARRAY)
        return err_set(s->err, 17124, "The argument to $size must be an array, but was of type: %s",
                       bval_type_name(args[0].type));
    *out = make_i32(s->scratch, (int32_t)bdoc_count(bval_doc(&args[0])));
    return true;
}

static bool op_is_array(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)s;
    (void)call;
    *out = make_bool(args[0].type == BT_ARRAY);
    return true;
}

static void pick(struct expr_scope *s, const struct bval *array, int64_t index, struct bval *out)
{
    struct expr_items items = expr_array_items(s, array);
    int64_t count = (int64_t)items.count;
    if (index < 0)
        index += count;
    *out = index >= 0 && index < count ? items.items[index] : BVAL_MISSING;
}

static bool op_array_elem_at(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    int64_t index;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]) || expr_is_nullish(&args[1]))
        return true;
    if (args[0].type != BT_ARRAY)
        return err_set(s->err, 28689, "$arrayElemAt's first argument must be an array, but is %s",
                       bval_type_name(args[0].type));
    if (!bval_is_number(&args[1]))
        return err_set(s->err, 28690, "$arrayElemAt's second argument must be a numeric value, but is %s",
                       bval_type_name(args[1].type));
    if (!is_i32(&args[1], &index))
        return err_set(s->err, 28691, "$arrayElemAt's second argument must be representable as a 32-bit integer");
    pick(s, &args[0], index, out);
    return true;
}

static bool op_first_last(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]))
        return true;
    if (args[0].type != BT_ARRAY)
        return err_set(s->err, 28689, "%s's argument must be an array, but is %s", call->op->name,
                       bval_type_name(args[0].type));
    pick(s, &args[0], call->op->tag, out);
    return true;
}

static bool op_concat_arrays(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    size_t total = 0;
    *out = BVAL_NULL;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (expr_is_nullish(&args[i]))
            return true;
        if (args[i].type != BT_ARRAY)
            return err_set(s->err, 28664, "$concatArrays only supports arrays, not %s", bval_type_name(args[i].type));
        total += bdoc_count(bval_doc(&args[i]));
        if (!expr_check_room(s, total))
            return false;
    }
    struct bval *all = arena_alloc(s->scratch, (total + 1) * sizeof *all);
    size_t at = 0;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        struct biter iter;
        struct belem elem;
        biter_init(&iter, bval_doc(&args[i]));
        while (biter_next(&iter, &elem))
            all[at++] = elem.val;
    }
    return expr_make_array(s, all, total, out);
}

static bool op_in(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    if (args[1].type != BT_ARRAY)
        return err_set(s->err, 40081, "$in requires an array as a second argument, found: %s",
                       bval_type_name(args[1].type));
    struct biter iter;
    struct belem item;
    biter_init(&iter, bval_doc(&args[1]));
    while (biter_next(&iter, &item)) {
        if (!interrupt_step(s->err))
            return false;
        if (args[0].type != BT_EOO && bval_equal_ordered(&args[0], &item.val, s->order)) {
            *out = make_bool(true);
            return true;
        }
    }
    *out = make_bool(false);
    return true;
}

/* Optional bounds of $indexOf...: whole numbers that aren't negative. */
static bool index_bound(struct expr_scope *s, const struct expr *call, const struct bval *arg, size_t *out)
{
    int64_t number;
    if (!is_i32(arg, &number))
        return err_set(s->err, 40096, "%s requires an integral starting index, found a value of type: %s",
                       call->op->name, bval_type_name(arg->type));
    if (number < 0)
        return err_set(s->err, 40097, "%s requires a nonnegative starting index", call->op->name);
    *out = (size_t)number;
    return true;
}

static bool op_index_of_array(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    size_t start = 0;
    size_t end = SIZE_MAX;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]))
        return true;
    if (args[0].type != BT_ARRAY)
        return err_set(s->err, 40090, "$indexOfArray requires an array as a first argument, found: %s",
                       bval_type_name(args[0].type));
    if (call->arg_count > 2 && !index_bound(s, call, &args[2], &start))
        return false;
    if (call->arg_count > 3 && !index_bound(s, call, &args[3], &end))
        return false;
    struct expr_items items = expr_array_items(s, &args[0]);
    int32_t found = -1;
    for (size_t i = start; i < items.count && i < end && found < 0; i++)
        if (args[1].type != BT_EOO && bval_equal_ordered(&items.items[i], &args[1], s->order))
            found = (int32_t)i;
    *out = make_i32(s->scratch, found);
    return true;
}

static bool op_reverse(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    (void)call;
    *out = BVAL_NULL;
    if (expr_is_nullish(&args[0]))
        return true;
    if (args[0].type != BT_ARRAY)
        return err_set(s->err, 34435, "The argument to $reverseArray must be an array, but was of type: %s",
                       bval_type_name(args[0].type));
    struct expr_items items = expr_array_items(s, &args[0]);
    for (size_t i = 0; i < items.count / 2; i++) {
        struct bval other = items.items[i];
        items.items[i] = items.items[items.count - 1 - i];
        items.items[items.count - 1 - i] = other;
    }
    return expr_make_array(s, items.items, items.count, out);
}

/* `code` is for what is no number, the next one for what is no 32-bit integer. */
static bool slice_number(struct expr_scope *s, const struct bval *arg, int32_t code, int64_t *out)
{
    if (!bval_is_number(arg))
        return err_set(s->err, code, "an argument of $slice must be numeric, but is of type: %s",
                       bval_type_name(arg->type));
    if (!is_i32(arg, out))
        return err_set(s->err, code + 1, "an argument of $slice can't be represented as a 32-bit integer");
    return true;
}

static bool op_slice(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    int64_t first;
    int64_t length;
    *out = BVAL_NULL;
    for (uint32_t i = 0; i < call->arg_count; i++)
        if (expr_is_nullish(&args[i]))
            return true;
    if (args[0].type != BT_ARRAY)
        return err_set(s->err, 28724, "First argument to $slice must be an array, but is of type: %s",
                       bval_type_name(args[0].type));
    if (!slice_number(s, &args[1], 28725, &first))
        return false;
    struct expr_items items = expr_array_items(s, &args[0]);
    int64_t count = (int64_t)items.count;
    int64_t start = 0;
    int64_t end = count;
    if (call->arg_count == 2) {
        start = first < 0 && -first < count ? count + first : 0;
        end = first >= 0 && first < count ? first : count;
    } else {
        if (!slice_number(s, &args[2], 28727, &length))
            return false;
        if (length <= 0)
            return err_set(s->err, 28729, "Third argument to $slice must be positive: %lld", (long long)length);
        start = first >= 0 ? first : -first < count ? count + first : 0;
        start = start > count ? count : start;
        end = length < count - start ? start + length : count;
    }
    return expr_make_array(s, items.items + start, (size_t)(end - start), out);
}

static bool op_range(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    int64_t bounds[3] = {0, 0, 1};
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (!bval_is_number(&args[i]))
            return err_set(s->err, 34443 + (int)i * 2, "$range requires numeric values, found value of type: %s",
                           bval_type_name(args[i].type));
        if (!is_i32(&args[i], &bounds[i]))
            return err_set(s->err, 34444 + (int)i * 2,
                           "$range requires values that can be represented as 32-bit integers");
    }
    int64_t step = bounds[2];
    if (step == 0)
        return err_set(s->err, 34449, "$range requires a non-zero step value");
    int64_t span = step > 0 ? bounds[1] - bounds[0] : bounds[0] - bounds[1];
    int64_t stride = step > 0 ? step : -step;
    int64_t count = span > 0 ? (span + stride - 1) / stride : 0;
    if (count > RANGE_MAX_ITEMS)
        return err_set(s->err, ERR_ExceededMemoryLimit, "$range would make more than %d elements", RANGE_MAX_ITEMS);
    struct bval *items = arena_alloc(s->scratch, ((size_t)count + 1) * sizeof *items);
    for (int64_t i = 0; i < count; i++)
        items[i] = make_i32(s->scratch, (int32_t)(bounds[0] + i * step));
    return expr_make_array(s, items, (size_t)count, out);
}

static int zip_compile_inputs(struct expr_compiler *c, struct expr *call, const struct bval *list, uint32_t at)
{
    struct biter iter;
    struct belem item;
    biter_init(&iter, bval_doc(list));
    for (; biter_next(&iter, &item); at++)
        if (!expr_compile_arg(c, call, at, &item.val))
            return -1;
    return (int)at;
}

/* Arguments: the inputs, then the defaults; slot2 is the number of inputs, slot is 1 for useLongestLength. */
static bool compile_zip(struct expr_compiler *c, struct expr *call, const struct bval *operand)
{
    struct bval inputs = BVAL_MISSING;
    struct bval defaults = BVAL_MISSING;
    struct biter iter;
    struct belem elem;
    call->slot = 0;
    if (operand->type != BT_DOCUMENT)
        return err_set(c->err, 34460, "$zip only supports an object as an argument, found %s",
                       bval_type_name(operand->type));
    biter_init(&iter, bval_doc(operand));
    while (biter_next(&iter, &elem)) {
        if (strcmp(elem.key, "inputs") == 0)
            inputs = elem.val;
        else if (strcmp(elem.key, "defaults") == 0)
            defaults = elem.val;
        else if (strcmp(elem.key, "useLongestLength") != 0)
            return err_set(c->err, 34464, "$zip found an unknown argument: %s", elem.key);
        else if (elem.val.type != BT_BOOL)
            return err_set(c->err, 34463, "useLongestLength must be a bool, found %s", bval_type_name(elem.val.type));
        else
            call->slot = bval_bool(&elem.val) ? 1 : 0;
    }
    if (inputs.type != BT_EOO && inputs.type != BT_ARRAY)
        return err_set(c->err, 34461, "inputs must be an array of expressions, found %s", bval_type_name(inputs.type));
    if (defaults.type != BT_EOO && defaults.type != BT_ARRAY)
        return err_set(c->err, 34462, "defaults must be an array of expressions, found %s",
                       bval_type_name(defaults.type));
    if (inputs.type == BT_EOO || bdoc_is_empty(bval_doc(&inputs)))
        return err_set(c->err, 34465, "$zip requires at least one input array");
    uint32_t count = bdoc_count(bval_doc(&inputs));
    uint32_t default_count = defaults.type == BT_ARRAY ? bdoc_count(bval_doc(&defaults)) : 0;
    if (default_count != 0 && call->slot == 0)
        return err_set(c->err, 34466, "cannot specify defaults unless useLongestLength is true");
    if (default_count != 0 && default_count != count)
        return err_set(c->err, 34467, "defaults and inputs must have the same length");
    expr_reserve_args(c, call, count + default_count);
    call->slot2 = (int)count;
    if (zip_compile_inputs(c, call, &inputs, 0) < 0)
        return false;
    return default_count == 0 || zip_compile_inputs(c, call, &defaults, count) >= 0;
}

static bool op_zip(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    size_t width = (size_t)call->slot2;
    bool longest = call->slot == 1;
    struct expr_items *columns = arena_alloc(s->scratch, width * sizeof *columns);
    size_t rows = longest ? 0 : SIZE_MAX;
    *out = BVAL_NULL;
    for (size_t i = 0; i < width; i++) {
        if (expr_is_nullish(&args[i]))
            return true;
        if (args[i].type != BT_ARRAY)
            return err_set(s->err, 34468, "$zip found a non-array expression in input: %s",
                           bval_type_name(args[i].type));
        if (!expr_check_room(s, bdoc_count(bval_doc(&args[i]))))
            return false;
        columns[i] = expr_array_items(s, &args[i]);
        if (longest ? columns[i].count > rows : columns[i].count < rows)
            rows = columns[i].count;
    }
    struct bval *lines = arena_alloc(s->scratch, (rows + 1) * sizeof *lines);
    struct bval *line = arena_alloc(s->scratch, width * sizeof *line);
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < width; i++) {
            bool has_default = call->arg_count > width;
            line[i] = row < columns[i].count ? columns[i].items[row] : has_default ? args[width + i] : BVAL_NULL;
        }
        if (!interrupt_step(s->err) || !expr_check_scratch(s) || !expr_make_array(s, line, width, &lines[row]))
            return false;
    }
    return expr_make_array(s, lines, rows, out);
}

const struct expr_operator expr_ops_array[] = {
    {"$size", 1, 1, false, op_size, NULL, NULL, 0},
    {"$isArray", 1, 1, false, op_is_array, NULL, NULL, 0},
    {"$arrayElemAt", 2, 2, false, op_array_elem_at, NULL, NULL, 0},
    {"$first", 1, 1, false, op_first_last, NULL, NULL, 0},
    {"$last", 1, 1, false, op_first_last, NULL, NULL, -1},
    {"$concatArrays", 0, -1, false, op_concat_arrays, NULL, NULL, 0},
    {"$in", 2, 2, false, op_in, NULL, NULL, 0},
    {"$indexOfArray", 2, 4, false, op_index_of_array, NULL, NULL, 0},
    {"$reverseArray", 1, 1, false, op_reverse, NULL, NULL, 0},
    {"$slice", 2, 3, false, op_slice, NULL, NULL, 0},
    {"$range", 2, 3, false, op_range, NULL, NULL, 0},
    {"$zip", 0, -1, false, op_zip, NULL, compile_zip, 0},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
