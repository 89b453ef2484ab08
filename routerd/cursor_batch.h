/* Batches of cursors over several shards. On a worker; blocks. */
#ifndef SHERD_ROUTERD_CURSOR_BATCH_H
#define SHERD_ROUTERD_CURSOR_BATCH_H

#include "command/table.h"
#include "routerd/cursors.h"

/* Adds {cursor: {firstBatch | nextBatch: [...], id, ns}} to the reply. `batch_size`: documents at most; -1: as many as
 * fit. cursor->ended says afterwards that nothing is left (the id is 0 then). `keep`: false for singleBatch. */
bool cursor_batch_append(struct command_ctx *ctx, struct router_cursor *cursor, int64_t batch_size, bool first,
                         bool keep, struct err *err) ERR_WARN_UNUSED;
/* A new cursor's first batch: puts it into the table when something is left, closes it otherwise. Takes the cursor. */
enum command_status cursor_batch_first(struct command_ctx *ctx, struct router_cursor *cursor, int64_t batch_size,
                                       bool keep, struct err *err);
/* Lets the cursor's pipeline (may be NULL) run over its streams. */
void cursor_batch_start(struct router_cursor *cursor);
/* The next document for whoever reads the cursor without a batch, borrowed until the next call; data NULL at the end.
 * Skip is left out, the limit isn't counted. */
bool router_cursor_next(struct router_cursor *cursor, struct bdoc *out, struct err *err) ERR_WARN_UNUSED;

#endif
