#include "query/bounds.h"

#include "query/bounds_key.h"

#include <stdlib.h>
#include <string.h>

struct builder {
    struct arena *arena;
    const struct filter *filter;
    const struct bounds_pattern *pattern;
    struct bounds *out;
    uint32_t capacity;
    uint32_t branches;
    bool all; /* some branch allows everything */
};

bool bounds_pattern_parse(struct bdoc key, struct bounds_pattern *out, struct err *err)
{
    struct biter iter;
    struct belem elem;
    *out = (struct bounds_pattern){0};
    biter_init(&iter, key);
    while (biter_next(&iter, &elem)) {
        double direction = 1;
        if (out->field_count == BOUNDS_MAX_FIELDS)
            return err_set(err, ERR_CannotCreateIndex, "a key pattern has at most %d fields", BOUNDS_MAX_FIELDS);
        bool hashed = bval_is_str(&elem.val, "hashed");
        if (!hashed && (!bval_is_number(&elem.val) || !bval_to_f64(&elem.val, &direction)))
            return err_set(err, ERR_CannotCreateIndex, "Values in v:2 index key pattern cannot be of type %s",
                           bval_type_name(elem.val.type));
        out->fields[out->field_count++] =
            (struct bounds_field){.path = elem.key, .descending = direction < 0, .hashed = hashed};
    }
    return true;
}

static void add_key_interval(struct builder *b, const struct bounds_interval *interval)
{
    if (b->out->interval_count == b->capacity) {
        uint32_t capacity = b->capacity == 0 ? 4 : b->capacity * 2;
        struct bounds_interval *items = arena_alloc(b->arena, capacity * sizeof *items);
        if (b->out->interval_count > 0)
            memcpy(items, b->out->intervals, b->out->interval_count * sizeof *items);
        b->out->intervals = items;
        b->capacity = capacity;
    }
    b->out->intervals[b->out->interval_count++] = *interval;
}

struct prefixes {
    struct bounds_interval *items; /* low: the bytes so far; high: these with 0xff behind */
    uint32_t count;
};

static const uint8_t *join(struct arena *arena, const struct bounds_interval *prefix, const uint8_t *bytes,
                           uint32_t len)
{
    uint8_t *joined = arena_alloc(arena, prefix->low_len + len + 1);
    if (prefix->low_len > 0)
        memcpy(joined, prefix->low, prefix->low_len);
    if (len > 0)
        memcpy(joined + prefix->low_len, bytes, len);
    return joined;
}

static void join_interval(struct arena *arena, const struct bounds_interval *prefix,
                          const struct bounds_interval *value, struct bounds_interval *out)
{
    out->low = join(arena, prefix, value->low, value->low_len);
    out->low_len = prefix->low_len + value->low_len;
    out->high = join(arena, prefix, value->high, value->high_len);
    out->high_len = prefix->low_len + value->high_len;
    if (value->high_len == 0 && prefix->low_len > 0) {
        /* No upper end: everything that begins with the prefix. No component begins with 0xff. */
        uint8_t *high = arena_alloc(arena, prefix->low_len + 1);
        memcpy(high, prefix->low, prefix->low_len);
        high[prefix->low_len] = 0xff;
        out->high = high;
        out->high_len = prefix->low_len + 1;
    }
}

/* Each prefix followed by each interval of the next field. */
static struct prefixes multiply(struct builder *b, const struct prefixes *old, const struct value_list *values)
{
    struct prefixes next = {0};
    next.items = arena_alloc(b->arena, ((size_t)old->count * values->count + 1) * sizeof *next.items);
    for (uint32_t i = 0; i < old->count; i++)
        for (uint32_t j = 0; j < values->count; j++)
            join_interval(b->arena, &old->items[i], &values->items[j].bytes, &next.items[next.count++]);
    return next;
}

/* More intervals than a product may have: one around them all. */
static struct value_list around(struct arena *arena, const struct value_list *list)
{
    struct value_list one = {.items = arena_copy(arena, list->items, sizeof *list->items), .count = 1};
    const struct value_interval *last = &list->items[list->count - 1];
    one.items->point = false;
    one.items->bytes.high = last->bytes.high;
    one.items->bytes.high_len = last->bytes.high_len;
    return one;
}

/* Intervals of one conjunction without $or. */
static void add_conjunction(struct builder *b, const struct conjunction *conj)
{
    struct prefixes prefixes = {.items = arena_alloc(b->arena, sizeof(struct bounds_interval)), .count = 1};
    struct key_bounds key;
    uint32_t used = 0;
    bool points = true;
    bool whole = true; /* every list is in the product as it stands */
    key_bounds_of_conjunction(b->arena, b->filter, conj, b->pattern, &key);
    for (; used < key.field_count && points; used++) {
        struct value_list values = key.fields[used];
        if (!values.full && used == 0 && values.count > BOUNDS_MAX_INTERVALS) {
            values = around(b->arena, &values);
            whole = false;
        }
        if (values.full || (uint64_t)prefixes.count * values.count > BOUNDS_MAX_INTERVALS)
            break;
        points = value_list_is_points(&values);
        prefixes = multiply(b, &prefixes, &values);
    }
    if (used == 0)
        b->all = true;
    for (uint32_t i = used; i < key.field_count; i++)
        whole = whole && key.fields[i].full;
    b->out->exact = b->out->exact && key.exact && whole;
    b->out->points = b->out->points && points && used == b->pattern->field_count;
    b->out->fixed_fields = b->branches == 0 ? (key.fixed_fields < used ? key.fixed_fields : used) : 0;
    b->out->used_fields = b->branches == 0 || used < b->out->used_fields ? used : b->out->used_fields;
    b->branches++;
    for (uint32_t i = 0; i < prefixes.count && used > 0; i++)
        add_key_interval(b, &prefixes.items[i]);
}

/* The first $or is multiplied out: its branches, each with the rest of the predicates. `depth` $or were already. */
static void add_branches(struct builder *b, const struct conjunction *conj, uint32_t depth)
{
    if (b->all || conjunction_is_never(conj))
        return;
    uint32_t at = 0;
    while (at < conj->count && conj->leaves[at]->op != FILTER_OR)
        at++;
    if (at == conj->count || depth == BOUNDS_MAX_DEPTH || conj->count > BOUNDS_MAX_PREDICATES ||
        b->branches + conj->leaves[at]->children.count > BOUNDS_MAX_BRANCHES) {
        add_conjunction(b, conj); /* what the other predicates say holds all the same */
        return;
    }
    const struct filter_nodes *choices = &conj->leaves[at]->children;
    for (uint32_t i = 0; i < choices->count; i++) {
        struct conjunction branch = {0};
        for (uint32_t j = 0; j < conj->count; j++)
            if (j != at)
                conjunction_add(b->arena, &branch, conj->leaves[j]);
        conjunction_flatten(b->arena, &branch, choices->items[i]);
        add_branches(b, &branch, depth + 1);
    }
}

static int compare_lows(const void *a, const void *b)
{
    const struct bounds_interval *x = a;
    const struct bounds_interval *y = b;
    return bounds_compare_bytes(x->low, x->low_len, y->low, y->low_len);
}

static void merge_intervals(struct bounds *out)
{
    if (out->interval_count < 2)
        return;
    qsort(out->intervals, out->interval_count, sizeof *out->intervals, compare_lows);
    uint32_t kept = 1;
    for (uint32_t i = 1; i < out->interval_count; i++) {
        struct bounds_interval *last = &out->intervals[kept - 1];
        const struct bounds_interval *next = &out->intervals[i];
        bool apart =
            last->high_len != 0 && bounds_compare_bytes(next->low, next->low_len, last->high, last->high_len) >= 0;
        if (apart) {
            out->intervals[kept++] = *next;
        } else if (bounds_high_below(last, next)) {
            last->high = next->high;
            last->high_len = next->high_len;
        }
    }
    out->interval_count = kept;
}

void bounds_from_filter(struct arena *arena, const struct filter *filter, const struct bounds_pattern *pattern,
                        struct bounds *out)
{
    struct builder b = {.arena = arena, .filter = filter, .pattern = pattern, .out = out};
    struct conjunction conj = {0};
    *out = (struct bounds){.exact = true, .points = true};
    conjunction_flatten(arena, &conj, filter->root);
    add_branches(&b, &conj, 0);
    if (!b.all) {
        merge_intervals(out);
        return;
    }
    *out = (struct bounds){.all = true};
    out->exact = filter_is_empty(filter);
    out->intervals = arena_alloc(arena, sizeof *out->intervals);
    out->intervals[0] = (struct bounds_interval){.low = (const uint8_t *)"", .high = (const uint8_t *)""};
    out->interval_count = 1;
}

bool bounds_contains(const struct bounds *bounds, const uint8_t *key, uint32_t key_len)
{
    uint32_t low = 0;
    uint32_t high = bounds->interval_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct bounds_interval *at = &bounds->intervals[middle];
        if (bounds_compare_bytes(key, key_len, at->low, at->low_len) < 0)
            high = middle;
        else if (at->high_len != 0 && bounds_compare_bytes(key, key_len, at->high, at->high_len) >= 0)
            low = middle + 1;
        else
            return true;
    }
    return false;
}

bool bounds_overlaps(const struct bounds *bounds, const uint8_t *low, uint32_t low_len, const uint8_t *high,
                     uint32_t high_len)
{
    for (uint32_t i = 0; i < bounds->interval_count; i++) {
        const struct bounds_interval *at = &bounds->intervals[i];
        bool before = at->high_len != 0 && bounds_compare_bytes(at->high, at->high_len, low, low_len) <= 0;
        bool after = high_len != 0 && bounds_compare_bytes(at->low, at->low_len, high, high_len) >= 0;
        if (!before && !after)
            return true;
    }
    return false;
}
