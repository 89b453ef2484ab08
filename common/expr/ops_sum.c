/* $sum, $avg, $min, $max, $stdDevPop, $stdDevSamp over the arguments (or the elements of a single array). */
#include "expr/expr_tree.h"

#include "bson/decimal.h"

#include <math.h>

enum total_tag {
    TOTAL_SUM,
    TOTAL_AVG,
    TOTAL_MIN,
    TOTAL_MAX,
    TOTAL_DEV_POP,
    TOTAL_DEV_SAMP,
};

static struct expr_items operands(struct expr_scope *s, const struct expr *call, const struct bval *args)
{
    if (call->arg_count == 1 && args[0].type == BT_ARRAY)
        return expr_array_items(s, &args[0]);
    struct expr_items items = {.items = arena_alloc(s->scratch, (call->arg_count + 1) * sizeof *items.items)};
    for (uint32_t i = 0; i < call->arg_count; i++)
        items.items[items.count++] = args[i];
    return items;
}

static bool op_sum_avg(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct expr_items items = operands(s, call, args);
    struct number_sum sum = {0};
    int64_t count = 0;
    for (size_t i = 0; i < items.count; i++) {
        if (!bval_is_number(&items.items[i]))
            continue;
        struct number number = number_of(&items.items[i]);
        number_sum_add(&sum, &number);
        count++;
    }
    *out = BVAL_NULL;
    if (call->op->tag == TOTAL_SUM) {
        struct number total = number_sum_result(&sum);
        *out = number_value(s->scratch, &total);
    } else if (count > 0 && sum.widest == BT_DECIMAL128) {
        bson_decimal128_t dec = decimal_div(number_sum_decimal(&sum), decimal_from_i64(count));
        *out = make_decimal(s->scratch, &dec);
    } else if (count > 0) {
        *out = make_f64(s->scratch, number_sum_f64(&sum) / (double)count);
    }
    return true;
}

static bool op_min_max(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct expr_items items = operands(s, call, args);
    bool want_max = call->op->tag == TOTAL_MAX;
    *out = BVAL_NULL;
    bool any = false;
    for (size_t i = 0; i < items.count; i++) {
        if (expr_is_nullish(&items.items[i]))
            continue;
        int order = any ? bval_compare_ordered(&items.items[i], out, s->order) : 0;
        if (!any || (want_max ? order > 0 : order < 0))
            *out = items.items[i];
        any = true;
    }
    return true;
}

static bool op_deviation(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct expr_items items = operands(s, call, args);
    double count = 0;
    double mean = 0;
    double squares = 0;
    for (size_t i = 0; i < items.count; i++) {
        double number;
        if (!bval_is_number(&items.items[i]) || !bval_to_f64(&items.items[i], &number))
            continue;
        count += 1;
        double delta = number - mean;
        mean += delta / count;
        squares += delta * (number - mean);
    }
    double divisor = call->op->tag == TOTAL_DEV_POP ? count : count - 1;
    *out = divisor > 0 ? make_f64(s->scratch, sqrt(squares / divisor)) : BVAL_NULL;
    return true;
}

const struct expr_operator expr_ops_sum[] = {
    {"$sum", 0, -1, false, op_sum_avg, NULL, NULL, TOTAL_SUM},
    {"$avg", 0, -1, false, op_sum_avg, NULL, NULL, TOTAL_AVG},
    {"$min", 0, -1, false, op_min_max, NULL, NULL, TOTAL_MIN},
    {"$max", 0, -1, false, op_min_max, NULL, NULL, TOTAL_MAX},
    {"$stdDevPop", 0, -1, false, op_deviation, NULL, NULL, TOTAL_DEV_POP},
    {"$stdDevSamp", 0, -1, false, op_deviation, NULL, NULL, TOTAL_DEV_SAMP},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
