#include "routerd/aggregate_open.h"

#include "command/fields.h"
#include "routerd/client_error.h"
#include "routerd/cluster_stages.h"
#include "routerd/command_env.h"
#include "routerd/cursor_batch.h"
#include "routerd/ddl.h"
#include "routerd/foreign.h"
#include "routerd/forward.h"
#include "routerd/request.h"
#include "routerd/sink.h"

#include <string.h>

enum { VIEW_DEPTH_MAX = 20 };

bool aggregate_request_parse(struct bdoc body, const struct ns *ns, struct aggregate_request *out, struct err *err)
{
    bool given = false;
    *out = (struct aggregate_request){.batch_size = -1, .body = body, .ns = *ns};
    out->ns.coll = out->ns.full + (ns->coll - ns->full);
    if (!field_require(body, "pipeline", err) || !field_get_array(body, "pipeline", &out->stages, err) ||
        !field_get_cursor(body, "aggregate", &given, &out->batch_size, err))
        return false;
    return given || err_set(err, ERR_FailedToParse,
                            "The 'cursor' option is required, except for aggregate with the explain argument");
}

static bool reads_others(struct bdoc doc, int depth)
{
    enum { DEPTH_MAX = BDOC_MAX_WIRE_DEPTH };
    static const char *const names[] = {"$lookup", "$graphLookup", "$unionWith"};
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (depth < DEPTH_MAX && biter_next(&iter, &elem)) {
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if (strcmp(elem.key, names[i]) == 0)
                return true;
        bool nested = elem.val.type == BT_DOCUMENT || elem.val.type == BT_ARRAY;
        if (nested && reads_others(bval_doc(&elem.val), depth + 1))
            return true;
    }
    return false;
}

bool aggregate_reads_others(struct bdoc stages)
{
    return reads_others(stages, 0);
}

/* One aggregate on its way. Memory lies in the context's arena. */
struct opening {
    struct command_ctx *ctx;
    const struct aggregate_request *request;
    struct route *route;
    struct expr_env *env;
    struct bdoc collation; /* that counts; data NULL: simple, or the shard's business */
    struct pipeline *pipeline;
    struct pipeline_split split;
    struct scatter scatter;
    bool others; /* reads other collections */
};

static struct bdoc stages_first(struct arena *arena, struct bdoc stages)
{
    bson_t out = BSON_INITIALIZER;
    struct bval first;
    if (bdoc_find(stages, "0", &first))
        bval_append(&out, "0", 1, &first);
    struct bdoc copy = {arena_copy(arena, bson_get_data(&out), out.len), out.len};
    bson_destroy(&out);
    return copy;
}

/* What goes to the shards and what stays here. */
static bool divide(struct opening *o, bool one, struct err *err)
{
    struct arena *arena = &o->ctx->arena;
    struct bval spec;
    const char *source = pipeline_source_stage(o->pipeline, &spec);
    if (one)
        return pipeline_split_others(o->pipeline, arena, &o->split, err);
    if (!source || strcmp(source, "$collStats") != 0)
        return pipeline_split(o->pipeline, arena, &o->split, err);
    /* Its documents are made on each shard; what follows belongs to the router. */
    o->split = (struct pipeline_split){
        .shard = stages_first(arena, o->request->stages),
        .merge = request_array_rest(arena, o->request->stages),
    };
    return true;
}

static void shard_body(const struct opening *o, bool passes, bson_t *body)
{
    static const char *const own[] = {"pipeline", "cursor", "collation", NULL};
    bson_t cursor, stages;
    request_append_body(body, o->request->body, own);
    bdoc_to_bson(o->split.shard, &stages);
    BSON_APPEND_ARRAY(body, "pipeline", &stages);
    BSON_APPEND_DOCUMENT_BEGIN(body, "cursor", &cursor);
    if (passes && o->request->batch_size >= 0)
        BSON_APPEND_INT64(&cursor, "batchSize", o->request->batch_size);
    bson_append_document_end(body, &cursor);
    if (o->collation.data) {
        struct bval collation = bval_from_doc(o->collation);
        bval_append(body, "collation", -1, &collation);
    }
}

/* Compiles the router's part into the cursor; it lives in the cursor's arena with all that it borrows. */
static bool cursor_compile(const struct opening *o, struct router_cursor *cursor, struct err *err)
{
    struct bdoc stages = o->split.merge;
    struct bdoc let = o->env->let;
    bson_t body = BSON_INITIALIZER;
    if (o->collation.data) {
        struct bval collation = bval_from_doc(o->collation);
        bval_append(&body, "collation", -1, &collation);
    }
    bool ok = command_env_init(&cursor->arena, bdoc_of(&body), NULL, &cursor->env, err);
    bson_destroy(&body);
    if (!ok)
        return false;
    cursor->env.now_ms = o->env->now_ms;
    if (let.data)
        cursor->env.let = (struct bdoc){arena_copy(&cursor->arena, let.data, let.len), let.len};
    if (!stages.data || bdoc_is_empty(stages))
        return true;
    stages.data = arena_copy(&cursor->arena, stages.data, stages.len);
    if (o->others)
        cursor->foreign = foreign_new(cursor, o->request->ns.db, o->collation, o->request->depth);
    return pipeline_compile(&cursor->arena, stages, &cursor->env, &cursor->pipeline, err);
}

static bool cursor_fill(struct opening *o, struct router_cursor *cursor, struct err *err)
{
    struct sort_spec *sort = NULL;
    const struct ns *ns = &o->request->ns;
    if (!cursor_compile(o, cursor, err))
        return false;
    if (o->split.merge_sort.data && o->scatter.count > 1) {
        struct bdoc spec = o->split.merge_sort;
        spec.data = arena_copy(&cursor->arena, spec.data, spec.len);
        if (!sort_spec_compile(&cursor->arena, spec, cursor->env.order, &sort, err))
            return false;
    }
    cursor->merge = merge_new(o->route->router, ns->db, ns->coll, sort ? MERGE_BY_FIELDS : MERGE_ANY, sort);
    for (size_t i = 0; i < o->scatter.count; i++)
        if (!merge_add(cursor->merge, &o->scatter.requests[i], err))
            return false;
    return true;
}

/* All shards have answered. */
static bool open_cursor(struct opening *o, struct router_cursor **out, struct err *err)
{
    const char *shown = o->request->shown_ns ? o->request->shown_ns : o->request->ns.full;
    struct router_cursor *cursor = router_cursor_new(o->route->router, shown);
    router_cursor_use(cursor, o->ctx);
    if (!cursor_fill(o, cursor, err)) {
        router_cursor_close(o->route->router, cursor);
        return false;
    }
    cursor_batch_start(cursor);
    *out = cursor;
    return true;
}

static bool find_target(struct opening *o, struct target *target, bool *one, struct err *err)
{
    struct pipeline_lead lead;
    const struct routing_table *table = o->route->routing->table;
    *target = (struct target){0};
    *one = true;
    if (!table)
        return true;
    pipeline_lead(o->pipeline, &o->ctx->arena, &lead);
    struct target_query query = {lead.match, o->env};
    if (!target_filter(&o->ctx->arena, table, &query, target, err))
        return false;
    if (target->count == 0) {
        /* Nothing can match, but stages such as $count still have their say: any shard gives the empty answer. */
        struct key_range all = routing_all_keys();
        target_ranges(&o->ctx->arena, table, &all, 1, target);
        target->count = 1;
    }
    *one = target->count == 1;
    return true;
}

/* The collation of what runs here: an unsharded collection's default is known to its shard only. */
static bool find_collation(struct opening *o, struct err *err)
{
    struct ddl_collection described = {0};
    if (!command_env_collation(o->request->body, o->route->routing, &o->collation, err))
        return false;
    if (o->collation.data || !o->others || o->route->routing->table || !o->route->routing->exists)
        return true;
    return ddl_describe_options(o->route, &o->request->ns, &described, err) &&
           (!described.options.data || field_get_doc(described.options, "collation", &o->collation, err));
}

static bool prepare(struct opening *o, struct err *err)
{
    o->env = arena_alloc(&o->ctx->arena, sizeof *o->env);
    return find_collation(o, err) &&
           command_env_init(&o->ctx->arena, o->request->body, o->route->routing, o->env, err) &&
           pipeline_compile(&o->ctx->arena, o->request->stages, o->env, &o->pipeline, err);
}

static enum scatter_outcome send(struct opening *o, const struct target *target, const struct scatter_command *command,
                                 struct err *err)
{
    if (!o->route->routing->table)
        return scatter_primary(o->route, command, &o->scatter, err);
    return scatter_targets(o->route, target, command, &o->scatter, err);
}

/* The answer of the only shard is the command's. */
static void take_whole(struct opening *o, struct remote_request *whole)
{
    struct remote_request *first = &o->scatter.requests[0];
    *whole = *first;
    /* A bson_t points into itself: it can't be moved, and nobody reads it any more. */
    bson_init(&whole->body);
    bson_destroy(&first->body);
    remote_request_init(first, whole->set, true);
}

/* With the table at hand; *again: it was old. */
static bool open_round(struct opening *o, struct router_cursor **out, struct remote_request *whole, bool *again,
                       struct err *err)
{
    struct target target;
    struct scatter_command command = {.repeatable = true};
    bool one;
    bool ok = false;
    *again = false;
    if (!prepare(o, err))
        return false;
    if (!o->route->routing->exists)
        return open_cursor(o, out, err);
    if (!find_target(o, &target, &one, err))
        return false;
    bool pass = one && !o->others && whole;
    if (!pass && !divide(o, one, err))
        return false;
    bson_init(&command.body);
    if (pass)
        request_append_body(&command.body, o->request->body, NULL);
    else
        shard_body(o, !o->split.merge.data || bdoc_is_empty(o->split.merge), &command.body);
    enum scatter_outcome outcome = send(o, &target, &command, err);
    *again = outcome == SCATTER_STALE;
    if (outcome == SCATTER_DONE) {
        ok = pass || open_cursor(o, out, err);
        if (pass)
            take_whole(o, whole);
    }
    if (!ok)
        scatter_close_cursors(o->route, &o->scatter);
    scatter_deinit(&o->scatter);
    bson_destroy(&command.body);
    return ok;
}

/* The name is a view's: the same on the collection below. */
static bool open_view(struct command_ctx *ctx, const struct aggregate_request *request, const struct err *refused,
                      struct router_cursor **out, struct err *err)
{
    struct view view;
    struct aggregate_request inner;
    bson_t body = BSON_INITIALIZER;
    if (request->depth >= VIEW_DEPTH_MAX)
        return err_set(err, ERR_ViewDepthLimitExceeded, "View depth too deep or view cycle detected at %s",
                       request->ns.full);
    bool ok = view_resolve(ctx, &request->ns, refused, &view, err) &&
              view_aggregate_body(&ctx->arena, &view, request->body, &body, err);
    BSON_APPEND_UTF8(&body, "$db", request->ns.db);
    struct bdoc kept = {arena_copy(&ctx->arena, bson_get_data(&body), body.len), body.len};
    bson_destroy(&body);
    if (!ok || !aggregate_request_parse(kept, &view.on, &inner, err))
        return false;
    inner.depth = request->depth + 1;
    inner.shown_ns = request->shown_ns ? request->shown_ns : request->ns.full;
    return aggregate_open(ctx, &inner, out, NULL, err);
}

bool aggregate_open(struct command_ctx *ctx, const struct aggregate_request *request, struct router_cursor **out,
                    struct remote_request *whole, struct err *err)
{
    struct route route;
    bool ok;
    bool again = false;
    *out = NULL;
    if (!request->ns.coll[0])
        return cluster_stages_open(ctx, request, out, err);
    bool others = aggregate_reads_others(request->stages);
    route_init(&route, ctx, request->ns.full);
    do {
        struct opening o = {.ctx = ctx, .request = request, .route = &route, .others = others};
        again = false;
        ok = route_next(&route, err) && open_round(&o, out, whole, &again, err);
        pipeline_release(o.pipeline);
    } while (again);
    route_deinit(&route);
    if (ok || !view_is_refusal(err))
        return ok;
    struct err refused = *err;
    return open_view(ctx, request, &refused, out, err);
}

enum command_status aggregate_reply(struct command_ctx *ctx, const struct aggregate_request *request, struct err *err)
{
    struct router_cursor *cursor;
    struct remote_request whole = {0};
    bool pass = !request->shown_ns && !request->single_batch;
    if (sink_named(request->stages))
        return sink_run(ctx, request, err);
    if (!aggregate_open(ctx, request, &cursor, pass ? &whole : NULL, err))
        return COMMAND_ERROR;
    if (!cursor) {
        enum command_status status = forward_cursor_reply(ctx, request->ns.full, &whole, err);
        remote_request_deinit(&whole);
        return status;
    }
    int64_t batch = request->batch_size >= 0 ? request->batch_size : CURSORS_FIRST_BATCH;
    return cursor_batch_first(ctx, cursor, batch, !request->single_batch, err);
}
