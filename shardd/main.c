/* shardd: a member of a shard. It keeps documents and knows which ranges of keys are its own. */
#include "base/mem.h"
#include "document/engine.h"
#include "shardd/ownership_apply.h"
#include "shardd/shard.h"
#include "storage/store.h"

static bool open_shard(struct node *node, void **plugin, struct err *err)
{
    struct shard *shard = mem_alloc(sizeof *shard);
    struct rpc_client_options options = {.name = "shardd"};
    struct store_txn *txn;
    (void)err;
    shard->node = node;
    ownership_init(&shard->ownership);
    refresher_init(&shard->refresher);
    shard->client = rpc_client_new(&options);
    *plugin = shard;
    /* What the shard is called was logged when it joined its cluster. */
    if (!store_read_begin(node_store(node), &txn, err))
        return false;
    struct ownership_table *table = ownership_table_get(&shard->ownership, txn);
    store_read_end(txn);
    if (table->has_identity)
        document_engine_set_member_name(node_engine(node), table->shard_name);
    ownership_table_unref(table);
    return true;
}

/* On members that didn't hear the command the name is known from the log. */
static void lead(void *plugin, bool leading)
{
    struct shard *shard = plugin;
    struct ownership_table *table = leading ? ownership_table_newest(&shard->ownership) : NULL;
    if (table != NULL && table->has_identity)
        document_engine_set_member_name(node_engine(shard->node), table->shard_name);
    ownership_table_unref(table);
}

static const struct document_ownership *ownership_of(void *plugin)
{
    struct shard *shard = plugin;
    return ownership_hooks(&shard->ownership);
}

static bool admit(void *plugin, struct command_ctx *ctx, struct err *err)
{
    return refresh_admit(plugin, ctx, err);
}

static void tick(void *plugin)
{
    refresh_tick(plugin);
}

static void stop_shard(void *plugin)
{
    struct shard *shard = plugin;
    refresher_stop(&shard->refresher);
}

static void close_shard(void *plugin)
{
    struct shard *shard = plugin;
    rpc_client_free(shard->client);
    ownership_deinit(&shard->ownership);
    refresher_deinit(&shard->refresher);
    mem_free(shard);
}

static void append_status(void *plugin, bson_t *out)
{
    struct shard *shard = plugin;
    struct ownership_table *table = ownership_table_newest(&shard->ownership);
    if (table == NULL)
        return;
    BSON_APPEND_UTF8(out, "shardName", table->shard_name);
    BSON_APPEND_UTF8(out, "configdb", table->configdb);
    BSON_APPEND_INT32(out, "shardedCollections", (int32_t)table->collections.count);
    ownership_table_unref(table);
}

int main(int argc, char **argv)
{
    const struct node_program program = {
        .name = "shardd",
        .summary = "a member of a Sherd shard: stores documents and answers routers",
        .default_port = 27018,
        .commands = shard_commands,
        .command_count = shard_command_count,
        .appliers = shard_appliers,
        .applier_count = shard_applier_count,
        .open = open_shard,
        .tick = tick,
        .lead = lead,
        .stop = stop_shard,
        .close = close_shard,
        .ownership = ownership_of,
        .admit = admit,
        .status = append_status,
    };
    return node_main(argc, argv, &program);
}
