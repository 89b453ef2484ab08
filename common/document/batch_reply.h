/* The reply of find, getMore, aggregate and the list commands, written straight into the bytes of an OP_MSG: a stored
 * document is copied once. {cursor: {firstBatch | nextBatch: [...], id, ns}, ok: 1.0}. One thread. */
#ifndef SHERD_DOCUMENT_BATCH_REPLY_H
#define SHERD_DOCUMENT_BATCH_REPLY_H

#include "base/buf.h"
#include "bson/value.h"
#include "wire/frame.h"

#include <stdbool.h>
#include <stdint.h>

struct batch_reply {
    struct buf bytes;     /* the message so far */
    size_t message_start; /* where wire_msg_begin began */
    size_t body_start;
    size_t cursor_start;
    size_t array_start;
    uint32_t count;       /* documents so far */
    struct buf sort_keys; /* elements of the array sortKeys; empty: none are given */
    uint32_t sort_key_count;
};

/* `first`: the batch is called firstBatch. */
void batch_reply_begin(struct batch_reply *reply, bool first);
/* False when the document doesn't fit into the batch any more (the first always does): it belongs to the next. */
bool batch_reply_add(struct batch_reply *reply, struct bdoc doc);
/* For a producer (a projection) that appends one document to reply->bytes itself: open writes the element's header and
 * returns where it began, close counts the document, or takes it back and returns false when it doesn't fit. */
size_t batch_reply_open(struct batch_reply *reply);
bool batch_reply_close(struct batch_reply *reply, size_t opened_at);
/* The sort key of the document added last, for a router that merges: cursor.sortKeys. */
void batch_reply_add_sort_key(struct batch_reply *reply, const void *key, size_t len);
/* The whole message; the caller's reference. */
struct wire_frame *batch_reply_end(struct batch_reply *reply, int64_t cursor_id, const char *ns);
/* Instead of batch_reply_end. */
void batch_reply_deinit(struct batch_reply *reply);

#endif
