/* Settings and counters that live on the shards, for commands of the router that show them. On a worker; blocks a short
 * time at most: what can't be had is left out. */
#ifndef SHERD_ROUTERD_PARAMETERS_H
#define SHERD_ROUTERD_PARAMETERS_H

#include "command/table.h"

#include <bson/bson.h>

/* Appends to the reply the shards' parameters that the command names, or all; returns how many. */
unsigned parameters_append(struct command_ctx *ctx, bool all);
/* Appends `ttl`: what the monitors of all shards have done. */
void parameters_append_ttl(struct command_ctx *ctx, bson_t *metrics);

#endif
