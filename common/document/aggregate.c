/* aggregate: the leading $match, $sort, $skip and $limit become a plan, the other stages run over its documents. Source
 * stages such as $collStats make their own. */
#include "base/clock.h"
#include "base/random.h"
#include "command/fields.h"
#include "document/commands.h"
#include "document/cursor_reply.h"
#include "document/explain.h"
#include "document/find.h"
#include "document/plan_cache_command.h"
#include "document/request_order.h"
#include "document/stats.h"

#include <string.h>

struct aggregate_request {
    struct ns ns;
    struct bdoc pipeline;
    struct bdoc let;
    struct bdoc version;
    struct bval hint;
    int64_t batch_size; /* -1: not given */
    bool allow_disk;
    bool explain;
};

static bool parse(struct command_ctx *ctx, struct aggregate_request *out, struct err *err)
{
    static const char *const known[] = {"aggregate", "pipeline",  "cursor", "explain", "allowDiskUse",
                                        "hint",      "collation", "let",    "comment", "bypassDocumentValidation",
                                        NULL};
    bool cursor = false;
    *out = (struct aggregate_request){.batch_size = -1, .allow_disk = true};
    if (!field_get_hint(ctx->body, &out->hint, err) || !command_ns_or_db(ctx, &out->ns, err) ||
        !fields_check_known(ctx->body, "aggregate", known, err) || !field_require(ctx->body, "pipeline", err) ||
        !field_get_array(ctx->body, "pipeline", &out->pipeline, err) ||
        !field_get_cursor(ctx->body, "aggregate", &cursor, &out->batch_size, err) ||
        !field_get_doc(ctx->body, "let", &out->let, err) || !field_get_bool(ctx->body, "explain", &out->explain, err) ||
        !field_get_bool(ctx->body, "allowDiskUse", &out->allow_disk, err) || !request_version(ctx, &out->version, err))
        return false;
    return cursor || out->explain ||
           err_set(err, ERR_FailedToParse,
                   "The 'cursor' option is required, except for aggregate with the explain argument");
}

/* The front of the pipeline, as far as a plan can do it. */
static bool plan_lead(struct opened_read *opened, const struct aggregate_request *request, struct err *err)
{
    struct document_cursor *cursor = opened->cursor;
    const struct read_txn *read = &opened->read;
    struct pipeline_lead lead;
    struct plan_request wanted = {.hint = request->hint, .explain = opened->explain};
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
    wanted.wanted = lead.limit > 0 ? (uint64_t)lead.limit + (uint64_t)lead.skip : 0;
    if (wanted.hint.type == BT_DOCUMENT) {
        wanted.natural = sort_spec_natural(bval_doc(&wanted.hint));
        if (wanted.natural != 0 || bdoc_is_empty(bval_doc(&wanted.hint)))
            wanted.hint = BVAL_MISSING;
    }
    if (read->coll == NULL)
        return true;
    document_cursor_bind(cursor, read);
    return document_cursor_plan(cursor, read, &wanted, err);
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

static bool add_index_stats(struct document_engine *engine, struct document_cursor *cursor, const struct bval *spec,
                            const struct read_txn *read, struct err *err)
{
    if (spec->type != BT_DOCUMENT || !bdoc_is_empty(bval_doc(spec)))
        return err_set(err, 28803, "The $indexStats stage specification must be an empty object");
    for (uint32_t i = 0; read->coll != NULL && i < read->coll->index_count; i++) {
        bson_t doc = BSON_INITIALIZER;
        stats_index_stats_stage(engine, read->coll->indexes[i], &doc);
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
        return add_index_stats(document_engine_of(ctx), cursor, &spec, read, err);
    if (strcmp(stage, "$planCacheStats") == 0) {
        plan_cache_list(cursor, read);
        return true;
    }
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
    return err_set(err, ERR_NotImplemented, "the pipeline stage %s is not supported", stage);
}

static bool is_source(const struct pipeline *pipeline)
{
    static const char *const sources[] = {"$collStats",    "$indexStats",        "$documents",     "$currentOp",
                                          "$listSessions", "$listLocalSessions", "$planCacheStats"};
    struct bval spec;
    const char *stage = pipeline_source_stage(pipeline, &spec);
    for (size_t i = 0; stage != NULL && i < sizeof sources / sizeof sources[0]; i++) {
        if (strcmp(stage, sources[i]) == 0)
            return true;
    }
    return false;
}

static bool make_source(struct command_ctx *ctx, const struct aggregate_request *request, struct opened_read *opened,
                        struct err *err)
{
    struct document_cursor *cursor = opened->cursor;
    bool source = is_source(cursor->pipeline);
    if (request->ns.coll[0] == '\0' && !source)
        return err_set(err, ERR_InvalidNamespace,
                       "{aggregate: 1} is not valid for this pipeline: it needs a collection");
    return source ? fill_source(ctx, cursor, request, &opened->read, err) : plan_lead(opened, request, err);
}

static bool open_parsed(struct command_ctx *ctx, const struct aggregate_request *request, struct opened_read *out,
                        struct err *err)
{
    struct document_engine *engine = document_engine_of(ctx);
    char ns[COMMAND_NS_MAX + sizeof ".$cmd.aggregate"];
    snprintf(ns, sizeof ns, request->ns.coll[0] == '\0' ? "%s.$cmd.aggregate" : "%s",
             request->ns.coll[0] == '\0' ? request->ns.db : request->ns.full);
    struct document_cursor *cursor = document_cursor_new(ctx, ns);
    out->cursor = cursor;
    out->batch_size = request->batch_size >= 0 ? request->batch_size : DOCUMENT_FIRST_BATCH;
    cursor->space = request->allow_disk ? document_engine_temp(engine) : NULL;
    cursor->env.now_ms = clock_wall_ms();
    cursor->env.random = random_u64();
    cursor->env.let = request->let;
    if (read_txn_open(&out->read, engine, request->ns.full, request->version, err) &&
        request_order(ctx->body, out->read.coll, &cursor->arena, &cursor->env.order, err) &&
        pipeline_compile(&cursor->arena, request->pipeline, &cursor->env, &cursor->pipeline, err) &&
        make_source(ctx, request, out, err))
        return true;
    opened_read_close(out);
    return false;
}

bool aggregate_open(struct command_ctx *ctx, struct opened_read *out, struct err *err)
{
    struct aggregate_request request;
    return parse(ctx, &request, err) && open_parsed(ctx, &request, out, err);
}

enum command_status aggregate_run(struct command_ctx *ctx, struct err *err)
{
    struct aggregate_request request;
    struct opened_read opened = {.explain = false};
    if (!parse(ctx, &request, err))
        return COMMAND_ERROR;
    if (request.explain)
        return explain_of(ctx, EXPLAIN_QUERY_PLANNER, err);
    if (!open_parsed(ctx, &request, &opened, err))
        return COMMAND_ERROR;
    struct document_cursor *taken = opened.cursor;
    opened.cursor = NULL;
    enum command_status status = cursor_reply_first(ctx, taken, &opened.read, opened.batch_size, err);
    opened_read_close(&opened);
    return status;
}
