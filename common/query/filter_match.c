#include "base/check.h"
#include "query/filter_tree.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/interrupt.h"
#include "base/map.h"
#include "base/random.h"

#include <math.h>
#include <stdalign.h>
#include <stddef.h>
#include <string.h>

enum {
    EXPR_STORAGE_BYTES = 4096,    /* on the stack, for the values of one $expr */
    WRAPPER_STORAGE_BYTES = 1024, /* on the stack, for one value with a name of its own */
};

/* The test of one document while it runs. Nothing in it comes from the heap. */
struct filter_eval {
    struct bdoc root;           /* what $expr sees as $$ROOT */
    struct filter_match *match; /* NULL: nobody asks */
    struct err *err;            /* NULL: nobody asks */
    bool failed;
};

static bool node_matches(const struct filter_node *node, struct bdoc doc, struct filter_eval *eval);

static bool is_nan(const struct bval *val)
{
    if (val->type == BT_DOUBLE)
        return isnan(bval_f64(val));
    /* Combination field 11111: NaN of either kind. */
    return val->type == BT_DECIMAL128 && (val->data[15] & 0x7c) == 0x7c;
}

/* Types whose equal values have equal bytes. */
static bool bytes_decide(uint8_t type)
{
    switch (type) {
    case BT_STRING:
    case BT_INT32:
    case BT_INT64:
    case BT_OBJECT_ID:
    case BT_DATE:
    case BT_BOOL:
    case BT_TIMESTAMP:
        return true;
    default:
        return false;
    }
}

static bool test_equal(const struct filter_node *node, const struct bval *val)
{
    const struct bval *want = &node->value;
    if (val->type == want->type && bytes_decide(val->type)) {
        if (val->len == want->len && memcmp(val->data, want->data, want->len) == 0)
            return true;
        return node->order != NULL && bval_compare_ordered(val, want, node->order) == 0;
    }
    if (val->type == BT_EOO)
        return want->type == BT_NULL;
    return bval_class(val->type) == node->class_of && bval_compare_ordered(val, want, node->order) == 0;
}

/* $lt, $lte, $gt, $gte: only values of the operand's class are comparable, but for MinKey and MaxKey. */
static bool test_order(const struct filter_node *node, const struct bval *val)
{
    const struct bval *want = &node->value;
    bool or_equal = node->op == FILTER_LTE || node->op == FILTER_GTE;
    bool less = node->op == FILTER_LT || node->op == FILTER_LTE;
    if (val->type == BT_EOO)
        return or_equal && want->type == BT_NULL;
    if (bval_class(val->type) != node->class_of) {
        if (want->type == BT_MAX_KEY)
            return less;
        if (want->type == BT_MIN_KEY)
            return !less;
        return false;
    }
    int order = val->type == BT_INT32 && want->type == BT_INT32
                    ? (bval_i32(val) > bval_i32(want)) - (bval_i32(val) < bval_i32(want))
                    : bval_compare_ordered(val, want, node->order);
    if (order == 0)
        return or_equal;
    if (node->class_of == BCLASS_NUMBER && (is_nan(val) || is_nan(want)))
        return false;
    return less ? order < 0 : order > 0;
}

static bool test_regex(const struct filter_node *node, const struct bval *val, struct filter_eval *eval)
{
    if (val->type == BT_REGEX)
        return bval_compare(val, &node->value) == 0;
    if (val->type != BT_STRING && val->type != BT_SYMBOL)
        return false;
    uint32_t len;
    const char *text = bval_str(val, &len);
    if (eval->failed || !regex_step(eval->err)) {
        eval->failed = true;
        return false;
    }
    enum regex_outcome outcome = regex_match(node->regex, text, len);
    if (outcome == REGEX_LIMIT && !eval->failed) {
        eval->failed = true;
        err_set(eval->err, 51156, "Error occurred while executing $regex on field '%s': match limit exceeded",
                node->path.text);
    }
    return outcome == REGEX_MATCH;
}

static bool test_in(const struct filter_node *node, const struct bval *val, struct filter_eval *eval)
{
    const struct filter_members *in = &node->in;
    if (val->type == BT_EOO)
        return in->has_null;
    if (bval_in_sorted(val, in->values, in->count, node->order))
        return true;
    for (uint32_t i = 0; i < in->regex_count; i++)
        if (test_regex(in->regexes[i], val, eval))
            return true;
    return false;
}

static bool test_mod(const struct filter_node *node, const struct bval *val)
{
    int64_t number;
    if (!bval_is_number(val))
        return false;
    if (!bval_to_i64(val, &number)) {
        double whole;
        if (!bval_to_f64(val, &whole) || !isfinite(whole) || fabs(whole) >= 9223372036854775808.0)
            return false;
        number = (int64_t)whole;
    }
    /* INT64_MIN % -1 traps; anything modulo 1 or -1 is 0. */
    int64_t rest = node->mod.divisor == -1 ? 0 : number % node->mod.divisor;
    return rest == node->mod.remainder;
}

/* Byte i of a value seen as a run of bits: numbers go on with their sign, binary data with zeros. */
static uint8_t bits_byte(const uint8_t *data, uint32_t len, uint8_t beyond, uint32_t i)
{
    return i < len ? data[i] : beyond;
}

static bool test_bits(const struct filter_node *node, const struct bval *val)
{
    int64_t number;
    const uint8_t *data = (const uint8_t *)&number;
    uint32_t len = sizeof number;
    uint8_t beyond = 0;
    if (val->type == BT_BINARY) {
        uint8_t subtype;
        data = bval_binary(val, &subtype, &len);
    } else if (bval_is_number(val) && bval_to_i64(val, &number)) {
        beyond = number < 0 ? 0xff : 0;
    } else {
        return false;
    }
    enum filter_bits_kind kind = node->bits.kind;
    bool any = kind == FILTER_BITS_ANY_SET || kind == FILTER_BITS_ANY_CLEAR;
    bool clear = kind == FILTER_BITS_ALL_CLEAR || kind == FILTER_BITS_ANY_CLEAR;
    for (uint32_t i = 0; i < node->bits.mask_len; i++) {
        uint8_t mask = node->bits.mask[i];
        uint8_t byte = bits_byte(data, len, beyond, i);
        uint8_t good = (uint8_t)((clear ? ~byte : byte) & mask);
        if (any && good != 0)
            return true;
        if (!any && good != mask)
            return false;
    }
    return !any;
}

static bool elem_value_matches(const struct filter_node *node, const struct bval *item, struct filter_eval *eval)
{
    for (uint32_t i = 0; i < node->children.count; i++)
        if (!filter_node_test(node->children.items[i], item, eval))
            return false;
    return true;
}

static bool elem_document_matches(const struct filter_node *node, const struct bval *item, struct filter_eval *eval)
{
    if (item->type != BT_DOCUMENT && item->type != BT_ARRAY)
        return false;
    struct bdoc doc = bval_doc(item);
    for (uint32_t i = 0; i < node->children.count; i++)
        if (!node_matches(node->children.items[i], doc, eval))
            return false;
    return true;
}

static bool test_elem_match(const struct filter_node *node, const struct bval *val, struct filter_eval *eval)
{
    if (val->type != BT_ARRAY)
        return false;
    /* Positions inside the element are not what `$` means. */
    struct filter_match *outer = eval->match;
    eval->match = NULL;
    struct biter iter;
    struct belem item;
    biter_init(&iter, bval_doc(val));
    bool found = false;
    int64_t index = 0;
    while (!found && biter_next(&iter, &item)) {
        found = node->op == FILTER_ELEM_VALUE ? elem_value_matches(node, &item.val, eval)
                                              : elem_document_matches(node, &item.val, eval);
        index++;
    }
    eval->match = outer;
    if (found && outer != NULL)
        outer->array_index = index - 1;
    return found;
}

/* Children that share the value: {$elemMatch: {$not: {...}}}. */
static bool test_tree(const struct filter_node *node, const struct bval *val, struct filter_eval *eval)
{
    bool all = node->op == FILTER_AND;
    for (uint32_t i = 0; i < node->children.count; i++)
        if (filter_node_test(node->children.items[i], val, eval) != all)
            return node->op == FILTER_OR;
    return node->op != FILTER_OR;
}

bool filter_node_test(const struct filter_node *node, const struct bval *value, struct filter_eval *eval)
{
    switch (node->op) {
    case FILTER_AND:
    case FILTER_OR:
    case FILTER_NOR:
        return test_tree(node, value, eval);
    case FILTER_NOT:
        return !filter_node_test(node->children.items[0], value, eval);
    case FILTER_EQ:
        return test_equal(node, value);
    case FILTER_LT:
    case FILTER_LTE:
    case FILTER_GT:
    case FILTER_GTE:
        return test_order(node, value);
    case FILTER_IN:
        return test_in(node, value, eval);
    case FILTER_EXISTS:
        return value->type != BT_EOO;
    case FILTER_TYPE:
        return value->type != BT_EOO && (node->types & filter_type_bit(value->type)) != 0;
    case FILTER_MOD:
        return test_mod(node, value);
    case FILTER_REGEX:
        return test_regex(node, value, eval);
    case FILTER_BITS:
        return test_bits(node, value);
    case FILTER_SIZE:
        return value->type == BT_ARRAY && bdoc_count(bval_doc(value)) == node->size;
    case FILTER_ELEM_DOCUMENT:
    case FILTER_ELEM_VALUE:
        return test_elem_match(node, value, eval);
    case FILTER_TRUE:
        return true;
    case FILTER_FALSE:
    case FILTER_EXPR:
    case FILTER_SCHEMA:
    case FILTER_SAMPLE:
        return false;
    }
    UNREACHABLE();
}

struct walk {
    const struct filter_node *node;
    struct filter_eval *eval;
    bool found;
};

/* path_each's visitor: stops at the first value that satisfies the node. */
static bool visit(void *arg, const struct path_hit *hit)
{
    struct walk *walk = arg;
    if (!filter_node_test(walk->node, &hit->val, walk->eval))
        return true;
    walk->found = true;
    if (hit->array_index >= 0 && walk->eval->match != NULL)
        walk->eval->match->array_index = hit->array_index;
    return false;
}

static bool looks_at_arrays(enum filter_op op)
{
    return op == FILTER_SIZE || op == FILTER_ELEM_DOCUMENT || op == FILTER_ELEM_VALUE;
}

/* Documents on the way are walked here; the first array hands over to path_each. */
static bool leaf_matches(const struct filter_node *node, struct bdoc doc, struct filter_eval *eval)
{
    struct bval val = BVAL_MISSING;
    struct bdoc at = doc;
    bool array = false;
    for (uint32_t i = 0; i < node->path.count; i++) {
        const struct path_part *part = &node->path.parts[i];
        if (!bdoc_find_n(at, part->name, part->len, &val))
            break;
        if (val.type == BT_ARRAY) {
            array = true;
            break;
        }
        if (i + 1 == node->path.count)
            break;
        if (val.type != BT_DOCUMENT) {
            val = BVAL_MISSING;
            break;
        }
        at = bval_doc(&val);
    }
    if (!array)
        return filter_node_test(node, &val, eval);
    struct walk walk = {.node = node, .eval = eval};
    path_each(&node->path, doc, looks_at_arrays(node->op) ? PATH_LEAF_ARRAY : PATH_LEAF_ELEMENTS_AND_ARRAY, visit,
              &walk);
    return walk.found;
}

static bool expr_matches(const struct filter_node *node, struct filter_eval *eval)
{
    alignas(max_align_t) unsigned char storage[EXPR_STORAGE_BYTES];
    struct arena scratch;
    struct bval value;
    struct err local;
    arena_init_in(&scratch, storage, sizeof storage);
    bool ok = expr_eval(node->expr, eval->root, &scratch, &value, eval->err != NULL ? eval->err : &local);
    bool result = ok && expr_value_is_true(&value);
    arena_deinit(&scratch);
    if (!ok)
        eval->failed = true;
    return result;
}

static bool schema_node_matches(const struct filter_node *node, struct bdoc doc, struct filter_eval *eval)
{
    struct schema_test test = {.order = node->order};
    bool matched = schema_matches_document(node->schema, doc, &test);
    if (test.failed && !eval->failed) {
        eval->failed = true;
        if (interrupt_check(eval->err))
            err_set(eval->err, 51156, "Error occurred while executing a pattern of $jsonSchema: match limit exceeded");
    }
    return matched;
}

/* The same answer again for the same document within one command. */
static bool sample_matches(const struct filter_node *node, const struct filter_eval *eval)
{
    struct prng prng = {node->sample.seed ^ hash_bytes(eval->root.data, eval->root.len)};
    return (double)(prng_next(&prng) >> 11) / 9007199254740992.0 < node->sample.rate;
}

static bool tree_matches(const struct filter_node *node, struct bdoc doc, struct filter_eval *eval)
{
    const struct filter_nodes *children = &node->children;
    if (node->op == FILTER_AND) {
        for (uint32_t i = 0; i < children->count; i++)
            if (!node_matches(children->items[i], doc, eval))
                return false;
        return true;
    }
    for (uint32_t i = 0; i < children->count && !eval->failed; i++)
        if (node_matches(children->items[i], doc, eval))
            return node->op == FILTER_OR;
    return node->op == FILTER_NOR;
}

static bool node_matches(const struct filter_node *node, struct bdoc doc, struct filter_eval *eval)
{
    switch (node->op) {
    case FILTER_AND:
    case FILTER_OR:
        return tree_matches(node, doc, eval);
    case FILTER_NOR:
    case FILTER_NOT: {
        /* What did not match has no position. */
        struct filter_match *outer = eval->match;
        eval->match = NULL;
        bool result =
            node->op == FILTER_NOR ? tree_matches(node, doc, eval) : !node_matches(node->children.items[0], doc, eval);
        eval->match = outer;
        return result;
    }
    case FILTER_EXPR:
        return expr_matches(node, eval);
    case FILTER_SCHEMA:
        return schema_node_matches(node, doc, eval);
    case FILTER_SAMPLE:
        return sample_matches(node, eval);
    case FILTER_TRUE:
        return true;
    case FILTER_FALSE:
        return false;
    default:
        return leaf_matches(node, doc, eval);
    }
}

bool filter_matches(const struct filter *filter, struct bdoc doc)
{
    struct filter_eval eval = {.root = doc};
    return node_matches(filter->root, doc, &eval) && !eval.failed;
}

bool filter_eval(const struct filter *filter, struct bdoc doc, struct filter_match *match, bool *matched,
                 struct err *err)
{
    struct filter_eval eval = {.root = doc, .match = match, .err = err};
    if (match != NULL)
        *match = (struct filter_match){.array_index = -1};
    *matched = node_matches(filter->root, doc, &eval);
    return !eval.failed;
}

bool filter_eval_value(const struct filter *filter, const char *name, const struct bval *value, bool *matched,
                       struct err *err)
{
    alignas(max_align_t) unsigned char storage[WRAPPER_STORAGE_BYTES];
    struct arena scratch;
    size_t name_len = strlen(name);
    size_t bytes = 4 + 1 + name_len + 1 + value->len + 1;
    arena_init_in(&scratch, storage, sizeof storage);
    uint8_t *doc = arena_alloc(&scratch, bytes);
    bool missing = value->type == BT_EOO;
    uint8_t *at = doc + 4;
    if (!missing) {
        *at++ = value->type;
        memcpy(at, name, name_len);
        at += name_len + 1;
        if (value->len > 0)
            memcpy(at, value->data, value->len);
        at += value->len;
    }
    uint32_t len = (uint32_t)(at - doc) + 1;
    store_le32(doc, len);
    bool ok = filter_eval(filter, (struct bdoc){.data = doc, .len = len}, NULL, matched, err);
    arena_deinit(&scratch);
    return ok;
}
