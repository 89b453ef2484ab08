/* What $currentOp and currentOp show: the operations of the shards as their leaders tell them, or of this router alone.
 * On a worker; blocks. */
#ifndef SHERD_ROUTERD_CURRENT_OP_H
#define SHERD_ROUTERD_CURRENT_OP_H

#include "command/context.h"

enum {
    CURRENT_OP_TIMEOUT_MS = 10000, /* a shard that doesn't answer by then is left out */
};

struct current_op_options {
    bool local_ops; /* this router's own instead of the shards' */
};

/* The operand of $currentOp. ERR_FailedToParse for an unknown or ill-typed option. Pure. */
bool current_op_parse(const struct bval *spec, struct current_op_options *out, struct err *err) ERR_WARN_UNUSED;
/* Appends a document per operation, end to end, to `out`. */
bool current_op_collect(struct command_ctx *ctx, const struct current_op_options *options, struct buf *out,
                        struct err *err) ERR_WARN_UNUSED;

#endif
