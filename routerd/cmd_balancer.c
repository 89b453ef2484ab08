/* The balancer and what moves chunks. This version moves none, and says so. */
#include "routerd/commands.h"

static enum command_status run_status(struct command_ctx *ctx, struct err *err)
{
    (void)err;
    BSON_APPEND_UTF8(&ctx->reply, "mode", "off");
    BSON_APPEND_BOOL(&ctx->reply, "inBalancerRound", false);
    BSON_APPEND_INT64(&ctx->reply, "numBalancerRounds", 0);
    return COMMAND_OK;
}

/* Nothing runs, so stopping it is done. */
static enum command_status run_stop(struct command_ctx *ctx, struct err *err)
{
    (void)ctx;
    (void)err;
    return COMMAND_OK;
}

static enum command_status run_unsupported(struct command_ctx *ctx, struct err *err)
{
    err_set(err, ERR_CommandNotSupported, "%s is not supported: this version doesn't move chunks between shards",
            ctx->command->name);
    return COMMAND_ERROR;
}

static const struct command commands[] = {
    {"balancerStatus", NULL, COMMAND_ADMIN_ONLY, run_status},
    {"balancerStop", NULL, COMMAND_ADMIN_ONLY, run_stop},
    {"balancerStart", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"balancerCollectionStatus", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"configureCollectionBalancing", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"moveChunk", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"moveRange", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"moveCollection", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"movePrimary", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"mergeChunks", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"mergeAllChunksOnShard", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"clearJumboFlag", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"removeShard", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"addShardToZone", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"removeShardFromZone", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"updateZoneKeyRange", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"refineCollectionShardKey", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"reshardCollection", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
    {"unshardCollection", NULL, COMMAND_ADMIN_ONLY, run_unsupported},
};

const struct command_family commands_balancer = COMMAND_FAMILY(commands);
