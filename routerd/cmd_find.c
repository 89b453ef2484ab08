/* find, getMore, killCursors. */
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

#include <inttypes.h>
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

/* The time that a getMore has: what the opening command's maxTimeMS has left. Its own maxTimeMS is how long to wait for
 * documents. */
static bool get_more_limit(struct command_ctx *ctx, const struct router_cursor *cursor, struct err *err)
{
    if (ctx->max_time_ms > 0 && !cursor->await_data)
        return err_set(err, ERR_BadValue, "cannot set maxTimeMS on getMore command for a non-awaitData cursor");
    command_ctx_set_deadline(ctx, cursor->time_left_ms < 0 ? DEADLINE_NEVER : deadline_after_ms(cursor->time_left_ms));
    /* What is late now is late by the limit that the first command was given. */
    if (cursor->time_left_ms >= 0)
        ctx->max_time_ms = cursor->time_left_ms > 0 ? cursor->time_left_ms : 1;
    return true;
}

/* getMore on a cursor that lives on one shard: the same request with the shard's id. *done: nothing is left. */
static enum command_status get_more_single(struct command_ctx *ctx, struct router_cursor *cursor, bool *done,
                                           struct err *err)
{
    static const char *const own[] = {"getMore", NULL};
    struct remote_request request;
    struct cursor_reply reply;
    enum command_status status = COMMAND_ERROR;
    remote_request_init(&request, cursor->set, false);
    BSON_APPEND_INT64(&request.body, "getMore", cursor->shard_id);
    request_append_body(&request.body, ctx->body, own);
    if (cursor->await_data && ctx->max_time_ms > 0)
        BSON_APPEND_INT64(&request.body, "$sherdAwaitMs", ctx->max_time_ms);
    snprintf(request.pinned, sizeof request.pinned, "%s", cursor->member);
    if (!remote_run_one(router_of(ctx), &request, ctx->deadline_ms, NULL)) {
        /* The cursor went with the leadership of its member. */
        if (err_categories(request.err.code) & ERR_CAT_NOT_PRIMARY)
            err_set(err, ERR_CursorNotFound, "cursor id %" PRId64 " not found: its shard has a new leader", cursor->id);
        else
            (void)client_error_from(ctx, &request, err);
        *done = true; /* also when time ran out: a batch may be on its way, and the next one would leave it out */
        if (request.err.code == ERR_CursorNotFound)
            cursor->shard_id = 0;
    } else if (cursor_reply_parse(request.reply, &reply, err)) {
        cursor->shard_id = reply.id;
        *done = reply.id == 0;
        if (!*done)
            store_le64(request.frame->data + (reply.id_at - request.frame->data), (uint64_t)cursor->id);
        status = forward_reply(ctx, &request);
    }
    remote_request_deinit(&request);
    return status;
}

static bool collection_name(const struct command_ctx *ctx, const char *field, char ns[COMMAND_NS_MAX + 1],
                            struct err *err)
{
    const char *coll = NULL;
    if (!field_require(ctx->body, field, err) || !field_get_str(ctx->body, field, &coll, err))
        return false;
    if (!coll || !*coll || strlen(ctx->db) + 1 + strlen(coll) > COMMAND_NS_MAX)
        return err_set(err, ERR_InvalidNamespace, "Invalid collection name");
    char *at = stpcpy(ns, ctx->db);
    *at++ = '.';
    memcpy(at, coll, strlen(coll) + 1);
    return true;
}

static enum command_status run_get_more(struct command_ctx *ctx, struct err *err)
{
    char ns[COMMAND_NS_MAX + 1];
    struct router_cursor *cursor;
    int64_t batch_size = -1;
    static const char *const known[] = {"collection", "batchSize", "term", "lastKnownCommittedOpTime", NULL};
    atomic_fetch_add(&router_of(ctx)->counters.getmore, 1);
    if (ctx->value.type != BT_INT64) {
        err_set(err, ERR_TypeMismatch, "BSON field 'getMore.getMore' is the wrong type '%s', expected type 'long'",
                bval_type_name(ctx->value.type));
        return COMMAND_ERROR;
    }
    if (!fields_check_arguments(ctx->body, ctx->name, known, err) || !collection_name(ctx, "collection", ns, err) ||
        !field_get_i64_in(ctx->body, "batchSize", 0, INT64_MAX, &batch_size, err))
        return COMMAND_ERROR;
    struct cursor_table *cursors = router_of(ctx)->cursors;
    if (!cursor_table_take(cursors, bval_i64(&ctx->value), ns, &cursor, err))
        return COMMAND_ERROR;
    enum command_status status;
    bool done = false;
    int64_t begun_ms = clock_now_ms();
    if (!get_more_limit(ctx, cursor, err)) {
        status = COMMAND_ERROR;
    } else if (cursor->set) {
        status = get_more_single(ctx, cursor, &done, err);
    } else {
        bool ok = cursor_batch_append(ctx, cursor, batch_size > 0 ? batch_size : -1, false, true, err);
        done = !ok || cursor->ended;
        status = ok ? COMMAND_OK : COMMAND_ERROR;
    }
    if (cursor->time_left_ms >= 0) {
        int64_t left_ms = cursor->time_left_ms - (clock_now_ms() - begun_ms);
        cursor->time_left_ms = left_ms > 0 ? left_ms : 0;
    }
    cursor_table_give(cursors, cursor, done);
    return status;
}

static bool check_ids(struct bdoc ids, struct err *err)
{
    struct biter iter;
    struct belem elem;
    for (biter_init(&iter, ids); biter_next(&iter, &elem);)
        if (elem.val.type != BT_INT64)
            return err_set(err, ERR_TypeMismatch,
                           "BSON field 'killCursors.cursors.%s' is the wrong type '%s', expected type 'long'", elem.key,
                           bval_type_name(elem.val.type));
    return true;
}

static enum command_status run_kill_cursors(struct command_ctx *ctx, struct err *err)
{
    char ns[COMMAND_NS_MAX + 1];
    struct bdoc ids = {0};
    static const char *const known[] = {"cursors", NULL};
    if (!collection_name(ctx, ctx->name, ns, err) || !fields_check_arguments(ctx->body, ctx->name, known, err) ||
        !field_require(ctx->body, "cursors", err) || !field_get_array(ctx->body, "cursors", &ids, err) ||
        !check_ids(ids, err))
        return COMMAND_ERROR;
    bson_t killed = BSON_INITIALIZER;
    bson_t missing = BSON_INITIALIZER;
    bson_t none = BSON_INITIALIZER;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, ids);
    while (biter_next(&iter, &elem)) {
        bool found = cursor_table_kill(router_of(ctx)->cursors, bval_i64(&elem.val), ns);
        bval_append(found ? &killed : &missing, elem.key, (int)elem.key_len, &elem.val);
    }
    BSON_APPEND_ARRAY(&ctx->reply, "cursorsKilled", &killed);
    BSON_APPEND_ARRAY(&ctx->reply, "cursorsNotFound", &missing);
    BSON_APPEND_ARRAY(&ctx->reply, "cursorsAlive", &none);
    BSON_APPEND_ARRAY(&ctx->reply, "cursorsUnknown", &none);
    bson_destroy(&killed);
    bson_destroy(&missing);
    bson_destroy(&none);
    return COMMAND_OK;
}

static const struct command commands[] = {
    {"find", NULL, COMMAND_COLLECTION, run_find},
    {"getMore", NULL, 0, run_get_more},
    {"killCursors", NULL, 0, run_kill_cursors},
};

const struct command_family commands_find = COMMAND_FAMILY(commands);
