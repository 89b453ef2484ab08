/* create, drop, dropDatabase, collMod; renameCollection is refused. */
#include "base/clock.h"
#include "command/fields.h"
#include "routerd/client_error.h"
#include "routerd/commands.h"
#include "routerd/ddl.h"
#include "routerd/request.h"
#include "routerd/write_concern.h"

#include <stdio.h>
#include <string.h>

enum { DDL_MAX_COLLECTIONS = 10000 };

static bool refuse_config(const struct command_ctx *ctx, struct err *err)
{
    return !forward_is_config_db(ctx->db) ||
           err_set(err, ERR_IllegalOperation, "%s on database %s is not allowed", ctx->command->name, ctx->db);
}

/* Copies a shard's reply, so that a writeConcernError can be added. */
static void ddl_reply(struct command_ctx *ctx, const struct remote_request *request)
{
    static const char *const own[] = {"ok", NULL};
    request_append_body(&ctx->reply, request->reply, own);
    write_concern_append_error(ctx, request->set->members.count);
}

static enum command_status run_create(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    struct route route;
    struct remote_request request;
    struct forward_options options = {.create_database = true, .even_sharded = true};
    enum command_status status = COMMAND_ERROR;
    if (!refuse_config(ctx, err) || !command_ns(ctx, &ns, err))
        return COMMAND_ERROR;
    route_init(&route, ctx, ns.full);
    if (forward_primary(&route, &options, &request, err) == FORWARD_DONE) {
        ddl_reply(ctx, &request);
        remote_request_deinit(&request);
        status = COMMAND_OK;
    }
    route_deinit(&route);
    return status;
}

static enum command_status drop_sharded(struct route *route, const struct ns *ns, struct err *err)
{
    struct command_ctx *ctx = route->ctx;
    if (!ddl_drop_sharded(route, ns, err))
        return COMMAND_ERROR;
    BSON_APPEND_INT32(&ctx->reply, "nIndexesWas", 1);
    BSON_APPEND_UTF8(&ctx->reply, "ns", ns->full);
    return COMMAND_OK;
}

static enum command_status run_drop(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    struct route route;
    struct remote_request request;
    struct forward_options options = {0};
    enum command_status status = COMMAND_ERROR;
    if (!refuse_config(ctx, err) || !command_ns(ctx, &ns, err))
        return COMMAND_ERROR;
    route_init(&route, ctx, ns.full);
    switch (forward_primary(&route, &options, &request, err)) {
    case FORWARD_DONE:
        ddl_reply(ctx, &request);
        remote_request_deinit(&request);
        status = COMMAND_OK;
        break;
    case FORWARD_SHARDED:
        status = drop_sharded(&route, &ns, err);
        break;
    case FORWARD_NO_DATABASE: /* as since MongoDB 7: nothing to drop is no error */
        status = COMMAND_OK;
        break;
    case FORWARD_FAILED:
        break;
    }
    route_deinit(&route);
    return status;
}

/* Drops what is sharded in a database, one collection after the other. */
static bool drop_sharded_of(struct command_ctx *ctx, struct bdoc batch, struct err *err)
{
    struct biter iter;
    struct belem elem;
    bool ok = true;
    biter_init(&iter, batch);
    while (ok && biter_next(&iter, &elem)) {
        struct bval id;
        struct ns ns;
        struct route route;
        uint32_t len;
        if (elem.val.type != BT_DOCUMENT || !bdoc_find(bval_doc(&elem.val), "_id", &id) || id.type != BT_STRING)
            continue;
        if (!ns_parse(&ns, bval_str(&id, &len), err))
            return false;
        routing_cache_flush(router_of(ctx)->routing, ns.full);
        route_init(&route, ctx, ns.full);
        ok = route_next(&route, err) && (!route.routing->table || ddl_drop_sharded(&route, &ns, err));
        route_deinit(&route);
    }
    return ok;
}

static bool drop_all_sharded(struct command_ctx *ctx, struct err *err)
{
    struct remote_request request;
    struct cursor_reply reply;
    char low[COMMAND_DB_MAX + 2], high[COMMAND_DB_MAX + 2];
    bson_t body = BSON_INITIALIZER;
    bson_t filter, range;
    /* Names "db.x": '/' is the character after the dot. */
    snprintf(low, sizeof low, "%s.", ctx->db);
    snprintf(high, sizeof high, "%s/", ctx->db);
    BSON_APPEND_UTF8(&body, "find", "collections");
    BSON_APPEND_DOCUMENT_BEGIN(&body, "filter", &filter);
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "_id", &range);
    BSON_APPEND_UTF8(&range, "$gte", low);
    BSON_APPEND_UTF8(&range, "$lt", high);
    bson_append_document_end(&filter, &range);
    bson_append_document_end(&body, &filter);
    BSON_APPEND_INT32(&body, "batchSize", DDL_MAX_COLLECTIONS);
    BSON_APPEND_BOOL(&body, "singleBatch", true);
    BSON_APPEND_UTF8(&body, "$db", "config");
    bool ok = ddl_on_config(ctx, &body, true, &request, err) && cursor_reply_parse(request.reply, &reply, err) &&
              drop_sharded_of(ctx, reply.batch, err);
    remote_request_deinit(&request);
    bson_destroy(&body);
    return ok;
}

/* dropDatabase on every shard: one may hold collections whose drop was not finished. */
static bool drop_on_all_shards(struct command_ctx *ctx, struct err *err)
{
    struct set_list list;
    struct scatter scatter;
    struct scatter_command command = {.repeatable = true};
    if (!registry_all(router_of(ctx)->registry, ctx->deadline_ms, &list, err)) {
        client_error_make(ctx, false, err);
        return false;
    }
    bson_init(&command.body);
    BSON_APPEND_INT32(&command.body, "dropDatabase", 1);
    BSON_APPEND_UTF8(&command.body, "$db", ctx->db);
    bool ok = scatter_sets(ctx, &list, &command, &scatter, err) == SCATTER_DONE;
    scatter_deinit(&scatter);
    bson_destroy(&command.body);
    set_list_deinit(&list);
    return ok;
}

static enum command_status run_drop_database(struct command_ctx *ctx, struct err *err)
{
    struct remote_request request;
    bson_t body = BSON_INITIALIZER;
    static const char *const known[] = {NULL};
    if (!fields_check_arguments(ctx->body, ctx->name, known, err) || !refuse_config(ctx, err) ||
        !drop_all_sharded(ctx, err) || !drop_on_all_shards(ctx, err)) {
        bson_destroy(&body);
        return COMMAND_ERROR;
    }
    ddl_internal_body(&body, "_configsvrDropDatabase", ctx->db);
    bool ok = ddl_on_config(ctx, &body, true, &request, err);
    routing_cache_flush(router_of(ctx)->routing, ctx->db);
    if (ok) {
        BSON_APPEND_UTF8(&ctx->reply, "dropped", ctx->db);
        write_concern_append_error(ctx, request.set->members.count);
    }
    remote_request_deinit(&request);
    bson_destroy(&body);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

static enum command_status run_coll_mod(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    struct route route;
    struct remote_request request;
    struct forward_options options = {0};
    enum command_status status = COMMAND_ERROR;
    if (!refuse_config(ctx, err) || !command_ns(ctx, &ns, err))
        return COMMAND_ERROR;
    route_init(&route, ctx, ns.full);
    enum forward_outcome outcome = forward_primary(&route, &options, &request, err);
    if (outcome == FORWARD_DONE) {
        ddl_reply(ctx, &request);
        remote_request_deinit(&request);
        status = COMMAND_OK;
    } else if (outcome == FORWARD_NO_DATABASE) {
        err_set(err, ERR_NamespaceNotFound, "ns does not exist: %s", ns.full);
    } else if (outcome == FORWARD_SHARDED) {
        bson_t body = BSON_INITIALIZER;
        struct scatter scatter;
        bool sharded;
        request_append_body(&body, ctx->body, NULL);
        if (ddl_owners(&route, &body, 0, &sharded, &scatter, err) == SCATTER_DONE)
            status = COMMAND_OK;
        scatter_deinit(&scatter);
        bson_destroy(&body);
    }
    route_deinit(&route);
    return status;
}

static enum command_status run_rename(struct command_ctx *ctx, struct err *err)
{
    err_set(err, ERR_CommandNotSupported, "%s is not supported by this version", ctx->command->name);
    return COMMAND_ERROR;
}

static const struct command commands[] = {
    {"create", NULL, COMMAND_WRITE | COMMAND_COLLECTION, run_create},
    {"drop", NULL, COMMAND_WRITE | COMMAND_COLLECTION, run_drop},
    {"dropDatabase", NULL, COMMAND_WRITE, run_drop_database},
    {"collMod", NULL, COMMAND_WRITE | COMMAND_COLLECTION, run_coll_mod},
    {"renameCollection", NULL, COMMAND_WRITE, run_rename},
    {"convertToCapped", NULL, COMMAND_WRITE, run_rename},
    {"cloneCollectionAsCapped", NULL, COMMAND_WRITE, run_rename},
    {"explain", NULL, 0, run_rename},
    {"mapReduce", NULL, 0, run_rename},
};

const struct command_family commands_ddl = COMMAND_FAMILY(commands);
