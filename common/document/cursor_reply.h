/* From a cursor that was made to the first reply: what find, aggregate, listCollections and listIndexes share. */
#ifndef SHERD_DOCUMENT_CURSOR_REPLY_H
#define SHERD_DOCUMENT_CURSOR_REPLY_H

#include "command/table.h"
#include "document/cursor.h"

/* Answers with the first batch and keeps the cursor when more may follow. Takes the cursor in every case. `read` may be
 * NULL for a cursor over a list, or when there is no collection; batch_size -1: no limit by number. */
enum command_status cursor_reply_first(struct command_ctx *ctx, struct document_cursor *cursor,
                                       const struct read_txn *read, int64_t batch_size, struct err *err);
/* The answer for a collection that isn't there. */
enum command_status cursor_reply_empty(struct command_ctx *ctx, const char *ns);
/* A copy of a finished message whose frame may be sent and kept at the same time: sending writes ids into the frame. */
struct wire_frame *cursor_reply_copy(const struct wire_frame *frame);

#endif
