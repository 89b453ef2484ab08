#include "expr/percentile.h"

#include "expr/writer.h"

#include <math.h>
#include <stdlib.h>

bool percentiles_read(struct arena *arena, const struct bval *p, struct percentiles *out, struct err *err)
{
    struct biter iter;
    struct belem item;
    *out = (struct percentiles){.single = p == NULL};
    if (p == NULL) {
        out->p = arena_alloc(arena, sizeof *out->p);
        out->p[0] = 0.5;
        out->count = 1;
        return true;
    }
    uint32_t count = p->type == BT_ARRAY ? bdoc_count(bval_doc(p)) : 0;
    if (count == 0 || count > PERCENTILE_MAX)
        return err_set(err, 7750301, "the 'p' of $percentile must be an array of 1 to %d numbers", PERCENTILE_MAX);
    out->p = arena_alloc(arena, count * sizeof *out->p);
    biter_init(&iter, bval_doc(p));
    while (biter_next(&iter, &item)) {
        double *at = &out->p[out->count++];
        if (!bval_is_number(&item.val) || !bval_to_f64(&item.val, at))
            return err_set(err, 7750302, "the 'p' of $percentile must hold numbers only, not %s",
                           bval_type_name(item.val.type));
        if (!(*at >= 0 && *at <= 1))
            return err_set(err, 7750303, "the 'p' of $percentile must hold numbers from 0.0 to 1.0 only");
    }
    return true;
}

bool percentiles_check_method(const struct bval *method, struct err *err)
{
    if (bval_is_str(method, "approximate"))
        return true;
    return err_set(err, ERR_BadValue, "only 'approximate' can be used as percentile 'method'");
}

void percentiles_add(struct buf *list, const struct bval *val)
{
    double number;
    if (bval_is_number(val) && bval_to_f64(val, &number) && !isnan(number))
        buf_append(list, &number, sizeof number);
}

static int compare_f64(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

struct bval percentiles_result(const struct percentiles *wanted, double *list, size_t count, struct arena *arena)
{
    if (count > 0)
        qsort(list, count, sizeof *list, compare_f64);
    struct buf buf = BUF_INIT;
    size_t start = write_begin(&buf);
    struct bval val = BVAL_NULL;
    for (uint32_t i = 0; i < wanted->count; i++) {
        if (count > 0) {
            double rank = ceil(wanted->p[i] * (double)count);
            val = make_f64(arena, list[rank < 1 ? 0 : (size_t)rank - 1]);
        }
        write_item(&buf, i, &val);
    }
    write_end(&buf, start);
    struct bval all = make_doc(arena, &buf, BT_ARRAY);
    return wanted->single ? val : all;
}
