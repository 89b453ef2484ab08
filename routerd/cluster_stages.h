/* Pipelines that begin with what the cluster knows instead of a collection: aggregate: 1 with $currentOp,
 * $listLocalSessions, $shardedDataDistribution, $documents. On a worker; blocks. */
#ifndef SHERD_ROUTERD_CLUSTER_STAGES_H
#define SHERD_ROUTERD_CLUSTER_STAGES_H

#include "command/table.h"

/* Answers the whole command in one batch. ERR_InvalidNamespace for a pipeline that needs a collection. */
enum command_status cluster_stages_run(struct command_ctx *ctx, struct bdoc stages, const struct bdoc *let,
                                       struct err *err);

#endif
