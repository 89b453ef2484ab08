/* The engine under insert, update, delete and bulkWrite: statements of one kind on one namespace, sent to the shards
 * that own what they touch, side by side where the order is not promised, again where a routing table was old, and one
 * list of errors with the client's indexes. Documents go out as views of the client's message. On a worker; blocks. */
#ifndef SHERD_ROUTERD_WRITE_BATCH_H
#define SHERD_ROUTERD_WRITE_BATCH_H

#include "command/batch.h"
#include "command/namespace.h"
#include "command/reply.h"
#include "routerd/route.h"
#include "routerd/target.h"

enum write_kind {
    WRITE_INSERT,
    WRITE_UPDATE,
    WRITE_DELETE,
};

enum write_state {
    WRITE_PENDING,
    WRITE_DONE,
    WRITE_FAILED, /* its error is in the result */
};

struct write_item {
    struct bdoc doc;          /* a document, or a statement as update and delete take it */
    struct wire_frame *owner; /* whose bytes these are; NULL: the arena's */
    uint32_t index;           /* the client's */
    uint8_t state;            /* enum write_state */
    struct bdoc key_doc;      /* its shard key says where the statement goes; data NULL: the statement itself does */
    struct key_range *todo;   /* ranges that a statement over several shards still has to visit; NULL: all */
    size_t todo_count;
};

struct write_batch {
    struct command_ctx *ctx; /* memory and deadline; borrowed */
    enum write_kind kind;
    struct ns ns;
    bool ordered;
    struct write_item *items; /* in the context's arena */
    uint32_t count;
    uint32_t first; /* all items before it are done or failed */
    bson_t common;  /* further fields of each request: lsid, let, bypassDocumentValidation ... */
    struct write_result result;
    bool executed; /* something was carried out */
    bool unknown;  /* something may have been */
};

/* Reads the statements of the command's own kind-1 section or array `field`; adds the fields of the body that go along.
 * The caller ends with write_batch_deinit, also after a failure. */
bool write_batch_init(struct write_batch *batch, struct command_ctx *ctx, enum write_kind kind,
                      struct err *err) ERR_WARN_UNUSED;
/* An empty one, for `count` items that the caller fills in. */
void write_batch_init_items(struct write_batch *batch, struct command_ctx *ctx, enum write_kind kind, uint32_t count);
/* Puts an ObjectId in front of a document that has no _id, as drivers do. */
void write_item_add_id(struct write_batch *batch, struct write_item *item);
void write_batch_deinit(struct write_batch *batch);
/* True: the result says what happened to each statement. False: the whole command failed and nothing was carried out;
 * or it did for all we know, then err says so. */
bool write_batch_run(struct write_batch *batch, struct err *err) ERR_WARN_UNUSED;
/* Brings the result's errors into the order of the client's indexes. */
void write_batch_sort_errors(struct write_batch *batch);
/* The first of the result's errors, which there must be. */
void write_batch_first_error(const struct write_batch *batch, struct err *err);
/* Name of the command and of its list of statements. */
const char *write_kind_command(enum write_kind kind);
const char *write_kind_field(enum write_kind kind);

#endif
