#include "query/filter_part.h"

#include "query/bounds_key.h"

#include <string.h>

static void note_facts(struct arena *arena, struct filter *part, const struct filter_node *node,
                       struct filter_nodes *regexes)
{
    switch (node->op) {
    case FILTER_AND:
    case FILTER_OR:
    case FILTER_NOR:
    case FILTER_NOT:
    case FILTER_ELEM_DOCUMENT:
    case FILTER_ELEM_VALUE:
        for (uint32_t i = 0; i < node->children.count; i++)
            note_facts(arena, part, node->children.items[i], regexes);
        break;
    case FILTER_IN:
        for (uint32_t i = 0; i < node->in.regex_count; i++)
            filter_nodes_add(arena, regexes, node->in.regexes[i]);
        break;
    case FILTER_REGEX: {
        struct filter_node *same;
        memcpy(&same, &node, sizeof same);
        filter_nodes_add(arena, regexes, same);
        break;
    }
    case FILTER_EXPR:
        part->has_expr = true;
        break;
    default:
        break;
    }
}

struct filter *filter_part_new(struct arena *arena, const struct filter *whole, const struct filter_node *const *nodes,
                               uint32_t count)
{
    struct filter *part = arena_alloc(arena, sizeof *part);
    struct filter_nodes regexes = {0};
    struct filter_node *root = arena_alloc(arena, sizeof *root);
    *part = *whole;
    part->has_expr = false;
    root->op = FILTER_AND;
    for (uint32_t i = 0; i < count; i++) {
        struct filter_node *same;
        memcpy(&same, &nodes[i], sizeof same);
        filter_nodes_add(arena, &root->children, same);
        note_facts(arena, part, same, &regexes);
    }
    part->root = count == 1 ? root->children.items[0] : root;
    part->regexes = regexes.items;
    part->regex_count = regexes.count;
    part->regex_capacity = regexes.capacity;
    return part;
}

bool filter_branches(struct arena *arena, const struct filter *filter, uint32_t max, struct filter_branch **out,
                     uint32_t *count)
{
    struct conjunction conj = {0};
    conjunction_flatten(arena, &conj, filter->root);
    uint32_t at = 0;
    while (at < conj.count && conj.leaves[at]->op != FILTER_OR)
        at++;
    if (at == conj.count || conj.leaves[at]->children.count > max)
        return false;
    const struct filter_nodes *children = &conj.leaves[at]->children;
    *count = children->count;
    *out = arena_alloc(arena, (children->count + 1) * sizeof **out);
    for (uint32_t i = 0; i < children->count; i++) {
        const struct filter_node *child = children->items[i];
        struct conjunction whole = {0};
        for (uint32_t j = 0; j < conj.count; j++)
            if (j != at)
                conjunction_add(arena, &whole, conj.leaves[j]);
        conjunction_flatten(arena, &whole, child);
        (*out)[i].part = filter_part_new(arena, filter, &child, 1);
        (*out)[i].whole = filter_part_new(arena, filter, whole.leaves, whole.count);
    }
    return true;
}

/* ---- paths ---- */

struct path_list {
    struct arena *arena;
    const char **out;
    uint32_t count;
    uint32_t max;
};

static void add_path(struct path_list *list, const char *above, const char *path)
{
    const char *whole = above[0] == 0 ? path : arena_printf(list->arena, "%s.%s", above, path);
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(list->out[i], whole) == 0)
            return;
    if (list->count < list->max)
        list->out[list->count++] = whole;
}

static void add_paths(struct path_list *list, const char *above, const struct filter_node *node)
{
    if (node->op == FILTER_NOT || node->op == FILTER_AND) {
        for (uint32_t i = 0; i < node->children.count; i++)
            add_paths(list, above, node->children.items[i]);
    } else if (node->op == FILTER_ELEM_DOCUMENT) {
        const char *here = above[0] == 0 ? node->path.text : arena_printf(list->arena, "%s.%s", above, node->path.text);
        for (uint32_t i = 0; i < node->children.count; i++)
            add_paths(list, here, node->children.items[i]);
    } else if (node->path.text != NULL) {
        add_path(list, above, node->path.text);
    }
}

uint32_t filter_paths(struct arena *arena, const struct filter *filter, const char **out, uint32_t max)
{
    struct path_list list = {.arena = arena, .out = out, .max = max};
    add_paths(&list, "", filter->root);
    return list.count;
}

/* ---- implication ---- */

struct implication {
    struct arena *arena;
    const struct bval_order *query_order;
    const struct bval_order *partial_order;
};

static bool is_and(const struct filter_node *node)
{
    return node->op == FILTER_AND || (node->op == FILTER_OR && node->children.count == 1);
}

/* {path: {$ne: null}} of a top-level field. */
static bool is_not_null(const struct filter_node *node)
{
    const struct filter_node *child = node->children.items[0];
    return child->op == FILTER_EQ && child->value.type == BT_NULL && child->path.count == 1;
}

static const char *leaf_path(const struct filter_node *node)
{
    return node->op == FILTER_NOT ? node->children.items[0]->path.text : node->path.text;
}

static bool says_exists(const struct value_list *list, const struct value_target *target,
                        const struct filter_node *node)
{
    if (node->op == FILTER_EXISTS)
        return true;
    if (node->op == FILTER_NOT)
        return is_not_null(node);
    if (node->op == FILTER_SIZE || node->op == FILTER_ELEM_VALUE || node->op == FILTER_ELEM_DOCUMENT)
        return true;
    struct value_list null = value_list_point(target, &BVAL_NULL, false);
    return !list->full && !value_list_contains(list, null.items[0].bytes.low, null.items[0].bytes.low_len);
}

/* Two predicates, neither an AND nor an OR: on one path, the values of the first among those of the second. */
static bool leaf_implies(const struct implication *im, const struct filter_node *query,
                         const struct filter_node *partial)
{
    const char *path = leaf_path(query);
    const char *wanted = leaf_path(partial);
    if (query->op == FILTER_FALSE || partial->op == FILTER_TRUE)
        return true;
    if (path == NULL || wanted == NULL || strcmp(path, wanted) != 0)
        return false;
    struct bounds_field field = {.path = path, .arrays = ~UINT64_C(0)};
    struct value_target of_query = {
        .arena = im->arena, .field = &field, .index_order = im->partial_order, .query_order = im->query_order};
    struct value_target of_partial = of_query;
    of_partial.query_order = im->partial_order;
    struct value_list inner = value_list_of(&of_query, query);
    if (partial->op == FILTER_EXISTS)
        return says_exists(&inner, &of_query, query);
    struct value_list outer = value_list_of(&of_partial, partial);
    return query->op != FILTER_NOT && !inner.full && !outer.full && outer.exact && value_list_is_subset(&inner, &outer);
}

static bool node_implies(const struct implication *im, const struct filter_node *query,
                         const struct filter_node *partial)
{
    if (is_and(partial)) {
        for (uint32_t i = 0; i < partial->children.count; i++)
            if (!node_implies(im, query, partial->children.items[i]))
                return false;
        return true;
    }
    if (is_and(query)) {
        for (uint32_t i = 0; i < query->children.count; i++)
            if (node_implies(im, query->children.items[i], partial))
                return true;
        return false;
    }
    if (query->op == FILTER_OR) {
        for (uint32_t i = 0; i < query->children.count; i++)
            if (!node_implies(im, query->children.items[i], partial))
                return false;
        return true;
    }
    if (partial->op == FILTER_OR) {
        for (uint32_t i = 0; i < partial->children.count; i++)
            if (node_implies(im, query, partial->children.items[i]))
                return true;
        return false;
    }
    return leaf_implies(im, query, partial);
}

bool filter_implies(struct arena *arena, const struct filter *query, const struct filter *partial)
{
    struct implication im = {.arena = arena, .query_order = query->order, .partial_order = partial->order};
    return node_implies(&im, query->root, partial->root);
}

const struct bval_order *filter_order(const struct filter *filter)
{
    return filter->order;
}

/* ---- shape ---- */

static void append_children(const struct filter_nodes *children, struct buf *out);

/* Constants of these kinds have bounds of another kind, so they make another shape. */
static uint8_t kind_of(const struct bval *val)
{
    return val->type == BT_NULL || val->type == BT_ARRAY || val->type == BT_DOCUMENT || val->type == BT_STRING
               ? val->type
               : 0;
}

static void append_node(const struct filter_node *node, struct buf *out)
{
    buf_append_u8(out, (uint8_t)(1 + node->op));
    if (node->path.text != NULL) {
        buf_append(out, node->path.text, node->path.len + 1);
        buf_append_u8(out, kind_of(&node->value));
    }
    switch (node->op) {
    case FILTER_AND:
    case FILTER_OR:
    case FILTER_NOR:
    case FILTER_NOT:
    case FILTER_ELEM_DOCUMENT:
    case FILTER_ELEM_VALUE:
        append_children(&node->children, out);
        break;
    case FILTER_IN:
        buf_append_u8(out, node->in.has_null);
        buf_append_u8(out, node->in.regex_count > 0);
        buf_append_u8(out, node->in.count == 1);
        break;
    default:
        break;
    }
}

static void append_children(const struct filter_nodes *children, struct buf *out)
{
    for (uint32_t i = 0; i < children->count; i++)
        append_node(children->items[i], out);
    buf_append_u8(out, 0);
}

void filter_append_shape(const struct filter *filter, struct buf *out)
{
    append_node(filter->root, out);
    if (filter->order != NULL)
        buf_append(out, filter->order->name, strlen(filter->order->name) + 1);
}
