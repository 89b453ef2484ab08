/* findAndModify: to the one shard that the query names, or to the shard of the best candidate. */
#include "base/clock.h"
#include "command/fields.h"
#include "routerd/client_error.h"
#include "routerd/commands.h"
#include "routerd/forward.h"
#include "routerd/request.h"
#include "routerd/single_write.h"
#include "routerd/write_concern.h"

struct modify_shape {
    struct bdoc query;
    struct bdoc sort;
    struct bdoc collation;
    bool upsert;
    bool remove;
    struct expr_env env;
};

static bool modify_parse(struct bdoc body, struct modify_shape *out, struct err *err)
{
    *out = (struct modify_shape){.query = bdoc_empty(), .env.now_ms = clock_wall_ms()};
    return field_get_doc(body, "query", &out->query, err) && field_get_doc(body, "sort", &out->sort, err) &&
           field_get_doc(body, "collation", &out->collation, err) &&
           field_get_bool(body, "upsert", &out->upsert, err) && field_get_bool(body, "remove", &out->remove, err);
}

/* {lastErrorObject: {updatedExisting | n}, value: null} for a query that matches nothing. */
static enum command_status modify_nothing(struct command_ctx *ctx, const struct modify_shape *shape)
{
    bson_t last;
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "lastErrorObject", &last);
    BSON_APPEND_INT32(&last, "n", 0);
    if (!shape->remove)
        BSON_APPEND_BOOL(&last, "updatedExisting", false);
    bson_append_document_end(&ctx->reply, &last);
    BSON_APPEND_NULL(&ctx->reply, "value");
    return COMMAND_OK;
}

/* Passes the reply through; one that says writeConcern can't be met is copied. */
static enum command_status modify_reply(struct command_ctx *ctx, struct remote_request *request)
{
    static const char *const own[] = {"ok", NULL};
    if (!bdoc_has(ctx->body, "writeConcern"))
        return forward_reply(ctx, request);
    request_append_body(&ctx->reply, request->reply, own);
    write_concern_append_error(ctx, request->set->members.count);
    return COMMAND_OK;
}

/* The command to one shard. */
struct modify_send {
    size_t shard;
    struct bdoc query;                  /* instead of the command's; data NULL: its own */
    const struct routing_target *range; /* what it may look at there; NULL: one key value */
    bool again;                         /* out: the routing table was old */
    bool matched;                       /* out: there was such a document, or one was inserted */
};

static enum command_status modify_run(struct route *route, struct modify_send *send, struct err *err)
{
    static const char *const own[] = {"query", NULL};
    struct remote_set *set;
    struct remote_request request;
    struct bval value;
    if (!route_shard(route, send->shard, &set, err))
        return COMMAND_ERROR;
    remote_request_init(&request, set, false);
    remote_set_unref(set);
    request_append_body(&request.body, route->ctx->body, send->query.data ? own : NULL);
    if (send->query.data) {
        value = bval_from_doc(send->query);
        bval_append(&request.body, "query", -1, &value);
    }
    if (send->range)
        route_append_range_version(route, &request.body, send->range->ranges, send->range->range_count);
    else
        route_append_key_version(route, &request.body);
    remote_run(route->router, &request, 1, route->ctx->deadline_ms);
    enum command_status status = COMMAND_ERROR;
    if (request.ok) {
        struct bval last;
        send->matched = bdoc_find(request.reply, "lastErrorObject", &last) && last.type == BT_DOCUMENT &&
                        bdoc_find(bval_doc(&last), "n", &value) && bval_truthy(&value);
        /* A candidate that is gone is no answer: the caller looks for another. */
        status = send->matched || !send->query.data ? modify_reply(route->ctx, &request) : COMMAND_OK;
    } else if (!(send->again = !request.unknown && route_is_stale(route, &request.err))) {
        (void)client_error_from(route->ctx, &request, err);
    }
    remote_request_deinit(&request);
    return status;
}

/* Any of several shards may have the document. */
static enum command_status modify_anywhere(struct route *route, const struct ns *ns, const struct modify_shape *shape,
                                           const struct target *target, bool *again, struct err *err)
{
    const struct expr_env *env = &shape->env;
    struct single_query query = {shape->query, shape->sort, shape->collation, route->ctx->body};
    for (int tries = 0; tries < SINGLE_WRITE_TRIES_MAX; tries++) {
        struct modify_send send = {0};
        struct target place;
        enum single_found found = single_write_find(route, ns->coll, &query, target, &send.query, err);
        if (found == SINGLE_NONE)
            return modify_nothing(route->ctx, shape);
        *again = found == SINGLE_STALE;
        struct target_query exact = {.filter = send.query, .env = env};
        if (found != SINGLE_FOUND || !target_filter(&route->ctx->arena, route->routing->table, &exact, &place, err))
            return COMMAND_ERROR;
        if (place.count == 0)
            continue;
        send.shard = place.list->shard;
        enum command_status status = modify_run(route, &send, err);
        *again = send.again;
        if (status == COMMAND_ERROR || send.matched)
            return status;
    }
    err_set(err, ERR_WriteConflict, "the document kept changing while it was looked for");
    return COMMAND_ERROR;
}

static enum command_status modify_sharded(struct route *route, const struct ns *ns, bool *again, struct err *err)
{
    struct command_ctx *ctx = route->ctx;
    struct modify_shape shape;
    struct target target;
    if (!modify_parse(ctx->body, &shape, err) || !field_get_doc(ctx->body, "let", &shape.env.let, err))
        return COMMAND_ERROR;
    struct target_query wanted = {shape.query, shape.collation, &shape.env};
    if (!target_filter(&ctx->arena, route->routing->table, &wanted, &target, err))
        return COMMAND_ERROR;
    if (shape.upsert && !target.point) {
        err_set(err, ERR_ShardKeyNotFound,
                "Query for sharded findAndModify with upsert must contain the shard key and have the simple collation");
        return COMMAND_ERROR;
    }
    if (target.count == 0)
        return modify_nothing(ctx, &shape);
    if (target.count == 1) {
        struct modify_send send = {.shard = target.list->shard, .range = target.point ? NULL : target.list};
        enum command_status status = modify_run(route, &send, err);
        *again = send.again;
        return status;
    }
    return modify_anywhere(route, ns, &shape, &target, again, err);
}

static bool wants_database(const struct command_ctx *ctx)
{
    struct bval upsert;
    return bdoc_find(ctx->body, "upsert", &upsert) && bval_truthy(&upsert);
}

static enum command_status run_find_and_modify(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    struct route route;
    struct remote_request request;
    struct modify_shape shape;
    enum command_status status = COMMAND_ERROR;
    bool again;
    atomic_fetch_add(&router_of(ctx)->counters.command, 1);
    if (!command_ns(ctx, &ns, err) || !modify_parse(ctx->body, &shape, err))
        return COMMAND_ERROR;
    if (forward_is_config_db(ns.db)) {
        err_set(err, ERR_IllegalOperation, "findAndModify on %s is not allowed", ns.full);
        return COMMAND_ERROR;
    }
    struct forward_options options = {.create_database = wants_database(ctx)};
    route_init(&route, ctx, ns.full);
    do {
        again = false;
        switch (forward_primary(&route, &options, &request, err)) {
        case FORWARD_DONE:
            status = modify_reply(ctx, &request);
            remote_request_deinit(&request);
            break;
        case FORWARD_SHARDED:
            status = modify_sharded(&route, &ns, &again, err);
            break;
        case FORWARD_NO_DATABASE:
            status = modify_nothing(ctx, &shape);
            break;
        case FORWARD_FAILED:
            break;
        }
    } while (again);
    route_deinit(&route);
    return status;
}

static const struct command commands[] = {
    {"findAndModify", "findandmodify", COMMAND_WRITE | COMMAND_COLLECTION, run_find_and_modify},
};

const struct command_family commands_modify = COMMAND_FAMILY(commands);
