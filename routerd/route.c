#include "routerd/route.h"

#include "base/clock.h"
#include "base/mem.h"
#include "routerd/client_error.h"
#include "routerd/registry.h"

#include <stdio.h>
#include <string.h>

enum { ROUTE_PAUSE_MAX_MS = 100 };

void route_init(struct route *route, struct command_ctx *ctx, const char *ns)
{
    *route = (struct route){.ctx = ctx, .router = router_of(ctx), .ns = ns};
}

void route_deinit(struct route *route)
{
    routing_unref(route->routing);
    route->routing = NULL;
}

bool route_next(struct route *route, struct err *err)
{
    routing_unref(route->routing);
    route->routing = NULL;
    route->counted = false;
    if (route->stale_count > ROUTER_STALE_RETRIES_MAX) {
        (void)err_set(err, ERR_HostUnreachable, "the routing table of %s changed too often", route->ns);
        client_error_make(route->ctx, false, err);
        return false;
    }
    if (route->stale_count > 1) {
        int64_t pause_ms = INT64_C(1) << (route->stale_count < 7 ? route->stale_count : 7);
        clock_sleep_ms(pause_ms < ROUTE_PAUSE_MAX_MS ? pause_ms : ROUTE_PAUSE_MAX_MS);
    }
    if (!command_ctx_check_deadline(route->ctx, err))
        return false;
    int64_t hold_ms = deadline_after_ms(ROUTER_HOLD_MS);
    int64_t deadline_ms = route->ctx->deadline_ms < hold_ms ? route->ctx->deadline_ms : hold_ms;
    if (routing_cache_get(route->router->routing, route->ns, deadline_ms, &route->routing, err))
        return true;
    client_error_make(route->ctx, false, err);
    return false;
}

bool route_is_stale(struct route *route, const struct err *failure)
{
    if (!client_error_is_stale(failure->code))
        return false;
    routing_cache_stale(route->router->routing, route->ns, route->routing);
    route->stale_count += !route->counted;
    route->counted = true;
    return true;
}

bool route_is_busy(struct route *route, const struct err *failure)
{
    if (failure->code != ERR_LockBusy && !(err_categories(failure->code) & ERR_CAT_NOT_PRIMARY))
        return false;
    route->stale_count += !route->counted;
    route->counted = true;
    return true;
}

/* The shard with the least data, as the shards count it; "" when they can't be asked: the config service chooses. */
static void emptiest_shard(struct route *route, int64_t deadline_ms, char name[CLUSTER_SHARD_NAME_MAX + 1])
{
    struct set_list list;
    struct err err;
    name[0] = 0;
    if (!registry_all(route->router->registry, deadline_ms, &list, &err))
        return;
    struct remote_request *requests = remote_requests_new(list.count + 1);
    for (size_t i = 0; i < list.count; i++) {
        remote_request_init(&requests[i], list.sets[i], true);
        BSON_APPEND_INT32(&requests[i].body, "listDatabases", 1);
        BSON_APPEND_UTF8(&requests[i].body, "$db", "admin");
    }
    remote_run(route->router, requests, list.count, deadline_ms);
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < list.count; i++) {
        struct bval size;
        int64_t bytes;
        if (requests[i].ok && bdoc_find(requests[i].reply, "totalSize", &size) && bval_to_i64(&size, &bytes) &&
            bytes < least) {
            least = bytes;
            snprintf(name, CLUSTER_SHARD_NAME_MAX + 1, "%s", list.sets[i]->name);
        }
        remote_request_deinit(&requests[i]);
    }
    mem_free(requests);
    set_list_deinit(&list);
}

bool route_create_database(struct route *route, struct err *err)
{
    enum { CREATE_PROBE_MS = 2000 };
    if (route->routing->exists)
        return true;
    char db[CLUSTER_DB_NAME_MAX + 1];
    snprintf(db, sizeof db, "%.*s", (int)strcspn(route->ns, "."), route->ns);
    char primary[CLUSTER_SHARD_NAME_MAX + 1];
    int64_t limit_ms = deadline_after_ms(CREATE_PROBE_MS);
    emptiest_shard(route, route->ctx->deadline_ms < limit_ms ? route->ctx->deadline_ms : limit_ms, primary);
    struct remote_request request;
    remote_request_init_config(&request, route->router, true);
    BSON_APPEND_UTF8(&request.body, "_configsvrCreateDatabase", db);
    if (primary[0])
        BSON_APPEND_UTF8(&request.body, "preferredShard", primary);
    BSON_APPEND_UTF8(&request.body, "$db", "admin");
    bool ok = remote_run_one(route->router, &request, route->ctx->deadline_ms, NULL);
    if (!ok)
        client_error_from(route->ctx, &request, err);
    remote_request_deinit(&request);
    routing_cache_stale(route->router->routing, route->ns, route->routing);
    return ok && route_next(route, err);
}

bool route_primary(struct route *route, struct remote_set **out, struct err *err)
{
    if (registry_shard(route->router->registry, route->routing->db.primary, route->ctx->deadline_ms, out, err))
        return true;
    client_error_make(route->ctx, false, err);
    return false;
}

bool route_shard(struct route *route, size_t shard, struct remote_set **out, struct err *err)
{
    const char *name = routing_table_shard_name(route->routing->table, shard);
    if (registry_shard(route->router->registry, name, route->ctx->deadline_ms, out, err))
        return true;
    client_error_make(route->ctx, false, err);
    return false;
}

void route_append_db_version(const struct route *route, bson_t *body)
{
    struct op_version version = {.kind = OP_VERSION_DATABASE};
    memcpy(version.db_uuid, route->routing->db.uuid, CLUSTER_UUID_BYTES);
    op_version_append(body, &version);
}

static struct op_version collection_version(const struct route *route)
{
    struct op_version version = {.kind = OP_VERSION_COLLECTION};
    version.version = *routing_table_version(route->routing->table);
    memcpy(version.uuid, routing_table_collection(route->routing->table)->uuid, CLUSTER_UUID_BYTES);
    return version;
}

void route_append_key_version(const struct route *route, bson_t *body)
{
    struct op_version version = collection_version(route);
    op_version_append(body, &version);
}

static void append_bytes(bson_t *to, const char *key, struct key_bytes bytes)
{
    static const uint8_t none[1];
    bson_append_binary(to, key, 1, BSON_SUBTYPE_BINARY, bytes.data ? bytes.data : none, bytes.len);
}

void route_append_range_version(const struct route *route, bson_t *body, const struct key_range *ranges, size_t count)
{
    struct op_version version = collection_version(route);
    bson_t array = BSON_INITIALIZER;
    for (size_t i = 0; i < count; i++) {
        char number[16];
        const char *key;
        bson_t pair;
        size_t len = bson_uint32_to_string((uint32_t)i, &key, number, sizeof number);
        bson_append_array_begin(&array, key, (int)len, &pair);
        append_bytes(&pair, "0", ranges[i].min);
        append_bytes(&pair, "1", ranges[i].max);
        bson_append_array_end(&array, &pair);
    }
    version.ranges = bdoc_of(&array);
    op_version_append(body, &version);
    bson_destroy(&array);
}
