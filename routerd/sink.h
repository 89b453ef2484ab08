/* $out and $merge: the documents of the stages before them, written in batches through the router's own write commands,
 * so that the target may be sharded or not. On the worker of the aggregate; blocks until all is written. */
#ifndef SHERD_ROUTERD_SINK_H
#define SHERD_ROUTERD_SINK_H

#include "routerd/aggregate_open.h"
#include "routerd/write_batch.h"

enum {
    SINK_BATCH_DOCS = 1000,
    SINK_BATCH_BYTES = 8 * 1024 * 1024, /* one document more than this is the most that is held */
};

/* Whether the last of the stages writes a collection. Pure. */
bool sink_named(struct bdoc stages);
/* Runs the request, whose last stage is one of the two, and answers with an empty cursor. */
enum command_status sink_run(struct command_ctx *ctx, const struct aggregate_request *request, struct err *err);

/* One run of either. */
struct sink {
    struct command_ctx *ctx;
    const struct aggregate_request *request;
    struct bval spec; /* the stage's operand */
    struct ns to;
    struct buf docs; /* the batch at hand, documents end to end */
    uint32_t count;  /* of documents in it */
    void *state;     /* of the stage's own file; in the context's arena */
};

/* Reads the documents of the request and calls `flush` for each batch, with at least one document in it. */
bool sink_feed(struct sink *sink, bool (*flush)(struct sink *sink, struct err *err), struct err *err) ERR_WARN_UNUSED;
/* What one write command takes, and what came of it. */
struct sink_batch {
    const struct ns *to;
    enum write_kind kind;
    const struct buf *docs; /* documents or statements, end to end */
    uint32_t count;
    int64_t n; /* out: as the command's reply counts */
};
/* Writes them through the router's write command. The first error of a statement is the whole's. */
bool sink_write(struct sink *sink, struct sink_batch *batch, struct err *err) ERR_WARN_UNUSED;
/* The target's names out of "coll" or {db, coll}: `into` is checked by the caller to be one of them. */
bool sink_target(struct sink *sink, const struct bval *into, struct err *err) ERR_WARN_UNUSED;

/* The two. */
bool sink_out_run(struct sink *sink, struct err *err) ERR_WARN_UNUSED;
bool sink_merge_run(struct sink *sink, struct err *err) ERR_WARN_UNUSED;

#endif
