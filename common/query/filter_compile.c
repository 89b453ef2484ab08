#include "query/filter_tree.h"

#include "expr/writer.h"

#include <string.h>

struct filter_node *filter_node_new(struct filter_compiler *c, enum filter_op op)
{
    if (++c->node_count > FILTER_MAX_NODES) {
        err_set(c->err, ERR_BadValue, "the query has more than %d predicates", FILTER_MAX_NODES);
        return NULL;
    }
    struct filter_node *node = arena_alloc(c->arena, sizeof *node);
    node->op = op;
    return node;
}

/* The path's memory moves into the arena, so that a filter without regular expressions needs no release. */
static bool compile_path(struct filter_compiler *c, const char *text, struct path *out)
{
    struct path path = {0};
    if (!path_init(&path, text, strlen(text), c->err))
        return false;
    *out = path;
    out->text = arena_copy_str(c->arena, path.text, path.len);
    out->parts = arena_copy(c->arena, path.parts, path.count * sizeof *path.parts);
    for (uint32_t i = 0; i < path.count; i++)
        out->parts[i].name = out->text + (path.parts[i].name - path.text);
    path_deinit(&path);
    return true;
}

struct filter_node *filter_leaf_new(struct filter_compiler *c, enum filter_op op, const char *path)
{
    struct filter_node *node = filter_node_new(c, op);
    if (node == NULL || !compile_path(c, path, &node->path))
        return NULL;
    node->simple_path = node->path.count == 1;
    return node;
}

void filter_nodes_add(struct arena *arena, struct filter_nodes *nodes, struct filter_node *node)
{
    if (nodes->count == nodes->capacity) {
        uint32_t capacity = nodes->capacity == 0 ? 4 : nodes->capacity * 2;
        struct filter_node **items = arena_alloc(arena, capacity * sizeof *items);
        if (nodes->count > 0)
            memcpy(items, nodes->items, nodes->count * sizeof *items);
        nodes->items = items;
        nodes->capacity = capacity;
    }
    nodes->items[nodes->count++] = node;
}

bool filter_is_condition(const struct bval *value)
{
    if (value->type != BT_DOCUMENT)
        return false;
    struct biter iter;
    struct belem first;
    struct bdoc doc = bval_doc(value);
    biter_init(&iter, doc);
    if (!biter_next(&iter, &first) || first.key[0] != '$')
        return false;
    return !(bdoc_has(doc, "$ref") && bdoc_has(doc, "$id"));
}

const struct bval_order *filter_order_for(struct filter_compiler *c, const struct bval *value)
{
    const struct bval_order *order = c->filter->order;
    if (order == NULL || !bval_order_concerns(value))
        return NULL;
    c->filter->uses_order = true;
    return order;
}

struct filter_node *filter_compare_new(struct filter_compiler *c, enum filter_op op, const char *path,
                                       const struct bval *value)
{
    if (value->type == BT_UNDEFINED) {
        err_set(c->err, ERR_BadValue, "cannot compare to undefined");
        return NULL;
    }
    if (value->type == BT_REGEX && op != FILTER_EQ) {
        err_set(c->err, ERR_BadValue, "Can't have RegEx as arg to predicate over field '%s'.", path);
        return NULL;
    }
    struct filter_node *node = filter_leaf_new(c, op, path);
    if (node == NULL)
        return NULL;
    node->value = *value;
    node->class_of = bval_class(value->type);
    node->order = filter_order_for(c, value);
    return node;
}

struct filter_node *filter_regex_new(struct filter_compiler *c, const char *path, const char *pattern,
                                     const char *flags)
{
    struct filter_node *node = filter_leaf_new(c, FILTER_REGEX, path);
    if (node == NULL)
        return NULL;
    size_t pattern_len = strlen(pattern);
    size_t flags_len = strlen(flags);
    uint8_t *data = arena_alloc(c->arena, pattern_len + flags_len + 2);
    memcpy(data, pattern, pattern_len + 1);
    memcpy(data + pattern_len + 1, flags, flags_len + 1);
    node->value = (struct bval){.type = BT_REGEX, .len = (uint32_t)(pattern_len + flags_len + 2), .data = data};
    node->class_of = BCLASS_REGEX;
    if (!regex_compile(pattern, flags, &node->regex, c->err))
        return NULL;
    struct filter_nodes list = {c->filter->regexes, c->filter->regex_count, c->filter->regex_capacity};
    filter_nodes_add(c->arena, &list, node);
    c->filter->regexes = list.items;
    c->filter->regex_count = list.count;
    c->filter->regex_capacity = list.capacity;
    return node;
}

/* {path: value}. */
static bool compile_field(struct filter_compiler *c, const struct belem *elem, struct filter_nodes *out)
{
    if (filter_is_condition(&elem->val))
        return filter_compile_operators(c, elem->key, bval_doc(&elem->val), out);
    struct filter_node *node;
    if (elem->val.type == BT_REGEX) {
        const char *flags;
        const char *pattern = bval_regex(&elem->val, &flags);
        node = filter_regex_new(c, elem->key, pattern, flags);
    } else {
        node = filter_compare_new(c, FILTER_EQ, elem->key, &elem->val);
    }
    if (node == NULL)
        return false;
    filter_nodes_add(c->arena, out, node);
    return true;
}

/* A list of predicates as one node. */
static struct filter_node *join_all(struct filter_compiler *c, struct filter_nodes *nodes)
{
    if (nodes->count == 1)
        return nodes->items[0];
    struct filter_node *node = filter_node_new(c, FILTER_AND);
    if (node != NULL)
        node->children = *nodes;
    return node;
}

/* $and, $or, $nor. */
static bool compile_tree(struct filter_compiler *c, enum filter_op op, const struct belem *elem,
                         struct filter_nodes *out)
{
    if (elem->val.type != BT_ARRAY)
        return err_set(c->err, ERR_BadValue, "%s must be an array", elem->key);
    struct bdoc list = bval_doc(&elem->val);
    if (bdoc_is_empty(list))
        return err_set(c->err, ERR_BadValue, "$and/$or/$nor must be a nonempty array");
    struct filter_node *node = filter_node_new(c, op);
    if (node == NULL)
        return false;
    struct biter iter;
    struct belem item;
    biter_init(&iter, list);
    while (biter_next(&iter, &item)) {
        if (item.val.type != BT_DOCUMENT)
            return err_set(c->err, ERR_BadValue, "$or/$and/$nor entries need to be full objects");
        struct filter_nodes parts = {0};
        if (!filter_compile_document(c, bval_doc(&item.val), &parts))
            return false;
        struct filter_node *child = join_all(c, &parts);
        if (child == NULL)
            return false;
        filter_nodes_add(c->arena, &node->children, child);
    }
    filter_nodes_add(c->arena, out, node);
    return true;
}

/* Adds a node that may be NULL after an error. */
static bool add_node(struct filter_compiler *c, struct filter_node *node, struct filter_nodes *out)
{
    if (node == NULL)
        return false;
    filter_nodes_add(c->arena, out, node);
    return true;
}

static uint32_t count_parts(const char *path)
{
    uint32_t count = 1;
    for (; *path != 0; path++)
        count += *path == '.' ? 1 : 0;
    return count;
}

/* {$expr: {$eq: ["$a", 5]}} can match only where {a: 5} does, and that an index may serve. Such predicates stand beside
 * the expression. */
static bool add_implied(struct filter_compiler *c, const struct expr *expr, struct filter_nodes *out)
{
    struct expr_implied implied[EXPR_MAX_IMPLIED];
    uint32_t count = expr_implied(expr, implied);
    for (uint32_t i = 0; i < count; i++) {
        struct filter_nodes made = {0};
        struct buf buf = BUF_INIT;
        if (count_parts(implied[i].path) > PATH_MAX_PARTS)
            continue;
        size_t start = write_begin(&buf);
        write_value(&buf, implied[i].in ? "$in" : "$eq", 3, &implied[i].value);
        write_end(&buf, start);
        struct bval condition = make_doc(c->arena, &buf, BT_DOCUMENT);
        if (!filter_compile_operators(c, implied[i].path, bval_doc(&condition), &made))
            return false;
        for (uint32_t j = 0; j < made.count; j++) {
            made.items[j]->implied = true;
            filter_nodes_add(c->arena, out, made.items[j]);
        }
    }
    return true;
}

static bool compile_expr(struct filter_compiler *c, const struct belem *elem, struct filter_nodes *out)
{
    struct filter_node *node = filter_node_new(c, FILTER_EXPR);
    if (node == NULL || !expr_compile(c->arena, &elem->val, c->env, &node->expr, c->err))
        return false;
    node->value = elem->val;
    c->filter->has_expr = true;
    return add_implied(c, node->expr, out) && add_node(c, node, out);
}

static bool compile_constant(struct filter_compiler *c, const struct belem *elem, struct filter_nodes *out)
{
    int64_t number;
    if (!bval_is_number(&elem->val) || !bval_to_i64(&elem->val, &number) || number != 1)
        return err_set(c->err, ERR_FailedToParse, "%s must be an integer value of 1", elem->key);
    return add_node(c, filter_node_new(c, strcmp(elem->key, "$alwaysTrue") == 0 ? FILTER_TRUE : FILTER_FALSE), out);
}

static bool compile_schema(struct filter_compiler *c, const struct belem *elem, struct filter_nodes *out)
{
    struct schema_facts facts;
    if (elem->val.type != BT_DOCUMENT)
        return err_set(c->err, ERR_TypeMismatch, "$jsonSchema must be an object");
    struct filter_node *node = filter_node_new(c, FILTER_SCHEMA);
    if (node == NULL || !schema_compile(c->arena, &elem->val, &node->schema, &facts, c->err))
        return false;
    node->value = elem->val;
    c->filter->has_schema_regex = c->filter->has_schema_regex || facts.has_regex;
    if (facts.has_order && c->filter->order != NULL) {
        node->order = c->filter->order;
        c->filter->uses_order = true;
    }
    return add_node(c, node, out);
}

static bool compile_sample(struct filter_compiler *c, const struct belem *elem, struct filter_nodes *out)
{
    double rate;
    if (!bval_is_number(&elem->val) || !bval_to_f64(&elem->val, &rate))
        return err_set(c->err, ERR_BadValue, "argument to $sampleRate must be a numeric type");
    if (!(rate >= 0 && rate <= 1))
        return err_set(c->err, ERR_BadValue, "numeric argument to $sampleRate must be in [0, 1]");
    struct filter_node *node = filter_node_new(c, rate >= 1 ? FILTER_TRUE : rate <= 0 ? FILTER_FALSE : FILTER_SAMPLE);
    if (node == NULL)
        return false;
    if (node->op == FILTER_SAMPLE) {
        uint64_t seed = c->env == NULL ? 0 : c->env->random != 0 ? c->env->random : (uint64_t)c->env->now_ms;
        node->value = elem->val;
        node->sample.rate = rate;
        node->sample.seed = seed + c->node_count;
        c->filter->has_sample = true;
    }
    return add_node(c, node, out);
}

static bool refuse(struct filter_compiler *c, const struct belem *elem, struct filter_nodes *out)
{
    (void)out;
    if (strcmp(elem->key, "$text") == 0)
        return err_set(c->err, ERR_IndexNotFound, "text index required for $text query");
    return err_set(c->err, ERR_BadValue, "%s takes JavaScript, which this server does not run", elem->key);
}

static bool compile_comment(struct filter_compiler *c, const struct belem *elem, struct filter_nodes *out)
{
    (void)c;
    (void)elem;
    (void)out;
    return true;
}

static bool compile_and(struct filter_compiler *c, const struct belem *elem, struct filter_nodes *out)
{
    return compile_tree(c, FILTER_AND, elem, out);
}

static bool compile_or(struct filter_compiler *c, const struct belem *elem, struct filter_nodes *out)
{
    return compile_tree(c, FILTER_OR, elem, out);
}

static bool compile_nor(struct filter_compiler *c, const struct belem *elem, struct filter_nodes *out)
{
    return compile_tree(c, FILTER_NOR, elem, out);
}

static bool compile_top(struct filter_compiler *c, const struct belem *elem, struct filter_nodes *out)
{
    static const struct {
        const char *name;
        bool (*compile)(struct filter_compiler *c, const struct belem *elem, struct filter_nodes *out);
    } operators[] = {
        {"$and", compile_and},
        {"$or", compile_or},
        {"$nor", compile_nor},
        {"$comment", compile_comment},
        {"$expr", compile_expr},
        {"$jsonSchema", compile_schema},
        {"$alwaysTrue", compile_constant},
        {"$alwaysFalse", compile_constant},
        {"$sampleRate", compile_sample},
        {"$where", refuse},
        {"$text", refuse},
    };
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strcmp(elem->key, operators[i].name) == 0)
            return operators[i].compile(c, elem, out);
    return err_set(c->err, ERR_BadValue,
                   "unknown top level operator: %s. If you have a field name that starts with a '$' symbol, consider "
                   "using $getField or $setField.",
                   elem->key);
}

bool filter_compile_document(struct filter_compiler *c, struct bdoc doc, struct filter_nodes *out)
{
    if (++c->depth > FILTER_MAX_DEPTH)
        return err_set(c->err, ERR_BadValue, "exceeded maximum query tree depth of %d", FILTER_MAX_DEPTH);
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        bool ok = elem.key[0] == '$' ? compile_top(c, &elem, out) : compile_field(c, &elem, out);
        if (!ok)
            return false;
    }
    c->depth--;
    return true;
}

static void release_filter(void *arg)
{
    filter_release(arg);
}

bool filter_compile(struct arena *arena, struct bdoc query, const struct expr_env *env, struct filter **out,
                    struct err *err)
{
    struct err local;
    struct filter_compiler c = {.arena = arena, .env = env, .err = err != NULL ? err : &local};
    struct filter_nodes nodes = {0};
    c.filter = arena_alloc(arena, sizeof *c.filter);
    c.filter->source = query;
    c.filter->order = env != NULL ? env->order : NULL;
    arena_on_deinit(arena, release_filter, c.filter);
    if (!filter_compile_document(&c, query, &nodes))
        goto failed;
    c.filter->root = join_all(&c, &nodes);
    if (c.filter->root == NULL)
        goto failed;
    *out = c.filter;
    return true;
failed:
    filter_release(c.filter);
    return false;
}

void filter_release(struct filter *filter)
{
    if (filter == NULL)
        return;
    for (uint32_t i = 0; i < filter->regex_count; i++)
        regex_free(filter->regexes[i]->regex);
    filter->regex_count = 0;
}
