/* How explain writes down a plan and what it examined. Pure; called by the files of explain only. */
#ifndef SHERD_DOCUMENT_EXPLAIN_PRINT_H
#define SHERD_DOCUMENT_EXPLAIN_PRINT_H

#include "document/explain.h"
#include "plan/tree.h"
#include "query/sorter.h"

/* What running the plan gave; zeroed when it was not run. */
struct explain_counts {
    uint64_t returned;
    uint64_t keys_examined;
    uint64_t docs_examined;
    uint64_t works; /* of the scan */
    int64_t millis;
    struct err failure;          /* code 0: it ran to its end */
    struct sorter_stats spilled; /* SORT */
    uint64_t skipped;            /* COUNT */
    uint64_t matched;            /* UPDATE, DELETE */
    uint64_t would_modify;       /* UPDATE */
    bool would_upsert;           /* UPDATE */
};

struct explain_info {
    enum explain_verbosity verbosity;
    const char *ns;
    const struct filter *filter; /* NULL: none was given */
    struct bdoc projection;      /* as asked; data NULL: none */
    const struct plan *plan;     /* NULL: there is no such collection */
    struct plan_shape shape;     /* what stands above a rejected plan; the sort as asked */
    struct plan_node *tree;      /* its stages and those above; NULL likewise */
    struct explain_counts counts;
};

/* queryPlanner and, as far as the verbosity asks for it, executionStats. */
void explain_append_plan(const struct explain_info *info, bson_t *out);
/* command, serverInfo, serverParameters; `host` is "host:port". */
void explain_append_server(const struct command_ctx *ctx, const char *host, bson_t *out);

#endif
