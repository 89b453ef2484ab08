/* explain: the plan of a find, aggregate, count, distinct, update, delete or findAndModify as MongoDB shows it, with
 * what it examined when it was run. Nothing is ever written. On a worker; blocks on LMDB. */
#ifndef SHERD_DOCUMENT_EXPLAIN_H
#define SHERD_DOCUMENT_EXPLAIN_H

#include "command/table.h"

enum explain_verbosity {
    EXPLAIN_QUERY_PLANNER,
    EXPLAIN_EXECUTION_STATS,
    EXPLAIN_ALL_PLANS,
};

/* {explain: {find: ...}, verbosity: "executionStats"} */
enum command_status explain_run(struct command_ctx *ctx, struct err *err);
/* Explains the command that `ctx` itself is; the answer goes into ctx->reply. */
enum command_status explain_of(struct command_ctx *ctx, enum explain_verbosity verbosity, struct err *err);

#endif
