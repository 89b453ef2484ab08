/* Pipelines that begin with what the cluster knows instead of a collection: aggregate: 1 with $currentOp,
 * $listLocalSessions, $shardedDataDistribution, $documents. On a worker; blocks. */
#ifndef SHERD_ROUTERD_CLUSTER_STAGES_H
#define SHERD_ROUTERD_CLUSTER_STAGES_H

#include "routerd/aggregate_open.h"

/* As aggregate_open does, for a request without a collection. ERR_InvalidNamespace for a pipeline that needs one. */
bool cluster_stages_open(struct command_ctx *ctx, const struct aggregate_request *request, struct router_cursor **out,
                         struct err *err) ERR_WARN_UNUSED;

#endif
