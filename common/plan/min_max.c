/* find's min and max: ends of a walk through the hinted index, as values of its fields. */
#include "plan/planner.h"

#include "bson/hash.h"
#include "bson/keyenc.h"
#include "query/filter_part.h"

#include <string.h>

static bool same_fields(const struct index_def *index, struct bdoc end)
{
    struct biter iter;
    struct belem elem;
    uint32_t at = 0;
    biter_init(&iter, end);
    for (; biter_next(&iter, &elem); at++)
        if (at >= index->field_count || strcmp(index->fields[at].path, elem.key) != 0)
            return false;
    return at == index->field_count;
}

/* Strings stand in the index in its own order: an end of another order has no place there. */
static bool in_its_order(const struct planner *planner, const struct index_def *index, struct bdoc end)
{
    const struct bval val = bval_from_doc(end);
    return !bval_order_concerns(&val) || bval_order_same(index->order, filter_order(planner->request->filter));
}

static bool encode_end(const struct planner *planner, const struct index_def *index, struct bdoc end,
                       const uint8_t **out, uint32_t *len, struct err *err)
{
    struct biter iter;
    struct belem elem;
    struct buf bytes = BUF_INIT;
    *out = NULL;
    *len = 0;
    if (end.data == NULL || bdoc_is_empty(end))
        return true;
    if (index->wildcard || !same_fields(index, end) || !in_its_order(planner, index, end))
        return err_set(err, PLAN_ERR_MIN_MAX_INDEX, "The index chosen is not compatible with min/max");
    biter_init(&iter, end);
    for (uint32_t i = 0; biter_next(&iter, &elem); i++) {
        const struct index_field *field = &index->fields[i];
        if (field->hashed)
            keyenc_append_i64(&bytes, bval_hash_ordered(&elem.val, index->order), field->descending);
        else
            keyenc_append_ordered(&bytes, &elem.val, field->descending, index->order);
    }
    *len = (uint32_t)bytes.len;
    *out = arena_copy(planner->arena, bytes.data, bytes.len);
    buf_deinit(&bytes);
    return true;
}

bool planner_min_max(struct planner *planner, const struct index_def *index, struct plan_scan *scan, struct err *err)
{
    const struct plan_request *request = planner->request;
    if (!encode_end(planner, index, request->min, &scan->min, &scan->min_len, err) ||
        !encode_end(planner, index, request->max, &scan->max, &scan->max_len, err))
        return false;
    scan->min_key = request->min;
    scan->max_key = request->max;
    if (scan->min_len > 0 && scan->max_len > 0 &&
        bounds_compare_bytes(scan->min, scan->min_len, scan->max, scan->max_len) >= 0)
        return err_set(err, PLAN_ERR_MIN_MAX_ORDER,
                       "The value provided for min() does not come before the value provided for max().");
    return true;
}
