/* What routers tell a shard beside the document commands. All may be repeated. */
#include "base/clock.h"
#include "base/mem.h"
#include "command/context.h"
#include "command/fields.h"
#include "command/namespace.h"
#include "document/ddl.h"
#include "document/engine.h"
#include "document/read_txn.h"
#include "document/views.h"
#include "shardd/ownership_apply.h"
#include "shardd/shard.h"
#include "shardd/split_points.h"

#include <string.h>

static struct shard *shard_of(const struct command_ctx *ctx)
{
    return node_plugin(node_of(ctx));
}

/* The command's value: a whole namespace. */
static bool value_ns(const struct command_ctx *ctx, struct ns *out, struct err *err)
{
    uint32_t len;
    if (ctx->value.type != BT_STRING)
        return err_set(err, ERR_TypeMismatch, "%s takes a namespace", ctx->name);
    return ns_parse(out, bval_str(&ctx->value, &len), err);
}

/* ---- proposing one of the shard's own kinds, parked ---- */

static void proposed(void *arg, const struct document_result *result)
{
    struct command_ctx *ctx = arg;
    bool ok = result->outcome == DOCUMENT_APPLIED && result->ok;
    command_finish(ctx, ok ? NULL : &result->err);
}

static enum command_status propose(struct command_ctx *ctx, uint8_t kind, bson_t *payload)
{
    struct node_command command = {.kind = kind, .payload = bson_get_data(payload), .len = payload->len};
    node_propose(node_of(ctx), &command, proposed, ctx);
    bson_destroy(payload);
    return COMMAND_PARKED;
}

/* ---- the commands ---- */

static void identity_proposed(void *arg, const struct document_result *result)
{
    struct command_ctx *ctx = arg;
    bool ok = result->outcome == DOCUMENT_APPLIED && result->ok;
    const char *name = "";
    if (ok && field_get_str(ctx->body, "shardName", &name, NULL))
        document_engine_set_member_name(document_engine_of(ctx), name);
    command_finish(ctx, ok ? NULL : &result->err);
}

static enum command_status set_identity_run(struct command_ctx *ctx, struct err *err)
{
    const char *name = NULL;
    const char *configdb = NULL;
    const bson_oid_t *cluster_id = NULL;
    struct host_list hosts;
    if (!field_require(ctx->body, "shardName", err) || !field_get_str(ctx->body, "shardName", &name, err) ||
        !field_require(ctx->body, "clusterId", err) || !field_get_oid(ctx->body, "clusterId", &cluster_id, err) ||
        !field_require(ctx->body, "configdb", err) || !field_get_str(ctx->body, "configdb", &configdb, err) ||
        !host_list_parse(configdb, &hosts, err))
        return COMMAND_ERROR;
    if (name[0] == '\0' || strlen(name) > CLUSTER_SHARD_NAME_MAX || strlen(configdb) > CLUSTER_HOST_MAX) {
        err_set(err, ERR_BadValue, "the shard's name or configdb is empty or too long");
        return COMMAND_ERROR;
    }
    bson_t payload = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&payload, "shardName", name);
    BSON_APPEND_OID(&payload, "clusterId", cluster_id);
    BSON_APPEND_UTF8(&payload, "configdb", configdb);
    struct node_command command = {.kind = SHARD_KIND_IDENTITY, .payload = bson_get_data(&payload), .len = payload.len};
    node_propose(node_of(ctx), &command, identity_proposed, ctx);
    bson_destroy(&payload);
    return COMMAND_PARKED;
}

static enum command_status prepare_run(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    const uint8_t *uuid = NULL;
    const uint8_t *op = NULL;
    if (!value_ns(ctx, &ns, err) || !field_require(ctx->body, "uuid", err) ||
        !field_get_uuid(ctx->body, "uuid", &uuid, err) || !field_require(ctx->body, "op", err) ||
        !field_get_uuid(ctx->body, "op", &op, err))
        return COMMAND_ERROR;
    bson_t payload = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&payload, "ns", ns.full);
    bson_append_binary(&payload, "uuid", -1, BSON_SUBTYPE_UUID, uuid, CLUSTER_UUID_BYTES);
    bson_append_binary(&payload, "op", -1, BSON_SUBTYPE_UUID, op, CLUSTER_UUID_BYTES);
    BSON_APPEND_INT64(&payload, "at", clock_wall_ms());
    return propose(ctx, SHARD_KIND_PREPARE, &payload);
}

static void finish_ok(struct command_ctx *ctx, const struct document_result *result)
{
    (void)result;
    command_finish(ctx, NULL);
}

static enum command_status create_collection_run(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    struct create_header header = {.exact_uuid = true};
    if (!value_ns(ctx, &ns, err) || !field_require(ctx->body, "uuid", err) ||
        !field_get_uuid(ctx->body, "uuid", &header.uuid, err) ||
        !field_get_doc(ctx->body, "options", &header.options, err) ||
        !field_get_array(ctx->body, "indexes", &header.indexes, err))
        return COMMAND_ERROR;
    header.ns = ns.full;
    if (!create_header_check(document_engine_of(ctx), &header, err))
        return COMMAND_ERROR;
    struct buf command;
    ddl_command_begin(&command, DOCUMENT_KIND_CREATE);
    create_header_encode(&command, &header);
    return ddl_propose(ctx, &command, finish_ok);
}

static enum command_status refresh_command_run(struct command_ctx *ctx, struct err *err)
{
    uint32_t len;
    int64_t limit_ms = deadline_after_ms(REFRESH_TIMEOUT_MS);
    if (ctx->value.type != BT_STRING) {
        err_set(err, ERR_TypeMismatch, "%s takes a namespace or a database", ctx->name);
        return COMMAND_ERROR;
    }
    const char *ns = bval_str(&ctx->value, &len);
    if (len == 0 || len > CLUSTER_NS_MAX || strlen(ns) != len) {
        err_set(err, ERR_InvalidNamespace, "not a namespace");
        return COMMAND_ERROR;
    }
    return refresh_run(shard_of(ctx), ns, ctx->deadline_ms < limit_ms ? ctx->deadline_ms : limit_ms, err)
               ? COMMAND_OK
               : COMMAND_ERROR;
}

static enum command_status drop_collection_run(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    const uint8_t *uuid = NULL;
    if (!value_ns(ctx, &ns, err) || !field_get_uuid(ctx->body, "uuid", &uuid, err))
        return COMMAND_ERROR;
    bson_t payload = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&payload, "ns", ns.full);
    if (uuid != NULL)
        bson_append_binary(&payload, "uuid", -1, BSON_SUBTYPE_UUID, uuid, CLUSTER_UUID_BYTES);
    return propose(ctx, SHARD_KIND_DROP, &payload);
}

/* The whole answer to a read of a view, where an error's details had no room for it. */
static enum command_status resolve_view_run(struct command_ctx *ctx, struct err *err)
{
    struct ns ns;
    struct read_txn read = {0};
    if (!value_ns(ctx, &ns, err) || !read_txn_open_any(&read, document_engine_of(ctx), ns.full, (struct bdoc){0}, err))
        return COMMAND_ERROR;
    bool ok =
        (read.coll != NULL && read.coll->is_view) || err_set(err, ERR_NamespaceNotFound, "%s is no view", ns.full);
    ok = ok && views_resolve(read.txn, read.coll, &ctx->reply, err);
    read_txn_close(&read);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

const struct command shard_commands[] = {
    {"_shardsvrSetIdentity", NULL, COMMAND_INTERNAL_ONLY, set_identity_run},
    {"_shardsvrPrepare", NULL, COMMAND_INTERNAL_ONLY, prepare_run},
    {"_shardsvrCreateCollection", NULL, COMMAND_INTERNAL_ONLY, create_collection_run},
    {"_shardsvrRefresh", NULL, COMMAND_INTERNAL_ONLY, refresh_command_run},
    {"_shardsvrResolveView", NULL, COMMAND_INTERNAL_ONLY, resolve_view_run},
    {"_shardsvrDropCollection", NULL, COMMAND_INTERNAL_ONLY, drop_collection_run},
    {"_shardsvrRangeSizes", NULL, COMMAND_INTERNAL_ONLY, range_sizes_run},
    {"_shardsvrSplitPoints", NULL, COMMAND_INTERNAL_ONLY, split_points_run},
};

const size_t shard_command_count = sizeof shard_commands / sizeof shard_commands[0];
