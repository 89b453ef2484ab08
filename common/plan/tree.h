/* A plan as explain shows it: a tree of stages with MongoDB's names, made from a plan and from what the command does
 * with its documents, and filled with counters once it was run. Called by explain on a worker; pure. */
#ifndef SHERD_PLAN_TREE_H
#define SHERD_PLAN_TREE_H

#include "plan/plan.h"

enum plan_stage {
    STAGE_EOF,
    STAGE_IDHACK,
    STAGE_COLLSCAN,
    STAGE_IXSCAN,
    STAGE_COUNT_SCAN,
    STAGE_DISTINCT_SCAN,
    STAGE_FETCH,
    STAGE_OR,
    STAGE_SORT_MERGE,
    STAGE_SHARDING_FILTER,
    STAGE_SORT,
    STAGE_SKIP,
    STAGE_LIMIT,
    STAGE_PROJECTION_SIMPLE,
    STAGE_PROJECTION_COVERED,
    STAGE_PROJECTION_DEFAULT,
    STAGE_COUNT,
    STAGE_RECORD_STORE_COUNT,
    STAGE_UPDATE,
    STAGE_DELETE,
};

/* Of one stage, as executionStats shows it. */
struct plan_counters {
    uint64_t works;    /* steps */
    uint64_t advanced; /* results handed on */
    uint64_t keys_examined;
    uint64_t docs_examined;
    uint64_t seeks;       /* IXSCAN: places looked up in the index */
    uint64_t dups_tested; /* OR, SORT_MERGE, multikey IXSCAN */
    uint64_t dups_dropped;
    uint64_t chunk_skips; /* SHARDING_FILTER: documents that the shard doesn't own */
    bool eof;
};

struct plan_node {
    enum plan_stage stage;
    struct plan_node **children;
    uint32_t child_count;
    const struct plan_scan *scan; /* IXSCAN, COUNT_SCAN, DISTINCT_SCAN */
    bool backward;                /* COLLSCAN, IXSCAN */
    const struct filter *filter;  /* what the stage tests; NULL: nothing */
    const struct sort_spec *sort; /* SORT, SORT_MERGE */
    uint64_t number;              /* LIMIT's limit, SKIP's skip, SORT's limit (0: none) */
    const struct projection *projection;
    struct plan_counters counters; /* zero until plan_tree_count */
};

/* What stands above the plan's own stages. */
struct plan_shape {
    bool sharding_filter;                /* documents are tested for ownership */
    const struct sort_spec *sort;        /* done in memory; NULL: none, or the plan gives the order */
    uint64_t skip;                       /* 0: none */
    uint64_t limit;                      /* 0: none */
    const struct projection *projection; /* NULL: none */
    bool count;                          /* COUNT at the top */
};

const char *plan_stage_name(enum plan_stage stage);
/* In the arena; borrows the plan. */
struct plan_node *plan_tree_new(struct arena *arena, const struct plan *plan, const struct plan_shape *shape);
struct scan;
/* Fills the counters of the plan's own stages (COLLSCAN, IXSCAN, FETCH, OR, SHARDING_FILTER ...) from the scan that ran
 * it, and copies what left them into the stages above; SORT, SKIP, LIMIT and PROJECTION can then be corrected by the
 * caller, who alone knows what came out of them. */
void plan_tree_count(struct plan_node *tree, const struct scan *scan);
/* indexBounds: {a: ["[1.0, 5.0)"], b: ["[MinKey, MaxKey]"]}; `out` is under construction. */
void plan_bounds_append(const struct plan_scan *scan, bson_t *out);

#endif
