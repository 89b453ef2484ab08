/* find */
#include "base/clock.h"
#include "command/fields.h"
#include "query/sort.h"
#include "routerd/client_error.h"
#include "routerd/command_env.h"
#include "routerd/commands.h"
#include "routerd/cursor_batch.h"
#include "routerd/forward.h"
#include "routerd/request.h"
#include "routerd/routed_read.h"
#include "routerd/scatter.h"

#include <stdio.h>
#include <string.h>

/* What a router does itself in a find over several shards. */
struct find_shape {
    struct bdoc filter;
    struct bdoc sort;
    int64_t skip;
    int64_t limit;      /* 0: none */
    int64_t batch_size; /* -1: not given */
    bool single_batch;
};

static bool find_parse(struct bdoc body, struct find_shape *out, struct err *err)
{
    *out = (struct find_shape){.batch_size = -1};
    return field_get_doc(body, "filter", &out->filter, err) && field_get_doc(body, "sort", &out->sort, err) &&
           field_get_i64_in(body, "skip", 0, INT64_MAX, &out->skip, err) &&
           field_get_i64_in(body, "limit", 0, INT64_MAX, &out->limit, err) &&
           field_get_i64_in(body, "batchSize", 0, INT64_MAX, &out->batch_size, err) &&
           field_get_bool(body, "singleBatch", &out->single_batch, err);
}

/* The find of each shard: skip and limit together are its limit, the router skips. */
static void find_shard_body(const struct command_ctx *ctx, const struct find_shape *shape, bool sorted, bson_t *body)
{
    static const char *const own[] = {"skip", "limit", "singleBatch", "batchSize", "noCursorTimeout", NULL};
    request_append_body(body, ctx->body, own);
    if (shape->limit > 0 && shape->limit <= INT64_MAX - shape->skip)
        BSON_APPEND_INT64(body, "limit", shape->limit + shape->skip);
    if (shape->batch_size >= 0)
        BSON_APPEND_INT64(body, "batchSize", shape->batch_size);
    if (sorted)
        BSON_APPEND_BOOL(body, "$sherdSortKeys", true);
}

/* All shards have answered: their streams become one cursor. */
static enum command_status find_merge(struct route *route, const struct ns *ns, const struct find_shape *shape,
                                      bool sorted, struct scatter *scatter, struct err *err)
{
    struct command_ctx *ctx = route->ctx;
    struct router_cursor *cursor = router_cursor_new(route->router, ns->full);
    cursor->merge = merge_new(route->router, ns->db, ns->coll, sorted ? MERGE_BY_KEYS : MERGE_ANY, NULL);
    cursor->skip = shape->skip;
    cursor->limit = shape->limit > 0 ? shape->limit : -1;
    if (!field_get_bool(ctx->body, "noCursorTimeout", &cursor->no_timeout, err)) {
        router_cursor_close(route->router, cursor);
        return COMMAND_ERROR;
    }
    for (size_t i = 0; i < scatter->count; i++) {
        if (!merge_add(cursor->merge, &scatter->requests[i], err)) {
            router_cursor_close(route->router, cursor);
            return COMMAND_ERROR;
        }
    }
    int64_t batch = shape->batch_size >= 0 ? shape->batch_size : CURSORS_FIRST_BATCH;
    return cursor_batch_first(ctx, cursor, batch, !shape->single_batch, err);
}

/* *again: the table was old. */
static enum command_status find_several(struct route *route, const struct ns *ns, const struct find_shape *shape,
                                        const struct target *target, bool *again, struct err *err)
{
    bool sorted = shape->sort.data && !bdoc_is_empty(shape->sort) && !sort_spec_natural(shape->sort);
    struct scatter_command command = {.repeatable = true};
    struct scatter scatter;
    enum command_status status = COMMAND_ERROR;
    bson_init(&command.body);
    find_shard_body(route->ctx, shape, sorted, &command.body);
    enum scatter_outcome outcome = scatter_targets(route, target, &command, &scatter, err);
    *again = outcome == SCATTER_STALE;
    if (outcome == SCATTER_DONE)
        status = find_merge(route, ns, shape, sorted, &scatter, err);
    if (status != COMMAND_OK)
        scatter_close_cursors(route, &scatter);
    scatter_deinit(&scatter);
    bson_destroy(&command.body);
    return status;
}

/* The whole command on the one shard that owns all that it may find. */
static enum command_status find_one(struct route *route, const struct ns *ns, const struct target *target, bool *again,
                                    struct err *err)
{
    struct remote_set *set;
    struct remote_request request;
    if (!route_shard(route, target->list->shard, &set, err))
        return COMMAND_ERROR;
    remote_request_init(&request, set, true);
    remote_set_unref(set);
    request_append_body(&request.body, route->ctx->body, NULL);
    if (target->point)
        route_append_key_version(route, &request.body);
    else
        route_append_range_version(route, &request.body, target->list->ranges, target->list->range_count);
    remote_run(route->router, &request, 1, route->ctx->deadline_ms);
    enum command_status status = COMMAND_ERROR;
    if (request.ok)
        status = forward_cursor_reply(route->ctx, ns->full, &request, err);
    else if (!(*again = route_is_stale(route, &request.err)))
        (void)client_error_from(route->ctx, &request, err);
    remote_request_deinit(&request);
    return status;
}

static enum command_status find_sharded(struct route *route, const struct ns *ns, bool *again, struct err *err)
{
    struct command_ctx *ctx = route->ctx;
    struct find_shape shape;
    struct target target;
    if (!find_parse(ctx->body, &shape, err))
        return COMMAND_ERROR;
    struct expr_env env;
    struct target_query query = {shape.filter, &env};
    if (!command_env_init(&ctx->arena, ctx->body, route->routing, &env, err) ||
        !target_filter(&ctx->arena, route->routing->table, &query, &target, err))
        return COMMAND_ERROR;
    if (target.count == 0)
        return forward_empty_cursor(ctx, ns->full, err);
    return target.count == 1 ? find_one(route, ns, &target, again, err)
                             : find_several(route, ns, &shape, &target, again, err);
}

static enum command_status run_find(struct command_ctx *ctx, struct err *err)
{
    static const struct routed_read read = {forward_cursor_reply, find_sharded, forward_empty_cursor, view_find};
    atomic_fetch_add(&router_of(ctx)->counters.query, 1);
    return routed_read_run(ctx, &read, err);
}

static const struct command commands[] = {
    {"find", NULL, COMMAND_COLLECTION, run_find},
};

const struct command_family commands_find = COMMAND_FAMILY(commands);
