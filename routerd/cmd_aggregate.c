/* aggregate: see aggregate_open.h. */
#include "command/fields.h"
#include "routerd/aggregate_open.h"
#include "routerd/commands.h"
#include "routerd/explain_command.h"
#include "routerd/forward.h"
#include "routerd/request.h"

#include <string.h>

static bool names_search_indexes(struct bdoc stages)
{
    struct bval first;
    return bdoc_find(stages, "0", &first) && first.type == BT_DOCUMENT &&
           bdoc_has(bval_doc(&first), "$listSearchIndexes");
}

/* {explain: true}, the older spelling of explain. */
static bool wants_explain(struct bdoc body)
{
    struct bval explain;
    return bdoc_find(body, "explain", &explain) && bval_truthy(&explain);
}

static enum command_status explain_aggregate(struct command_ctx *ctx, struct err *err)
{
    static const char *const own[] = {"explain", "cursor", NULL};
    bson_t body = BSON_INITIALIZER;
    bson_t cursor;
    request_append_body(&body, ctx->body, own);
    BSON_APPEND_DOCUMENT_BEGIN(&body, "cursor", &cursor);
    bson_append_document_end(&body, &cursor);
    enum command_status status = explain_command(ctx, bdoc_of(&body), "queryPlanner", err);
    bson_destroy(&body);
    return status;
}

static enum command_status run_aggregate(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    struct aggregate_request request;
    atomic_fetch_add(&router_of(ctx)->counters.command, 1);
    if (wants_explain(ctx->body))
        return explain_aggregate(ctx, err);
    if (!command_ns_or_db(ctx, &ns, err) || !aggregate_request_parse(ctx->body, &ns, &request, err))
        return COMMAND_ERROR;
    if (names_search_indexes(request.stages)) {
        index_search_refused(err);
        return COMMAND_ERROR;
    }
    if (ns.coll[0] && forward_is_config_db(ns.db)) {
        struct remote_request whole;
        enum command_status status = COMMAND_ERROR;
        if (forward_config(ctx, true, &whole, err))
            status = forward_cursor_reply(ctx, ns.full, &whole, err);
        remote_request_deinit(&whole);
        return status;
    }
    return aggregate_reply(ctx, &request, err);
}

static const struct command commands[] = {
    {"aggregate", NULL, 0, run_aggregate},
};

const struct command_family commands_aggregate = COMMAND_FAMILY(commands);
