/* A read without a cursor: what count and distinct have in common. On a worker. */
#ifndef SHERD_DOCUMENT_SIMPLE_READ_H
#define SHERD_DOCUMENT_SIMPLE_READ_H

#include "command/context.h"
#include "command/namespace.h"
#include "document/read_txn.h"
#include "document/read_plan.h"

struct simple_read {
    struct ns ns;
    struct bdoc filter;
    struct bdoc version;
    struct bval hint;
    struct expr_env env;
    struct filter *compiled;
    struct read_txn read;
    struct plan *plan; /* NULL until simple_read_plan */
    struct scan scan;
    const char *distinct; /* the caller's: the field whose values are wanted; NULL: none */
    bool explain;         /* the caller's: keep the plans that were rejected */
};

/* Reads the common fields (`known` as fields_check_known takes it), opens the transaction, compiles the filter. Called
 * on a zeroed struct; the caller ends with simple_read_close whatever the result. */
bool simple_read_open(struct simple_read *simple, struct command_ctx *ctx, const char *const *known,
                      struct err *err) ERR_WARN_UNUSED;
/* Makes the plan; the collection must exist. */
bool simple_read_plan(struct simple_read *simple, struct command_ctx *ctx, struct err *err) ERR_WARN_UNUSED;
/* Then scan_next on simple->scan. */
bool simple_read_scan(struct simple_read *simple, bool need_doc, struct err *err) ERR_WARN_UNUSED;
void simple_read_close(struct simple_read *simple);

/* count, for explain: its number of matches at which it stops (INT64_MAX: never). */
bool count_open(struct simple_read *simple, struct command_ctx *ctx, int64_t *skip, int64_t *limit,
                struct err *err) ERR_WARN_UNUSED;
/* No scan is needed: the collection's counter has the answer. */
bool count_is_counted(const struct simple_read *simple);
bool distinct_open(struct simple_read *simple, struct command_ctx *ctx, struct err *err) ERR_WARN_UNUSED;

#endif
