/* enableSharding, shardCollection, split. */
#include "base/clock.h"
#include "base/random.h"
#include "command/fields.h"
#include "routerd/client_error.h"
#include "routerd/commands.h"
#include "routerd/ddl.h"
#include "routerd/shard_collection.h"
#include "routerd/split_point.h"

#include <string.h>

static enum command_status run_enable_sharding(struct command_ctx *ctx, struct err *err)
{
    const char *db = NULL;
    const char *primary = NULL;
    static const char *const known[] = {"primaryShard", NULL};
    if (!fields_check_arguments(ctx->body, ctx->name, known, err) || !field_get_str(ctx->body, ctx->name, &db, err) ||
        !field_get_str(ctx->body, "primaryShard", &primary, err))
        return COMMAND_ERROR;
    if (!db || !ns_check_db(db, err)) {
        if (!db)
            err_set(err, ERR_InvalidNamespace, "enableSharding takes a database's name");
        return COMMAND_ERROR;
    }
    struct route route;
    struct remote_request request;
    bool ok = true;
    if (primary) {
        bson_t body = BSON_INITIALIZER;
        BSON_APPEND_UTF8(&body, "_configsvrCreateDatabase", db);
        BSON_APPEND_UTF8(&body, "primaryShard", primary);
        BSON_APPEND_UTF8(&body, "$db", "admin");
        ok = ddl_on_config(ctx, &body, true, &request, err);
        remote_request_deinit(&request);
        bson_destroy(&body);
    }
    route_init(&route, ctx, db);
    ok = ok && route_next(&route, err) && route_create_database(&route, err);
    route_deinit(&route);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

static enum command_status run_shard_collection(struct command_ctx *ctx, struct err *err)
{
    enum { INITIAL_CHUNKS_MAX = 1000000 };
    struct shard_collection_request request = {0};
    struct bdoc collation = {0};
    const char *name = NULL;
    bool presplit_zones = false;
    static const char *const known[] = {"key",       "unique",     "numInitialChunks",       "presplitHashedZones",
                                        "collation", "timeseries", "enforceUniquenessCheck", "implicitlyCreateIndex",
                                        NULL};
    if (!fields_check_arguments(ctx->body, ctx->name, known, err) || !field_get_str(ctx->body, ctx->name, &name, err) ||
        !field_get_bool(ctx->body, "presplitHashedZones", &presplit_zones, err) ||
        !field_require(ctx->body, "key", err) || !field_get_doc(ctx->body, "key", &request.key, err) ||
        !field_get_bool(ctx->body, "unique", &request.unique, err) ||
        !field_get_doc(ctx->body, "collation", &collation, err) ||
        !field_get_i64_in(ctx->body, "numInitialChunks", 0, INITIAL_CHUNKS_MAX, &request.initial_chunks, err))
        return COMMAND_ERROR;
    if (!name || !ns_parse(&request.ns, name, err)) {
        if (!name)
            err_set(err, ERR_InvalidNamespace, "shardCollection takes a namespace");
        return COMMAND_ERROR;
    }
    if (presplit_zones || bdoc_has(ctx->body, "timeseries")) {
        err_set(err, ERR_NotImplemented, "zones and time series are not supported by this version");
        return COMMAND_ERROR;
    }
    request.collation = collation;
    if (!shard_collection_run(ctx, &request, err))
        return COMMAND_ERROR;
    BSON_APPEND_UTF8(&ctx->reply, "collectionsharded", request.ns.full);
    return COMMAND_OK;
}

static bool commit_split(struct route *route, const struct chunk *chunk, struct bdoc point, struct err *err)
{
    struct remote_request request;
    uint8_t op[CLUSTER_UUID_BYTES];
    bson_t body = BSON_INITIALIZER;
    bson_t points;
    struct bval value;
    random_uuid(op);
    BSON_APPEND_UTF8(&body, "_configsvrSplit", route->ns);
    BSON_APPEND_OID(&body, "epoch", &routing_table_version(route->routing->table)->epoch);
    value = bval_from_doc(chunk->min);
    bval_append(&body, "min", -1, &value);
    value = bval_from_doc(chunk->max);
    bval_append(&body, "max", -1, &value);
    BSON_APPEND_ARRAY_BEGIN(&body, "points", &points);
    value = bval_from_doc(point);
    bval_append(&points, "0", -1, &value);
    bson_append_array_end(&body, &points);
    BSON_APPEND_BINARY(&body, "op", BSON_SUBTYPE_UUID, op, sizeof op);
    BSON_APPEND_UTF8(&body, "$db", "admin");
    bool ok = ddl_on_config(route->ctx, &body, true, &request, err);
    remote_request_deinit(&request);
    bson_destroy(&body);
    routing_cache_stale(route->router->routing, route->ns, route->routing);
    if (ok)
        ddl_refresh_shard(route->ctx, chunk->shard, route->ns);
    return ok;
}

static bool split_parse(struct command_ctx *ctx, struct split_request *out, struct err *err)
{
    const char *name = NULL;
    *out = (struct split_request){0};
    if (!field_get_str(ctx->body, ctx->name, &name, err) || !field_get_doc(ctx->body, "find", &out->find, err) ||
        !field_get_doc(ctx->body, "middle", &out->middle, err) ||
        !field_get_array(ctx->body, "bounds", &out->bounds, err))
        return false;
    if (!name)
        return err_set(err, ERR_InvalidNamespace, "split takes a namespace");
    int given = (out->find.data != NULL) + (out->middle.data != NULL) + (out->bounds.data != NULL);
    if (given != 1)
        return err_set(err, ERR_InvalidOptions, "split takes exactly one of find, middle and bounds");
    return ns_parse(&out->ns, name, err);
}

static enum command_status run_split(struct command_ctx *ctx, struct err *err)
{
    struct split_request request;
    struct route route;
    const struct chunk *chunk;
    struct bdoc point;
    static const char *const known[] = {"find", "middle", "bounds", NULL};
    if (!fields_check_arguments(ctx->body, ctx->name, known, err) || !split_parse(ctx, &request, err))
        return COMMAND_ERROR;
    routing_cache_flush(router_of(ctx)->routing, request.ns.full);
    route_init(&route, ctx, request.ns.full);
    bool ok = route_next(&route, err);
    if (ok && !route.routing->table)
        ok = err_set(err, ERR_NamespaceNotSharded, "ns %s is not sharded", request.ns.full);
    ok = ok && split_point_find(&route, &request, &chunk, &point, err) && commit_split(&route, chunk, point, err);
    route_deinit(&route);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

static const struct command commands[] = {
    {"enableSharding", NULL, COMMAND_ADMIN_ONLY, run_enable_sharding},
    {"shardCollection", NULL, COMMAND_ADMIN_ONLY, run_shard_collection},
    {"split", NULL, COMMAND_ADMIN_ONLY, run_split},
};

const struct command_family commands_sharding = COMMAND_FAMILY(commands);
