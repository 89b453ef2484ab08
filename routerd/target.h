/* From a filter to the shards that may hold matching documents. Pure; on any thread. */
#ifndef SHERD_ROUTERD_TARGET_H
#define SHERD_ROUTERD_TARGET_H

#include "base/arena.h"
#include "cluster/routing.h"
#include "query/filter.h"

/* Why the targets are what they are: explain tells it. */
enum target_why {
    TARGET_BY_KEY,       /* the filter fixes the whole shard key */
    TARGET_BY_RANGE,     /* it narrows the key's range */
    TARGET_NO_PREDICATE, /* it says nothing about the shard key */
    TARGET_COLLATION,    /* it does, but its collation isn't that of the key */
    TARGET_NOTHING,      /* it can't match */
};

struct target {
    bool point;                  /* the filter fixes the whole shard key: one value, one shard */
    struct routing_target *list; /* in order of their first range; in the arena, bounds borrowed from the table too */
    size_t count;                /* 0: nothing can match */
    enum target_why why;
};

/* What is asked for. */
struct target_query {
    struct bdoc filter;         /* data NULL: every document */
    const struct expr_env *env; /* NULL: none. With a collation in it strings can't be targeted: shard keys are in order
                                   of bytes */
};

/* Errors: filter_compile's. */
bool target_filter(struct arena *arena, const struct routing_table *table, const struct target_query *query,
                   struct target *out, struct err *err) ERR_WARN_UNUSED;
/* What is left to do of an operation: the shards that own `ranges` now. */
void target_ranges(struct arena *arena, const struct routing_table *table, const struct key_range *ranges, size_t count,
                   struct target *out);
#endif
