#include "configd/plans.h"
#include "configd/routing.h"
#include "configd/server.h"
#include "configd/user_writes.h"

#include "base/clock.h"
#include "cluster/fields.h"
#include "configd/names.h"

static enum command_status get_routing_run(struct command_ctx *ctx, struct err *err)
{
    return server_run_read(ctx, routing_answer, err);
}

static enum command_status add_shard_run(struct command_ctx *ctx, struct err *err)
{
    return server_run_change(ctx, plan_add_shard, err);
}

static enum command_status create_database_run(struct command_ctx *ctx, struct err *err)
{
    return server_run_change(ctx, plan_create_database, err);
}

static enum command_status config_drop_database_run(struct command_ctx *ctx, struct err *err)
{
    return server_run_change(ctx, plan_drop_database, err);
}

static enum command_status drop_collection_run(struct command_ctx *ctx, struct err *err)
{
    return server_run_change(ctx, plan_drop_collection, err);
}

static enum command_status shard_begin_run(struct command_ctx *ctx, struct err *err)
{
    return server_run_change(ctx, plan_shard_begin, err);
}

static enum command_status shard_commit_run(struct command_ctx *ctx, struct err *err)
{
    return server_run_change(ctx, plan_shard_commit, err);
}

static enum command_status shard_abort_run(struct command_ctx *ctx, struct err *err)
{
    return server_run_change(ctx, plan_shard_abort, err);
}

static enum command_status shard_status_run(struct command_ctx *ctx, struct err *err)
{
    return server_run_change(ctx, plan_shard_status, err);
}

static enum command_status split_run(struct command_ctx *ctx, struct err *err)
{
    return server_run_change(ctx, plan_split, err);
}

static enum command_status ping_run(struct command_ctx *ctx, struct err *err)
{
    bool ok = server_write_unguarded(server_of(ctx), plan_ping, ctx->body, deadline_after_ms(SERVER_CHANGE_MS), err);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

static bool answer_shards(const struct metadata_view *view, struct bdoc request, bson_t *reply, struct err *err)
{
    struct shard_entry *entries;
    bson_t array;
    (void)request;
    (void)err;
    size_t count = view_shards(view, &entries);
    bson_append_array_begin(reply, "shards", -1, &array);
    for (size_t i = 0; i < count; i++) {
        char text[16];
        const char *name;
        bson_t entry;
        bson_uint32_to_string((uint32_t)i, &name, text, sizeof text);
        bson_append_document_begin(&array, name, -1, &entry);
        shard_entry_append(&entry, &entries[i]);
        bson_append_document_end(&array, &entry);
    }
    bson_append_array_end(reply, &array);
    return true;
}

static enum command_status list_shards_run(struct command_ctx *ctx, struct err *err)
{
    return server_run_read(ctx, answer_shards, err);
}

/* Requests of routers and shards; then writes of users, which win over the shared document commands of the same name.
 */
const struct command config_commands[] = {
    {"_configsvrGetRouting", NULL, COMMAND_INTERNAL_ONLY, get_routing_run},
    {"_configsvrCommitAddShard", NULL, COMMAND_INTERNAL_ONLY | COMMAND_WRITE, add_shard_run},
    {"_configsvrCreateDatabase", NULL, COMMAND_INTERNAL_ONLY | COMMAND_WRITE, create_database_run},
    {"_configsvrDropDatabase", NULL, COMMAND_INTERNAL_ONLY | COMMAND_WRITE, config_drop_database_run},
    {"_configsvrDropCollection", NULL, COMMAND_INTERNAL_ONLY | COMMAND_WRITE, drop_collection_run},
    {"_configsvrShardCollectionBegin", NULL, COMMAND_INTERNAL_ONLY | COMMAND_WRITE, shard_begin_run},
    {"_configsvrShardCollectionCommit", NULL, COMMAND_INTERNAL_ONLY | COMMAND_WRITE, shard_commit_run},
    {"_configsvrShardCollectionAbort", NULL, COMMAND_INTERNAL_ONLY | COMMAND_WRITE, shard_abort_run},
    {"_configsvrShardCollectionStatus", NULL, COMMAND_INTERNAL_ONLY | COMMAND_WRITE, shard_status_run},
    {"_configsvrSplit", NULL, COMMAND_INTERNAL_ONLY | COMMAND_WRITE, split_run},
    {"_configsvrPing", NULL, COMMAND_INTERNAL_ONLY | COMMAND_WRITE, ping_run},
    {"listShards", NULL, 0, list_shards_run},
    {"update", NULL, COMMAND_WRITE | COMMAND_COLLECTION | COMMAND_SEQUENCES, user_update_run},
    {"delete", NULL, COMMAND_WRITE | COMMAND_COLLECTION | COMMAND_SEQUENCES, user_delete_run},
    {"insert", NULL, COMMAND_WRITE | COMMAND_COLLECTION | COMMAND_SEQUENCES, user_refuse_run},
    {"findAndModify", "findandmodify", COMMAND_WRITE | COMMAND_COLLECTION, user_refuse_run},
    {"create", NULL, COMMAND_WRITE | COMMAND_COLLECTION, user_refuse_run},
    {"drop", NULL, COMMAND_WRITE | COMMAND_COLLECTION, user_refuse_run},
    {"dropDatabase", NULL, COMMAND_WRITE, user_refuse_run},
    {"createIndexes", NULL, COMMAND_WRITE | COMMAND_COLLECTION, user_refuse_run},
    {"dropIndexes", NULL, COMMAND_WRITE | COMMAND_COLLECTION, user_refuse_run},
    {"collMod", NULL, COMMAND_WRITE | COMMAND_COLLECTION, user_refuse_run},
};

const size_t config_command_count = sizeof config_commands / sizeof config_commands[0];
