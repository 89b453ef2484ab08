/* The planner's own parts: candidates, their orders, the branches of $or, the trial. Private to this folder. */
#ifndef SHERD_PLAN_PLANNER_H
#define SHERD_PLAN_PLANNER_H

#include "plan/plan.h"

struct candidate {
    struct plan plan;
    int score;          /* without a trial: which is likely to be better */
    bool unique_points; /* at most one document for each point of its bounds: nothing can be much better */
    uint64_t signature; /* equal for the same way to go with other constants */
};

struct planner {
    struct arena *arena;
    const struct collection *coll;
    const struct plan_request *request;
    struct candidate *list;
    uint32_t count;
    uint32_t capacity;
};

/* ---- candidate.c ---- */

/* Ready, not hidden, and holding every document that the filter can match as far as its partial filter goes. */
bool planner_index_usable(struct planner *planner, const struct index_def *index, const struct filter *filter);
/* What walks through the index could answer `filter`; for a wildcard index one for each path. `count` of them are
 * written to `out` (at most `max`). `hinted`: also those that narrow nothing or miss documents. */
uint32_t planner_scans(struct planner *planner, const struct index_def *index, const struct filter *filter, bool hinted,
                       struct plan_scan *out, uint32_t max);
/* Adds the candidates of the index for the whole query. */
void planner_add_index(struct planner *planner, const struct index_def *index, bool hinted);
void planner_add(struct planner *planner, const struct candidate *candidate);
/* Fills in score and signature. */
void candidate_finish(struct planner *planner, struct candidate *candidate);
bool planner_wants_order(const struct planner *planner);

/* ---- order.c ---- */

/* Whether a walk through the scan's entries gives the documents in the order of the sort, when each of the components
 * in *split is held fixed at one of its points. *split 0: it does as it is. Sets the direction. */
bool order_of_scan(const struct index_def *index, const struct plan_scan *scan, const struct sort_spec *sort,
                   uint64_t *split, bool *backward);
/* Appends the pieces of the scan, one for each combination of points of the components in `split`; false when they are
 * too many. */
bool order_split_scan(struct arena *arena, const struct plan_scan *scan, uint64_t split, struct plan_scan *out,
                      uint32_t max, uint32_t *count);

/* ---- branch.c ---- */

/* The query's $or as a union or a merge of walks, each through the index that suits its branch best. */
void planner_add_branches(struct planner *planner);

/* ---- trial.c ---- */

/* Runs the candidates in turns for a bounded number of steps; sorts them, the best first, and notes works and score. */
bool planner_trial(struct planner *planner, struct err *err) ERR_WARN_UNUSED;

/* ---- min_max.c ---- */

/* Puts the request's min and max as ends into the scan of the hinted index. */
bool planner_min_max(struct planner *planner, const struct index_def *index, struct plan_scan *scan,
                     struct err *err) ERR_WARN_UNUSED;

#endif
