#include "document/planner.h"

#include "bson/compare.h"
#include "bson/keyenc.h"

#include <string.h>

enum {
    SCORE_UNIQUE_POINT = 1000, /* at most one document for each interval */
    SCORE_FIXED_FIELD = 10,
    SCORE_USED_FIELD = 10,
    SCORE_SORT = 8,
    SCORE_SORT_LIMITED = 25,
    SCORE_EXACT = 2,
    ERR_NO_QUERY_PLAN = 291,
};

struct candidate {
    const struct index_def *index;
    struct bounds bounds;
    bool sorted;
    bool backward;
    int score;
};

struct plan *plan_records(struct arena *arena, const struct filter *filter)
{
    struct plan *plan = arena_alloc(arena, sizeof *plan);
    plan->kind = filter_is_never(filter) ? PLAN_NOTHING : PLAN_RECORDS;
    plan->test_filter = !filter_is_empty(filter);
    return plan;
}

/* Every element of the partial filter stands, byte for byte, in the query. */
static bool implies_partial(const struct filter *filter, struct bdoc partial)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, partial);
    while (biter_next(&iter, &elem)) {
        struct bval same;
        if (!bdoc_find_n(filter_source(filter), elem.key, elem.key_len, &same))
            return false;
        if (same.type != elem.val.type || same.len != elem.val.len || memcmp(same.data, elem.val.data, same.len) != 0)
            return false;
    }
    return true;
}

/* A sparse index leaves out the documents without any of its fields: their key would be all nulls. */
static bool holds_all_matches(const struct candidate *candidate)
{
    const struct index_def *index = candidate->index;
    if (!index->sparse)
        return true;
    struct buf nulls = BUF_INIT;
    for (uint32_t i = 0; i < index->field_count; i++)
        keyenc_append(&nulls, &BVAL_NULL, index->fields[i].descending);
    bool missing = bounds_contains(&candidate->bounds, nulls.data, (uint32_t)nulls.len);
    buf_deinit(&nulls);
    return !missing;
}

/* The index order is the wanted one, forward or backward, when the sort's fields follow the fields that are fixed to
 * one value. */
static bool gives_order(const struct candidate *candidate, const struct sort_spec *sort, bool *backward)
{
    const struct index_def *index = candidate->index;
    if (index->multikey || sort->field_count == 0)
        return false;
    uint32_t at = 0;
    int direction = 0;
    for (uint32_t i = 0; i < sort->field_count; i++) {
        const struct sort_field *field = &sort->fields[i];
        while (at < index->field_count && strcmp(index->fields[at].path, field->path) != 0) {
            if (at >= candidate->bounds.fixed_fields)
                return false;
            at++;
        }
        if (at == index->field_count || index->fields[at].hashed)
            return false;
        if (at >= candidate->bounds.fixed_fields) {
            int here = index->fields[at].descending == field->descending ? 1 : -1;
            if (direction != 0 && here != direction)
                return false;
            direction = here;
        }
        at++;
    }
    *backward = direction < 0;
    return true;
}

static void score(struct candidate *candidate, const struct plan_request *request)
{
    const struct bounds *bounds = &candidate->bounds;
    candidate->score = (int)bounds->used_fields * SCORE_USED_FIELD + (int)bounds->fixed_fields * SCORE_FIXED_FIELD;
    if (bounds->points && candidate->index->unique)
        candidate->score += SCORE_UNIQUE_POINT;
    if (bounds->exact)
        candidate->score += SCORE_EXACT;
    if (candidate->sorted)
        candidate->score += request->limited ? SCORE_SORT_LIMITED : SCORE_SORT;
}

static bool consider(struct arena *arena, const struct index_def *index, const struct plan_request *request,
                     struct candidate *out)
{
    struct bounds_pattern pattern;
    if (!bounds_pattern_parse(index->key_pattern, &pattern, NULL))
        return false;
    pattern.multikey = index->multikey;
    *out = (struct candidate){.index = index};
    bounds_from_filter(arena, request->filter, &pattern, &out->bounds);
    if (request->sort != NULL)
        out->sorted = gives_order(out, request->sort, &out->backward);
    score(out, request);
    return true;
}

static struct plan *plan_of(struct arena *arena, const struct candidate *candidate, const struct plan_request *request)
{
    struct plan *plan = arena_alloc(arena, sizeof *plan);
    plan->kind = candidate->bounds.interval_count == 0 ? PLAN_NOTHING : PLAN_INDEX;
    plan->backward = candidate->backward;
    plan->sorted = candidate->sorted;
    plan->multikey = candidate->index->multikey;
    plan->test_filter = !filter_is_empty(request->filter) && (plan->multikey || !candidate->bounds.exact);
    plan->index_id = candidate->index->id;
    plan->index_name = arena_copy_str(arena, candidate->index->name, strlen(candidate->index->name));
    struct bdoc pattern = candidate->index->key_pattern;
    plan->key_pattern = (struct bdoc){.data = arena_copy(arena, pattern.data, pattern.len), .len = pattern.len};
    plan->bounds = candidate->bounds;
    return plan;
}

static bool find_hinted(const struct collection *coll, const struct bval *hint, const struct index_def **out,
                        struct err *err)
{
    const struct index_def *index = NULL;
    if (hint->type == BT_STRING) {
        uint32_t len;
        index = collection_find_index(coll, bval_str(hint, &len));
    } else if (hint->type == BT_DOCUMENT) {
        index = collection_find_index_key(coll, bval_doc(hint));
    } else {
        return err_set(err, ERR_FailedToParse, "hint must be a string or an object, not %s",
                       bval_type_name(hint->type));
    }
    if (index == NULL || index->state != INDEX_READY)
        return err_set(
            err, ERR_BadValue,
            "error processing query: planner returned error: hint provided does not correspond to an existing index");
    *out = index;
    return true;
}

static bool plan_hinted(struct arena *arena, const struct collection *coll, const struct plan_request *request,
                        struct plan **out, struct err *err)
{
    const struct index_def *index = NULL;
    struct candidate candidate;
    if (!find_hinted(coll, &request->hint, &index, err))
        return false;
    if (index->partial.data != NULL && !implies_partial(request->filter, index->partial))
        return err_set(err, ERR_NO_QUERY_PLAN, "the hinted partial index doesn't hold all documents of the query");
    if (!consider(arena, index, request, &candidate))
        return err_set(err, ERR_NO_QUERY_PLAN, "the hinted index can't serve the query");
    *out = plan_of(arena, &candidate, request);
    return true;
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
    plan->test_filter = !is_only_id(filter_source(filter));
    return plan;
}

static bool usable(const struct index_def *index, const struct filter *filter)
{
    return index->state == INDEX_READY && (index->partial.data == NULL || implies_partial(filter, index->partial));
}

bool plan_make(struct arena *arena, const struct collection *coll, const struct plan_request *request,
               struct plan **out, struct err *err)
{
    struct bval id;
    if (request->hint.type != BT_EOO)
        return plan_hinted(arena, coll, request, out, err);
    if (filter_is_never(request->filter) || request->natural != 0) {
        *out = plan_records(arena, request->filter);
        (*out)->backward = request->natural < 0;
        (*out)->sorted = request->natural != 0;
        return true;
    }
    if (filter_equality(request->filter, "_id", &id) && id.type != BT_ARRAY) {
        *out = plan_id(arena, request->filter, &id);
        return true;
    }
    struct candidate best = {.score = 0};
    for (uint32_t i = 0; i < coll->index_count; i++) {
        struct candidate candidate;
        if (!usable(coll->indexes[i], request->filter) || !consider(arena, coll->indexes[i], request, &candidate))
            continue;
        if ((candidate.bounds.all && !candidate.sorted) || !holds_all_matches(&candidate))
            continue;
        if (best.index == NULL || candidate.score > best.score)
            best = candidate;
    }
    *out = best.index == NULL ? plan_records(arena, request->filter) : plan_of(arena, &best, request);
    return true;
}

const char *plan_summary(const struct plan *plan, struct arena *arena)
{
    if (plan->kind == PLAN_INDEX) {
        return arena_printf(arena, "IXSCAN %s", plan->index_name);
    }
    static const char *const names[] = {[PLAN_NOTHING] = "EOF", [PLAN_ID] = "IDHACK", [PLAN_RECORDS] = "COLLSCAN"};
    return names[plan->kind];
}
