/* aggregate: whole on one shard where the first $match allows it, else a part on each shard and the rest here. */
#include "base/clock.h"
#include "command/fields.h"
#include "routerd/client_error.h"
#include "routerd/cluster_stages.h"
#include "routerd/commands.h"
#include "routerd/cursor_batch.h"
#include "routerd/forward.h"
#include "routerd/other_collections.h"
#include "routerd/request.h"
#include "routerd/scatter.h"

#include <string.h>

/* One aggregate on a sharded collection. */
struct aggregate_shape {
    const struct ns *ns;
    struct bdoc stages;
    struct bdoc collation;
    struct bdoc let;
    int64_t batch_size; /* -1: not given */
};

static bool aggregate_parse(struct bdoc body, struct aggregate_shape *out, struct err *err)
{
    struct bdoc cursor = {0};
    *out = (struct aggregate_shape){.batch_size = -1, .ns = NULL};
    if (!field_require(body, "pipeline", err) || !field_get_array(body, "pipeline", &out->stages, err) ||
        !field_get_doc(body, "cursor", &cursor, err) || !field_get_doc(body, "collation", &out->collation, err) ||
        !field_get_doc(body, "let", &out->let, err))
        return false;
    if (!cursor.data)
        return err_set(err, ERR_FailedToParse,
                       "The 'cursor' option is required, except for aggregate with the explain argument");
    return field_get_i64_in(cursor, "batchSize", 0, INT64_MAX, &out->batch_size, err);
}

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

/* $collStats makes its documents on each shard; what follows belongs to the router. */
static bool aggregate_split(const struct pipeline *pipeline, const struct aggregate_shape *shape, struct arena *arena,
                            struct pipeline_split *out, struct err *err)
{
    struct bval spec;
    const char *source = pipeline_source_stage(pipeline, &spec);
    if (!source || strcmp(source, "$collStats") != 0)
        return pipeline_split(pipeline, arena, out, err);
    *out = (struct pipeline_split){
        .shard = stages_first(arena, shape->stages),
        .merge = request_array_rest(arena, shape->stages),
    };
    return true;
}

static void aggregate_body(const struct command_ctx *ctx, const struct pipeline_split *split, int64_t batch_size,
                           bson_t *body)
{
    static const char *const own[] = {"pipeline", "cursor", NULL};
    bson_t cursor, stages;
    request_append_body(body, ctx->body, own);
    bdoc_to_bson(split->shard, &stages);
    BSON_APPEND_ARRAY(body, "pipeline", &stages);
    BSON_APPEND_DOCUMENT_BEGIN(body, "cursor", &cursor);
    if (batch_size >= 0)
        BSON_APPEND_INT64(&cursor, "batchSize", batch_size);
    bson_append_document_end(body, &cursor);
}

/* Compiles the router's part into the cursor; it lives in the cursor's arena with all that it borrows. */
static bool cursor_compile(struct router_cursor *cursor, const struct pipeline_split *split, struct bdoc let,
                           struct err *err)
{
    struct bdoc stages = split->merge;
    if (bdoc_is_empty(stages))
        return true;
    stages.data = arena_copy(&cursor->arena, stages.data, stages.len);
    cursor->env = (struct expr_env){.now_ms = clock_wall_ms(), .let = let};
    if (let.data)
        cursor->env.let.data = arena_copy(&cursor->arena, let.data, let.len);
    return pipeline_compile(&cursor->arena, stages, &cursor->env, &cursor->pipeline, err);
}

static bool cursor_make(struct route *route, const struct aggregate_shape *shape, const struct pipeline_split *split,
                        struct scatter *scatter, struct router_cursor *cursor, struct err *err)
{
    struct sort_spec *sort = NULL;
    if (split->merge_sort.data) {
        struct bdoc spec = split->merge_sort;
        spec.data = arena_copy(&cursor->arena, spec.data, spec.len);
        if (!sort_spec_compile(&cursor->arena, spec, cursor->env.order, &sort, err))
            return false;
    }
    cursor->merge = merge_new(route->router, shape->ns->db, shape->ns->coll, sort ? MERGE_BY_FIELDS : MERGE_ANY, sort);
    for (size_t i = 0; i < scatter->count; i++)
        if (!merge_add(cursor->merge, &scatter->requests[i], err))
            return false;
    return cursor_compile(cursor, split, shape->let, err);
}

static enum command_status aggregate_merge(struct route *route, const struct aggregate_shape *shape,
                                           const struct pipeline_split *split, struct scatter *scatter, struct err *err)
{
    struct router_cursor *cursor = router_cursor_new(shape->ns->full);
    if (!cursor_make(route, shape, split, scatter, cursor, err)) {
        router_cursor_close(route->router, cursor);
        return COMMAND_ERROR;
    }
    int64_t batch = shape->batch_size >= 0 ? shape->batch_size : CURSORS_FIRST_BATCH;
    return cursor_batch_first(route->ctx, cursor, batch, true, err);
}

static enum command_status aggregate_several(struct route *route, const struct aggregate_shape *shape,
                                             const struct pipeline *pipeline, const struct target *target, bool *again,
                                             struct err *err)
{
    struct pipeline_split split;
    struct scatter_command command = {.repeatable = true};
    struct scatter scatter;
    enum command_status status = COMMAND_ERROR;
    if (!aggregate_split(pipeline, shape, &route->ctx->arena, &split, err))
        return COMMAND_ERROR;
    bson_init(&command.body);
    aggregate_body(route->ctx, &split, bdoc_is_empty(split.merge) ? shape->batch_size : -1, &command.body);
    enum scatter_outcome outcome = scatter_targets(route, target, &command, &scatter, err);
    *again = outcome == SCATTER_STALE;
    if (outcome == SCATTER_DONE)
        status = aggregate_merge(route, shape, &split, &scatter, err);
    if (status != COMMAND_OK)
        scatter_close_cursors(route, &scatter);
    scatter_deinit(&scatter);
    bson_destroy(&command.body);
    return status;
}

/* The whole pipeline on the one shard that has all that it may read. */
static enum command_status aggregate_one(struct route *route, const struct ns *ns, const struct target *target,
                                         bool *again, struct err *err)
{
    struct scatter_command command = {.repeatable = true};
    struct scatter scatter;
    enum command_status status = COMMAND_ERROR;
    bson_init(&command.body);
    request_append_body(&command.body, route->ctx->body, NULL);
    enum scatter_outcome outcome = scatter_targets(route, target, &command, &scatter, err);
    *again = outcome == SCATTER_STALE;
    if (outcome == SCATTER_DONE)
        status = forward_cursor_reply(route->ctx, ns->full, &scatter.requests[0], err);
    scatter_deinit(&scatter);
    bson_destroy(&command.body);
    return status;
}

static enum command_status aggregate_sharded(struct route *route, const struct ns *ns, bool *again, struct err *err)
{
    struct command_ctx *ctx = route->ctx;
    struct aggregate_shape shape;
    struct pipeline *pipeline;
    struct pipeline_lead lead;
    struct target target;
    if (!aggregate_parse(ctx->body, &shape, err))
        return COMMAND_ERROR;
    shape.ns = ns;
    struct expr_env *env = arena_alloc(&ctx->arena, sizeof *env);
    *env = (struct expr_env){.now_ms = clock_wall_ms(), .let = shape.let};
    if (!pipeline_compile(&ctx->arena, shape.stages, env, &pipeline, err))
        return COMMAND_ERROR;
    pipeline_lead(pipeline, &ctx->arena, &lead);
    enum command_status status = COMMAND_ERROR;
    struct target_query query = {lead.match, shape.collation, env};
    if (target_filter(&ctx->arena, route->routing->table, &query, &target, err)) {
        if (target.count == 0) {
            /* Nothing can match, but stages such as $count still have their say: any shard gives the empty answer. */
            struct key_range all = routing_all_keys();
            target_ranges(&ctx->arena, route->routing->table, &all, 1, &target);
            target.count = 1;
        }
        status = target.count == 1 ? aggregate_one(route, ns, &target, again, err)
                                   : aggregate_several(route, &shape, pipeline, &target, again, err);
    }
    pipeline_release(pipeline);
    return status;
}

static enum command_status aggregate_collection(struct command_ctx *ctx, const struct ns *ns, struct err *err)
{
    struct route route;
    struct remote_request request;
    struct forward_options options = {.repeatable = true};
    enum command_status status = COMMAND_ERROR;
    bool again;
    route_init(&route, ctx, ns->full);
    struct bdoc stages = {0};
    if (!field_get_array(ctx->body, "pipeline", &stages, err) || !other_collections_allowed(&route, ns, stages, err)) {
        route_deinit(&route);
        return COMMAND_ERROR;
    }
    do {
        again = false;
        switch (forward_primary(&route, &options, &request, err)) {
        case FORWARD_DONE:
            status = forward_cursor_reply(ctx, ns->full, &request, err);
            remote_request_deinit(&request);
            break;
        case FORWARD_SHARDED:
            status = aggregate_sharded(&route, ns, &again, err);
            break;
        case FORWARD_NO_DATABASE:
            status = forward_empty_cursor(ctx, ns->full);
            break;
        case FORWARD_FAILED:
            break;
        }
    } while (again);
    route_deinit(&route);
    return status;
}

static bool names_search_indexes(struct bdoc stages)
{
    struct bval first;
    return bdoc_find(stages, "0", &first) && first.type == BT_DOCUMENT &&
           bdoc_has(bval_doc(&first), "$listSearchIndexes");
}

static enum command_status run_aggregate(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    struct aggregate_shape shape;
    struct bval explain;
    atomic_fetch_add(&router_of(ctx)->counters.command, 1);
    if (!command_ns_or_db(ctx, &ns, err) || !field_require(ctx->body, "pipeline", err))
        return COMMAND_ERROR;
    if (bdoc_find(ctx->body, "explain", &explain) && bval_truthy(&explain)) {
        err_set(err, ERR_CommandNotSupported, "explain is not supported by this version");
        return COMMAND_ERROR;
    }
    if (!aggregate_parse(ctx->body, &shape, err))
        return COMMAND_ERROR;
    if (names_search_indexes(shape.stages)) {
        index_search_refused(err);
        return COMMAND_ERROR;
    }
    if (!ns.coll[0])
        return cluster_stages_run(ctx, shape.stages, &shape.let, err);
    if (forward_is_config_db(ns.db)) {
        struct remote_request request;
        enum command_status status = COMMAND_ERROR;
        if (forward_config(ctx, true, &request, err))
            status = forward_cursor_reply(ctx, ns.full, &request, err);
        remote_request_deinit(&request);
        return status;
    }
    return aggregate_collection(ctx, &ns, err);
}

static const struct command commands[] = {
    {"aggregate", NULL, 0, run_aggregate},
};

const struct command_family commands_aggregate = COMMAND_FAMILY(commands);
