/* create, drop, dropDatabase, collMod, renameCollection, convertToCapped, cloneCollectionAsCapped. */
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

/* What the shards answered that changed: equal on all, so one stands for all. */
static void append_coll_mod_reply(struct command_ctx *ctx, const struct scatter *scatter)
{
    static const char *const own[] = {"ok", NULL};
    if (scatter->count > 0)
        request_append_body(&ctx->reply, scatter->requests[0].reply, own);
}

static bool is_owner(const struct scatter *scatter, const char *shard)
{
    for (size_t i = 0; i < scatter->count; i++) {
        if (strcmp(scatter->requests[i].set->name, shard) == 0)
            return true;
    }
    return false;
}

/* All owners; and the primary shard, which lists the collection even when it owns no part of it. */
static bool coll_mod_sharded(struct route *route, struct err *err)
{
    struct command_ctx *ctx = route->ctx;
    struct scatter scatter;
    bool sharded;
    bson_t body = BSON_INITIALIZER;
    request_append_body(&body, ctx->body, NULL);
    bool ok = ddl_owners(route, &body, 0, &sharded, &scatter, err) == SCATTER_DONE;
    if (ok && !is_owner(&scatter, route->routing->db.primary)) {
        struct remote_request request;
        ok = ddl_on_shard(ctx, route->routing->db.primary, &body, &request, err);
        remote_request_deinit(&request);
    }
    if (ok)
        append_coll_mod_reply(ctx, &scatter);
    scatter_deinit(&scatter);
    bson_destroy(&body);
    return ok;
}

static enum command_status run_coll_mod(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    struct route route;
    struct remote_request request;
    struct forward_options options = {.repeatable = true};
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
    case FORWARD_NO_DATABASE:
        err_set(err, ERR_NamespaceNotFound, "ns does not exist: %s", ns.full);
        break;
    case FORWARD_SHARDED:
        status = coll_mod_sharded(&route, err) ? COMMAND_OK : COMMAND_ERROR;
        break;
    case FORWARD_FAILED:
        break;
    }
    route_deinit(&route);
    return status;
}

/* A command that changes one collection, which must not be sharded. */
static enum command_status on_unsharded(struct command_ctx *ctx, const char *full, bool repeatable, struct err *err)
{
    struct route route;
    struct remote_request request;
    struct forward_options options = {.repeatable = repeatable};
    enum command_status status = COMMAND_ERROR;
    route_init(&route, ctx, full);
    switch (forward_primary(&route, &options, &request, err)) {
    case FORWARD_DONE:
        ddl_reply(ctx, &request);
        remote_request_deinit(&request);
        status = COMMAND_OK;
        break;
    case FORWARD_NO_DATABASE:
        err_set(err, ERR_NamespaceNotFound, "source collection %s does not exist", full);
        break;
    case FORWARD_SHARDED:
        err_set(err, ERR_IllegalOperation, "%s is not supported on a sharded collection: %s", ctx->command->name, full);
        break;
    case FORWARD_FAILED:
        break;
    }
    route_deinit(&route);
    return status;
}

static enum command_status run_capped(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    bool repeatable = strcmp(ctx->command->name, "convertToCapped") == 0;
    if (!refuse_config(ctx, err) || !command_ns(ctx, &ns, err))
        return COMMAND_ERROR;
    return on_unsharded(ctx, ns.full, repeatable, err);
}

/* ---- renameCollection ---- */

/* Both names live on one shard: the target's database is made there when it doesn't exist yet. */
static bool same_primary(struct route *from, struct route *to, struct err *err)
{
    if (!route_next(from, err) || !route_next(to, err))
        return false;
    if (!from->routing->exists)
        return err_set(err, ERR_NamespaceNotFound, "Source collection %s does not exist", from->ns);
    if (!to->routing->exists) {
        struct remote_request request;
        char db[COMMAND_DB_MAX + 1];
        bson_t body = BSON_INITIALIZER;
        snprintf(db, sizeof db, "%.*s", (int)strcspn(to->ns, "."), to->ns);
        BSON_APPEND_UTF8(&body, "_configsvrCreateDatabase", db);
        BSON_APPEND_UTF8(&body, "primaryShard", from->routing->db.primary);
        BSON_APPEND_UTF8(&body, "$db", "admin");
        bool made = ddl_on_config(to->ctx, &body, true, &request, err);
        remote_request_deinit(&request);
        bson_destroy(&body);
        routing_cache_stale(to->router->routing, to->ns, to->routing);
        if (!made || !route_next(to, err))
            return false;
    }
    if (to->routing->table)
        return err_set(err, ERR_IllegalOperation, "the target of a rename can't be a sharded collection: %s", to->ns);
    return (to->routing->exists && strcmp(from->routing->db.primary, to->routing->db.primary) == 0) ||
           err_set(err, ERR_IllegalOperation,
                   "renameCollection can't move a collection to a database whose primary shard is another one: %s",
                   to->ns);
}

static bool check_target(struct command_ctx *ctx, const char *from, const char *to, struct err *err)
{
    struct route source;
    struct route target;
    route_init(&source, ctx, from);
    route_init(&target, ctx, to);
    bool ok = same_primary(&source, &target, err);
    route_deinit(&target);
    route_deinit(&source);
    return ok;
}

static enum command_status run_rename(struct command_ctx *ctx, struct err *err)
{
    struct ns from;
    struct ns to;
    const char *name = NULL;
    uint32_t len;
    if (ctx->value.type != BT_STRING) {
        err_set(err, ERR_TypeMismatch, "'renameCollection' must be of type String");
        return COMMAND_ERROR;
    }
    if (!field_require(ctx->body, "to", err) || !field_get_str(ctx->body, "to", &name, err) ||
        !ns_parse(&from, bval_str(&ctx->value, &len), err) || !ns_parse(&to, name, err) ||
        !ns_check_write(&from, err) || !ns_check_write(&to, err))
        return COMMAND_ERROR;
    if (strcmp(from.full, to.full) == 0 || forward_is_config_db(from.db) || forward_is_config_db(to.db)) {
        err_set(err, ERR_IllegalOperation, "can't rename %s to %s", from.full, to.full);
        return COMMAND_ERROR;
    }
    return check_target(ctx, from.full, to.full, err) ? on_unsharded(ctx, from.full, false, err) : COMMAND_ERROR;
}

static enum command_status run_unsupported(struct command_ctx *ctx, struct err *err)
{
    err_set(err, ERR_CommandNotSupported, "%s is not supported by this version", ctx->command->name);
    return COMMAND_ERROR;
}

static const struct command commands[] = {
    {"create", NULL, COMMAND_WRITE | COMMAND_COLLECTION, run_create},
    {"drop", NULL, COMMAND_WRITE | COMMAND_COLLECTION, run_drop},
    {"dropDatabase", NULL, COMMAND_WRITE, run_drop_database},
    {"collMod", NULL, COMMAND_WRITE | COMMAND_COLLECTION, run_coll_mod},
    {"renameCollection", NULL, COMMAND_WRITE | COMMAND_ADMIN_ONLY, run_rename},
    {"convertToCapped", NULL, COMMAND_WRITE | COMMAND_COLLECTION, run_capped},
    {"cloneCollectionAsCapped", NULL, COMMAND_WRITE | COMMAND_COLLECTION, run_capped},
    {"mapReduce", NULL, 0, run_unsupported},
};

const struct command_family commands_ddl = COMMAND_FAMILY(commands);
