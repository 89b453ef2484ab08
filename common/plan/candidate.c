#include "plan/planner.h"

#include "base/mem.h"
#include "bson/keyenc.h"
#include "expr/writer.h"
#include "query/filter_part.h"
#include "storage/index_keys.h"

#include <string.h>

enum {
    SCORE_UNIQUE_POINT = 1000, /* at most one document for each interval */
    SCORE_FIXED_FIELD = 10,
    SCORE_USED_FIELD = 10,
    SCORE_BOUND_FIELD = 3, /* behind a gap */
    SCORE_SORT = 8,
    SCORE_SORT_LIMITED = 25,
    SCORE_EXACT = 2,
    SCORE_COVERED = 4,
    WILDCARD_PATHS_MAX = 8, /* of one query that are tried with one wildcard index */
};

/* ---- which indexes ---- */

bool planner_index_usable(struct planner *planner, const struct index_def *index, const struct filter *filter)
{
    if (index->state != INDEX_READY || index->hidden)
        return false;
    if (index->partial.data == NULL)
        return true;
    struct expr_env *env = arena_alloc(planner->arena, sizeof *env);
    struct filter *partial;
    env->order = index->order;
    return filter_compile(planner->arena, index->partial, env, &partial, NULL) &&
           filter_implies(planner->arena, filter, partial);
}

/* ---- patterns ---- */

static void add_field(struct bounds_pattern *out, const struct index_field *field)
{
    out->fields[out->field_count++] = (struct bounds_field){
        .path = field->path, .descending = field->descending, .hashed = field->hashed, .arrays = field->multikey};
}

/* The two components of a wildcard field. `path` NULL: of the entry that every document has, MinKey and MinKey. */
static void add_wildcard(struct bounds_pattern *out, const struct index_field *field, const char *path,
                         struct arena *arena)
{
    struct bounds_field *name = &out->fields[out->field_count++];
    struct bounds_field *value = &out->fields[out->field_count++];
    *name = (struct bounds_field){.path = "$_path", .descending = field->descending, .constant = true};
    *value = (struct bounds_field){.path = path, .descending = field->descending, .arrays = ~UINT64_C(0)};
    name->value = BVAL_MIN_KEY;
    if (path != NULL) {
        name->value = make_str(arena, path, strlen(path));
    } else {
        value->path = "$_value";
        value->constant = true;
        value->value = BVAL_MIN_KEY;
    }
}

static void pattern_of(const struct planner *planner, const struct index_def *index, const char *wildcard_path,
                       struct bounds_pattern *out)
{
    *out = (struct bounds_pattern){.order = index->order};
    for (uint32_t i = 0; i < index->field_count; i++) {
        if (index->fields[i].wildcard)
            add_wildcard(out, &index->fields[i], wildcard_path, planner->arena);
        else
            add_field(out, &index->fields[i]);
    }
}

/* ---- scans ---- */

static void describe_scan(struct planner *planner, const struct index_def *index, struct plan_scan *out)
{
    struct arena *arena = planner->arena;
    struct bval collation;
    uint64_t *paths = arena_alloc(arena, index->field_count * sizeof *paths);
    for (uint32_t i = 0; i < index->field_count; i++)
        paths[i] = index->fields[i].multikey;
    *out = (struct plan_scan){
        .index_id = index->id,
        .multikey = index->multikey,
        .unique = index->unique && !index->prepare_unique,
        .sparse = index->sparse,
        .partial = index->partial.data != NULL,
        .multikey_paths = paths,
        .field_count = index->field_count,
        .order = index->order,
    };
    out->index_name = arena_copy_str(arena, index->name, strlen(index->name));
    struct bdoc spec = {.data = arena_copy(arena, index->spec.data, index->spec.len), .len = index->spec.len};
    struct bval key;
    if (bdoc_find(spec, "key", &key))
        out->key_pattern = bval_doc(&key);
    if (bdoc_find(spec, "collation", &collation) && collation.type == BT_DOCUMENT)
        out->collation = bval_doc(&collation);
}

/* Values that a wildcard index has under the path itself: everything but a missing field and documents with fields. */
static bool wildcard_has_all(const struct value_list *list, bool descending)
{
    static const uint8_t document[] = {5, 0, 0, 0, 0};
    const struct bval empty = {.type = BT_DOCUMENT, .len = 5, .data = document};
    struct buf null = BUF_INIT;
    struct buf first = BUF_INIT;
    struct buf last = BUF_INIT;
    keyenc_append(&null, &BVAL_NULL, descending);
    keyenc_append_before_class(&first, BT_DOCUMENT, descending);
    keyenc_append_after_class(&last, BT_DOCUMENT, descending);
    if (descending) {
        struct buf kept = first;
        first = last;
        last = kept;
    }
    bool has_all = !list->full && !value_list_contains(list, null.data, (uint32_t)null.len);
    for (uint32_t i = 0; has_all && i < list->count; i++) {
        const struct value_interval *item = &list->items[i];
        bool before = item->bytes.high_len != 0 && bounds_compare_bytes(item->bytes.high, item->bytes.high_len,
                                                                        first.data, (uint32_t)first.len) <= 0;
        bool after = bounds_compare_bytes(item->bytes.low, item->bytes.low_len, last.data, (uint32_t)last.len) >= 0;
        bool is_empty = item->point && bval_equal(&item->first, &empty);
        has_all = before || after || is_empty;
    }
    buf_deinit(&null);
    buf_deinit(&first);
    buf_deinit(&last);
    return has_all;
}

static bool narrows_before(const struct plan_scan *scan, uint32_t component)
{
    for (uint32_t i = 0; i < component; i++)
        if (!scan->bounds.fields[i].full)
            return true;
    return false;
}

static bool scan_of(struct planner *planner, const struct index_def *index, const struct filter *filter,
                    const char *wildcard_path, struct plan_scan *out)
{
    struct bounds_pattern pattern;
    describe_scan(planner, index, out);
    pattern_of(planner, index, wildcard_path, &pattern);
    key_bounds_of(planner->arena, filter, &pattern, &out->bounds);
    out->filter = out->bounds.rest;
    if (!index->wildcard)
        return true;
    out->multikey = true;
    out->wildcard_path =
        wildcard_path == NULL ? NULL : arena_copy_str(planner->arena, wildcard_path, strlen(wildcard_path));
    uint32_t at = index->wildcard_field;
    if (wildcard_path == NULL)
        return narrows_before(out, at);
    return wildcard_has_all(&out->bounds.fields[at + 1], index->fields[at].descending);
}

static uint32_t wildcard_scans(struct planner *planner, const struct index_def *index, const struct filter *filter,
                               struct plan_scan *out, uint32_t max)
{
    const char *paths[WILDCARD_PATHS_MAX];
    uint32_t path_count = filter_paths(planner->arena, filter, paths, WILDCARD_PATHS_MAX);
    uint32_t count = 0;
    for (uint32_t i = 0; i < path_count && count < max; i++) {
        if (index_wildcard_covers(index, paths[i], (uint32_t)strlen(paths[i])) &&
            scan_of(planner, index, filter, paths[i], &out[count]))
            count++;
    }
    if (index->field_count > 1 && count < max && scan_of(planner, index, filter, NULL, &out[count]))
        count++;
    return count;
}

uint32_t planner_scans(struct planner *planner, const struct index_def *index, const struct filter *filter, bool hinted,
                       struct plan_scan *out, uint32_t max)
{
    if (index->wildcard)
        return wildcard_scans(planner, index, filter, out, max);
    if (max == 0)
        return 0;
    scan_of(planner, index, filter, NULL, out);
    /* A sparse index leaves out the documents without any of its fields. */
    return hinted || !index->sparse || !out->bounds.needs_missing ? 1 : 0;
}

/* ---- what else the index can do for the query ---- */

struct cover {
    const struct index_def *index;
    bool all;
};

static void check_covered(void *arg, const char *path)
{
    struct cover *cover = arg;
    bool found = false;
    for (uint32_t i = 0; i < cover->index->field_count; i++)
        found = found || strcmp(cover->index->fields[i].path, path) == 0;
    cover->all = cover->all && found;
}

/* Fields below others would have to be put together again; arrays have one entry for each element. */
static bool has_plain_values(const struct index_def *index)
{
    for (uint32_t i = 0; i < index->field_count; i++) {
        const struct index_field *field = &index->fields[i];
        if (field->hashed || field->wildcard || field->multikey != 0 || field->dotted)
            return false;
    }
    return true;
}

static bool covers(const struct planner *planner, const struct index_def *index, const struct candidate *candidate)
{
    const struct plan_request *request = planner->request;
    struct cover cover = {.index = index, .all = true};
    if (request->projection == NULL || candidate->plan.scans[0].filter != NULL || index->multikey ||
        index->order != NULL || !has_plain_values(index))
        return false;
    if (!projection_inclusions(request->projection, check_covered, &cover) || !cover.all)
        return false;
    for (uint32_t i = 0; request->sort != NULL && i < request->sort->field_count; i++)
        check_covered(&cover, request->sort->fields[i].path);
    return cover.all;
}

/* Which leading fields an entry each is enough of; 0: all entries are needed. */
static uint32_t distinct_fields(const struct planner *planner, const struct index_def *index,
                                const struct plan_scan *scan)
{
    const char *path = planner->request->distinct;
    if (path == NULL || index->wildcard || !bval_order_same(index->order, filter_order(planner->request->filter)))
        return 0;
    for (uint32_t i = 0; i < index->field_count; i++) {
        if (strcmp(index->fields[i].path, path) == 0)
            return index->fields[i].hashed || index->fields[i].multikey != 0 ? 0 : i + 1;
        if (i >= scan->bounds.fixed_fields || index->fields[i].multikey != 0)
            return 0;
    }
    return 0;
}

static void score(struct candidate *candidate, const struct plan_request *request)
{
    const struct plan *plan = &candidate->plan;
    int sum = 0;
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        const struct key_bounds *bounds = &plan->scans[i].bounds;
        int one = (int)bounds->used_fields * SCORE_USED_FIELD + (int)bounds->fixed_fields * SCORE_FIXED_FIELD +
                  (int)(bounds->bound_fields - bounds->used_fields) * SCORE_BOUND_FIELD;
        one += bounds->exact ? SCORE_EXACT : 0;
        sum = i == 0 || one < sum ? one : sum;
    }
    if (candidate->unique_points)
        sum += SCORE_UNIQUE_POINT;
    if (plan->sorted && request->sort != NULL)
        sum += request->limited ? SCORE_SORT_LIMITED : SCORE_SORT;
    if (plan->covered)
        sum += SCORE_COVERED;
    candidate->score = sum;
}

static uint64_t sign(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x100000001b3);
}

void candidate_finish(struct planner *planner, struct candidate *candidate)
{
    struct plan *plan = &candidate->plan;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    plan->filter = planner->request->filter;
    score(candidate, planner->request);
    hash = sign(hash, (uint64_t)plan->kind);
    hash = sign(hash, plan->sorted);
    hash = sign(hash, plan->distinct_fields);
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        const struct plan_scan *scan = &plan->scans[i];
        if (i > 0 && scan->part == NULL && scan->index_id == plan->scans[i - 1].index_id)
            continue; /* pieces of one scan: their number is no part of the way */
        hash = sign(hash, scan->index_id);
        hash = sign(hash, scan->backward);
        for (const char *at = scan->wildcard_path; at != NULL && *at != 0; at++)
            hash = sign(hash, (uint8_t)*at);
    }
    candidate->signature = hash;
}

void planner_add(struct planner *planner, const struct candidate *candidate)
{
    if (planner->count == planner->capacity) {
        uint32_t capacity = planner->capacity == 0 ? 4 : planner->capacity * 2;
        struct candidate *list = arena_alloc(planner->arena, capacity * sizeof *list);
        if (planner->count > 0)
            memcpy(list, planner->list, planner->count * sizeof *list);
        planner->list = list;
        planner->capacity = capacity;
    }
    planner->list[planner->count++] = *candidate;
}

bool planner_wants_order(const struct planner *planner)
{
    const struct sort_spec *sort = planner->request->sort;
    return sort != NULL && sort->field_count > 0;
}

/* The pieces of a scan in which each gives the order, merged. */
static void add_merge(struct planner *planner, const struct plan_scan *scan, uint64_t split, bool backward)
{
    struct candidate candidate = {.plan = {.kind = PLAN_MERGE, .sorted = true, .merge_sort = planner->request->sort}};
    struct plan *plan = &candidate.plan;
    struct plan_scan *pieces = mem_alloc_array(PLAN_SCANS_MAX, sizeof *pieces);
    if (order_split_scan(planner->arena, scan, split, pieces, PLAN_SCANS_MAX, &plan->scan_count)) {
        plan->scans = arena_copy(planner->arena, pieces, plan->scan_count * sizeof *pieces);
        for (uint32_t i = 0; i < plan->scan_count; i++)
            plan->scans[i].backward = backward;
        candidate_finish(planner, &candidate);
        planner_add(planner, &candidate);
    }
    mem_free(pieces);
}

static void add_scan(struct planner *planner, const struct index_def *index, const struct plan_scan *scan, bool hinted)
{
    struct candidate candidate = {.plan = {.kind = PLAN_INDEX, .scan_count = 1}};
    struct plan *plan = &candidate.plan;
    uint64_t split = 0;
    bool backward = false;
    /* find's min and max are not among the bounds yet. */
    bool ends = planner->request->min.data != NULL || planner->request->max.data != NULL;
    bool ordered = planner_wants_order(planner) && !(ends && index->multikey) &&
                   order_of_scan(index, scan, planner->request->sort, &split, &backward) && !scan->bounds.never;
    plan->scans = arena_copy(planner->arena, scan, sizeof *scan);
    plan->sorted = !planner_wants_order(planner) || (ordered && split == 0);
    if (ordered && split == 0)
        plan->scans[0].backward = backward;
    if (scan->bounds.never)
        plan->kind = PLAN_NOTHING;
    plan->covered = covers(planner, index, &candidate);
    bool one_key = scan->bounds.points && scan->bounds.fixed_fields == scan->bounds.field_count;
    plan->keys_only = planner->request->count_only && scan->filter == NULL && (!index->multikey || one_key);
    plan->distinct_fields = distinct_fields(planner, index, scan);
    candidate.unique_points =
        scan->unique && !index->is_id && scan->bounds.points && scan->bounds.fixed_fields == index->field_count;
    candidate.unique_points |= index->is_id && !planner->coll->many_ids && scan->bounds.fixed_fields == 1;
    bool of_use = scan->bounds.used_fields > 0 || (ordered && split == 0) || scan->bounds.never;
    of_use = of_use || (plan->distinct_fields > 0 && filter_is_empty(planner->request->filter));
    if (!of_use && !hinted)
        return;
    candidate_finish(planner, &candidate);
    planner_add(planner, &candidate);
    if (ordered && split != 0 && !ends)
        add_merge(planner, scan, split, backward);
}

void planner_add_index(struct planner *planner, const struct index_def *index, bool hinted)
{
    struct plan_scan scans[WILDCARD_PATHS_MAX + 1];
    uint32_t count = planner_scans(planner, index, planner->request->filter, hinted, scans, WILDCARD_PATHS_MAX + 1);
    for (uint32_t i = 0; i < count; i++)
        add_scan(planner, index, &scans[i], hinted);
}
