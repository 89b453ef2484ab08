/* A shardd process: what the parts of the daemon share. */
#ifndef SHERD_SHARDD_SHARD_H
#define SHERD_SHARDD_SHARD_H

#include "command/table.h"
#include "node/node.h"
#include "rpc/client.h"
#include "shardd/ownership.h"
#include "shardd/refresh.h"

struct shard {
    struct node *node;
    struct ownership ownership;
    struct rpc_client *client; /* to the config service */
    struct refresher refresher;
};

extern const struct command shard_commands[];
extern const size_t shard_command_count;

#endif
