/* {$or: [...]} as several walks. A document that matches two branches comes from the first one only: whoever gives it
 * out later tests the earlier branches on it, so no set of given documents has to be kept. */
#include "plan/planner.h"

#include "base/mem.h"
#include "query/filter_part.h"

#include <string.h>

enum { BRANCH_SCANS_MAX = 16 /* walks looked at for one branch and index */ };

/* The way to answer one branch. */
struct branch_scan {
    struct plan_scan scan;
    uint64_t split; /* components to be cut into points, so that the pieces give the order */
    int score;
    bool ordered;
    bool found;
};

static int score_of(const struct plan_scan *scan)
{
    const struct key_bounds *bounds = &scan->bounds;
    int score = (int)(bounds->used_fields * 10 + bounds->fixed_fields * 10 + bounds->bound_fields * 3);
    if (scan->unique && bounds->points)
        score += 1000;
    return score + (bounds->exact ? 2 : 0);
}

static void consider(const struct planner *planner, const struct index_def *index, const struct plan_scan *scan,
                     bool ordered_only, struct branch_scan *best)
{
    struct branch_scan one = {.scan = *scan, .score = score_of(scan), .found = true};
    if (planner_wants_order(planner))
        one.ordered = order_of_scan(index, scan, planner->request->sort, &one.split, &one.scan.backward);
    if (!one.ordered)
        one.scan.backward = false;
    bool of_use = scan->bounds.used_fields > 0 && (one.ordered || !ordered_only);
    if (of_use && (!best->found || one.score > best->score))
        *best = one;
}

static bool best_scan(struct planner *planner, const struct filter *filter, bool ordered_only, struct branch_scan *best)
{
    struct plan_scan scans[BRANCH_SCANS_MAX];
    *best = (struct branch_scan){0};
    for (uint32_t i = 0; i < planner->coll->index_count; i++) {
        const struct index_def *index = planner->coll->indexes[i];
        if (!planner_index_usable(planner, index, filter))
            continue;
        uint32_t count = planner_scans(planner, index, filter, false, scans, BRANCH_SCANS_MAX);
        for (uint32_t j = 0; j < count; j++)
            consider(planner, index, &scans[j], ordered_only, best);
    }
    return best->found;
}

static bool add_piece(struct planner *planner, const struct branch_scan *best, bool ordered, const struct filter *part,
                      struct plan *plan)
{
    uint32_t from = plan->scan_count;
    if (!order_split_scan(planner->arena, &best->scan, ordered ? best->split : 0, plan->scans, PLAN_SCANS_MAX,
                          &plan->scan_count))
        return false;
    for (uint32_t i = from; i < plan->scan_count; i++)
        plan->scans[i].part = part;
    return true;
}

/* False: some branch has no index, or there are too many walks. */
static bool collect_branches(struct planner *planner, const struct filter_branch *branches, uint32_t count,
                             bool ordered, struct plan *plan)
{
    for (uint32_t i = 0; i < count; i++) {
        struct branch_scan best;
        if (filter_is_never(branches[i].whole))
            continue;
        if (!best_scan(planner, branches[i].whole, ordered, &best) ||
            !add_piece(planner, &best, ordered, branches[i].part, plan))
            return false;
    }
    return true;
}

static void add_branches(struct planner *planner, const struct filter_branch *branches, uint32_t count, bool ordered)
{
    struct candidate candidate = {.plan = {.kind = ordered ? PLAN_MERGE : PLAN_UNION}};
    struct plan *plan = &candidate.plan;
    struct plan_scan *scans = mem_alloc_array(PLAN_SCANS_MAX, sizeof *scans);
    plan->scans = scans;
    plan->sorted = ordered || !planner_wants_order(planner);
    plan->merge_sort = ordered ? planner->request->sort : NULL;
    if (collect_branches(planner, branches, count, ordered, plan)) {
        if (plan->scan_count == 0)
            plan->kind = PLAN_NOTHING;
        plan->scans = arena_copy(planner->arena, scans, plan->scan_count * sizeof *scans);
        candidate_finish(planner, &candidate);
        planner_add(planner, &candidate);
    }
    mem_free(scans);
}

void planner_add_branches(struct planner *planner)
{
    struct filter_branch *branches;
    uint32_t count;
    if (!filter_branches(planner->arena, planner->request->filter, PLAN_SCANS_MAX, &branches, &count))
        return;
    if (planner_wants_order(planner))
        add_branches(planner, branches, count, true);
    add_branches(planner, branches, count, false);
}
