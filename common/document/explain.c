/* explain of reads. */
#include "document/explain.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "command/fields.h"
#include "document/explain_print.h"
#include "document/explain_write.h"
#include "document/find.h"
#include "document/simple_read.h"
#include "storage/counters.h"

#include <string.h>

enum {
    ERR_EXPLAIN_SINK = 51029, /* MongoDB's number */
};

/* ---- find, aggregate ---- */

static uint64_t at_least_zero(int64_t number)
{
    return number > 0 ? (uint64_t)number : 0;
}

static struct plan_shape shape_of(const struct opened_read *opened)
{
    const struct document_cursor *cursor = opened->cursor;
    return (struct plan_shape){
        .sharding_filter = opened->read.check_visible,
        .sort = cursor->sort,
        .skip = at_least_zero(cursor->skip_left),
        .limit = at_least_zero(cursor->limit_left),
        .projection = cursor->projection,
    };
}

/* The stages above the scan gave what left them, not what came in. */
static void correct_above(struct plan_node *node, const struct document_cursor *cursor, uint64_t skipped)
{
    for (; node != NULL; node = node->child_count == 1 ? node->children[0] : NULL) {
        switch (node->stage) {
        case STAGE_PROJECTION_SIMPLE:
        case STAGE_PROJECTION_COVERED:
        case STAGE_PROJECTION_DEFAULT:
        case STAGE_SKIP:
        case STAGE_LIMIT:
            node->counters.advanced = cursor->given;
            break;
        case STAGE_SORT:
            node->counters.advanced = cursor->given + skipped;
            break;
        default:
            return;
        }
    }
}

static void note_sort(struct explain_counts *counts, const struct document_cursor *cursor)
{
    struct sorter_stats stats;
    if (cursor->sorter == NULL)
        return;
    sorter_stats_get(cursor->sorter, &stats);
    counts->spilled = stats;
}

/* Everything that the cursor gives, to the end. False: the operation was interrupted. */
static bool drain(struct document_cursor *cursor, struct err *err)
{
    struct bdoc doc;
    for (;;) {
        if (!interrupt_step(err) || !document_cursor_next(cursor, &doc, err))
            return false;
        if (doc.data == NULL)
            return true;
    }
}

static bool is_interruption(const struct err *err)
{
    return err->code == ERR_MaxTimeMSExpired || err->code == ERR_Interrupted || err->code == ERR_ClientDisconnect ||
           err->code == ERR_InterruptedAtShutdown;
}

/* Runs the opened cursor and counts. An error of the query itself is part of the answer. */
static bool run_cursor(const struct opened_read *opened, struct explain_info *info, struct err *err)
{
    struct document_cursor *cursor = opened->cursor;
    struct explain_counts *counts = &info->counts;
    int64_t begun_ms = clock_now_ms();
    uint64_t skip = at_least_zero(cursor->skip_left);
    cursor->tailable = false; /* ends where the collection does */
    if (!document_cursor_attach(cursor, &opened->read, INT64_MAX, err))
        return false;
    bool ok = drain(cursor, err);
    counts->returned = cursor->given;
    if (!ok)
        counts->failure = *err;
    if (cursor->scanning && info->tree != NULL) {
        counts->keys_examined = cursor->scan.keys_examined;
        counts->docs_examined = cursor->scan.docs_examined;
        plan_tree_count(info->tree, &cursor->scan);
        correct_above(info->tree, cursor, skip - at_least_zero(cursor->skip_left));
    }
    note_sort(counts, cursor);
    document_cursor_detach(cursor);
    counts->millis = clock_now_ms() - begun_ms;
    return ok || !is_interruption(err);
}

static bool explain_opened(struct command_ctx *ctx, struct opened_read *opened, struct explain_info *info,
                           struct err *err)
{
    struct document_cursor *cursor = opened->cursor;
    info->ns = cursor->ns;
    info->filter = cursor->filter;
    info->plan = cursor->plan;
    if (cursor->plan != NULL) {
        struct plan_shape shape = shape_of(opened);
        info->shape = shape;
        info->shape.sort = cursor->wanted.natural == 0 ? cursor->plan_sort : NULL;
        info->tree = plan_tree_new(&ctx->arena, cursor->plan, &shape);
        op_set_plan(ctx, plan_summary(cursor->plan, &ctx->arena));
    }
    return info->verbosity == EXPLAIN_QUERY_PLANNER || run_cursor(opened, info, err);
}

static bool explain_find(struct command_ctx *ctx, enum explain_verbosity verbosity, struct err *err)
{
    struct opened_read opened = {.explain = true};
    struct explain_info info = {.verbosity = verbosity};
    if (!find_open(ctx, &opened, err))
        return false;
    bool ok = field_get_doc(ctx->body, "projection", &info.projection, err) && explain_opened(ctx, &opened, &info, err);
    if (ok)
        explain_append_plan(&info, &ctx->reply);
    opened_read_close(&opened);
    return ok;
}

static void append_fields(bson_t *out, struct bdoc from)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, from);
    while (biter_next(&iter, &elem))
        bval_append(out, elem.key, (int)elem.key_len, &elem.val);
}

/* {$cursor: {queryPlanner, executionStats}}, then the stages that ran over its documents. */
static void append_stages(const struct opened_read *opened, const struct explain_info *info, bson_t *out)
{
    const struct document_cursor *cursor = opened->cursor;
    bool executed = info->verbosity != EXPLAIN_QUERY_PLANNER;
    uint32_t count = pipeline_stage_count(cursor->pipeline);
    uint32_t n = 0;
    bson_t list;
    bson_t stage;
    bson_t inner;
    BSON_APPEND_ARRAY_BEGIN(out, "stages", &list);
    if (cursor->plan != NULL || cursor->list.len == 0) {
        BSON_APPEND_DOCUMENT_BEGIN(&list, "0", &stage);
        BSON_APPEND_DOCUMENT_BEGIN(&stage, "$cursor", &inner);
        explain_append_plan(info, &inner);
        bson_append_document_end(&stage, &inner);
        if (executed) {
            BSON_APPEND_INT64(&stage, "nReturned", (int64_t)cursor->given);
            BSON_APPEND_INT64(&stage, "executionTimeMillisEstimate", info->counts.millis);
        }
        bson_append_document_end(&list, &stage);
        n++;
    }
    for (uint32_t i = cursor->plan != NULL ? cursor->first_stage : 0; i < count; i++) {
        char digits[16];
        const char *key;
        bson_uint32_to_string(n++, &key, digits, sizeof digits);
        BSON_APPEND_DOCUMENT_BEGIN(&list, key, &stage);
        append_fields(&stage, pipeline_stage_source(cursor->pipeline, i));
        if (executed) {
            uint64_t given = cursor->run == NULL || i < cursor->first_stage
                                 ? cursor->given
                                 : pipeline_run_stage_given(cursor->run, i - cursor->first_stage);
            BSON_APPEND_INT64(&stage, "nReturned", (int64_t)given);
            BSON_APPEND_INT64(&stage, "executionTimeMillisEstimate", info->counts.millis);
        }
        bson_append_document_end(&list, &stage);
    }
    bson_append_array_end(out, &list);
}

static bool explain_aggregate(struct command_ctx *ctx, enum explain_verbosity verbosity, struct err *err)
{
    struct opened_read opened = {.explain = true};
    struct explain_info info = {.verbosity = verbosity};
    if (!aggregate_open(ctx, &opened, err))
        return false;
    struct document_cursor *cursor = opened.cursor;
    struct bval spec;
    if (verbosity != EXPLAIN_QUERY_PLANNER && pipeline_sink_stage(cursor->pipeline, &spec) != NULL) {
        opened_read_close(&opened);
        return err_set(err, ERR_EXPLAIN_SINK, "explain of $out and $merge takes the verbosity queryPlanner only");
    }
    bool whole = cursor->first_stage == pipeline_stage_count(cursor->pipeline) && cursor->list.len == 0;
    bool ok = explain_opened(ctx, &opened, &info, err);
    if (ok && !whole)
        append_stages(&opened, &info, &ctx->reply);
    else if (ok)
        explain_append_plan(&info, &ctx->reply);
    opened_read_close(&opened);
    return ok;
}

/* ---- count, distinct ---- */

static bool run_simple(struct simple_read *simple, struct explain_info *info, uint64_t stop_at, struct err *err)
{
    struct explain_counts *counts = &info->counts;
    int64_t begun_ms = clock_now_ms();
    bool found = true;
    bool ok = simple_read_scan(simple, simple->distinct != NULL, err);
    if (!ok)
        return false;
    while (ok && found && counts->matched < stop_at) {
        ok = scan_next(&simple->scan, &found, err);
        counts->matched += ok && found;
    }
    if (!ok)
        counts->failure = *err;
    counts->keys_examined = simple->scan.keys_examined;
    counts->docs_examined = simple->scan.docs_examined;
    plan_tree_count(info->tree, &simple->scan);
    counts->millis = clock_now_ms() - begun_ms;
    return ok || !is_interruption(err);
}

static bool explain_simple(struct command_ctx *ctx, struct simple_read *simple, struct explain_info *info,
                           uint64_t stop_at, struct err *err)
{
    struct plan_shape shape = {.sharding_filter = simple->read.check_visible, .count = simple->distinct == NULL};
    info->ns = simple->ns.full;
    info->filter = simple->compiled;
    if (simple->read.coll == NULL)
        return true;
    simple->explain = true;
    if (!simple_read_plan(simple, ctx, err))
        return false;
    info->plan = simple->plan;
    info->shape = shape;
    info->tree = plan_tree_new(&ctx->arena, simple->plan, &shape);
    return info->verbosity == EXPLAIN_QUERY_PLANNER || run_simple(simple, info, stop_at, err);
}

/* COUNT over RECORD_STORE_COUNT: nothing is examined. */
static void explain_counted(struct command_ctx *ctx, const struct simple_read *simple, struct explain_info *info)
{
    struct counter counter;
    struct plan_node *count = arena_alloc(&ctx->arena, sizeof *count);
    struct plan_node *store = arena_alloc(&ctx->arena, sizeof *store);
    info->ns = simple->ns.full;
    info->filter = simple->compiled;
    count->stage = STAGE_COUNT;
    count->children = arena_alloc(&ctx->arena, sizeof *count->children);
    count->children[0] = store;
    count->child_count = 1;
    count->counters.eof = true;
    store->stage = STAGE_RECORD_STORE_COUNT;
    store->counters.eof = true;
    info->tree = count;
    if (info->verbosity == EXPLAIN_QUERY_PLANNER)
        return;
    counter_collection(simple->read.txn, simple->read.coll, &counter);
    info->counts.matched = at_least_zero(counter.docs);
}

static bool explain_count(struct command_ctx *ctx, enum explain_verbosity verbosity, struct err *err)
{
    struct simple_read simple = {0};
    struct explain_info info = {.verbosity = verbosity};
    int64_t skip;
    int64_t limit;
    bool ok = count_open(&simple, ctx, &skip, &limit, err);
    uint64_t stop_at = UINT64_MAX;
    if (ok && limit > 0)
        stop_at = (uint64_t)limit + (uint64_t)skip;
    if (ok && simple.read.coll != NULL && count_is_counted(&simple))
        explain_counted(ctx, &simple, &info);
    else
        ok = ok && explain_simple(ctx, &simple, &info, stop_at, err);
    if (ok) {
        uint64_t skipped = at_least_zero(skip);
        info.counts.skipped = skipped < info.counts.matched ? skipped : info.counts.matched;
        info.counts.matched -= info.counts.skipped;
        explain_append_plan(&info, &ctx->reply);
    }
    simple_read_close(&simple);
    return ok;
}

static bool explain_distinct(struct command_ctx *ctx, enum explain_verbosity verbosity, struct err *err)
{
    struct simple_read simple = {0};
    struct explain_info info = {.verbosity = verbosity};
    bool ok = distinct_open(&simple, ctx, err) && explain_simple(ctx, &simple, &info, UINT64_MAX, err);
    if (ok) {
        info.counts.returned = info.counts.matched;
        explain_append_plan(&info, &ctx->reply);
    }
    simple_read_close(&simple);
    return ok;
}

/* ---- the command ---- */

enum command_status explain_of(struct command_ctx *ctx, enum explain_verbosity verbosity, struct err *err)
{
    static const struct {
        const char *name;
        bool (*explain)(struct command_ctx *ctx, enum explain_verbosity verbosity, struct err *err);
    } known[] = {
        {"find", explain_find},
        {"aggregate", explain_aggregate},
        {"count", explain_count},
        {"distinct", explain_distinct},
        {"update", explain_update},
        {"delete", explain_delete},
        {"findAndModify", explain_find_and_modify},
        {"findandmodify", explain_find_and_modify},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(ctx->name, known[i].name) != 0)
            continue;
        BSON_APPEND_UTF8(&ctx->reply, "explainVersion", "1");
        if (!known[i].explain(ctx, verbosity, err))
            return COMMAND_ERROR;
        explain_append_server(ctx, document_engine_host(document_engine_of(ctx)), &ctx->reply);
        return COMMAND_OK;
    }
    err_set(err, ERR_IllegalOperation, "Cannot explain cmd: %s", ctx->name);
    return COMMAND_ERROR;
}

static bool parse_verbosity(const struct command_ctx *ctx, enum explain_verbosity *out, struct err *err)
{
    static const char *const names[] = {"queryPlanner", "executionStats", "allPlansExecution"};
    const char *text = names[EXPLAIN_ALL_PLANS];
    if (!field_get_str(ctx->body, "verbosity", &text, err))
        return false;
    for (int i = EXPLAIN_QUERY_PLANNER; i <= EXPLAIN_ALL_PLANS; i++) {
        if (strcmp(text, names[i]) != 0)
            continue;
        *out = (enum explain_verbosity)i;
        return true;
    }
    return err_set(err, ERR_BadValue, "Enumeration value '%s' for field 'explain.verbosity' is not a valid value.",
                   text);
}

/* The explained command with the version that the router gave to the explain around it. */
static bool make_inner(struct command_ctx *ctx, struct command_ctx *inner, bson_t *body, struct err *err)
{
    struct bval version;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, bval_doc(&ctx->value));
    while (biter_next(&iter, &elem)) {
        if (inner->name == NULL) {
            inner->name = arena_copy_str(&ctx->arena, elem.key, elem.key_len);
            if (elem.key[0] == '$')
                return err_set(err, ERR_CommandNotFound, "Explain failed due to unknown command: %s", elem.key);
        }
        if (strcmp(elem.key, "$db") != 0)
            bval_append(body, elem.key, (int)elem.key_len, &elem.val);
    }
    if (inner->name == NULL)
        return err_set(err, ERR_FailedToParse, "explain command requires a nested object");
    if (bdoc_find(ctx->body, "$sherdVersion", &version))
        bval_append(body, "$sherdVersion", -1, &version);
    inner->body = bdoc_of(body);
    return bdoc_find(inner->body, inner->name, &inner->value);
}

enum command_status explain_run(struct command_ctx *ctx, struct err *err)
{
    enum explain_verbosity verbosity = EXPLAIN_ALL_PLANS;
    bson_t body = BSON_INITIALIZER;
    enum command_status status = COMMAND_ERROR;
    if (ctx->value.type != BT_DOCUMENT) {
        err_set(err, ERR_TypeMismatch, "BSON field 'explain.explain' is the wrong type '%s', expected type 'object'",
                bval_type_name(ctx->value.type));
        return COMMAND_ERROR;
    }
    if (!parse_verbosity(ctx, &verbosity, err))
        return COMMAND_ERROR;
    struct command_ctx *inner = command_ctx_new(ctx->frame, &ctx->msg);
    inner->db = ctx->db;
    inner->daemon = ctx->daemon;
    inner->internal = ctx->internal;
    inner->deadline_ms = ctx->deadline_ms;
    if (make_inner(ctx, inner, &body, err))
        status = explain_of(inner, verbosity, err);
    if (status == COMMAND_OK)
        bson_concat(&ctx->reply, &inner->reply);
    command_ctx_free(inner);
    bson_destroy(&body);
    return status;
}
