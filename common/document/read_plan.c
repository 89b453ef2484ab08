#include "document/read_plan.h"

#include "document/engine.h"
#include "document/index_usage.h"
#include "plan/cache.h"

bool read_plan_make(struct arena *arena, const struct read_txn *read, struct plan_request *request, struct plan **out,
                    struct err *err)
{
    request->txn = read->txn;
    request->cache = document_engine_plan_cache(read->engine);
    if (!plan_make(arena, read->coll, request, out, err))
        return false;
    if (request->explain)
        return true;
    const struct plan *plan = *out;
    struct index_usage *usage = document_engine_usage(read->engine);
    if (plan->kind == PLAN_ID && read->coll->index_count > 0)
        index_usage_note(usage, read->coll->indexes[0]->id);
    for (uint32_t i = 0; i < plan->scan_count; i++)
        if (i == 0 || plan->scans[i].index_id != plan->scans[i - 1].index_id)
            index_usage_note(usage, plan->scans[i].index_id);
    return true;
}

struct scan_options read_plan_scan(const struct read_txn *read, const struct plan *plan,
                                   const struct document_view *view)
{
    const struct document_ownership *ownership = document_engine_ownership(read->engine);
    return (struct scan_options){
        .txn = read->txn,
        .coll = read->coll,
        .plan = plan,
        .view = view,
        .visible = ownership == NULL ? NULL : ownership->visible,
        .need_doc = true,
    };
}

void read_plan_done(const struct read_txn *read, const struct plan *plan, const struct scan *scan)
{
    if (plan != NULL && plan->from_cache && scan->works > plan->works_limit && scan->advanced < PLAN_FIRST_RESULTS)
        plan_cache_drop(document_engine_plan_cache(read->engine), plan->cache_key, plan->cache_key_len);
}
