/* How large the shard's ranges are, and where to split one. Workers; read transactions only. */
#ifndef SHERD_SHARDD_SPLIT_POINTS_H
#define SHERD_SHARDD_SPLIT_POINTS_H

#include "command/table.h"

/* {_shardsvrRangeSizes: ns} -> {ranges: [{min: BinData, max: BinData, docs, bytes, exact}]}: exact is false while a
 * counter is being made. */
enum command_status range_sizes_run(struct command_ctx *ctx, struct err *err);
/* {_shardsvrSplitPoints: ns, min: BinData, max: BinData, pieces?: 2} (encoded bounds) -> {points: [shard key values],
 * docs, bytes}: so that the pieces have about equal bytes. Fewer points when few key values are there; never the first
 * key of the range. */
enum command_status split_points_run(struct command_ctx *ctx, struct err *err);

#endif
