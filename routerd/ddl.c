#include "routerd/ddl.h"

#include "base/log.h"
#include "command/fields.h"
#include "routerd/client_error.h"
#include "routerd/request.h"

#include <string.h>

void ddl_internal_body(bson_t *body, const char *name, const char *ns)
{
    BSON_APPEND_UTF8(body, name, ns);
    BSON_APPEND_UTF8(body, "$db", "admin");
}

bool ddl_on_shard(struct command_ctx *ctx, const char *shard, const bson_t *body, struct remote_request *request,
                  struct err *err)
{
    struct remote_set *set;
    if (!registry_shard(router_of(ctx)->registry, shard, ctx->deadline_ms, &set, err)) {
        remote_request_init(request, registry_config(router_of(ctx)->registry), true);
        client_error_make(ctx, false, err);
        return false;
    }
    remote_request_init(request, set, true);
    remote_set_unref(set);
    bson_concat(&request->body, body);
    return remote_run_one(router_of(ctx), request, ctx->deadline_ms, NULL) || client_error_from(ctx, request, err);
}

bool ddl_on_config(struct command_ctx *ctx, const bson_t *body, bool repeatable, struct remote_request *request,
                   struct err *err)
{
    remote_request_init_config(request, router_of(ctx), repeatable);
    bson_concat(&request->body, body);
    return remote_run_one(router_of(ctx), request, ctx->deadline_ms, NULL) || client_error_from(ctx, request, err);
}

void ddl_refresh_shard(struct command_ctx *ctx, const char *shard, const char *ns)
{
    struct remote_request request;
    struct err err;
    bson_t body = BSON_INITIALIZER;
    ddl_internal_body(&body, "_shardsvrRefresh", ns);
    if (!ddl_on_shard(ctx, shard, &body, &request, &err))
        log_info("SHARDING", 8020, "A shard didn't refresh", LOG_STR("shard", shard), LOG_STR("ns", ns),
                 LOG_STR("error", err.msg));
    remote_request_deinit(&request);
    bson_destroy(&body);
}

/* Runs a read on the primary shard of the route's database. */
static bool ask_primary(struct route *route, const bson_t *body, struct remote_request *request, struct err *err)
{
    struct remote_set *set;
    if (!route_primary(route, &set, err)) {
        remote_request_init(request, registry_config(route->router->registry), true);
        return false;
    }
    remote_request_init(request, set, true);
    remote_set_unref(set);
    bson_concat(&request->body, body);
    remote_run(route->router, request, 1, route->ctx->deadline_ms);
    return request->ok;
}

/* The first document of a cursor reply, copied; data NULL: none. */
static struct bdoc first_of(struct arena *arena, const struct remote_request *request)
{
    struct cursor_reply reply;
    struct bval doc;
    struct err ignored;
    if (!cursor_reply_parse(request->reply, &reply, &ignored) || !bdoc_find(reply.batch, "0", &doc) ||
        doc.type != BT_DOCUMENT)
        return (struct bdoc){0};
    return (struct bdoc){arena_copy(arena, doc.data, doc.len), doc.len};
}

/* The collection's entry of listCollections, copied; data NULL: there is none. */
static bool ask_entry(struct route *route, const struct ns *ns, struct bdoc *out, struct err *err)
{
    struct remote_request request;
    bson_t body = BSON_INITIALIZER;
    bson_t filter;
    BSON_APPEND_INT32(&body, "listCollections", 1);
    BSON_APPEND_DOCUMENT_BEGIN(&body, "filter", &filter);
    BSON_APPEND_UTF8(&filter, "name", ns->coll);
    bson_append_document_end(&body, &filter);
    BSON_APPEND_UTF8(&body, "$db", ns->db);
    bool ok = ask_primary(route, &body, &request, err);
    if (!ok && request.err.code)
        (void)client_error_from(route->ctx, &request, err);
    *out = ok ? first_of(&route->ctx->arena, &request) : (struct bdoc){0};
    remote_request_deinit(&request);
    bson_destroy(&body);
    return ok;
}

static bool describe_collection(struct route *route, const struct ns *ns, struct ddl_collection *out, struct err *err)
{
    struct bdoc doc;
    struct bdoc info = {0};
    const uint8_t *uuid = NULL;
    bool ok = ask_entry(route, ns, &doc, err);
    if (!ok || !doc.data)
        return ok;
    if (!field_get_doc(doc, "info", &info, err) || !field_get_doc(doc, "options", &out->options, err) || !info.data ||
        !field_get_uuid(info, "uuid", &uuid, err) || !uuid)
        return err_set(err, ERR_FailedToParse, "the primary shard's description of %s can't be read", ns->full);
    out->exists = true;
    memcpy(out->uuid, uuid, sizeof out->uuid);
    return true;
}

static bool describe_indexes(struct route *route, const struct ns *ns, struct ddl_collection *out, struct err *err)
{
    struct remote_request request;
    struct cursor_reply reply;
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "listIndexes", ns->coll);
    BSON_APPEND_UTF8(&body, "$db", ns->db);
    bool ok = ask_primary(route, &body, &request, err);
    if (!ok && request.err.code)
        (void)client_error_from(route->ctx, &request, err);
    ok = ok && cursor_reply_parse(request.reply, &reply, err);
    if (ok) {
        out->indexes = reply.batch;
        out->indexes.data = arena_copy(&route->ctx->arena, reply.batch.data, reply.batch.len);
    }
    remote_request_deinit(&request);
    bson_destroy(&body);
    return ok;
}

static bool describe_content(struct route *route, const struct ns *ns, struct ddl_collection *out, struct err *err)
{
    struct remote_request request;
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "find", ns->coll);
    BSON_APPEND_INT32(&body, "limit", 1);
    BSON_APPEND_BOOL(&body, "singleBatch", true);
    BSON_APPEND_UTF8(&body, "$db", ns->db);
    bool ok = ask_primary(route, &body, &request, err);
    if (!ok && request.err.code)
        (void)client_error_from(route->ctx, &request, err);
    out->empty = ok && !first_of(&route->ctx->arena, &request).data;
    remote_request_deinit(&request);
    bson_destroy(&body);
    return ok;
}

bool ddl_describe_options(struct route *route, const struct ns *ns, struct ddl_collection *out, struct err *err)
{
    struct bdoc doc;
    *out = (struct ddl_collection){.empty = true};
    if (!ask_entry(route, ns, &doc, err))
        return false;
    out->exists = doc.data;
    return !doc.data || field_get_doc(doc, "options", &out->options, err);
}

bool ddl_describe(struct route *route, const struct ns *ns, struct ddl_collection *out, struct err *err)
{
    *out = (struct ddl_collection){.empty = true};
    if (!describe_collection(route, ns, out, err))
        return false;
    return !out->exists || (describe_indexes(route, ns, out, err) && describe_content(route, ns, out, err));
}

enum scatter_outcome ddl_owners(struct route *route, const bson_t *body, int32_t gone_code, bool *sharded,
                                struct scatter *out, struct err *err)
{
    struct scatter_command command = {.repeatable = true, .gone_code = gone_code};
    enum scatter_outcome outcome = SCATTER_STALE;
    *out = (struct scatter){0};
    *sharded = true;
    bson_copy_to(body, &command.body);
    while (outcome == SCATTER_STALE) {
        struct target target;
        struct key_range all = routing_all_keys();
        command.done_before |= scatter_any_ok(out);
        scatter_deinit(out);
        outcome = SCATTER_FAILED;
        if (!route->routing && !route_next(route, err))
            break;
        *sharded = route->routing->table;
        outcome = SCATTER_DONE;
        if (!*sharded)
            break;
        target_ranges(&route->ctx->arena, route->routing->table, &all, 1, &target);
        outcome = scatter_targets(route, &target, &command, out, err);
        if (outcome == SCATTER_STALE && !route_next(route, err))
            outcome = SCATTER_FAILED;
    }
    bson_destroy(&command.body);
    return outcome;
}

static bool drop_on_shard(struct command_ctx *ctx, const char *shard, const struct ns *ns, const uint8_t *uuid,
                          struct err *err)
{
    struct remote_request request;
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "_shardsvrDropCollection", ns->full);
    BSON_APPEND_BINARY(&body, "uuid", BSON_SUBTYPE_UUID, uuid, CLUSTER_UUID_BYTES);
    BSON_APPEND_UTF8(&body, "$db", "admin");
    bool ok = ddl_on_shard(ctx, shard, &body, &request, err);
    remote_request_deinit(&request);
    bson_destroy(&body);
    return ok;
}

static bool drop_on_config(struct command_ctx *ctx, const struct ns *ns, const uint8_t *uuid, struct err *err)
{
    struct remote_request request;
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "_configsvrDropCollection", ns->full);
    BSON_APPEND_BINARY(&body, "uuid", BSON_SUBTYPE_UUID, uuid, CLUSTER_UUID_BYTES);
    BSON_APPEND_UTF8(&body, "$db", "admin");
    bool ok = ddl_on_config(ctx, &body, true, &request, err);
    remote_request_deinit(&request);
    bson_destroy(&body);
    return ok;
}

bool ddl_drop_sharded(struct route *route, const struct ns *ns, struct err *err)
{
    struct command_ctx *ctx = route->ctx;
    struct routing *routing = routing_ref(route->routing);
    const struct routing_table *table = routing->table;
    const uint8_t *uuid = routing_table_collection(table)->uuid;
    size_t shards = routing_table_shard_count(table);
    bool ok = drop_on_shard(ctx, routing->db.primary, ns, uuid, err);
    for (size_t i = 0; i < shards && ok; i++)
        if (strcmp(routing_table_shard_name(table, i), routing->db.primary) != 0)
            ok = drop_on_shard(ctx, routing_table_shard_name(table, i), ns, uuid, err);
    ok = ok && drop_on_config(ctx, ns, uuid, err);
    /* Their ownership may have been read again between the two steps. */
    for (size_t i = 0; i < shards && ok; i++)
        ddl_refresh_shard(ctx, routing_table_shard_name(table, i), ns->full);
    routing_cache_stale(route->router->routing, ns->full, routing);
    routing_unref(routing);
    return ok;
}
