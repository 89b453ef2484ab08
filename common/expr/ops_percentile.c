/* $percentile and $median as expressions: over the numbers of one array. */
#include "expr/expr_tree.h"
#include "expr/percentile.h"

enum {
    ARG_INPUT,
    ARG_METHOD,
    ARG_P,
};

/* tag 1: $percentile. Arguments: input, method, p. */
static bool op_percentile(struct expr_scope *s, const struct expr *call, const struct bval *args, struct bval *out)
{
    struct percentiles wanted;
    bool many = call->op->tag == 1;
    if (!percentiles_check_method(&args[ARG_METHOD], s->err) ||
        !percentiles_read(s->scratch, many ? &args[ARG_P] : NULL, &wanted, s->err))
        return false;
    struct buf list = BUF_INIT;
    if (args[ARG_INPUT].type == BT_ARRAY) {
        struct biter iter;
        struct belem item;
        biter_init(&iter, bval_doc(&args[ARG_INPUT]));
        while (biter_next(&iter, &item))
            percentiles_add(&list, &item.val);
    } else {
        percentiles_add(&list, &args[ARG_INPUT]);
    }
    size_t count = list.len / sizeof(double);
    double *numbers = arena_copy(s->scratch, list.data, list.len);
    buf_deinit(&list);
    *out = percentiles_result(&wanted, numbers, count, s->scratch);
    return true;
}

const struct expr_operator expr_ops_percentile[] = {
    {"$percentile", 3, 3, false, op_percentile, "input method p", NULL, 1},
    {"$median", 2, 2, false, op_percentile, "input method", NULL, 0},
    {NULL, 0, 0, false, NULL, NULL, NULL, 0},
};
