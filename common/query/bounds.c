#include "query/bounds.h"

#include "query/bounds_value.h"

#include <stdlib.h>
#include <string.h>

enum {
    BOUNDS_MAX_BRANCHES = 256, /* of $or; an $or with more narrows nothing */
};

/* The predicates that hold together: leaves of nested $and. */
struct conjunction {
    const struct filter_node **leaves;
    uint32_t count;
    uint32_t capacity;
};

struct builder {
    struct arena *arena;
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

static void add_leaf(struct arena *arena, struct conjunction *conj, const struct filter_node *leaf)
{
    if (conj->count == conj->capacity) {
        uint32_t capacity = conj->capacity == 0 ? 8 : conj->capacity * 2;
        const struct filter_node **leaves = arena_alloc(arena, capacity * sizeof(struct filter_node *));
        for (uint32_t i = 0; i < conj->count; i++)
            leaves[i] = conj->leaves[i];
        conj->leaves = leaves;
        conj->capacity = capacity;
    }
    conj->leaves[conj->count++] = leaf;
}

static void flatten(struct arena *arena, struct conjunction *conj, const struct filter_node *node)
{
    bool transparent = node->op == FILTER_AND || (node->op == FILTER_OR && node->children.count == 1);
    if (!transparent) {
        add_leaf(arena, conj, node);
        return;
    }
    for (uint32_t i = 0; i < node->children.count; i++)
        flatten(arena, conj, node->children.items[i]);
}

/* {a: {b: 5}} fixes the field "a.b" too. False: it says nothing about the field. */
static bool value_below(const struct filter_node *node, const char *path, struct bval *out)
{
    size_t len = node->path.len;
    if (node->op != FILTER_EQ || node->value.type != BT_DOCUMENT)
        return false;
    if (strncmp(path, node->path.text, len) != 0 || path[len] != '.')
        return false;
    path_get_str(bval_doc(&node->value), path + len + 1, out);
    return out->type != BT_ARRAY;
}

/* What the predicates say about one field; `consumed` counts those that it says exactly. */
static struct value_list field_values(const struct builder *b, const struct conjunction *conj,
                                      const struct bounds_field *field, uint32_t *consumed)
{
    struct value_list all = value_list_full();
    for (uint32_t i = 0; i < conj->count; i++) {
        const struct filter_node *leaf = conj->leaves[i];
        struct value_list one;
        struct bval below;
        if (leaf->path.text == NULL)
            continue;
        if (strcmp(leaf->path.text, field->path) == 0)
            one = value_list_of(b->arena, leaf, field, b->pattern->shard_key);
        else if (value_below(leaf, field->path, &below))
            one = value_list_point(b->arena, &below, field, false);
        else
            continue;
        if (one.full)
            continue;
        if (!b->pattern->multikey) {
            *consumed += one.exact ? 1 : 0;
            all = value_list_intersect(b->arena, &all, &one);
            continue;
        }
        /* Different elements of an array may satisfy different predicates: only one of them narrows the scan. */
        bool better = all.full || (value_list_is_points(&one) && !value_list_is_points(&all));
        if (better)
            all = one;
    }
    return all;
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

/* Each prefix followed by each interval of the next field. */
static struct prefixes multiply(struct builder *b, const struct prefixes *old, const struct value_list *values)
{
    struct prefixes next = {0};
    next.items = arena_alloc(b->arena, ((size_t)old->count * values->count + 1) * sizeof *next.items);
    for (uint32_t i = 0; i < old->count; i++) {
        for (uint32_t j = 0; j < values->count; j++) {
            const struct bounds_interval *value = &values->items[j].bytes;
            const struct bounds_interval *prefix = &old->items[i];
            struct bounds_interval *item = &next.items[next.count++];
            item->low = join(b->arena, prefix, value->low, value->low_len);
            item->low_len = prefix->low_len + value->low_len;
            item->high = join(b->arena, prefix, value->high, value->high_len);
            item->high_len = prefix->low_len + value->high_len;
        }
    }
    return next;
}

/* Intervals of one conjunction without $or. */
static void add_conjunction(struct builder *b, const struct conjunction *conj)
{
    struct prefixes prefixes = {.items = arena_alloc(b->arena, sizeof(struct bounds_interval)), .count = 1};
    uint32_t consumed = 0;
    uint32_t used = 0;
    uint32_t fixed = 0;
    bool points = true;
    bool exact = true;
    for (; used < b->pattern->field_count && points; used++) {
        uint32_t exactly = 0;
        struct value_list values = field_values(b, conj, &b->pattern->fields[used], &exactly);
        if (values.full || (uint64_t)prefixes.count * values.count > BOUNDS_MAX_INTERVALS)
            break;
        points = value_list_is_points(&values);
        fixed += fixed == used && values.count == 1 && points ? 1 : 0;
        exact = exact && values.exact;
        consumed += exactly;
        prefixes = multiply(b, &prefixes, &values);
    }
    if (used == 0)
        b->all = true;
    b->out->exact = b->out->exact && exact && consumed == conj->count && !b->pattern->multikey;
    b->out->points = b->out->points && points && used == b->pattern->field_count;
    b->out->fixed_fields = b->branches == 0 ? fixed : 0;
    b->out->used_fields = b->branches == 0 || used < b->out->used_fields ? used : b->out->used_fields;
    b->branches++;
    for (uint32_t i = 0; i < prefixes.count && used > 0; i++)
        add_key_interval(b, &prefixes.items[i]);
}

static bool never(const struct conjunction *conj)
{
    for (uint32_t i = 0; i < conj->count; i++) {
        const struct filter_node *leaf = conj->leaves[i];
        bool empty_in = leaf->op == FILTER_IN && leaf->in.count == 0 && leaf->in.regex_count == 0;
        if (leaf->op == FILTER_FALSE || empty_in)
            return true;
    }
    return false;
}

/* The first $or is multiplied out: its branches, each with the rest of the predicates. */
static void add_branches(struct builder *b, const struct conjunction *conj)
{
    if (b->all || never(conj))
        return;
    uint32_t at = 0;
    while (at < conj->count && conj->leaves[at]->op != FILTER_OR)
        at++;
    if (at == conj->count) {
        add_conjunction(b, conj);
        return;
    }
    const struct filter_nodes *choices = &conj->leaves[at]->children;
    if (b->branches + choices->count > BOUNDS_MAX_BRANCHES) {
        add_conjunction(b, conj); /* what the other predicates say holds all the same */
        return;
    }
    for (uint32_t i = 0; i < choices->count; i++) {
        struct conjunction branch = {0};
        for (uint32_t j = 0; j < conj->count; j++)
            if (j != at)
                add_leaf(b->arena, &branch, conj->leaves[j]);
        flatten(b->arena, &branch, choices->items[i]);
        add_branches(b, &branch);
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
    struct builder b = {.arena = arena, .pattern = pattern, .out = out};
    struct conjunction conj = {0};
    *out = (struct bounds){.exact = true, .points = true};
    flatten(arena, &conj, filter->root);
    add_branches(&b, &conj);
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
