#include "routerd/target.h"

#include "query/bounds.h"

void target_ranges(struct arena *arena, const struct routing_table *table, const struct key_range *ranges, size_t count,
                   struct target *out)
{
    *out = (struct target){0};
    out->count = routing_table_target(table, ranges, count, arena, &out->list);
}

static bool has_too_many_ranges(const struct target *target)
{
    for (size_t i = 0; i < target->count; i++)
        if (target->list[i].range_count > OP_VERSION_MAX_RANGES)
            return true;
    return false;
}

static void target_bounds(struct arena *arena, const struct routing_table *table, const struct bounds *bounds,
                          struct target *out)
{
    struct key_range all = routing_all_keys();
    if (bounds->all) {
        target_ranges(arena, table, &all, 1, out);
        out->why = TARGET_NO_PREDICATE;
        return;
    }
    struct key_range *ranges = arena_alloc(arena, (bounds->interval_count + 1) * sizeof *ranges);
    for (uint32_t i = 0; i < bounds->interval_count; i++) {
        const struct bounds_interval *interval = &bounds->intervals[i];
        ranges[i].min = (struct key_bytes){interval->low, interval->low_len};
        ranges[i].max = interval->high_len ? (struct key_bytes){interval->high, interval->high_len} : all.max;
    }
    target_ranges(arena, table, ranges, bounds->interval_count, out);
    /* A shard takes no longer list: all that it owns includes what is meant. */
    if (has_too_many_ranges(out))
        target_ranges(arena, table, &all, 1, out);
    out->why = out->count == 0 ? TARGET_NOTHING : TARGET_BY_RANGE;
    out->point = bounds->points && bounds->interval_count == 1 && out->count == 1;
    if (out->point)
        out->why = TARGET_BY_KEY;
}

/* The bounds of the shard key; `simple`: as if there were no collation. */
static bool find_bounds(struct arena *arena, const struct routing_table *table, const struct target_query *query,
                        bool simple, struct bounds *out, struct err *err)
{
    struct bounds_pattern pattern;
    struct filter *compiled;
    struct expr_env env = query->env ? *query->env : (struct expr_env){0};
    if (simple)
        env.order = NULL;
    struct bdoc filter = query->filter.data ? query->filter : bdoc_empty();
    if (!filter_compile(arena, filter, &env, &compiled, err))
        return false;
    bool ok = bounds_pattern_parse(shardkey_pattern(routing_table_key(table)), &pattern, err);
    if (ok) {
        pattern.shard_key = true;
        bounds_from_filter(arena, compiled, &pattern, out);
    }
    filter_release(compiled);
    return ok;
}

bool target_filter(struct arena *arena, const struct routing_table *table, const struct target_query *query,
                   struct target *out, struct err *err)
{
    struct bounds bounds, simple;
    struct err ignored;
    *out = (struct target){0};
    if (!find_bounds(arena, table, query, false, &bounds, err))
        return false;
    target_bounds(arena, table, &bounds, out);
    bool ordered = query->env && query->env->order;
    if (ordered && !out->point && find_bounds(arena, table, query, true, &simple, &ignored)) {
        struct target narrow = {0};
        target_bounds(arena, table, &simple, &narrow);
        if (narrow.point || narrow.count < out->count)
            out->why = TARGET_COLLATION;
    }
    return true;
}
