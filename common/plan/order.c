/* Sorts that an index gives. */
#include "plan/planner.h"

#include <string.h>

static bool is_fixed(const struct value_list *list)
{
    return !list->full && list->count == 1 && list->items[0].point;
}

/* A walk over the keys of an index with arrays meets a document at its least key inside the bounds, a sort takes the
 * least of all. So when a field of the sort holds arrays, none that does may be narrowed. */
static bool meets_least_keys(const struct index_def *index, const struct plan_scan *scan)
{
    for (uint32_t i = 0; i < index->field_count; i++)
        if (index->fields[i].multikey != 0 && !scan->bounds.fields[i].full)
            return false;
    return true;
}

bool order_of_scan(const struct index_def *index, const struct plan_scan *scan, const struct sort_spec *sort,
                   uint64_t *split, bool *backward)
{
    uint32_t at = 0;
    int direction = 0;
    bool arrays = false;
    *split = 0;
    *backward = false;
    if (index->wildcard || !bval_order_same(index->order, sort->order))
        return false;
    for (uint32_t i = 0; i < sort->field_count; i++) {
        const struct sort_field *field = &sort->fields[i];
        while (at < index->field_count && strcmp(index->fields[at].path, field->path) != 0) {
            const struct value_list *list = &scan->bounds.fields[at];
            if (!is_fixed(list) && (!value_list_is_points(list) || list->count == 0))
                return false;
            if (!is_fixed(list))
                *split |= UINT64_C(1) << at;
            at++;
        }
        if (at == index->field_count || index->fields[at].hashed)
            return false;
        arrays |= index->fields[at].multikey != 0;
        if (!is_fixed(&scan->bounds.fields[at])) {
            int here = index->fields[at].descending == field->descending ? 1 : -1;
            if (direction != 0 && here != direction)
                return false;
            direction = here;
        }
        at++;
    }
    *backward = direction < 0;
    return !arrays || meets_least_keys(index, scan);
}

/* Steps to the next combination of one interval for each component in `split`; false after the last one. */
static bool next_combination(const struct plan_scan *scan, uint64_t split, uint32_t *picked)
{
    for (uint32_t i = scan->bounds.field_count; i-- > 0;) {
        if ((split >> i & 1) == 0)
            continue;
        if (++picked[i] < scan->bounds.fields[i].count)
            return true;
        picked[i] = 0;
    }
    return false;
}

bool order_split_scan(struct arena *arena, const struct plan_scan *scan, uint64_t split, struct plan_scan *out,
                      uint32_t max, uint32_t *count)
{
    uint32_t picked[BOUNDS_MAX_COMPONENTS] = {0};
    uint64_t pieces = 1;
    for (uint32_t i = 0; i < scan->bounds.field_count; i++)
        if ((split >> i & 1) != 0)
            pieces = pieces > max ? pieces : pieces * scan->bounds.fields[i].count;
    if (pieces > max - *count)
        return false;
    do {
        struct plan_scan *piece = &out[(*count)++];
        *piece = *scan;
        piece->bounds.fields =
            arena_copy(arena, scan->bounds.fields, scan->bounds.field_count * sizeof *scan->bounds.fields);
        for (uint32_t i = 0; i < scan->bounds.field_count; i++) {
            struct value_list *list = &piece->bounds.fields[i];
            if ((split >> i & 1) == 0)
                continue;
            list->items = &scan->bounds.fields[i].items[picked[i]];
            list->count = 1;
        }
    } while (next_combination(scan, split, picked));
    return true;
}
