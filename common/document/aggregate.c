/* aggregate: the leading $match, $sort, $skip and $limit become a plan, the other stages run over its documents. Source
 * stages such as $collStats make their own. */
#include "base/clock.h"
#include "command/fields.h"
#include "document/commands.h"
#include "document/cursor_reply.h"
#include "document/stats.h"

#include <string.h>

struct aggregate_request {
    struct ns ns;
    struct bdoc pipeline;
    struct bdoc cursor;
    struct bdoc let;
    struct bdoc version;
    struct bval hint;
    int64_t batch_size; /* -1: not given */
};

static bool parse(struct command_ctx *ctx, struct aggregate_request *out, struct err *err)
{
    static const char *const known[] = {"aggregate", "pipeline",  "cursor", "explain", "allowDiskUse",
                                        "hint",      "collation", "let",    "comment", "bypassDocumentValidation",
                                        NULL};
    bool explain = false;
    *out = (struct aggregate_request){.batch_size = -1};
    bdoc_find(ctx->body, "hint", &out->hint);
    if (!command_ns_or_db(ctx, &out->ns, err) || !fields_check_known(ctx->body, "aggregate", known, err) ||
        !field_require(ctx->body, "pipeline", err) || !field_get_array(ctx->body, "pipeline", &out->pipeline, err) ||
        !field_get_doc(ctx->body, "cursor", &out->cursor, err) || !field_get_doc(ctx->body, "let", &out->let, err) ||
        !field_get_bool(ctx->body, "explain", &explain, err) || !request_version(ctx, &out->version, err) ||
        !request_check_collation(ctx->body, err))
        return false;
    if (explain)
        return err_set(err, ERR_NotImplemented, "explain of aggregate is not supported");
    if (out->cursor.data == NULL)
        return err_set(err, ERR_FailedToParse,
                       "The 'cursor' option is required, except for aggregate with the explain argument");
    return field_get_i64_in(out->cursor, "batchSize", 0, INT64_MAX, &out->batch_size, err);
}

/* The front of the pipeline, as far as a plan can do it. */
static bool plan_lead(struct document_cursor *cursor, const struct aggregate_request *request,
                      const struct read_txn *read, struct err *err)
{
    struct pipeline_lead lead;
    struct plan_request wanted = {.hint = request->hint};
    pipeline_lead(cursor->pipeline, &cursor->arena, &lead);
    struct bdoc match = lead.match.data == NULL ? bdoc_empty() : lead.match;
    if (!filter_compile(&cursor->arena, match, &cursor->env, &cursor->filter, err))
        return false;
    if (lead.sort.data != NULL && !sort_spec_compile(&cursor->arena, lead.sort, cursor->env.order, &cursor->sort, err))
        return false;
    cursor->first_stage = lead.stage_count;
    cursor->skip_left = lead.skip;
    cursor->limit_left = lead.limit > 0 ? lead.limit : -1;
    wanted.filter = cursor->filter;
    wanted.sort = cursor->sort;
    wanted.limited = lead.limit > 0;
    if (wanted.hint.type == BT_DOCUMENT) {
        wanted.natural = sort_spec_natural(bval_doc(&wanted.hint));
        if (wanted.natural != 0 || bdoc_is_empty(bval_doc(&wanted.hint)))
            wanted.hint = BVAL_MISSING;
    }
    if (read->coll == NULL)
        return true;
    document_cursor_bind(cursor, read);
    if (!plan_make(&cursor->arena, read->coll, &wanted, &cursor->plan, err))
        return false;
    if (cursor->plan->sorted && wanted.natural == 0)
        cursor->sort = NULL;
    return true;
}

static bool add_stats(struct command_ctx *ctx, struct document_cursor *cursor, const struct aggregate_request *request,
                      const struct bval *spec, const struct read_txn *read, struct err *err)
{
    bson_t doc = BSON_INITIALIZER;
    bool ok = stats_coll_stats_stage(document_engine_of(ctx), read, &request->ns, spec, &doc, err);
    if (ok)
        document_cursor_list_add(cursor, bdoc_of(&doc));
    bson_destroy(&doc);
    return ok;
}

static bool add_index_stats(struct document_cursor *cursor, const struct read_txn *read, const char *host)
{
    for (uint32_t i = 0; read->coll != NULL && i < read->coll->index_count; i++) {
        bson_t doc = BSON_INITIALIZER;
        stats_index_stats_stage(read->coll->indexes[i], host, &doc);
        document_cursor_list_add(cursor, bdoc_of(&doc));
        bson_destroy(&doc);
    }
    return true;
}

/* The documents of a stage that reads no collection. */
static bool fill_source(struct command_ctx *ctx, struct document_cursor *cursor,
                        const struct aggregate_request *request, const struct read_txn *read, struct err *err)
{
    struct bval spec;
    const char *stage = pipeline_source_stage(cursor->pipeline, &spec);
    cursor->first_stage = 1;
    if (strcmp(stage, "$collStats") == 0)
        return add_stats(ctx, cursor, request, &spec, read, err);
    if (strcmp(stage, "$indexStats") == 0)
        return add_index_stats(cursor, read, document_engine_host(document_engine_of(ctx)));
    if (strcmp(stage, "$documents") == 0 && spec.type == BT_ARRAY) {
        struct biter iter;
        struct belem elem;
        biter_init(&iter, bval_doc(&spec));
        while (biter_next(&iter, &elem)) {
            if (elem.val.type != BT_DOCUMENT)
                return err_set(err, 40228, "an element of $documents is not an object");
            document_cursor_list_add(cursor, bval_doc(&elem.val));
        }
        return true;
    }
    if (strcmp(stage, "$currentOp") == 0 || strcmp(stage, "$listLocalSessions") == 0 ||
        strcmp(stage, "$listSessions") == 0)
        return true;
    return err_set(err, ERR_NotImplemented, "aggregation stage %s is not supported by this member", stage);
}

static bool is_source(const struct pipeline *pipeline)
{
    static const char *const sources[] = {"$collStats",    "$indexStats",        "$documents",    "$currentOp",
                                          "$listSessions", "$listLocalSessions", "$changeStream", "$planCacheStats"};
    struct bval spec;
    const char *stage = pipeline_source_stage(pipeline, &spec);
    for (size_t i = 0; stage != NULL && i < sizeof sources / sizeof sources[0]; i++) {
        if (strcmp(stage, sources[i]) == 0)
            return true;
    }
    return false;
}

enum command_status aggregate_run(struct command_ctx *ctx, struct err *err)
{
    struct aggregate_request request;
    struct read_txn read = {0};
    enum command_status status = COMMAND_ERROR;
    if (!parse(ctx, &request, err))
        return COMMAND_ERROR;
    bool whole_db = request.ns.coll[0] == '\0';
    char ns[COMMAND_NS_MAX + 1];
    snprintf(ns, sizeof ns, "%s", request.ns.full);
    if (whole_db)
        snprintf(ns, sizeof ns, "%s.$cmd.aggregate", request.ns.db);
    struct document_cursor *cursor = document_cursor_new(ctx, ns);
    cursor->env = (struct expr_env){.now_ms = clock_wall_ms(), .let = request.let};
    if (!pipeline_compile(&cursor->arena, request.pipeline, &cursor->env, &cursor->pipeline, err) ||
        !read_txn_open(&read, document_engine_of(ctx), request.ns.full, request.version, err))
        goto out;
    bool source = is_source(cursor->pipeline);
    if (whole_db && !source) {
        err_set(err, ERR_InvalidNamespace, "{aggregate: 1} is not valid for this pipeline: it needs a collection");
        goto out;
    }
    if (source ? !fill_source(ctx, cursor, &request, &read, err) : !plan_lead(cursor, &request, &read, err))
        goto out;
    struct document_cursor *taken = cursor;
    cursor = NULL;
    status =
        cursor_reply_first(ctx, taken, &read, request.batch_size >= 0 ? request.batch_size : DOCUMENT_FIRST_BATCH, err);
out:
    document_cursor_free(cursor);
    read_txn_close(&read);
    return status;
}
