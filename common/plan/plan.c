#include "plan/plan.h"

#include "base/buf.h"
#include "base/map.h"
#include "plan/cache.h"
#include "plan/planner.h"
#include "query/filter_part.h"

#include <stdlib.h>
#include <string.h>

/* ---- plans without an index ---- */

struct plan *plan_records(struct arena *arena, const struct filter *filter)
{
    struct plan *plan = arena_alloc(arena, sizeof *plan);
    plan->kind = filter_is_never(filter) ? PLAN_NOTHING : PLAN_RECORDS;
    plan->filter = filter;
    plan->test = filter_is_empty(filter) ? NULL : filter;
    return plan;
}

/* {_id: value} and nothing else: the look-up by _id answers the whole filter. */
static bool is_only_id(struct bdoc filter)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, filter);
    return biter_next(&iter, &elem) && strcmp(elem.key, "_id") == 0 && elem.val.type != BT_DOCUMENT &&
           bdoc_count(filter) == 1;
}

static struct plan *plan_id(struct arena *arena, const struct filter *filter, const struct bval *id)
{
    struct plan *plan = arena_alloc(arena, sizeof *plan);
    plan->kind = PLAN_ID;
    plan->sorted = true;
    plan->id = *id;
    plan->filter = filter;
    plan->test = is_only_id(filter_source(filter)) ? NULL : filter;
    return plan;
}

/* ---- hints ---- */

static bool find_hinted(const struct collection *coll, const struct bval *hint, const struct index_def **out,
                        struct err *err)
{
    static const char no_index[] =
        "error processing query: planner returned error :: caused by :: hint provided does not correspond to an "
        "existing index";
    const struct index_def *index = NULL;
    if (hint->type == BT_STRING) {
        uint32_t len;
        index = collection_find_index(coll, bval_str(hint, &len));
    } else if (hint->type == BT_DOCUMENT) {
        index = collection_find_index_key(coll, bval_doc(hint));
        if (index != NULL && collection_count_index_key(coll, bval_doc(hint)) > 1)
            return err_set(err, ERR_BadValue, "Hint matched multiple indexes, must hint by index name");
    } else {
        return err_set(err, ERR_FailedToParse, "hint must be a string or an object, not %s",
                       bval_type_name(hint->type));
    }
    if (index == NULL || index->state != INDEX_READY || index->hidden)
        return err_set(err, ERR_BadValue, "%s", no_index);
    *out = index;
    return true;
}

/* A contradiction shows in the bounds of any index. */
static bool find_nothing(struct planner *planner)
{
    for (uint32_t i = 0; i < planner->count; i++) {
        if (planner->list[i].plan.kind != PLAN_NOTHING)
            continue;
        planner->list[0] = planner->list[i];
        planner->list[0].plan.scan_count = 0;
        planner->count = 1;
        return true;
    }
    return false;
}

/* A hinted sparse index is used though it may miss documents: who hints it wants that. A partial one is not. */
static bool add_hinted(struct planner *planner, struct err *err)
{
    const struct plan_request *request = planner->request;
    const struct index_def *index = NULL;
    if (!find_hinted(planner->coll, &request->hint, &index, err))
        return false;
    if (planner_index_usable(planner, index, request->filter))
        planner_add_index(planner, index, true);
    if (planner->count == 0)
        return err_set(err, PLAN_ERR_NO_QUERY_PLAN,
                       "error processing query: planner returned error :: caused by :: No query solutions");
    find_nothing(planner);
    for (uint32_t i = 0; i < planner->count; i++) {
        struct plan *plan = &planner->list[i].plan;
        bool ends = request->min.data != NULL || request->max.data != NULL;
        if (ends && plan->kind == PLAN_INDEX && !planner_min_max(planner, index, &plan->scans[0], err))
            return false;
    }
    return true;
}

/* ---- the query's shape ---- */

static void add_inclusion(void *arg, const char *path)
{
    buf_append(arg, path, strlen(path) + 1);
}

/* What two queries must have in common so that the choice for one suits the other. */
static void append_shape(const struct plan_request *request, struct buf *out)
{
    filter_append_shape(request->filter, out);
    buf_append_u8(out, 0xff);
    if (request->sort != NULL)
        buf_append(out, request->sort->source.data, request->sort->source.len);
    buf_append_u8(out, request->limited);
    buf_append_u8(out, request->count_only);
    if (request->distinct != NULL)
        buf_append(out, request->distinct, strlen(request->distinct) + 1);
    if (request->projection != NULL)
        (void)projection_inclusions(request->projection, add_inclusion, out);
}

/* Changes when an index comes or goes, or is not any more what it was. */
static uint64_t indexes_state(const struct collection *coll)
{
    struct buf bytes = BUF_INIT;
    for (uint32_t i = 0; i < coll->index_count; i++) {
        const struct index_def *index = coll->indexes[i];
        buf_append_be32(&bytes, index->id);
        buf_append_u8(&bytes, (uint8_t)index->state);
        buf_append_u8(&bytes, index->hidden);
        buf_append_u8(&bytes, index->multikey);
    }
    uint64_t hash = hash_bytes(bytes.data, bytes.len);
    buf_deinit(&bytes);
    return hash;
}

/* The key of the cache: collection, shape, and which candidates there are: constants may decide whether a partial or
 * sparse index will do. */
static void append_key(const struct planner *planner, const struct buf *shape, struct buf *out)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < planner->count; i++)
        sum += planner->list[i].signature;
    buf_append_be32(out, planner->coll->id);
    buf_append_be64(out, sum);
    buf_append(out, shape->data, shape->len);
}

/* ---- the choice ---- */

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;
    return (y->score > x->score) - (y->score < x->score);
}

/* The likelier ones first; the sort is made stable by their order in the catalog. */
static void rank(struct planner *planner)
{
    for (uint32_t i = 1; i < planner->count; i++) {
        struct candidate moving = planner->list[i];
        uint32_t at = i;
        for (; at > 0 && compare_candidates(&planner->list[at - 1], &moving) > 0; at--)
            planner->list[at] = planner->list[at - 1];
        planner->list[at] = moving;
    }
    if (planner->count > PLAN_CANDIDATES_MAX)
        planner->count = PLAN_CANDIDATES_MAX;
}

static bool use_cached(struct planner *planner, const struct plan_cache_value *cached)
{
    for (uint32_t i = 0; i < planner->count; i++) {
        struct candidate *candidate = &planner->list[i];
        if (candidate->signature != cached->choice)
            continue;
        struct candidate chosen = *candidate;
        *candidate = planner->list[0];
        chosen.plan.from_cache = true;
        chosen.plan.trial_works = cached->works;
        chosen.plan.works_limit = cached->works * PLAN_CACHE_REPLAN_FACTOR;
        if (chosen.plan.works_limit < PLAN_CACHE_REPLAN_MIN_WORKS)
            chosen.plan.works_limit = PLAN_CACHE_REPLAN_MIN_WORKS;
        planner->list[0] = chosen;
        return true;
    }
    return false;
}

/* Asks the cache, else makes a trial and tells the cache. */
static bool choose_by_trial(struct planner *planner, struct err *err)
{
    const struct plan_request *request = planner->request;
    struct buf shape = BUF_INIT;
    struct buf key = BUF_INIT;
    append_shape(request, &shape);
    append_key(planner, &shape, &key);
    struct plan_cache_value value = {.collection_id = planner->coll->id, .indexes = indexes_state(planner->coll)};
    value.shape_hash = (uint32_t)hash_bytes(shape.data, shape.len);
    value.key_hash = (uint32_t)hash_bytes(key.data, key.len);
    struct plan_cache_value cached;
    bool ask = request->cache != NULL && !request->explain && !request->replan;
    bool ok = true;
    if (!ask || !plan_cache_get(request->cache, key.data, key.len, value.indexes, &cached) ||
        !use_cached(planner, &cached)) {
        ok = planner_trial(planner, err);
        value.choice = planner->list[0].signature;
        value.works = planner->list[0].plan.trial_works;
        if (ok && request->cache != NULL && !request->explain)
            plan_cache_put(request->cache, key.data, key.len, &value);
    }
    planner->list[0].plan.shape_hash = value.shape_hash;
    planner->list[0].plan.key_hash = value.key_hash;
    planner->list[0].plan.cache_key = arena_copy(planner->arena, key.data, key.len);
    planner->list[0].plan.cache_key_len = key.len;
    buf_deinit(&shape);
    buf_deinit(&key);
    return ok;
}

static bool choose(struct planner *planner, struct plan **out, struct err *err)
{
    const struct plan_request *request = planner->request;
    rank(planner);
    bool trial = request->txn != NULL && planner->count > 1 && planner->list[0].plan.kind != PLAN_NOTHING;
    /* A unique key's points are looked up at once; only an explain wants to see what else there was. */
    if (trial && planner->list[0].unique_points && !request->explain)
        trial = false;
    if (trial && !choose_by_trial(planner, err))
        return false;
    *out = arena_copy(planner->arena, &planner->list[0].plan, sizeof **out);
    if (!request->explain || planner->count < 2)
        return true;
    (*out)->rejected = arena_alloc(planner->arena, planner->count * sizeof(struct plan *));
    for (uint32_t i = 1; i < planner->count; i++)
        (*out)->rejected[(*out)->rejected_count++] = &planner->list[i].plan;
    return true;
}

static void add_candidates(struct planner *planner)
{
    for (uint32_t i = 0; i < planner->coll->index_count; i++) {
        const struct index_def *index = planner->coll->indexes[i];
        if (planner_index_usable(planner, index, planner->request->filter))
            planner_add_index(planner, index, false);
    }
    if (!find_nothing(planner))
        planner_add_branches(planner);
    find_nothing(planner);
}

/* All documents in their natural order: that of the records, or of a clustered collection's _id. */
static struct plan *natural_plan(struct planner *planner)
{
    const struct plan_request *request = planner->request;
    struct plan *plan = plan_records(planner->arena, request->filter);
    plan->backward = request->natural < 0;
    plan->sorted = request->natural != 0;
    if (!planner->coll->clustered || plan->kind == PLAN_NOTHING)
        return plan;
    plan->kind = PLAN_INDEX;
    plan->scans = arena_alloc(planner->arena, sizeof *plan->scans);
    plan->scan_count = planner_scans(planner, planner->coll->indexes[0], request->filter, true, plan->scans, 1);
    plan->scans[0].backward = plan->backward;
    return plan;
}

static bool may_look_up_id(const struct collection *coll)
{
    return !coll->many_ids && coll->index_count > 0 && coll->indexes[0]->is_id;
}

static bool make_plan(struct arena *arena, const struct collection *coll, const struct plan_request *request,
                      struct plan **out, struct err *err)
{
    struct planner planner = {.arena = arena, .coll = coll, .request = request};
    struct bval id;
    bool ends = request->min.data != NULL || request->max.data != NULL;
    if (request->hint.type != BT_EOO)
        return add_hinted(&planner, err) && choose(&planner, out, err);
    if (ends)
        return err_set(err, PLAN_ERR_MIN_MAX_HINT,
                       "When using min()/max() a hint of which index to use must be provided");
    if (request->natural != 0 || filter_is_never(request->filter)) {
        *out = natural_plan(&planner);
        return true;
    }
    if (may_look_up_id(coll) && filter_equality(request->filter, "_id", &id) && id.type != BT_ARRAY &&
        (coll->indexes[0]->order == NULL || !bval_order_concerns(&id))) {
        *out = plan_id(arena, request->filter, &id);
        return true;
    }
    add_candidates(&planner);
    if (planner.count > 0)
        return choose(&planner, out, err);
    *out = natural_plan(&planner);
    return true;
}

bool plan_make(struct arena *arena, const struct collection *coll, const struct plan_request *request,
               struct plan **out, struct err *err)
{
    if (!make_plan(arena, coll, request, out, err))
        return false;
    if (request->explain && (*out)->shape_hash == 0) {
        struct buf shape = BUF_INIT;
        append_shape(request, &shape);
        (*out)->shape_hash = (uint32_t)hash_bytes(shape.data, shape.len);
        (*out)->key_hash = (*out)->shape_hash;
        buf_deinit(&shape);
    }
    return true;
}

/* ---- showing ---- */

const char *plan_index_name(const struct plan *plan)
{
    return plan->scan_count > 0 ? plan->scans[0].index_name : NULL;
}

static const char *pattern_text(struct arena *arena, struct bdoc pattern)
{
    struct buf text = BUF_INIT;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, pattern);
    while (biter_next(&iter, &elem)) {
        double number = 0;
        uint32_t len;
        const char *value = elem.val.type == BT_STRING
                                ? arena_printf(arena, "\"%s\"", bval_str(&elem.val, &len))
                                : (bval_to_f64(&elem.val, &number), arena_printf(arena, "%g", number));
        const char *one = arena_printf(arena, "%s%s: %s", text.len > 0 ? ", " : "", elem.key, value);
        buf_append(&text, one, strlen(one));
    }
    const char *whole =
        arena_printf(arena, "{ %.*s }", (int)text.len, text.data == NULL ? "" : (const char *)text.data);
    buf_deinit(&text);
    return whole;
}

const char *plan_summary(const struct plan *plan, struct arena *arena)
{
    static const char *const names[] = {[PLAN_NOTHING] = "EOF", [PLAN_ID] = "IDHACK", [PLAN_RECORDS] = "COLLSCAN"};
    const char *all = "";
    if (plan->scan_count == 0)
        return names[plan->kind];
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        const struct plan_scan *scan = &plan->scans[i];
        if (i > 0 && scan->index_id == plan->scans[i - 1].index_id)
            continue;
        const char *stage = plan->keys_only ? "COUNT_SCAN" : plan->distinct_fields > 0 ? "DISTINCT_SCAN" : "IXSCAN";
        all = arena_printf(arena, "%s%s%s %s", all, i > 0 ? ", " : "", stage, pattern_text(arena, scan->key_pattern));
    }
    return all;
}
