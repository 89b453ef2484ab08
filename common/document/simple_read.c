#include "document/simple_read.h"

#include "base/clock.h"
#include "command/fields.h"
#include "document/request_order.h"

bool simple_read_open(struct simple_read *simple, struct command_ctx *ctx, const char *const *known, struct err *err)
{
    simple->filter = bdoc_empty();
    simple->env.now_ms = clock_wall_ms();
    return field_get_hint(ctx->body, &simple->hint, err) && command_ns(ctx, &simple->ns, err) &&
           fields_check_known(ctx->body, ctx->name, known, err) &&
           field_get_doc(ctx->body, "query", &simple->filter, err) && request_version(ctx, &simple->version, err) &&
           read_txn_open(&simple->read, document_engine_of(ctx), simple->ns.full, simple->version, err) &&
           request_order(ctx->body, simple->read.coll, &ctx->arena, &simple->env.order, err) &&
           filter_compile(&ctx->arena, simple->filter, &simple->env, &simple->compiled, err);
}

bool simple_read_plan(struct simple_read *simple, struct command_ctx *ctx, struct err *err)
{
    struct plan_request request = {.filter = simple->compiled, .hint = simple->hint};
    if (simple->hint.type == BT_DOCUMENT && sort_spec_natural(bval_doc(&simple->hint)) != 0) {
        request.natural = 1;
        request.hint = BVAL_MISSING;
    }
    request.distinct = simple->distinct;
    request.count_only = simple->distinct == NULL;
    request.explain = simple->explain;
    if (!read_plan_make(&ctx->arena, &simple->read, &request, &simple->plan, err))
        return false;
    op_set_plan(ctx, plan_summary(simple->plan, &ctx->arena));
    return true;
}

bool simple_read_scan(struct simple_read *simple, bool need_doc, struct err *err)
{
    struct scan_options options = read_plan_scan(&simple->read, simple->plan, read_txn_filter_view(&simple->read));
    options.need_doc = need_doc;
    return scan_open(&simple->scan, &options, err);
}

void simple_read_close(struct simple_read *simple)
{
    read_plan_done(&simple->read, simple->plan, &simple->scan);
    scan_close(&simple->scan);
    read_txn_close(&simple->read);
    filter_release(simple->compiled);
}
