#include "routerd/target.h"

#include "query/bounds.h"

bool target_collation_is_simple(struct bdoc collation)
{
    struct bval locale;
    return !collation.data || bdoc_is_empty(collation) ||
           (bdoc_find(collation, "locale", &locale) && bval_is_str(&locale, "simple"));
}

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
    out->point = bounds->points && bounds->interval_count == 1 && out->count == 1;
}

bool target_filter(struct arena *arena, const struct routing_table *table, const struct target_query *query,
                   struct target *out, struct err *err)
{
    struct bounds_pattern pattern;
    struct filter *compiled;
    struct bounds bounds;
    *out = (struct target){0};
    if (!filter_compile(arena, query->filter.data ? query->filter : bdoc_empty(), query->env, &compiled, err))
        return false;
    if (!target_collation_is_simple(query->collation)) {
        bounds = (struct bounds){.all = true};
    } else if (!bounds_pattern_parse(shardkey_pattern(routing_table_key(table)), &pattern, err)) {
        filter_release(compiled);
        return false;
    } else {
        pattern.shard_key = true;
        bounds_from_filter(arena, compiled, &pattern, &bounds);
    }
    target_bounds(arena, table, &bounds, out);
    filter_release(compiled);
    return true;
}
