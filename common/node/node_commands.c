/* Commands of every node, beside the document commands: who are you, how are you. */
#include "base/clock.h"
#include "base/fault.h"
#include "command/context.h"
#include "command/fields.h"
#include "document/cursors.h"
#include "document/ttl.h"
#include "node/node_internal.h"
#include "replication/address.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum command_status ping_run(struct command_ctx *ctx, struct err *err)
{
    (void)ctx;
    (void)err;
    return COMMAND_OK;
}

static enum command_status hello_run(struct command_ctx *ctx, struct err *err)
{
    struct node *node = node_of(ctx);
    struct node_state state;
    (void)err;
    node_state_get(node, &state);
    bson_t *reply = &ctx->reply;
    BSON_APPEND_BOOL(reply, "helloOk", true);
    BSON_APPEND_BOOL(reply, "isWritablePrimary", state.leading);
    BSON_APPEND_BOOL(reply, "secondary", !state.leading);
    BSON_APPEND_UTF8(reply, "setName", node_set_name(node));
    BSON_APPEND_UTF8(reply, "me", node_address(node));
    if (state.leader[0] != '\0')
        BSON_APPEND_UTF8(reply, "primary", state.leader);
    BSON_APPEND_INT32(reply, "maxBsonObjectSize", BDOC_MAX_BYTES);
    BSON_APPEND_INT32(reply, "maxMessageSizeBytes", WIRE_MAX_MESSAGE_BYTES);
    BSON_APPEND_INT32(reply, "maxWriteBatchSize", 100000);
    BSON_APPEND_DATE_TIME(reply, "localTime", clock_wall_ms());
    BSON_APPEND_INT32(reply, "minWireVersion", 0);
    BSON_APPEND_INT32(reply, "maxWireVersion", 25);
    return COMMAND_OK;
}

static enum command_status build_info_run(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    BSON_APPEND_UTF8(&ctx->reply, "version", "8.0.0");
    BSON_APPEND_UTF8(&ctx->reply, "sherd", SHERD_VERSION);
    BSON_APPEND_INT32(&ctx->reply, "bits", 64);
    BSON_APPEND_BOOL(&ctx->reply, "debug", false);
    BSON_APPEND_INT32(&ctx->reply, "maxBsonObjectSize", BDOC_MAX_BYTES);
    return COMMAND_OK;
}

static const char *role_name(enum replica_role role)
{
    static const char *const names[] = {[REPLICA_FOLLOWER] = "follower",
                                        [REPLICA_CANDIDATE] = "candidate",
                                        [REPLICA_LEADER] = "leader",
                                        [REPLICA_UNAVAILABLE] = "unavailable"};
    return names[role];
}

static void append_members(const struct replica_status *status, bson_t *out)
{
    bson_t array;
    BSON_APPEND_ARRAY_BEGIN(out, "members", &array);
    for (uint32_t i = 0; i < status->member_count; i++) {
        bson_t member;
        const char *key;
        char digits[16];
        struct address address;
        char client[REPLICA_ADDRESS_MAX] = "";
        bson_uint32_to_string(i, &key, digits, sizeof digits);
        BSON_APPEND_DOCUMENT_BEGIN(&array, key, &member);
        BSON_APPEND_INT64(&member, "id", (int64_t)status->members[i].id);
        if (address_parse(status->members[i].address, &address, NULL) &&
            address_format_client(&address, client, sizeof client))
            BSON_APPEND_UTF8(&member, "host", client);
        BSON_APPEND_BOOL(&member, "voter", status->members[i].voter);
        BSON_APPEND_INT64(&member, "match", (int64_t)status->members[i].match_index);
        bson_append_document_end(&array, &member);
    }
    bson_append_array_end(out, &array);
}

static enum command_status sherd_status_run(struct command_ctx *ctx, struct err *err)
{
    struct node *node = node_of(ctx);
    struct replica_status status;
    struct node_state state;
    (void)err;
    replica_get_status(node->replica, &status);
    node_state_get(node, &state);
    bson_t *reply = &ctx->reply;
    BSON_APPEND_BOOL(reply, "leading", state.leading);
    BSON_APPEND_UTF8(reply, "leader", state.leader);
    BSON_APPEND_UTF8(reply, "set", node_set_name(node));
    BSON_APPEND_INT64(reply, "id", state.member_id);
    BSON_APPEND_UTF8(reply, "role", role_name(status.role));
    BSON_APPEND_UTF8(reply, "me", node_address(node));
    BSON_APPEND_INT64(reply, "term", (int64_t)state.term);
    BSON_APPEND_INT64(reply, "applied", (int64_t)state.applied);
    BSON_APPEND_INT64(reply, "commit", (int64_t)state.committed);
    append_members(&status, reply);
    if (node->program->status != NULL)
        node->program->status(node->plugin, reply);
    return COMMAND_OK;
}

/* Pages of the process in memory, from /proc: 0 when it can't be read. */
static int64_t resident_bytes(void)
{
    long long size;
    long long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%lld %lld", &size, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

static void append_load(struct node *node, bson_t *reply)
{
    struct rpc_server_stats server;
    struct pool_stats pool;
    bson_t sub;
    rpc_server_stats_get(node->server, &server);
    pool_stats_get(node->pool, &pool);
    BSON_APPEND_DOCUMENT_BEGIN(reply, "connections", &sub);
    BSON_APPEND_INT32(&sub, "current", (int32_t)server.conns);
    BSON_APPEND_INT64(&sub, "totalCreated", (int64_t)server.accepted);
    bson_append_document_end(reply, &sub);
    BSON_APPEND_DOCUMENT_BEGIN(reply, "requests", &sub);
    BSON_APPEND_INT32(&sub, "current", (int32_t)atomic_load(&node->requests));
    BSON_APPEND_INT64(&sub, "total", (int64_t)server.handled);
    BSON_APPEND_INT32(&sub, "threads", (int32_t)pool.threads);
    BSON_APPEND_INT32(&sub, "queued", (int32_t)pool.queued);
    bson_append_document_end(reply, &sub);
    BSON_APPEND_DOCUMENT_BEGIN(reply, "cursors", &sub);
    BSON_APPEND_INT32(&sub, "open", (int32_t)document_cursors_count(document_engine_cursors(node->host.engine)));
    bson_append_document_end(reply, &sub);
    BSON_APPEND_DOCUMENT_BEGIN(reply, "mem", &sub);
    BSON_APPEND_INT64(&sub, "resident", resident_bytes() >> 20);
    bson_append_document_end(reply, &sub);
}

static void append_ttl(struct node *node, bson_t *out)
{
    struct document_ttl_counters counters;
    bson_t metrics;
    bson_t ttl;
    document_ttl_counters(document_engine_ttl(node->host.engine), &counters);
    BSON_APPEND_DOCUMENT_BEGIN(out, "metrics", &metrics);
    BSON_APPEND_DOCUMENT_BEGIN(&metrics, "ttl", &ttl);
    BSON_APPEND_INT64(&ttl, "deletedDocuments", counters.deleted_documents);
    BSON_APPEND_INT64(&ttl, "passes", counters.passes);
    BSON_APPEND_INT64(&ttl, "subPasses", counters.sub_passes);
    bson_append_document_end(&metrics, &ttl);
    bson_append_document_end(out, &metrics);
}

static enum command_status server_status_run(struct command_ctx *ctx, struct err *err)
{
    struct node *node = node_of(ctx);
    struct store_space space;
    bson_t sub;
    BSON_APPEND_UTF8(&ctx->reply, "host", node_address(node));
    BSON_APPEND_UTF8(&ctx->reply, "version", "8.0.0");
    BSON_APPEND_UTF8(&ctx->reply, "sherd", SHERD_VERSION);
    BSON_APPEND_UTF8(&ctx->reply, "process", node->program->name);
    BSON_APPEND_INT64(&ctx->reply, "pid", getpid());
    BSON_APPEND_DATE_TIME(&ctx->reply, "localTime", clock_wall_ms());
    append_load(node, &ctx->reply);
    if (!store_space(node->store, &space, err))
        return COMMAND_ERROR;
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "storage", &sub);
    BSON_APPEND_INT64(&sub, "fileBytes", (int64_t)space.file_bytes);
    BSON_APPEND_INT64(&sub, "reusableBytes", (int64_t)space.reusable_bytes);
    BSON_APPEND_INT64(&sub, "leftBytes", (int64_t)space.left_bytes);
    BSON_APPEND_INT64(&sub, "reserveBytes", (int64_t)space.reserve_bytes);
    BSON_APPEND_INT64(&sub, "checkpoint", (int64_t)store_checkpoint_index(node->store));
    bson_append_document_end(&ctx->reply, &sub);
    append_ttl(node, &ctx->reply);
    if (node->program->status != NULL)
        node->program->status(node->plugin, &ctx->reply);
    return COMMAND_OK;
}

static enum command_status list_commands_run(struct command_ctx *ctx, struct err *err)
{
    struct node *node = node_of(ctx);
    const struct command *command;
    unsigned position = 0;
    bson_t names;
    (void)err;
    BSON_APPEND_DOCUMENT_BEGIN(&ctx->reply, "commands", &names);
    while ((command = command_table_next(node->commands, &position)) != NULL) {
        bson_t one;
        BSON_APPEND_DOCUMENT_BEGIN(&names, command->name, &one);
        BSON_APPEND_BOOL(&one, "adminOnly", (command->flags & COMMAND_ADMIN_ONLY) != 0);
        bson_append_document_end(&names, &one);
    }
    bson_append_document_end(&ctx->reply, &names);
    return COMMAND_OK;
}

/* The logical hash of everything stored, with the log position that it belongs to: equal on members at an equal
 * position. */
static enum command_status hash_run(struct command_ctx *ctx, struct err *err)
{
    struct node *node = node_of(ctx);
    struct store_txn *txn;
    if (!store_read_begin(node->store, &txn, err))
        return COMMAND_ERROR;
    uint64_t hash = store_logical_hash(txn);
    uint64_t index = store_txn_applied_index(txn);
    store_read_end(txn);
    char text[24];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    BSON_APPEND_UTF8(&ctx->reply, "hash", text);
    BSON_APPEND_INT64(&ctx->reply, "applied", (int64_t)index);
    return COMMAND_OK;
}

static enum command_status checkpoint_run(struct command_ctx *ctx, struct err *err)
{
    struct node *node = node_of(ctx);
    uint64_t index;
    if (!store_checkpoint(node->store, &index, err))
        return COMMAND_ERROR;
    BSON_APPEND_INT64(&ctx->reply, "applied", (int64_t)index);
    return COMMAND_OK;
}

static enum command_status step_down_run(struct command_ctx *ctx, struct err *err)
{
    return replica_step_down(node_of(ctx)->replica, 10000, err) ? COMMAND_OK : COMMAND_ERROR;
}

static enum command_status faults_run(struct command_ctx *ctx, struct err *err)
{
    const char *spec = "";
    return field_get_str(ctx->body, "spec", &spec, err) && fault_enable(spec, err) ? COMMAND_OK : COMMAND_ERROR;
}

const struct command node_commands[] = {
    {"ping", NULL, COMMAND_ANY_ROLE | COMMAND_NO_AUTH, ping_run},
    {"hello", "isMaster", COMMAND_ANY_ROLE | COMMAND_NO_AUTH, hello_run},
    {"buildInfo", NULL, COMMAND_ANY_ROLE | COMMAND_NO_AUTH, build_info_run},
    {"serverStatus", NULL, COMMAND_ANY_ROLE, server_status_run},
    {"listCommands", NULL, COMMAND_ANY_ROLE, list_commands_run},
    {"_sherdStatus", NULL, COMMAND_ANY_ROLE, sherd_status_run},
    {"_sherdHash", NULL, COMMAND_ANY_ROLE, hash_run},
    {"_sherdCheckpoint", NULL, COMMAND_ANY_ROLE, checkpoint_run},
    {"_sherdStepDown", NULL, 0, step_down_run},
    {"_sherdFaults", NULL, COMMAND_ANY_ROLE | COMMAND_TEST, faults_run},
};

const unsigned node_command_count = sizeof node_commands / sizeof node_commands[0];
