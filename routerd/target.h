/* From a filter to the shards that may hold matching documents. Pure; on any thread. */
#ifndef SHERD_ROUTERD_TARGET_H
#define SHERD_ROUTERD_TARGET_H

#include "base/arena.h"
#include "cluster/routing.h"
#include "query/filter.h"

struct target {
    bool point;                  /* the filter fixes the whole shard key: one value, one shard */
    struct routing_target *list; /* in order of their first range; in the arena, bounds borrowed from the table too */
    size_t count;                /* 0: nothing can match */
};

/* What is asked for. */
struct target_query {
    struct bdoc filter;    /* data NULL: every document */
    struct bdoc collation; /* data NULL: none. One that isn't simple keeps strings from being targeted: every shard */
    const struct expr_env *env; /* NULL: none */
};

/* Errors: filter_compile's. */
bool target_filter(struct arena *arena, const struct routing_table *table, const struct target_query *query,
                   struct target *out, struct err *err) ERR_WARN_UNUSED;
/* What is left to do of an operation: the shards that own `ranges` now. */
void target_ranges(struct arena *arena, const struct routing_table *table, const struct key_range *ranges, size_t count,
                   struct target *out);
/* {locale: "simple"} or none. */
bool target_collation_is_simple(struct bdoc collation);

#endif
