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
    const struct value_target *target;
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

/* The one ends before the other begins. */
static bool lies_before(const struct bounds_interval *a, const struct bounds_interval *b)
{
    return a->high_len != 0 && bounds_compare_bytes(b->low, b->low_len, a->high, a->high_len) >= 0;
}

static void add_interval(struct arena *arena, struct value_list *list, uint32_t *capacity,
                         const struct value_interval *interval)
{
    if (list->count == *capacity) {
        *capacity = *capacity == 0 ? 2 : *capacity * 2;
        struct value_interval *items = arena_alloc(arena, *capacity * sizeof *items);
        if (list->count > 0)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
    }
    list->items[list->count++] = *interval;
}

static void add(struct builder *b, const struct value_interval *interval)
{
    add_interval(b->target->arena, &b->list, &b->capacity, interval);
}

/* Moves the buffer's bytes into the arena, with `extra` bytes 0xff behind them. */
static const uint8_t *keep(struct builder *b, struct buf *take, int extra, uint32_t *len)
{
    for (int i = 0; i < extra; i++)
        buf_append_u8(take, 0xff);
    *len = (uint32_t)take->len;
    const uint8_t *bytes = arena_copy(b->target->arena, take->data, take->len);
    buf_deinit(take);
    return bytes;
}

/* ---- ends of the classes, as people read them ---- */

static const uint8_t empty_doc[] = {5, 0, 0, 0, 0};
static const uint8_t empty_text[] = {1, 0, 0, 0, 0}; /* also binary data without a byte */
static const uint8_t zeros[16] = {0};
static const uint8_t ones[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t one_byte[] = {1};
static const uint8_t minus_infinity[] = {0, 0, 0, 0, 0, 0, 0xf0, 0xff};
static const uint8_t infinity[] = {0, 0, 0, 0, 0, 0, 0xf0, 0x7f};
static const uint8_t least_i64[] = {0, 0, 0, 0, 0, 0, 0, 0x80};
static const uint8_t greatest_i64[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};

struct class_ends {
    enum bclass class_of;
    struct bval low;
    struct bval high;
    bool high_open;
};

static const struct class_ends class_table[] = {
    {BCLASS_NUMBER, {BT_DOUBLE, 8, minus_infinity}, {BT_DOUBLE, 8, infinity}, false},
    {BCLASS_STRING, {BT_STRING, 5, empty_text}, {BT_DOCUMENT, 5, empty_doc}, true},
    {BCLASS_DOCUMENT, {BT_DOCUMENT, 5, empty_doc}, {BT_ARRAY, 5, empty_doc}, true},
    {BCLASS_ARRAY, {BT_ARRAY, 5, empty_doc}, {BT_BINARY, 5, zeros}, true},
    {BCLASS_BINARY, {BT_BINARY, 5, zeros}, {BT_OBJECT_ID, 12, zeros}, true},
    {BCLASS_OBJECT_ID, {BT_OBJECT_ID, 12, zeros}, {BT_OBJECT_ID, 12, ones}, false},
    {BCLASS_BOOL, {BT_BOOL, 1, zeros}, {BT_BOOL, 1, one_byte}, false},
    {BCLASS_DATE, {BT_DATE, 8, least_i64}, {BT_DATE, 8, greatest_i64}, false},
    {BCLASS_TIMESTAMP, {BT_TIMESTAMP, 8, zeros}, {BT_TIMESTAMP, 8, ones}, false},
};

static const struct class_ends *ends_of(enum bclass class_of)
{
    for (size_t i = 0; i < sizeof class_table / sizeof class_table[0]; i++)
        if (class_table[i].class_of == class_of)
            return &class_table[i];
    return NULL;
}

static void show_end(const struct end *end, bool low, struct bval *out, bool *open)
{
    const struct class_ends *ends = ends_of(bval_class(end->val.type));
    bool at_class = end->kind == END_BELOW_CLASS || end->kind == END_ABOVE_CLASS;
    *out = end->val;
    *open = end->kind == END_VALUE_OUTSIDE;
    if (!at_class || ends == NULL)
        return;
    *out = low ? ends->low : ends->high;
    *open = !low && ends->high_open;
}

/* ---- building ---- */

/* Then nothing is known of where its equals stand: the keys are in another collation. */
static bool orders_differ(const struct value_target *target, const struct bval *val)
{
    return !bval_order_same(target->index_order, target->query_order) && bval_order_concerns(val);
}

/* `at_low`: the end stands at the encoded interval's beginning. */
static const uint8_t *encode_end(struct builder *b, const struct end *end, bool at_low, uint32_t *len)
{
    struct buf buf = BUF_INIT;
    bool descending = b->target->field->descending;
    switch (end->kind) {
    case END_BELOW_CLASS:
        keyenc_append_before_class(&buf, end->val.type, descending);
        return keep(b, &buf, 0, len);
    case END_ABOVE_CLASS:
        keyenc_append_after_class(&buf, end->val.type, descending);
        return keep(b, &buf, 0, len);
    default:
        keyenc_append_ordered(&buf, &end->val, descending, b->target->index_order);
        /* Behind the value: all keys that begin with it are less than it plus 0xff. */
        return keep(b, &buf, (end->kind == END_VALUE) == at_low ? 0 : 1, len);
    }
}

/* Ends in the order of values; a descending field turns them round. */
static void add_range(struct builder *b, struct end low, struct end high)
{
    struct value_interval interval = {0};
    bool descending = b->target->field->descending;
    const struct end *first = descending ? &high : &low;
    const struct end *last = descending ? &low : &high;
    interval.bytes.low = encode_end(b, first, true, &interval.bytes.low_len);
    interval.bytes.high = encode_end(b, last, false, &interval.bytes.high_len);
    show_end(first, !descending, &interval.first, &interval.first_open);
    show_end(last, descending, &interval.last, &interval.last_open);
    if (bounds_compare_bytes(interval.bytes.low, interval.bytes.low_len, interval.bytes.high, interval.bytes.high_len) <
        0)
        add(b, &interval);
}

static void add_class(struct builder *b, uint8_t type)
{
    struct bval val = {.type = type};
    add_range(b, (struct end){END_BELOW_CLASS, val}, (struct end){END_ABOVE_CLASS, val});
}

static void add_point(struct builder *b, const struct bval *val)
{
    const struct bounds_field *field = b->target->field;
    struct value_interval interval = {.point = true, .first = *val, .last = *val};
    struct buf low = BUF_INIT;
    if (field->hashed) {
        int64_t hash = bval_hash_ordered(val, b->target->index_order);
        keyenc_append_i64(&low, hash, field->descending);
        interval.first = make_i64(b->target->arena, hash);
        interval.last = interval.first;
    } else {
        keyenc_append_ordered(&low, val, field->descending, b->target->index_order);
    }
    struct buf high = BUF_INIT;
    buf_append(&high, low.data, low.len);
    interval.bytes.low = keep(b, &low, 0, &interval.bytes.low_len);
    interval.bytes.high = keep(b, &high, 1, &interval.bytes.high_len);
    add(b, &interval);
}

struct value_list value_list_full(void)
{
    return (struct value_list){.full = true};
}

struct value_list value_list_point(const struct value_target *target, const struct bval *val, bool exact)
{
    struct builder b = {.target = target, .list.exact = exact && !target->field->hashed};
    if (orders_differ(target, val))
        return value_list_full();
    add_point(&b, val);
    return b.list;
}

static int compare_intervals(const void *a, const void *b)
{
    const struct value_interval *x = a;
    const struct value_interval *y = b;
    return bounds_compare_bytes(x->bytes.low, x->bytes.low_len, y->bytes.low, y->bytes.low_len);
}

static bool in_order(const struct value_list *list)
{
    for (uint32_t i = 1; i < list->count; i++)
        if (!lies_before(&list->items[i - 1].bytes, &list->items[i].bytes))
            return false;
    return true;
}

/* Sorts and joins what overlaps. */
static void order_list(struct value_list *list)
{
    if (list->count < 2 || in_order(list))
        return;
    qsort(list->items, list->count, sizeof *list->items, compare_intervals);
    uint32_t kept = 1;
    for (uint32_t i = 1; i < list->count; i++) {
        struct value_interval *last = &list->items[kept - 1];
        const struct value_interval *next = &list->items[i];
        if (lies_before(&last->bytes, &next->bytes)) {
            list->items[kept++] = *next;
        } else if (bounds_high_below(&last->bytes, &next->bytes)) {
            last->bytes.high = next->bytes.high;
            last->bytes.high_len = next->bytes.high_len;
            last->last = next->last;
            last->last_open = next->last_open;
            last->point = false;
        }
    }
    list->count = kept;
}

/* ---- predicates ---- */

/* The null of an index stands for null and for a missing field. A filter's null does too, but for elements of an array
 * below which the path goes on. */
static bool null_is_exact(const struct value_target *target)
{
    return target->field->arrays == 0 || strchr(target->field->path, '.') == NULL;
}

/* Equality with an array may be met by the array as an element, or by one whose elements are these: then the first of
 * them has a key. */
static void add_array_points(struct builder *b, const struct bval *val)
{
    static const struct bval undefined = {.type = BT_UNDEFINED};
    struct biter iter;
    struct belem first;
    add_point(b, val);
    biter_init(&iter, bval_doc(val));
    add_point(b, biter_next(&iter, &first) ? &first.val : &undefined);
}

static struct value_list list_of_equality(const struct value_target *target, const struct bval *val)
{
    if (val->type == BT_UNDEFINED)
        return value_list_full();
    if (val->type != BT_ARRAY)
        return value_list_point(target, val, val->type != BT_NULL || null_is_exact(target));
    if (target->shard_key || target->field->hashed || orders_differ(target, val))
        return value_list_full();
    struct builder b = {.target = target};
    add_array_points(&b, val);
    order_list(&b.list);
    return b.list;
}

static bool is_nan(const struct bval *val)
{
    double number;
    return bval_is_number(val) && bval_to_f64(val, &number) && isnan(number);
}

/* {$gt: MinKey} and the like compare with every class; the others find only MinKey or MaxKey itself. */
static struct value_list list_of_extreme(const struct value_target *target, const struct filter_node *node)
{
    bool or_equal = node->op == FILTER_LTE || node->op == FILTER_GTE;
    bool less = node->op == FILTER_LT || node->op == FILTER_LTE;
    struct value_list point = value_list_point(target, &node->value, or_equal);
    if (less == (node->class_of == BCLASS_MIN_KEY))
        return or_equal ? point : value_list_full();
    if (or_equal)
        return value_list_full();
    struct value_list all_but = value_list_complement(target, &point);
    all_but.exact = false;
    return all_but;
}

static struct value_list list_of_order(const struct value_target *target, const struct filter_node *node)
{
    struct builder b = {.target = target, .list.exact = true};
    bool or_equal = node->op == FILTER_LTE || node->op == FILTER_GTE;
    if (target->field->hashed)
        return value_list_full();
    if (node->class_of == BCLASS_NULL || is_nan(&node->value))
        return or_equal ? list_of_equality(target, &node->value) : value_list_full();
    if (node->class_of == BCLASS_MIN_KEY || node->class_of == BCLASS_MAX_KEY)
        return list_of_extreme(target, node);
    if (ends_of(node->class_of) == NULL || node->class_of == BCLASS_ARRAY)
        return value_list_full();
    if (orders_differ(target, &node->value))
        return value_list_full();
    struct end low = {END_BELOW_CLASS, node->value};
    struct end high = {END_ABOVE_CLASS, node->value};
    /* NaN is the least number but less than nothing. */
    if (node->class_of == BCLASS_NUMBER)
        low = (struct end){END_VALUE, {BT_DOUBLE, sizeof minus_infinity, minus_infinity}};
    if (node->op == FILTER_LT || node->op == FILTER_LTE)
        high = (struct end){or_equal ? END_VALUE : END_VALUE_OUTSIDE, node->value};
    else
        low = (struct end){or_equal ? END_VALUE : END_VALUE_OUTSIDE, node->value};
    add_range(&b, low, high);
    return b.list;
}

/* Strings that begin with `prefix`, or all strings; and the expression itself as a stored value. True when whoever has
 * a key inside matches. */
static bool add_regex(struct builder *b, const struct filter_node *node)
{
    const char *flags;
    const char *prefix = "";
    bool whole = false;
    const char *pattern = bval_regex(&node->value, &flags);
    size_t len = b->target->index_order == NULL ? regex_literal_prefix(pattern, flags, &prefix, &whole) : 0;
    add_point(b, &node->value);
    if (len == 0) {
        add_class(b, BT_STRING);
        return false;
    }
    struct bval text = make_str(b->target->arena, prefix, len);
    /* The encoded string without its end mark is what all these keys begin with; an inverted end mark is 0xff itself.
     */
    struct value_interval interval = {.first = text, .last = text, .last_open = true};
    uint8_t *next = arena_copy(b->target->arena, text.data, text.len);
    next[text.len - 2]++; /* the last character's last byte: for people to read only */
    interval.last.data = next;
    if (b->target->field->descending) {
        struct bval swap = interval.first;
        interval.first = interval.last;
        interval.last = swap;
        interval.first_open = true;
        interval.last_open = false;
    }
    struct buf low = BUF_INIT;
    keyenc_append(&low, &text, b->target->field->descending);
    low.len--;
    struct buf high = BUF_INIT;
    buf_append(&high, low.data, low.len);
    interval.bytes.low = keep(b, &low, 0, &interval.bytes.low_len);
    interval.bytes.high = keep(b, &high, 2, &interval.bytes.high_len);
    add(b, &interval);
    return whole;
}

static struct value_list list_of_regex(const struct value_target *target, const struct filter_node *node)
{
    struct builder b = {.target = target};
    if (target->field->hashed)
        return value_list_full();
    b.list.exact = add_regex(&b, node);
    order_list(&b.list);
    return b.list;
}

/* Too many values for an interval each: one from the least to the greatest. */
static struct value_list list_around(const struct value_target *target, const struct filter_members *in)
{
    struct builder b = {.target = target};
    if (target->field->hashed || in->regex_count > 0)
        return value_list_full();
    for (uint32_t i = 0; i < in->count; i++)
        if (in->values[i].type == BT_ARRAY || orders_differ(target, &in->values[i]))
            return value_list_full();
    add_range(&b, (struct end){END_VALUE, in->values[0]}, (struct end){END_VALUE, in->values[in->count - 1]});
    return b.list;
}

static bool add_member(struct builder *b, const struct bval *val)
{
    const struct value_target *target = b->target;
    if (orders_differ(target, val))
        return false;
    if (val->type == BT_ARRAY) {
        if (target->shard_key || target->field->hashed)
            return false;
        add_array_points(b, val);
        b->list.exact = false;
        return true;
    }
    add_point(b, val);
    b->list.exact = b->list.exact && (val->type != BT_NULL || null_is_exact(target));
    return true;
}

static struct value_list list_of_members(const struct value_target *target, const struct filter_node *node)
{
    struct builder b = {.target = target, .list.exact = !target->field->hashed};
    const struct filter_members *in = &node->in;
    if (in->regex_count > 0 && target->field->hashed)
        return value_list_full();
    if (in->count > BOUNDS_MAX_VALUES)
        return list_around(target, in);
    for (uint32_t i = 0; i < in->count; i++)
        if (!add_member(&b, &in->values[i]))
            return value_list_full();
    for (uint32_t i = 0; i < in->regex_count; i++)
        b.list.exact = add_regex(&b, in->regexes[i]) && b.list.exact;
    order_list(&b.list);
    return b.list;
}

/* Types whose class has no other type and whose values all lie in one run. */
static bool class_is_type(uint8_t type)
{
    return type == BT_BINARY || type == BT_OBJECT_ID || type == BT_BOOL || type == BT_DATE || type == BT_TIMESTAMP;
}

static struct value_list list_of_type(const struct value_target *target, const struct filter_node *node)
{
    static const uint8_t types[] = {
        BT_MIN_KEY, BT_UNDEFINED, BT_NULL,      BT_INT32, BT_STRING,     BT_DOCUMENT, BT_BINARY,          BT_OBJECT_ID,
        BT_BOOL,    BT_DATE,      BT_TIMESTAMP, BT_REGEX, BT_DB_POINTER, BT_CODE,     BT_CODE_WITH_SCOPE, BT_MAX_KEY};
    const uint32_t numbers = filter_type_bit(BT_INT32) | filter_type_bit(BT_INT64) | filter_type_bit(BT_DOUBLE) |
                             filter_type_bit(BT_DECIMAL128);
    struct builder b = {.target = target, .list.exact = true};
    if (target->field->hashed || (node->types & filter_type_bit(BT_ARRAY)) != 0)
        return value_list_full();
    for (size_t i = 0; i < sizeof types; i++) {
        uint32_t bits = filter_type_bit(types[i]);
        if (types[i] == BT_INT32)
            bits = numbers;
        if (types[i] == BT_STRING)
            bits |= filter_type_bit(BT_SYMBOL);
        if ((node->types & bits) == 0)
            continue;
        add_class(&b, types[i]);
        b.list.exact =
            b.list.exact && (class_is_type(types[i]) || (types[i] == BT_INT32 && (node->types & bits) == bits));
    }
    order_list(&b.list);
    return b.list;
}

/* {$elemMatch: {$gt: 1, $lt: 5}}: one element satisfies them all, so they may be intersected even in a multikey index.
 */
static struct value_list list_of_all(const struct value_target *target, const struct filter_node *node)
{
    struct value_list all = value_list_full();
    bool exact = true;
    for (uint32_t i = 0; i < node->children.count; i++) {
        struct value_list one = value_list_of(target, node->children.items[i]);
        exact = exact && one.exact;
        all = value_list_intersect(target->arena, &all, &one);
    }
    all.exact = exact && !all.full && node->op == FILTER_AND;
    return all;
}

/* Whatever has a key that satisfies the child doesn't match, so those that match have keys elsewhere only. */
static struct value_list list_of_not(const struct value_target *target, const struct filter_node *child)
{
    if (child->op == FILTER_EXISTS && !target->field->hashed) {
        return value_list_point(target, &BVAL_NULL, false); /* an explicit null has the same key */
    }
    struct value_list list = value_list_of(target, child);
    if (list.full || !list.exact || target->field->hashed)
        return value_list_full();
    list = value_list_complement(target, &list);
    list.exact = target->field->arrays == 0;
    return list;
}

struct value_list value_list_of(const struct value_target *target, const struct filter_node *node)
{
    switch (node->op) {
    case FILTER_EQ:
        return list_of_equality(target, &node->value);
    case FILTER_LT:
    case FILTER_LTE:
    case FILTER_GT:
    case FILTER_GTE:
        return list_of_order(target, node);
    case FILTER_IN:
        return list_of_members(target, node);
    case FILTER_REGEX:
        return list_of_regex(target, node);
    case FILTER_TYPE:
        return list_of_type(target, node);
    case FILTER_NOT:
        return list_of_not(target, node->children.items[0]);
    case FILTER_AND:
        return list_of_all(target, node);
    case FILTER_ELEM_VALUE:
        return target->shard_key || target->field->hashed ? value_list_full() : list_of_all(target, node);
    case FILTER_MOD: {
        struct builder b = {.target = target};
        if (target->field->hashed)
            return value_list_full();
        add_class(&b, BT_INT32);
        return b.list;
    }
    default:
        return value_list_full();
    }
}

/* ---- lists as sets ---- */

struct value_list value_list_intersect(struct arena *arena, const struct value_list *a, const struct value_list *b)
{
    if (a->full)
        return *b;
    if (b->full)
        return *a;
    struct value_list both = {.exact = a->exact && b->exact};
    uint32_t capacity = 0;
    uint32_t i = 0;
    uint32_t j = 0;
    while (i < a->count && j < b->count) {
        const struct value_interval *x = &a->items[i];
        const struct value_interval *y = &b->items[j];
        bool x_starts_later = bounds_compare_bytes(x->bytes.low, x->bytes.low_len, y->bytes.low, y->bytes.low_len) >= 0;
        bool x_ends_first = bounds_high_below(&x->bytes, &y->bytes);
        const struct value_interval *end = x_ends_first ? x : y;
        struct value_interval meet = x_starts_later ? *x : *y;
        meet.bytes.high = end->bytes.high;
        meet.bytes.high_len = end->bytes.high_len;
        meet.last = end->last;
        meet.last_open = end->last_open;
        meet.point = x->point || y->point;
        if (meet.bytes.high_len == 0 ||
            bounds_compare_bytes(meet.bytes.low, meet.bytes.low_len, meet.bytes.high, meet.bytes.high_len) < 0)
            add_interval(arena, &both, &capacity, &meet);
        if (x_ends_first)
            i++;
        else
            j++;
    }
    return both;
}

struct value_list value_list_union(struct arena *arena, const struct value_list *a, const struct value_list *b)
{
    if (a->full || b->full)
        return value_list_full();
    struct value_list both = {.exact = a->exact && b->exact};
    both.items = arena_alloc(arena, ((size_t)a->count + b->count + 1) * sizeof *both.items);
    if (a->count > 0)
        memcpy(both.items, a->items, a->count * sizeof *a->items);
    if (b->count > 0)
        memcpy(both.items + a->count, b->items, b->count * sizeof *b->items);
    both.count = a->count + b->count;
    order_list(&both);
    return both;
}

struct value_list value_list_all(struct arena *arena, const struct bounds_field *field)
{
    struct value_interval *item = arena_alloc(arena, sizeof *item);
    item->bytes.low = (const uint8_t *)"";
    item->bytes.high = (const uint8_t *)"";
    item->first = field->descending ? BVAL_MAX_KEY : BVAL_MIN_KEY;
    item->last = field->descending ? BVAL_MIN_KEY : BVAL_MAX_KEY;
    return (struct value_list){.items = item, .count = 1};
}

struct value_list value_list_complement(const struct value_target *target, const struct value_list *list)
{
    struct value_list rest = {.exact = list->exact};
    uint32_t capacity = 0;
    struct value_list all = value_list_all(target->arena, target->field);
    struct value_interval gap = all.items[0];
    for (uint32_t i = 0; i < list->count; i++) {
        const struct value_interval *item = &list->items[i];
        gap.bytes.high = item->bytes.low;
        gap.bytes.high_len = item->bytes.low_len;
        gap.last = item->first;
        gap.last_open = !item->first_open;
        if (item->bytes.low_len > 0)
            add_interval(target->arena, &rest, &capacity, &gap);
        gap.bytes.low = item->bytes.high;
        gap.bytes.low_len = item->bytes.high_len;
        gap.first = item->last;
        gap.first_open = !item->last_open;
        if (item->bytes.high_len == 0)
            return rest;
    }
    gap.bytes.high = all.items[0].bytes.high;
    gap.bytes.high_len = 0;
    gap.last = all.items[0].last;
    gap.last_open = false;
    add_interval(target->arena, &rest, &capacity, &gap);
    return rest;
}

bool value_list_is_subset(const struct value_list *inner, const struct value_list *outer)
{
    if (outer->full)
        return true;
    if (inner->full)
        return false;
    uint32_t j = 0;
    for (uint32_t i = 0; i < inner->count; i++) {
        const struct bounds_interval *x = &inner->items[i].bytes;
        while (j < outer->count && lies_before(&outer->items[j].bytes, x))
            j++;
        if (j == outer->count)
            return false;
        const struct bounds_interval *y = &outer->items[j].bytes;
        if (bounds_compare_bytes(y->low, y->low_len, x->low, x->low_len) > 0 || bounds_high_below(y, x))
            return false;
    }
    return true;
}

bool value_list_is_points(const struct value_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (!list->items[i].point)
            return false;
    return !list->full;
}

bool value_list_contains(const struct value_list *list, const uint8_t *bytes, uint32_t len)
{
    uint32_t low = 0;
    uint32_t high = list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct bounds_interval *at = &list->items[middle].bytes;
        if (bounds_compare_bytes(bytes, len, at->low, at->low_len) < 0)
            high = middle;
        else if (at->high_len != 0 && bounds_compare_bytes(bytes, len, at->high, at->high_len) >= 0)
            low = middle + 1;
        else
            return true;
    }
    return list->full;
}
