#include "query/bounds_value.h"

#include "bson/hash.h"
#include "bson/keyenc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One end of an interval before it is encoded. */
enum end_kind {
    END_BELOW_CLASS, /* before every value of the class */
    END_ABOVE_CLASS,
    END_VALUE,         /* the value itself lies inside */
    END_VALUE_OUTSIDE, /* the value itself lies outside */
};

struct end {
    enum end_kind kind;
    struct bval val;
};

struct builder {
    struct arena *arena;
    const struct bounds_field *field;
    struct value_list list;
    uint32_t capacity;
};

int bounds_compare_bytes(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len)
{
    uint32_t common = a_len < b_len ? a_len : b_len;
    int order = common > 0 ? memcmp(a, b, common) : 0;
    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

bool bounds_high_below(const struct bounds_interval *a, const struct bounds_interval *b)
{
    if (a->high_len == 0)
        return false;
    return b->high_len == 0 || bounds_compare_bytes(a->high, a->high_len, b->high, b->high_len) < 0;
}

static void add_interval(struct builder *b, struct value_interval interval)
{
    if (b->list.count == b->capacity) {
        uint32_t capacity = b->capacity == 0 ? 2 : b->capacity * 2;
        struct value_interval *items = arena_alloc(b->arena, capacity * sizeof *items);
        if (b->list.count > 0)
            memcpy(items, b->list.items, b->list.count * sizeof *items);
        b->list.items = items;
        b->capacity = capacity;
    }
    b->list.items[b->list.count++] = interval;
}

/* Moves the buffer's bytes into the arena, with `extra` bytes 0xff behind them. */
static const uint8_t *keep(struct builder *b, struct buf *take, int extra, uint32_t *len)
{
    for (int i = 0; i < extra; i++)
        buf_append_u8(take, 0xff);
    *len = (uint32_t)take->len;
    const uint8_t *bytes = arena_copy(b->arena, take->data, take->len);
    buf_deinit(take);
    return bytes;
}

/* `at_low`: the end stands at the encoded interval's beginning. */
static const uint8_t *encode_end(struct builder *b, const struct end *end, bool at_low, uint32_t *len)
{
    struct buf buf = BUF_INIT;
    bool descending = b->field->descending;
    switch (end->kind) {
    case END_BELOW_CLASS:
        keyenc_append_before_class(&buf, end->val.type, descending);
        return keep(b, &buf, 0, len);
    case END_ABOVE_CLASS:
        keyenc_append_after_class(&buf, end->val.type, descending);
        return keep(b, &buf, 0, len);
    default:
        keyenc_append(&buf, &end->val, descending);
        /* Behind the value: all keys that begin with it are less than it plus 0xff. */
        return keep(b, &buf, (end->kind == END_VALUE) == at_low ? 0 : 1, len);
    }
}

/* Ends in the order of values; a descending field turns them round. */
static void add_range(struct builder *b, struct end low, struct end high)
{
    struct value_interval interval = {0};
    const struct end *first = b->field->descending ? &high : &low;
    const struct end *last = b->field->descending ? &low : &high;
    interval.bytes.low = encode_end(b, first, true, &interval.bytes.low_len);
    interval.bytes.high = encode_end(b, last, false, &interval.bytes.high_len);
    if (bounds_compare_bytes(interval.bytes.low, interval.bytes.low_len, interval.bytes.high, interval.bytes.high_len) <
        0)
        add_interval(b, interval);
}

static void add_point(struct builder *b, const struct bval *val)
{
    struct value_interval interval = {.point = true};
    struct buf low = BUF_INIT;
    if (b->field->hashed)
        keyenc_append_i64(&low, bval_hash(val), b->field->descending);
    else
        keyenc_append(&low, val, b->field->descending);
    struct buf high = BUF_INIT;
    buf_append(&high, low.data, low.len);
    interval.bytes.low = keep(b, &low, 0, &interval.bytes.low_len);
    interval.bytes.high = keep(b, &high, 1, &interval.bytes.high_len);
    add_interval(b, interval);
}

struct value_list value_list_full(void)
{
    return (struct value_list){.full = true};
}

struct value_list value_list_point(struct arena *arena, const struct bval *val, const struct bounds_field *field,
                                   bool exact)
{
    struct builder b = {.arena = arena, .field = field, .list.exact = exact && !field->hashed};
    add_point(&b, val);
    return b.list;
}

static int compare_intervals(const void *a, const void *b)
{
    const struct value_interval *x = a;
    const struct value_interval *y = b;
    return bounds_compare_bytes(x->bytes.low, x->bytes.low_len, y->bytes.low, y->bytes.low_len);
}

/* Sorts and joins what overlaps. */
static void order_list(struct value_list *list)
{
    if (list->count < 2)
        return;
    qsort(list->items, list->count, sizeof *list->items, compare_intervals);
    uint32_t kept = 1;
    for (uint32_t i = 1; i < list->count; i++) {
        struct value_interval *last = &list->items[kept - 1];
        const struct value_interval *next = &list->items[i];
        bool apart = last->bytes.high_len != 0 && bounds_compare_bytes(next->bytes.low, next->bytes.low_len,
                                                                       last->bytes.high, last->bytes.high_len) >= 0;
        if (apart) {
            list->items[kept++] = *next;
            continue;
        }
        if (bounds_high_below(&last->bytes, &next->bytes)) {
            last->bytes.high = next->bytes.high;
            last->bytes.high_len = next->bytes.high_len;
            last->point = false;
        }
    }
    list->count = kept;
}

/* Equality with an array may be met by an element as well: no interval says that. */
static bool has_point(const struct bval *val)
{
    return val->type != BT_ARRAY && val->type != BT_UNDEFINED;
}

static struct value_list list_of_equality(struct arena *arena, const struct bval *val, const struct bounds_field *field)
{
    return has_point(val) ? value_list_point(arena, val, field, val->type != BT_NULL) : value_list_full();
}

static bool is_nan(const struct bval *val)
{
    double number;
    return bval_is_number(val) && bval_to_f64(val, &number) && isnan(number);
}

/* Is the order among values of this class the order of the keys, with nothing else in between? */
static bool class_has_ranges(enum bclass class_of)
{
    switch (class_of) {
    case BCLASS_NUMBER:
    case BCLASS_STRING:
    case BCLASS_DOCUMENT:
    case BCLASS_BINARY:
    case BCLASS_OBJECT_ID:
    case BCLASS_BOOL:
    case BCLASS_DATE:
    case BCLASS_TIMESTAMP:
        return true;
    default:
        return false;
    }
}

static struct value_list list_of_order(struct arena *arena, const struct filter_node *node,
                                       const struct bounds_field *field)
{
    struct builder b = {.arena = arena, .field = field, .list.exact = true};
    if (field->hashed || !class_has_ranges(node->class_of) || is_nan(&node->value))
        return value_list_full();
    bool number = node->class_of == BCLASS_NUMBER;
    static const double nan_value = NAN;
    struct bval nan_val = {.type = BT_DOUBLE, .len = sizeof nan_value, .data = (const uint8_t *)&nan_value};
    struct end low = {END_BELOW_CLASS, node->value};
    struct end high = {END_ABOVE_CLASS, node->value};
    /* NaN is the least number but less than nothing. */
    if (number)
        low = (struct end){END_VALUE_OUTSIDE, nan_val};
    switch (node->op) {
    case FILTER_LT:
        high = (struct end){END_VALUE_OUTSIDE, node->value};
        break;
    case FILTER_LTE:
        high = (struct end){END_VALUE, node->value};
        break;
    case FILTER_GT:
        low = (struct end){END_VALUE_OUTSIDE, node->value};
        break;
    default:
        low = (struct end){END_VALUE, node->value};
        break;
    }
    add_range(&b, low, high);
    return b.list;
}

/* Strings that begin with `prefix`, or all strings; and the expression itself as a stored value. */
static void add_regex(struct builder *b, const struct filter_node *node)
{
    const char *flags;
    const char *prefix;
    bool whole;
    const char *pattern = bval_regex(&node->value, &flags);
    size_t len = regex_literal_prefix(pattern, flags, &prefix, &whole);
    add_point(b, &node->value);
    struct bval text = make_str(b->arena, len > 0 ? prefix : "", len);
    if (len == 0) {
        add_range(b, (struct end){END_BELOW_CLASS, text}, (struct end){END_ABOVE_CLASS, text});
        return;
    }
    /* The encoded string without its end mark is what all these keys begin with; an inverted end mark is 0xff itself.
     */
    struct value_interval interval = {0};
    struct buf low = BUF_INIT;
    keyenc_append(&low, &text, b->field->descending);
    low.len--;
    struct buf high = BUF_INIT;
    buf_append(&high, low.data, low.len);
    interval.bytes.low = keep(b, &low, 0, &interval.bytes.low_len);
    interval.bytes.high = keep(b, &high, 2, &interval.bytes.high_len);
    add_interval(b, interval);
}

/* Too many values for an interval each: one from the least to the greatest. */
static struct value_list list_around(struct arena *arena, const struct filter_members *in,
                                     const struct bounds_field *field)
{
    struct builder b = {.arena = arena, .field = field};
    if (field->hashed || in->regex_count > 0)
        return value_list_full();
    for (uint32_t i = 0; i < in->count; i++)
        if (!has_point(&in->values[i]))
            return value_list_full();
    add_range(&b, (struct end){END_VALUE, in->values[0]}, (struct end){END_VALUE, in->values[in->count - 1]});
    return b.list;
}

static struct value_list list_of_members(struct arena *arena, const struct filter_node *node,
                                         const struct bounds_field *field)
{
    struct builder b = {.arena = arena, .field = field};
    const struct filter_members *in = &node->in;
    if (in->regex_count > 0 && field->hashed)
        return value_list_full();
    if (in->count > BOUNDS_MAX_INTERVALS)
        return list_around(arena, in, field);
    b.list.exact = in->regex_count == 0 && !in->has_null && !field->hashed;
    for (uint32_t i = 0; i < in->count; i++) {
        if (!has_point(&in->values[i]))
            return value_list_full();
        add_point(&b, &in->values[i]);
    }
    for (uint32_t i = 0; i < in->regex_count; i++)
        add_regex(&b, in->regexes[i]);
    order_list(&b.list);
    return b.list;
}

/* {$elemMatch: {$gt: 1, $lt: 5}}: one element satisfies them all, so they may be intersected even in a multikey index.
 */
static struct value_list list_of_element(struct arena *arena, const struct filter_node *node,
                                         const struct bounds_field *field)
{
    struct value_list all = value_list_full();
    for (uint32_t i = 0; i < node->children.count; i++) {
        struct value_list one = value_list_of(arena, node->children.items[i], field, false);
        all = value_list_intersect(arena, &all, &one);
    }
    all.exact = false;
    return all;
}

struct value_list value_list_of(struct arena *arena, const struct filter_node *node, const struct bounds_field *field,
                                bool shard_key)
{
    switch (node->op) {
    case FILTER_EQ:
        return list_of_equality(arena, &node->value, field);
    case FILTER_LT:
    case FILTER_LTE:
    case FILTER_GT:
    case FILTER_GTE:
        return list_of_order(arena, node, field);
    case FILTER_IN:
        return list_of_members(arena, node, field);
    case FILTER_REGEX: {
        struct builder b = {.arena = arena, .field = field};
        if (field->hashed)
            return value_list_full();
        add_regex(&b, node);
        order_list(&b.list);
        return b.list;
    }
    case FILTER_ELEM_VALUE:
        return shard_key ? value_list_full() : list_of_element(arena, node, field);
    default:
        return value_list_full();
    }
}

struct value_list value_list_intersect(struct arena *arena, const struct value_list *a, const struct value_list *b)
{
    if (a->full)
        return *b;
    if (b->full)
        return *a;
    struct builder both = {.arena = arena, .list.exact = a->exact && b->exact};
    uint32_t i = 0;
    uint32_t j = 0;
    while (i < a->count && j < b->count) {
        const struct value_interval *x = &a->items[i];
        const struct value_interval *y = &b->items[j];
        bool x_starts_later = bounds_compare_bytes(x->bytes.low, x->bytes.low_len, y->bytes.low, y->bytes.low_len) >= 0;
        bool x_ends_first = bounds_high_below(&x->bytes, &y->bytes);
        struct value_interval meet = x_starts_later ? *x : *y;
        meet.bytes.high = x_ends_first ? x->bytes.high : y->bytes.high;
        meet.bytes.high_len = x_ends_first ? x->bytes.high_len : y->bytes.high_len;
        meet.point = x->point || y->point;
        if (meet.bytes.high_len == 0 ||
            bounds_compare_bytes(meet.bytes.low, meet.bytes.low_len, meet.bytes.high, meet.bytes.high_len) < 0)
            add_interval(&both, meet);
        if (x_ends_first)
            i++;
        else
            j++;
    }
    return both.list;
}

bool value_list_is_points(const struct value_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (!list->items[i].point)
            return false;
    return !list->full;
}
