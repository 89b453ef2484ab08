/* Opening what find, aggregate, count and distinct read: for the commands themselves and for explain. On a worker. */
#ifndef SHERD_DOCUMENT_FIND_H
#define SHERD_DOCUMENT_FIND_H

#include "command/context.h"
#include "document/cursor.h"
#include "document/read_txn.h"

/* A find or aggregate that is ready to give documents. */
struct opened_read {
    struct read_txn read;
    struct document_cursor *cursor; /* not attached yet; has no plan when the collection doesn't exist */
    int64_t batch_size;             /* of the first batch; -1: as much as fits */
    bool explain;                   /* set by the caller before: keep the plans that were rejected */
};

/* Reads the command in `ctx`, opens the transaction and makes the plan. On success the caller frees the cursor (or
 * hands it on) and closes the transaction; on failure nothing is left. */
bool find_open(struct command_ctx *ctx, struct opened_read *out, struct err *err) ERR_WARN_UNUSED;
bool aggregate_open(struct command_ctx *ctx, struct opened_read *out, struct err *err) ERR_WARN_UNUSED;
/* Accepts one that was not opened. */
void opened_read_close(struct opened_read *opened);

#endif
