/* What monitoring tools and shells ask a server about itself. */
#include "base/clock.h"
#include "base/mem.h"
#include "command/fields.h"
#include "routerd/commands.h"
#include "routerd/cursors.h"
#include "routerd/parameters.h"
#include "routerd/registry.h"
#include "routerd/router.h"
#include "rpc/client.h"
#include "wire/client_server.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static enum command_status run_get_parameter(struct command_ctx *ctx, struct err *err)
{
    struct bval all = BVAL_MISSING;
    bool star = bval_is_str(&ctx->value, "*") ||
                (ctx->value.type == BT_DOCUMENT && bdoc_find(bval_doc(&ctx->value), "allParameters", &all));
    unsigned found = 0;
    if (star || bdoc_has(ctx->body, "featureCompatibilityVersion")) {
        bson_t version;
        BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "featureCompatibilityVersion", &version);
        BSON_APPEND_UTF8(&version, "version", "8.0");
        bson_append_document_end(&ctx->reply, &version);
        found++;
    }
    if (star || bdoc_has(ctx->body, "enableTestCommands")) {
        BSON_APPEND_INT32(&ctx->reply, "enableTestCommands", router_of(ctx)->options.test_commands);
        found++;
    }
    if (star || bdoc_has(ctx->body, "authenticationMechanisms")) {
        bson_t list;
        BSON_APPEND_ARRAY_BEGIN(&ctx->reply, "authenticationMechanisms", &list);
        bson_append_array_end(&ctx->reply, &list);
        found++;
    }
    if (star || bdoc_has(ctx->body, "requireApiVersion")) {
        BSON_APPEND_BOOL(&ctx->reply, "requireApiVersion", false);
        found++;
    }
    found += parameters_append(ctx, star);
    if (found == 0) {
        err_set(err, ERR_InvalidOptions, "no option found to get");
        return COMMAND_ERROR;
    }
    return COMMAND_OK;
}

static enum command_status run_get_log(struct command_ctx *ctx, struct err *err)
{
    bson_t list;
    if (ctx->value.type != BT_STRING) {
        err_set(err, ERR_TypeMismatch, "Argument to getLog must be of type String; found type %s",
                bval_type_name(ctx->value.type));
        return COMMAND_ERROR;
    }
    if (bval_is_str(&ctx->value, "*")) {
        BSON_APPEND_ARRAY_BEGIN(&ctx->reply, "names", &list);
        BSON_APPEND_UTF8(&list, "0", "global");
        BSON_APPEND_UTF8(&list, "1", "startupWarnings");
        bson_append_array_end(&ctx->reply, &list);
        return COMMAND_OK;
    }
    if (!bval_is_str(&ctx->value, "global") && !bval_is_str(&ctx->value, "startupWarnings")) {
        err_set(err, ERR_OperationFailed, "No log named that");
        return COMMAND_ERROR;
    }
    BSON_APPEND_INT32(&ctx->reply, "totalLinesWritten", 0);
    BSON_APPEND_ARRAY_BEGIN(&ctx->reply, "log", &list);
    bson_append_array_end(&ctx->reply, &list);
    return COMMAND_OK;
}

static enum command_status run_host_info(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    bson_t child;
    struct utsname names;
    uname(&names);
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "system", &child);
    BSON_APPEND_DATE_TIME(&child, "currentTime", clock_wall_ms());
    BSON_APPEND_UTF8(&child, "hostname", names.nodename);
    BSON_APPEND_INT32(&child, "cpuAddrSize", 64);
    BSON_APPEND_INT64(&child, "memSizeMB",
                      (int64_t)sysconf(_SC_PHYS_PAGES) / 1024 * (int64_t)sysconf(_SC_PAGESIZE) / 1024);
    BSON_APPEND_INT32(&child, "numCores", (int32_t)sysconf(_SC_NPROCESSORS_ONLN));
    BSON_APPEND_UTF8(&child, "cpuArch", names.machine);
    bson_append_document_end(&ctx->reply, &child);
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "os", &child);
    BSON_APPEND_UTF8(&child, "type", names.sysname);
    BSON_APPEND_UTF8(&child, "name", names.sysname);
    BSON_APPEND_UTF8(&child, "version", names.release);
    bson_append_document_end(&ctx->reply, &child);
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "extra", &child);
    bson_append_document_end(&ctx->reply, &child);
    return COMMAND_OK;
}

static enum command_status run_get_cmd_line_opts(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    const struct router *router = router_of(ctx);
    bson_t list, parsed, child;
    BSON_APPEND_ARRAY_BEGIN(&ctx->reply, "argv", &list);
    for (int i = 0; i < router->argc; i++) {
        char number[16];
        const char *key;
        size_t len = bson_uint32_to_string((uint32_t)i, &key, number, sizeof number);
        bson_append_utf8(&list, key, (int)len, router->argv[i], -1);
    }
    bson_append_array_end(&ctx->reply, &list);
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "parsed", &parsed);
    BSON_APPEND_DOCUMENT_BEGIN(&parsed, "net", &child);
    BSON_APPEND_INT32(&child, "port", (int32_t)router->options.port);
    if (router->options.bind)
        BSON_APPEND_UTF8(&child, "bindIp", router->options.bind);
    bson_append_document_end(&parsed, &child);
    BSON_APPEND_DOCUMENT_BEGIN(&parsed, "sharding", &child);
    BSON_APPEND_UTF8(&child, "configDB", router->options.configdb);
    bson_append_document_end(&parsed, &child);
    bson_append_document_end(&ctx->reply, &parsed);
    return COMMAND_OK;
}

static void append_connections(const struct router *router, bson_t *reply)
{
    bson_t child;
    struct client_server_stats stats;
    client_server_stats_get(router->server, &stats);
    BSON_APPEND_DOCUMENT_BEGIN(reply, "connections", &child);
    BSON_APPEND_INT32(&child, "current", (int32_t)stats.conns);
    BSON_APPEND_INT32(&child, "available", (int32_t)(router->options.max_conns - stats.conns));
    BSON_APPEND_INT64(&child, "totalCreated", (int64_t)stats.accepted);
    BSON_APPEND_INT64(&child, "rejected", (int64_t)stats.refused);
    bson_append_document_end(reply, &child);
    BSON_APPEND_DOCUMENT_BEGIN(reply, "network", &child);
    BSON_APPEND_INT64(&child, "bytesIn", (int64_t)stats.bytes_in);
    BSON_APPEND_INT64(&child, "bytesOut", (int64_t)stats.bytes_out);
    BSON_APPEND_INT64(&child, "numRequests", (int64_t)stats.requests);
    bson_append_document_end(reply, &child);
}

static void append_counters(const struct router *router, bson_t *reply)
{
    bson_t child;
    const struct router_counters *counters = &router->counters;
    BSON_APPEND_DOCUMENT_BEGIN(reply, "opcounters", &child);
    BSON_APPEND_INT64(&child, "insert", (int64_t)atomic_load(&counters->insert));
    BSON_APPEND_INT64(&child, "query", (int64_t)atomic_load(&counters->query));
    BSON_APPEND_INT64(&child, "update", (int64_t)atomic_load(&counters->update));
    BSON_APPEND_INT64(&child, "delete", (int64_t)atomic_load(&counters->remove));
    BSON_APPEND_INT64(&child, "getmore", (int64_t)atomic_load(&counters->getmore));
    BSON_APPEND_INT64(&child, "command", (int64_t)atomic_load(&counters->command));
    bson_append_document_end(reply, &child);
}

static enum command_status run_server_status(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    const struct router *router = router_of(ctx);
    bson_t child, open;
    int64_t up_ms = clock_now_ms() - router->started_ms;
    BSON_APPEND_UTF8(&ctx->reply, "host", router->address);
    BSON_APPEND_UTF8(&ctx->reply, "version", "8.0.0");
    BSON_APPEND_UTF8(&ctx->reply, "sherd", SHERD_VERSION);
    BSON_APPEND_UTF8(&ctx->reply, "process", "routerd");
    BSON_APPEND_INT64(&ctx->reply, "pid", getpid());
    BSON_APPEND_DOUBLE(&ctx->reply, "uptime", (double)(up_ms / 1000));
    BSON_APPEND_INT64(&ctx->reply, "uptimeMillis", up_ms);
    BSON_APPEND_DATE_TIME(&ctx->reply, "localTime", clock_wall_ms());
    append_connections(router, &ctx->reply);
    append_counters(router, &ctx->reply);
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "metrics", &child);
    BSON_APPEND_DOCUMENT_BEGIN(&child, "cursor", &open);
    BSON_APPEND_INT32(&open, "open", (int32_t)cursor_table_count(router->cursors));
    bson_append_document_end(&child, &open);
    parameters_append_ttl(ctx, &child);
    bson_append_document_end(&ctx->reply, &child);
    return COMMAND_OK;
}

static enum command_status run_conn_pool_stats(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    struct rpc_client_stats stats;
    rpc_client_stats_get(router_of(ctx)->rpc, &stats);
    BSON_APPEND_INT32(&ctx->reply, "numClientConnections", (int32_t)stats.connected);
    BSON_APPEND_INT32(&ctx->reply, "totalInUse", (int32_t)stats.calls);
    BSON_APPEND_INT32(&ctx->reply, "totalAvailable", (int32_t)stats.connected);
    BSON_APPEND_INT64(&ctx->reply, "totalCreated", (int64_t)stats.connects);
    return COMMAND_OK;
}

static enum command_status run_list_commands(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    bson_t list, child;
    unsigned position = 0;
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "commands", &list);
    for (;;) {
        const struct command *command = command_table_next(router_of(ctx)->commands, &position);
        if (!command)
            break;
        BSON_APPEND_DOCUMENT_BEGIN(&list, command->name, &child);
        BSON_APPEND_UTF8(&child, "help", "");
        BSON_APPEND_BOOL(&child, "requiresAuth", !(command->flags & COMMAND_NO_AUTH));
        BSON_APPEND_BOOL(&child, "adminOnly", command->flags & COMMAND_ADMIN_ONLY);
        bson_append_document_end(&list, &child);
    }
    bson_append_document_end(&ctx->reply, &list);
    return COMMAND_OK;
}

static enum command_status run_free_monitoring(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    BSON_APPEND_UTF8(&ctx->reply, "state", "disabled");
    return COMMAND_OK;
}

static enum command_status run_features(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    BSON_APPEND_BOOL(&ctx->reply, "js", false);
    bson_append_oid(&ctx->reply, "oidMachine", -1, &(bson_oid_t){{0}});
    return COMMAND_OK;
}

static enum command_status run_not_a_set(struct command_ctx *ctx, struct err *err)
{
    (void)ctx;
    err_set(err, ERR_CommandNotFound, "%s is not supported through a router", ctx->name);
    return COMMAND_ERROR;
}

static const struct command commands[] = {
    {"getParameter", NULL, COMMAND_ADMIN_ONLY, run_get_parameter},
    {"getLog", NULL, COMMAND_ADMIN_ONLY, run_get_log},
    {"hostInfo", NULL, 0, run_host_info},
    {"getCmdLineOpts", NULL, COMMAND_ADMIN_ONLY, run_get_cmd_line_opts},
    {"serverStatus", NULL, 0, run_server_status},
    {"connPoolStats", NULL, 0, run_conn_pool_stats},
    {"shardConnPoolStats", NULL, 0, run_conn_pool_stats},
    {"listCommands", NULL, COMMAND_NO_AUTH, run_list_commands},
    {"getFreeMonitoringStatus", NULL, 0, run_free_monitoring},
    {"features", NULL, 0, run_features},
    {"replSetGetStatus", NULL, 0, run_not_a_set},
    {"replSetGetConfig", NULL, 0, run_not_a_set},
    {"atlasVersion", NULL, 0, run_not_a_set},
};

const struct command_family commands_info = COMMAND_FAMILY(commands);
