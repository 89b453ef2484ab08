/* addShard, listShards, removeShard, getShardMap, flushRouterConfig and the like. */
#include "base/clock.h"
#include "command/fields.h"
#include "routerd/client_error.h"
#include "routerd/commands.h"
#include "routerd/ddl.h"
#include "routerd/request.h"

#include <stdio.h>
#include <string.h>

enum { SHARD_CONTACT_MS = 10000 };

/* What is known about a set that is to become a shard. */
struct new_shard {
    char name[CLUSTER_SHARD_NAME_MAX + 1];
    char host[CLUSTER_HOST_MAX + 1];
    struct remote_set *set; /* not in the registry */
    bool known;             /* a shard of this name and set is there already */
};

static bool status_of(struct command_ctx *ctx, struct new_shard *shard, int64_t deadline_ms, struct err *err)
{
    struct remote_request request;
    const char *set = NULL;
    remote_request_init(&request, shard->set, true);
    BSON_APPEND_INT32(&request.body, "_sherdStatus", 1);
    BSON_APPEND_UTF8(&request.body, "$db", "admin");
    bool ok = remote_run_one(router_of(ctx), &request, deadline_ms, NULL);
    if (!ok)
        err_set(err, ERR_OperationFailed, "%s can't be reached: %s", shard->host, request.err.msg);
    else
        ok = field_get_str(request.reply, "set", &set, err);
    const char *wanted = shard->set->members.set;
    if (ok && wanted[0] && (!set || strcmp(set, wanted) != 0))
        ok = err_set(err, ERR_OperationFailed, "%s belongs to the set '%s', not '%s'", shard->host, set ? set : "",
                     wanted);
    if (ok && !shard->name[0])
        snprintf(shard->name, sizeof shard->name, "%s", set && set[0] ? set : shard->set->members.hosts[0]);
    remote_request_deinit(&request);
    return ok;
}

/* A set that brings databases which the cluster has would hide documents: refused. */
static bool check_databases(struct command_ctx *ctx, struct new_shard *shard, int64_t deadline_ms, struct err *err)
{
    struct remote_request request;
    struct bval databases, name;
    struct biter iter;
    struct belem elem;
    remote_request_init(&request, shard->set, true);
    BSON_APPEND_INT32(&request.body, "listDatabases", 1);
    BSON_APPEND_UTF8(&request.body, "$db", "admin");
    bool ok = remote_run_one(router_of(ctx), &request, deadline_ms, NULL);
    if (!ok)
        err_set(err, ERR_OperationFailed, "%s doesn't list its databases: %s", shard->host, request.err.msg);
    if (ok && bdoc_find(request.reply, "databases", &databases) && databases.type == BT_ARRAY) {
        biter_init(&iter, bval_doc(&databases));
        while (ok && biter_next(&iter, &elem)) {
            uint32_t len;
            if (elem.val.type != BT_DOCUMENT || !bdoc_find(bval_doc(&elem.val), "name", &name) ||
                name.type != BT_STRING || ns_is_reserved_db(bval_str(&name, &len)))
                continue;
            ok = err_set(err, ERR_OperationFailed,
                         "can't add shard '%s' because it holds the database '%s': only an empty set can be added",
                         shard->host, bval_str(&name, &len));
        }
    }
    remote_request_deinit(&request);
    return ok;
}

/* The cluster's id, as config.version has it. */
static bool cluster_id(struct command_ctx *ctx, bson_oid_t *out, struct err *err)
{
    struct remote_request request;
    struct cursor_reply reply;
    struct bval doc;
    const bson_oid_t *oid = NULL;
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "find", "version");
    BSON_APPEND_BOOL(&body, "singleBatch", true);
    BSON_APPEND_UTF8(&body, "$db", "config");
    bool ok = ddl_on_config(ctx, &body, true, &request, err) && cursor_reply_parse(request.reply, &reply, err);
    if (ok && (!bdoc_find(reply.batch, "0", &doc) || doc.type != BT_DOCUMENT))
        ok = err_set(err, ERR_NotYetInitialized, "the config service has no cluster id yet");
    ok = ok && field_get_oid(bval_doc(&doc), "clusterId", &oid, err);
    if (ok && !oid)
        ok = err_set(err, ERR_FailedToParse, "config.version has no clusterId");
    if (ok)
        *out = *oid;
    remote_request_deinit(&request);
    bson_destroy(&body);
    return ok;
}

static bool set_identity(struct command_ctx *ctx, struct new_shard *shard, int64_t deadline_ms, struct err *err)
{
    struct remote_request request;
    bson_oid_t id;
    if (!cluster_id(ctx, &id, err))
        return false;
    remote_request_init(&request, shard->set, true);
    BSON_APPEND_INT32(&request.body, "_shardsvrSetIdentity", 1);
    BSON_APPEND_UTF8(&request.body, "shardName", shard->name);
    BSON_APPEND_OID(&request.body, "clusterId", &id);
    BSON_APPEND_UTF8(&request.body, "configdb", router_of(ctx)->options.configdb);
    BSON_APPEND_UTF8(&request.body, "$db", "admin");
    bool ok = remote_run_one(router_of(ctx), &request, deadline_ms, NULL) || client_error_from(ctx, &request, err);
    remote_request_deinit(&request);
    return ok;
}

static bool commit_shard(struct command_ctx *ctx, const struct new_shard *shard, struct err *err)
{
    struct remote_request request;
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_INT32(&body, "_configsvrCommitAddShard", 1);
    BSON_APPEND_UTF8(&body, "name", shard->name);
    BSON_APPEND_UTF8(&body, "host", shard->host);
    BSON_APPEND_UTF8(&body, "$db", "admin");
    bool ok = ddl_on_config(ctx, &body, true, &request, err);
    remote_request_deinit(&request);
    bson_destroy(&body);
    return ok;
}

/* Whether the cluster has this shard already: adding it again is fine. */
static bool find_known(struct command_ctx *ctx, struct new_shard *shard, struct err *err)
{
    struct remote_set *set;
    if (!registry_refresh(router_of(ctx)->registry, ctx->deadline_ms, err)) {
        client_error_make(ctx, false, err);
        return false;
    }
    struct err ignored;
    if (registry_shard(router_of(ctx)->registry, shard->name, ctx->deadline_ms, &set, &ignored)) {
        shard->known = strcmp(set->members.set, shard->set->members.set) == 0;
        remote_set_unref(set);
    }
    return true;
}

static bool add_shard(struct command_ctx *ctx, struct new_shard *shard, struct err *err)
{
    int64_t limit_ms = deadline_after_ms(SHARD_CONTACT_MS);
    int64_t deadline_ms = ctx->deadline_ms < limit_ms ? ctx->deadline_ms : limit_ms;
    return status_of(ctx, shard, deadline_ms, err) && find_known(ctx, shard, err) &&
           (shard->known || check_databases(ctx, shard, deadline_ms, err)) &&
           set_identity(ctx, shard, deadline_ms, err) && commit_shard(ctx, shard, err) &&
           registry_refresh(router_of(ctx)->registry, ctx->deadline_ms, err);
}

static enum command_status run_add_shard(struct command_ctx *ctx, struct err *err)
{
    struct new_shard shard = {0};
    const char *host = NULL;
    const char *name = NULL;
    static const char *const known[] = {"name", "maxSize", NULL};
    if (!fields_check_arguments(ctx->body, ctx->name, known, err) || !field_get_str(ctx->body, ctx->name, &host, err) ||
        !field_get_str(ctx->body, "name", &name, err))
        return COMMAND_ERROR;
    if (!host || !remote_set_new("new", host, &shard.set, err)) {
        if (!host)
            err_set(err, ERR_FailedToParse, "addShard takes \"set/host:port,host:port\"");
        return COMMAND_ERROR;
    }
    snprintf(shard.host, sizeof shard.host, "%s", host);
    snprintf(shard.name, sizeof shard.name, "%s", name ? name : "");
    bool ok = add_shard(ctx, &shard, err);
    if (ok)
        BSON_APPEND_UTF8(&ctx->reply, "shardAdded", shard.name);
    remote_set_unref(shard.set);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

static enum command_status run_list_shards(struct command_ctx *ctx, struct err *err)
{
    struct remote_request request;
    struct cursor_reply reply;
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "find", "shards");
    BSON_APPEND_INT32(&body, "batchSize", REGISTRY_MAX_SHARDS);
    BSON_APPEND_BOOL(&body, "singleBatch", true);
    BSON_APPEND_UTF8(&body, "$db", "config");
    bool ok = ddl_on_config(ctx, &body, true, &request, err) && cursor_reply_parse(request.reply, &reply, err);
    if (ok) {
        bson_t shards;
        bdoc_to_bson(reply.batch, &shards);
        BSON_APPEND_ARRAY(&ctx->reply, "shards", &shards);
    }
    remote_request_deinit(&request);
    bson_destroy(&body);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

static enum command_status run_get_shard_map(struct command_ctx *ctx, struct err *err)
{
    struct set_list list;
    bson_t map, hosts;
    if (!registry_all(router_of(ctx)->registry, ctx->deadline_ms, &list, err)) {
        client_error_make(ctx, false, err);
        return COMMAND_ERROR;
    }
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "map", &map);
    for (size_t i = 0; i < list.count; i++)
        BSON_APPEND_UTF8(&map, list.sets[i]->name, list.sets[i]->host);
    BSON_APPEND_UTF8(&map, "config", router_of(ctx)->options.configdb);
    bson_append_document_end(&ctx->reply, &map);
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "hosts", &hosts);
    for (size_t i = 0; i < list.count; i++)
        for (size_t k = 0; k < list.sets[i]->members.count; k++)
            BSON_APPEND_UTF8(&hosts, list.sets[i]->members.hosts[k], list.sets[i]->name);
    bson_append_document_end(&ctx->reply, &hosts);
    set_list_deinit(&list);
    return COMMAND_OK;
}

static enum command_status run_flush_router_config(struct command_ctx *ctx, struct err *err)
{
    uint32_t len;
    bool named = ctx->value.type == BT_STRING;
    routing_cache_flush(router_of(ctx)->routing, named ? bval_str(&ctx->value, &len) : NULL);
    if (!registry_refresh(router_of(ctx)->registry, ctx->deadline_ms, err)) {
        client_error_make(ctx, false, err);
        return COMMAND_ERROR;
    }
    BSON_APPEND_BOOL(&ctx->reply, "flushed", true);
    return COMMAND_OK;
}

static enum command_status run_get_shard_version(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    struct route route;
    static const char *const known[] = {"fullMetadata", NULL};
    if (!fields_check_arguments(ctx->body, ctx->name, known, err))
        return COMMAND_ERROR;
    if (!ctx->value.data || ctx->value.type != BT_STRING) {
        err_set(err, ERR_TypeMismatch, "getShardVersion takes a namespace");
        return COMMAND_ERROR;
    }
    uint32_t len;
    if (!ns_parse(&ns, bval_str(&ctx->value, &len), err))
        return COMMAND_ERROR;
    route_init(&route, ctx, ns.full);
    bool ok = route_next(&route, err);
    if (ok && !route.routing->table)
        ok = err_set(err, ERR_NamespaceNotSharded, "Collection %s is not sharded.", ns.full);
    if (ok) {
        const struct chunk_version *version = routing_table_version(route.routing->table);
        uint64_t stamp = chunk_version_to_timestamp(version);
        BSON_APPEND_TIMESTAMP(&ctx->reply, "version", (uint32_t)(stamp >> 32), (uint32_t)stamp);
        BSON_APPEND_OID(&ctx->reply, "versionEpoch", &version->epoch);
    }
    route_deinit(&route);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

static const struct command commands[] = {
    {"addShard", NULL, COMMAND_ADMIN_ONLY, run_add_shard},
    {"listShards", NULL, COMMAND_ADMIN_ONLY, run_list_shards},
    {"getShardMap", NULL, COMMAND_ADMIN_ONLY, run_get_shard_map},
    {"flushRouterConfig", NULL, COMMAND_ADMIN_ONLY, run_flush_router_config},
    {"getShardVersion", NULL, COMMAND_ADMIN_ONLY, run_get_shard_version},
};

const struct command_family commands_shards = COMMAND_FAMILY(commands);
