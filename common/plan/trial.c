/* The choice by trial: every candidate runs, in turns of one step each, until one of them has given as many results as
 * a first batch takes, or is through, or the steps are used up. What counts is how many results a step brought. */
#include "plan/planner.h"
#include "plan/scan.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

enum {
    TRIAL_STEPS_MAX = 10000,     /* of one candidate */
    TRIAL_STEPS_ALL_MAX = 40000, /* of all candidates together */
};

/* Advantages that decide between equals, as MongoDB weighs them. */
static const double TIE_BREAK_MAX = 1e-4;

struct runner {
    struct candidate *candidate;
    struct scan scan;
    uint64_t results; /* handed on; a sort in memory hands on nothing before its input ends */
    bool blocked;     /* the order has to be made in memory */
    bool ended;
};

static bool needs_fetch(const struct plan *plan)
{
    return !plan->covered && !plan->keys_only;
}

static double score_of(const struct runner *runner, bool wants_order)
{
    const struct plan *plan = &runner->candidate->plan;
    double works = runner->scan.works > 0 ? (double)runner->scan.works : 1;
    double epsilon = fmin(1 / (10 * works), TIE_BREAK_MAX);
    double score = 1 + (double)runner->results / works;
    score += needs_fetch(plan) ? 0 : epsilon;
    score += wants_order && !plan->sorted ? 0 : epsilon;
    return score + (runner->ended ? 1 : 0);
}

static int compare_runners(const void *a, const void *b)
{
    const struct runner *const *x = a;
    const struct runner *const *y = b;
    double left = (*x)->candidate->plan.score;
    double right = (*y)->candidate->plan.score;
    if (left != right)
        return left > right ? -1 : 1;
    if ((*x)->candidate->score != (*y)->candidate->score)
        return (*x)->candidate->score > (*y)->candidate->score ? -1 : 1;
    return (*x)->candidate < (*y)->candidate ? -1 : 1;
}

static bool run_step(struct runner *runner, uint64_t wanted, bool *over, struct err *err)
{
    enum scan_step step;
    if (!scan_one_step(&runner->scan, &step, err))
        return false;
    if (step == SCAN_FOUND && !runner->blocked)
        runner->results++;
    if (step == SCAN_END) {
        runner->ended = true;
        if (runner->blocked)
            runner->results = runner->scan.advanced < wanted ? runner->scan.advanced : wanted;
    }
    *over = runner->ended || runner->results >= wanted;
    return true;
}

static bool run_all(struct runner *runners, uint32_t count, uint64_t wanted, struct err *err)
{
    uint32_t rounds = TRIAL_STEPS_ALL_MAX / count;
    bool over = false;
    if (rounds > TRIAL_STEPS_MAX)
        rounds = TRIAL_STEPS_MAX;
    for (uint32_t round = 0; round < rounds && !over; round++) {
        for (uint32_t i = 0; i < count; i++) {
            bool done;
            if (!run_step(&runners[i], wanted, &done, err))
                return false;
            over |= done;
        }
    }
    return true;
}

static bool open_all(struct planner *planner, struct runner *runners, struct err *err)
{
    const struct plan_request *request = planner->request;
    for (uint32_t i = 0; i < planner->count; i++) {
        struct runner *runner = &runners[i];
        runner->candidate = &planner->list[i];
        runner->blocked = planner_wants_order(planner) && !runner->candidate->plan.sorted;
        struct scan_options options = {.txn = request->txn,
                                       .coll = planner->coll,
                                       .plan = &runner->candidate->plan,
                                       .need_doc = needs_fetch(&runner->candidate->plan)};
        if (!scan_open(&runner->scan, &options, err))
            return false;
    }
    return true;
}

static void put_in_order(struct planner *planner, struct runner *runners)
{
    struct runner **order = mem_alloc_array(planner->count, sizeof *order);
    struct candidate *sorted = arena_alloc(planner->arena, planner->count * sizeof *sorted);
    for (uint32_t i = 0; i < planner->count; i++) {
        struct plan *plan = &runners[i].candidate->plan;
        order[i] = &runners[i];
        plan->trial_works = runners[i].scan.works;
        plan->score = score_of(&runners[i], planner_wants_order(planner));
    }
    qsort(order, planner->count, sizeof(struct runner *), compare_runners);
    for (uint32_t i = 0; i < planner->count; i++)
        sorted[i] = *order[i]->candidate;
    planner->list = sorted;
    planner->capacity = planner->count;
    mem_free(order);
}

bool planner_trial(struct planner *planner, struct err *err)
{
    uint64_t wanted = PLAN_FIRST_RESULTS;
    if (planner->request->wanted > 0 && planner->request->wanted < wanted)
        wanted = planner->request->wanted;
    struct runner *runners = mem_alloc_array(planner->count, sizeof *runners);
    bool ok = open_all(planner, runners, err) && run_all(runners, planner->count, wanted, err);
    if (ok)
        put_in_order(planner, runners);
    for (uint32_t i = 0; i < planner->count; i++)
        scan_close(&runners[i].scan);
    mem_free(runners);
    return ok;
}
