/* What clients send at connect. Fields as drivers need them: docs of the hello command and of the server discovery
 * specification. */
#include "base/clock.h"
#include "routerd/commands.h"
#include "routerd/router.h"
#include "routerd/session.h"
#include "wire/client_server.h"
#include "wire/compress.h"

#include <stdio.h>
#include <string.h>

enum {
    MAX_WIRE_VERSION = 25,
    MAX_WRITE_BATCH = 100000,
    SESSION_TIMEOUT_MINUTES = 30,
};

/* A cluster time, which drivers send back to whatever router they talk to next. It follows the clock; reads need no
 * token, as every one is answered by a leader. */
static void append_cluster_time(bson_t *reply)
{
    enum { SIGNATURE_BYTES = 20 };
    static const uint8_t no_hash[SIGNATURE_BYTES];
    bson_t time, signature;
    BSON_APPEND_DOCUMENT_BEGIN(reply, "$clusterTime", &time);
    BSON_APPEND_TIMESTAMP(&time, "clusterTime", (uint32_t)(clock_wall_ms() / 1000), 1);
    BSON_APPEND_DOCUMENT_BEGIN(&time, "signature", &signature);
    BSON_APPEND_BINARY(&signature, "hash", BSON_SUBTYPE_BINARY, no_hash, sizeof no_hash);
    BSON_APPEND_INT64(&signature, "keyId", 0);
    bson_append_document_end(&time, &signature);
    bson_append_document_end(reply, &time);
}

static void remember_client(struct command_ctx *ctx)
{
    struct bval client, application, name;
    struct session *session = ctx->session;
    if (!session || !bdoc_find(ctx->body, "client", &client) || client.type != BT_DOCUMENT ||
        !bdoc_find(bval_doc(&client), "application", &application) || application.type != BT_DOCUMENT ||
        !bdoc_find(bval_doc(&application), "name", &name) || name.type != BT_STRING)
        return;
    uint32_t len;
    const char *text = bval_str(&name, &len);
    snprintf(session->app_name, sizeof session->app_name, "%s", text);
}

static enum command_status run_hello(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    struct bval hello_ok;
    struct client_request *request = ctx->request;
    remember_client(ctx);
    bool modern = strcmp(ctx->name, "hello") == 0;
    BSON_APPEND_BOOL(&ctx->reply, modern ? "isWritablePrimary" : "ismaster", true);
    if (bdoc_find(ctx->body, "helloOk", &hello_ok) && bval_truthy(&hello_ok))
        BSON_APPEND_BOOL(&ctx->reply, "helloOk", true);
    BSON_APPEND_UTF8(&ctx->reply, "msg", "isdbgrid");
    BSON_APPEND_INT32(&ctx->reply, "maxBsonObjectSize", BDOC_MAX_BYTES);
    BSON_APPEND_INT32(&ctx->reply, "maxMessageSizeBytes", WIRE_MAX_MESSAGE_BYTES);
    BSON_APPEND_INT32(&ctx->reply, "maxWriteBatchSize", MAX_WRITE_BATCH);
    BSON_APPEND_DATE_TIME(&ctx->reply, "localTime", clock_wall_ms());
    BSON_APPEND_INT32(&ctx->reply, "logicalSessionTimeoutMinutes", SESSION_TIMEOUT_MINUTES);
    if (request)
        BSON_APPEND_INT32(&ctx->reply, "connectionId", (int32_t)(client_conn_id(request->conn) & INT32_MAX));
    BSON_APPEND_INT32(&ctx->reply, "maxWireVersion", MAX_WIRE_VERSION);
    BSON_APPEND_INT32(&ctx->reply, "minWireVersion", 0);
    wire_compression_negotiate(ctx->body, &ctx->reply);
    append_cluster_time(&ctx->reply);
    return COMMAND_OK;
}

static enum command_status run_ping(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    append_cluster_time(&ctx->reply);
    return COMMAND_OK;
}

static enum command_status run_build_info(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    bson_t child;
    BSON_APPEND_UTF8(&ctx->reply, "version", "8.0.0");
    BSON_APPEND_UTF8(&ctx->reply, "sherd", SHERD_VERSION);
    BSON_APPEND_UTF8(&ctx->reply, "gitVersion", "unknown");
    BSON_APPEND_ARRAY_BEGIN(&ctx->reply, "modules", &child);
    BSON_APPEND_UTF8(&child, "0", "sherd");
    bson_append_array_end(&ctx->reply, &child);
    BSON_APPEND_UTF8(&ctx->reply, "allocator", "system");
    BSON_APPEND_UTF8(&ctx->reply, "javascriptEngine", "none");
    BSON_APPEND_UTF8(&ctx->reply, "sysInfo", "deprecated");
    BSON_APPEND_ARRAY_BEGIN(&ctx->reply, "versionArray", &child);
    static const int32_t parts[] = {8, 0, 0, 0};
    for (uint32_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char number[16];
        const char *key;
        size_t len = bson_uint32_to_string(i, &key, number, sizeof number);
        bson_append_int32(&child, key, (int)len, parts[i]);
    }
    bson_append_array_end(&ctx->reply, &child);
    BSON_APPEND_INT32(&ctx->reply, "bits", 64);
    BSON_APPEND_BOOL(&ctx->reply, "debug", false);
    BSON_APPEND_INT32(&ctx->reply, "maxBsonObjectSize", BDOC_MAX_BYTES);
    BSON_APPEND_ARRAY_BEGIN(&ctx->reply, "storageEngines", &child);
    BSON_APPEND_UTF8(&child, "0", "lmdb");
    bson_append_array_end(&ctx->reply, &child);
    return COMMAND_OK;
}

static enum command_status run_whatsmyuri(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    struct client_request *request = ctx->request;
    BSON_APPEND_UTF8(&ctx->reply, "you", request ? client_conn_peer(request->conn) : "");
    return COMMAND_OK;
}

static enum command_status run_connection_status(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    bson_t auth, list;
    struct bval show;
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "authInfo", &auth);
    BSON_APPEND_ARRAY_BEGIN(&auth, "authenticatedUsers", &list);
    bson_append_array_end(&auth, &list);
    BSON_APPEND_ARRAY_BEGIN(&auth, "authenticatedUserRoles", &list);
    bson_append_array_end(&auth, &list);
    if (bdoc_find(ctx->body, "showPrivileges", &show) && bval_truthy(&show)) {
        BSON_APPEND_ARRAY_BEGIN(&auth, "authenticatedUserPrivileges", &list);
        bson_append_array_end(&auth, &list);
    }
    bson_append_document_end(&ctx->reply, &auth);
    return COMMAND_OK;
}

static const struct command commands[] = {
    {"hello", NULL, COMMAND_NO_AUTH, run_hello},
    {"isMaster", "ismaster", COMMAND_NO_AUTH, run_hello},
    {"ping", NULL, COMMAND_NO_AUTH, run_ping},
    {"buildInfo", "buildinfo", COMMAND_NO_AUTH, run_build_info},
    {"whatsmyuri", NULL, COMMAND_NO_AUTH, run_whatsmyuri},
    {"connectionStatus", NULL, COMMAND_NO_AUTH, run_connection_status},
};

const struct command_family commands_handshake = COMMAND_FAMILY(commands);
