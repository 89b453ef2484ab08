#include "base/check.h"
#include "query/filter_tree.h"

#include <stdlib.h>
#include <string.h>

/* {path: {...}} while its operators are read: $regex and $options belong together, wherever they stand. */
struct operators {
    struct filter_compiler *c;
    const char *path;
    struct bdoc doc;
    struct filter_nodes *out;
};

typedef bool operator_fn(struct operators *o, const struct belem *elem);

/* Adds a node that may be NULL after an error. */
static bool add(struct operators *o, struct filter_node *node)
{
    if (node == NULL)
        return false;
    filter_nodes_add(o->c->arena, o->out, node);
    return true;
}

/* NOT around whatever `nodes` hold together. */
static struct filter_node *negate(struct filter_compiler *c, struct filter_node *child)
{
    if (child == NULL)
        return NULL;
    struct filter_node *node = filter_node_new(c, FILTER_NOT);
    if (node != NULL)
        filter_nodes_add(c->arena, &node->children, child);
    return node;
}

static bool op_compare(struct operators *o, const struct belem *elem)
{
    static const struct {
        const char *name;
        enum filter_op op;
    } names[] = {
        {"$eq", FILTER_EQ}, {"$lt", FILTER_LT}, {"$lte", FILTER_LTE}, {"$gt", FILTER_GT}, {"$gte", FILTER_GTE},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(elem->key, names[i].name) == 0)
            return add(o, filter_compare_new(o->c, names[i].op, o->path, &elem->val));
    UNREACHABLE();
}

static bool op_ne(struct operators *o, const struct belem *elem)
{
    if (elem->val.type == BT_REGEX)
        return err_set(o->c->err, ERR_BadValue, "Can't have regex as arg to $ne.");
    return add(o, negate(o->c, filter_compare_new(o->c, FILTER_EQ, o->path, &elem->val)));
}

static int compare_members(const void *a, const void *b, void *order)
{
    return bval_compare_ordered(a, b, order);
}

/* Sorts and removes duplicates. */
static void order_members(struct filter_node *node)
{
    struct filter_members *in = &node->in;
    struct bval_order copy; /* qsort_r's argument isn't const */
    if (in->count == 0)
        return;
    if (node->order != NULL)
        copy = *node->order;
    qsort_r(in->values, in->count, sizeof *in->values, compare_members, node->order != NULL ? &copy : NULL);
    uint32_t kept = 1;
    for (uint32_t i = 1; i < in->count; i++)
        if (bval_compare_ordered(&in->values[i], &in->values[kept - 1], node->order) != 0)
            in->values[kept++] = in->values[i];
    in->count = kept;
}

static bool add_member(struct operators *o, const char *name, const struct belem *item, struct filter_node *node)
{
    struct filter_members *in = &node->in;
    if (filter_is_condition(&item->val))
        return err_set(o->c->err, ERR_BadValue, "cannot nest $ under %s", name);
    if (item->val.type == BT_UNDEFINED)
        return err_set(o->c->err, ERR_BadValue, "InMatchExpression equality cannot be undefined");
    if (item->val.type == BT_REGEX) {
        const char *flags;
        const char *pattern = bval_regex(&item->val, &flags);
        struct filter_node *regex = filter_regex_new(o->c, o->path, pattern, flags);
        if (regex == NULL)
            return false;
        in->regexes[in->regex_count++] = regex;
        return true;
    }
    if (item->val.type == BT_NULL)
        in->has_null = true;
    if (node->order == NULL)
        node->order = filter_order_for(o->c, &item->val);
    in->values[in->count++] = item->val;
    return true;
}

static struct filter_node *in_node(struct operators *o, const struct belem *elem)
{
    struct err *err = o->c->err;
    if (elem->val.type != BT_ARRAY) {
        err_set(err, ERR_BadValue, "%s needs an array", elem->key);
        return NULL;
    }
    struct filter_node *node = filter_leaf_new(o->c, FILTER_IN, o->path);
    if (node == NULL)
        return NULL;
    struct bdoc list = bval_doc(&elem->val);
    uint32_t count = bdoc_count(list);
    if (count > FILTER_MAX_IN_VALUES) {
        err_set(err, ERR_BadValue, "%s has more than %d values", elem->key, FILTER_MAX_IN_VALUES);
        return NULL;
    }
    node->in.values = arena_alloc(o->c->arena, count * sizeof *node->in.values);
    node->in.regexes = arena_alloc(o->c->arena, count * sizeof(struct filter_node *));
    struct biter iter;
    struct belem item;
    biter_init(&iter, list);
    while (biter_next(&iter, &item))
        if (!add_member(o, elem->key, &item, node))
            return NULL;
    order_members(node);
    return node;
}

static bool op_in(struct operators *o, const struct belem *elem)
{
    return add(o, in_node(o, elem));
}

static bool op_nin(struct operators *o, const struct belem *elem)
{
    return add(o, negate(o->c, in_node(o, elem)));
}

static bool op_not(struct operators *o, const struct belem *elem)
{
    if (elem->val.type == BT_REGEX) {
        const char *flags;
        const char *pattern = bval_regex(&elem->val, &flags);
        return add(o, negate(o->c, filter_regex_new(o->c, o->path, pattern, flags)));
    }
    if (elem->val.type != BT_DOCUMENT)
        return err_set(o->c->err, ERR_BadValue, "$not needs a regex or a document");
    struct bdoc doc = bval_doc(&elem->val);
    if (bdoc_is_empty(doc))
        return err_set(o->c->err, ERR_BadValue, "$not cannot be empty");
    struct filter_node *all = filter_node_new(o->c, FILTER_AND);
    if (all == NULL || !filter_compile_operators(o->c, o->path, doc, &all->children))
        return false;
    return add(o, negate(o->c, all->children.count == 1 ? all->children.items[0] : all));
}

static bool op_exists(struct operators *o, const struct belem *elem)
{
    struct filter_node *node = filter_leaf_new(o->c, FILTER_EXISTS, o->path);
    return add(o, bval_truthy(&elem->val) ? node : negate(o->c, node));
}

static bool op_type(struct operators *o, const struct belem *elem)
{
    return filter_compile_type(o->c, o->path, &elem->val, o->out);
}

static bool op_mod(struct operators *o, const struct belem *elem)
{
    return filter_compile_mod(o->c, o->path, &elem->val, o->out);
}

static bool op_bits(struct operators *o, const struct belem *elem)
{
    enum filter_bits_kind kind = strcmp(elem->key, "$bitsAllSet") == 0     ? FILTER_BITS_ALL_SET
                                 : strcmp(elem->key, "$bitsAllClear") == 0 ? FILTER_BITS_ALL_CLEAR
                                 : strcmp(elem->key, "$bitsAnySet") == 0   ? FILTER_BITS_ANY_SET
                                                                           : FILTER_BITS_ANY_CLEAR;
    return filter_compile_bits(o->c, o->path, kind, elem->key, &elem->val, o->out);
}

static bool op_size(struct operators *o, const struct belem *elem)
{
    int64_t size;
    if (!bval_is_number(&elem->val))
        return err_set(o->c->err, ERR_BadValue, "Failed to parse $size. Expected a number in: $size");
    if (!bval_to_i64(&elem->val, &size))
        return err_set(o->c->err, ERR_BadValue, "Failed to parse $size. Expected an integer: $size");
    if (size < 0)
        return err_set(o->c->err, ERR_BadValue, "Failed to parse $size. Expected a non-negative number in: $size");
    struct filter_node *node = filter_leaf_new(o->c, FILTER_SIZE, o->path);
    if (node != NULL)
        node->size = size;
    return add(o, node);
}

/* {$elemMatch: {$gt: 1}} looks at values, {$elemMatch: {x: 1}} and {$elemMatch: {$or: [...]}} at documents. */
static bool elem_is_value(struct bdoc doc)
{
    struct bval wrapped = bval_from_doc(doc);
    struct biter iter;
    struct belem first;
    if (!filter_is_condition(&wrapped))
        return false;
    biter_init(&iter, doc);
    if (!biter_next(&iter, &first))
        return false;
    static const char *const trees[] = {"$and", "$or", "$nor", "$where", "$expr", "$comment"};
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
        if (strcmp(first.key, trees[i]) == 0)
            return false;
    return true;
}

static struct filter_node *elem_match_node(struct operators *o, const struct bval *arg)
{
    if (arg->type != BT_DOCUMENT) {
        err_set(o->c->err, ERR_BadValue, "$elemMatch needs an Object");
        return NULL;
    }
    struct bdoc doc = bval_doc(arg);
    bool by_value = elem_is_value(doc);
    struct filter_node *node = filter_leaf_new(o->c, by_value ? FILTER_ELEM_VALUE : FILTER_ELEM_DOCUMENT, o->path);
    if (node == NULL)
        return NULL;
    bool had_expr = o->c->filter->has_expr;
    bool ok = by_value ? filter_compile_operators(o->c, "", doc, &node->children)
                       : filter_compile_document(o->c, doc, &node->children);
    if (!ok)
        return NULL;
    if (o->c->filter->has_expr && !had_expr) {
        err_set(o->c->err, ERR_BadValue, "$expr can only be applied to the top-level document");
        return NULL;
    }
    return node;
}

static bool op_elem_match(struct operators *o, const struct belem *elem)
{
    return add(o, elem_match_node(o, &elem->val));
}

/* One member of $all. `elem_match` says that the first member was an $elemMatch: then all must be. */
static struct filter_node *all_member(struct operators *o, const struct bval *val, bool elem_match)
{
    struct bval arg = BVAL_MISSING;
    bool is_elem = val->type == BT_DOCUMENT && bdoc_find(bval_doc(val), "$elemMatch", &arg);
    if (elem_match) {
        if (!is_elem) {
            err_set(o->c->err, ERR_BadValue, "$all/$elemMatch has to be consistent");
            return NULL;
        }
        return elem_match_node(o, &arg);
    }
    if (filter_is_condition(val)) {
        err_set(o->c->err, ERR_BadValue, "no $ expressions in $all");
        return NULL;
    }
    if (val->type == BT_REGEX) {
        const char *flags;
        const char *pattern = bval_regex(val, &flags);
        return filter_regex_new(o->c, o->path, pattern, flags);
    }
    return filter_compare_new(o->c, FILTER_EQ, o->path, val);
}

static bool op_all(struct operators *o, const struct belem *elem)
{
    if (elem->val.type != BT_ARRAY)
        return err_set(o->c->err, ERR_BadValue, "$all needs an array");
    struct biter iter;
    struct belem item;
    struct bdoc list = bval_doc(&elem->val);
    if (bdoc_is_empty(list))
        return add(o, filter_node_new(o->c, FILTER_FALSE));
    biter_init(&iter, list);
    bool first = true;
    bool elem_match = false;
    while (biter_next(&iter, &item)) {
        struct belem inner;
        if (first && item.val.type == BT_DOCUMENT) {
            struct biter inside;
            biter_init(&inside, bval_doc(&item.val));
            elem_match = biter_next(&inside, &inner) && strcmp(inner.key, "$elemMatch") == 0;
        }
        first = false;
        if (!add(o, all_member(o, &item.val, elem_match)))
            return false;
    }
    return true;
}

static bool op_regex(struct operators *o, const struct belem *elem)
{
    const char *pattern;
    const char *flags = "";
    uint32_t len;
    struct bval options;
    if (elem->val.type == BT_REGEX) {
        pattern = bval_regex(&elem->val, &flags);
    } else if (elem->val.type == BT_STRING) {
        pattern = bval_str(&elem->val, &len);
        if (strlen(pattern) != len)
            return err_set(o->c->err, ERR_BadValue, "Regular expression cannot contain an embedded null byte");
    } else {
        return err_set(o->c->err, ERR_BadValue, "$regex has to be a string");
    }
    if (bdoc_find(o->doc, "$options", &options)) {
        if (options.type != BT_STRING)
            return err_set(o->c->err, ERR_BadValue, "$options has to be a string");
        if (flags[0] != 0)
            return err_set(o->c->err, 51075, "options set in both $regex and $options");
        flags = bval_str(&options, &len);
    }
    return add(o, filter_regex_new(o->c, o->path, pattern, flags));
}

static bool op_options(struct operators *o, const struct belem *elem)
{
    (void)elem;
    if (!bdoc_has(o->doc, "$regex"))
        return err_set(o->c->err, ERR_BadValue, "$options needs a $regex");
    return true;
}

static bool op_comment(struct operators *o, const struct belem *elem)
{
    (void)o;
    (void)elem;
    return true;
}

static bool op_near(struct operators *o, const struct belem *elem)
{
    return err_set(o->c->err, ERR_NoQueryExecutionPlans, "unable to find index for %s query: there are no geo indexes",
                   elem->key);
}

static bool op_unsupported(struct operators *o, const struct belem *elem)
{
    return err_set(o->c->err, ERR_BadValue, "%s is not supported", elem->key);
}

static const struct {
    const char *name;
    operator_fn *compile;
} operator_table[] = {
    {"$eq", op_compare},
    {"$gt", op_compare},
    {"$gte", op_compare},
    {"$lt", op_compare},
    {"$lte", op_compare},
    {"$ne", op_ne},
    {"$in", op_in},
    {"$nin", op_nin},
    {"$not", op_not},
    {"$exists", op_exists},
    {"$type", op_type},
    {"$mod", op_mod},
    {"$size", op_size},
    {"$all", op_all},
    {"$elemMatch", op_elem_match},
    {"$regex", op_regex},
    {"$options", op_options},
    {"$bitsAllSet", op_bits},
    {"$bitsAllClear", op_bits},
    {"$bitsAnySet", op_bits},
    {"$bitsAnyClear", op_bits},
    {"$comment", op_comment},
    {"$near", op_near},
    {"$nearSphere", op_near},
    {"$geoWithin", op_unsupported},
    {"$geoIntersects", op_unsupported},
    {"$within", op_unsupported},
    {"$geoNear", op_near},
};

static operator_fn *find_operator(const char *name)
{
    for (size_t i = 0; i < sizeof operator_table / sizeof *operator_table; i++)
        if (strcmp(name, operator_table[i].name) == 0)
            return operator_table[i].compile;
    return NULL;
}

bool filter_compile_operators(struct filter_compiler *c, const char *path, struct bdoc doc, struct filter_nodes *out)
{
    if (++c->depth > FILTER_MAX_DEPTH)
        return err_set(c->err, ERR_BadValue, "exceeded maximum query tree depth of %d", FILTER_MAX_DEPTH);
    struct operators o = {.c = c, .path = path, .doc = doc, .out = out};
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        operator_fn *compile = find_operator(elem.key);
        if (compile == NULL)
            return err_set(c->err, ERR_BadValue, "unknown operator: %s", elem.key);
        if (!compile(&o, &elem))
            return false;
    }
    c->depth--;
    return true;
}
