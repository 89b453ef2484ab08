/* What can be read off a compiled filter without a document. */
#include "query/filter_tree.h"

#include <string.h>

bool filter_is_empty(const struct filter *filter)
{
    return filter->root->op == FILTER_AND && filter->root->children.count == 0;
}

static bool node_is_never(const struct filter_node *node)
{
    switch (node->op) {
    case FILTER_FALSE:
        return true;
    case FILTER_IN:
        return node->in.count == 0 && node->in.regex_count == 0;
    case FILTER_AND:
        for (uint32_t i = 0; i < node->children.count; i++)
            if (node_is_never(node->children.items[i]))
                return true;
        return false;
    case FILTER_OR:
        for (uint32_t i = 0; i < node->children.count; i++)
            if (!node_is_never(node->children.items[i]))
                return false;
        return node->children.count > 0;
    default:
        return false;
    }
}

bool filter_is_never(const struct filter *filter)
{
    return node_is_never(filter->root);
}

bool filter_can_fail(const struct filter *filter)
{
    return filter->has_expr || filter->regex_count > 0 || filter->has_schema_regex;
}

bool filter_has_regex(const struct filter *filter)
{
    return filter->regex_count > 0;
}

bool filter_is_deterministic(const struct filter *filter)
{
    return !filter->has_expr && filter->regex_count == 0 && !filter->uses_order && !filter->has_sample &&
           !filter->has_schema_regex;
}

struct bdoc filter_source(const struct filter *filter)
{
    return filter->source;
}

/* The constant that the node fixes its path to; NULL when there is none. */
static const struct bval *fixed_value(const struct filter_node *node)
{
    if (node->implied)
        return NULL;
    if (node->op == FILTER_EQ)
        return &node->value;
    if (node->op == FILTER_IN && node->in.count == 1 && node->in.regex_count == 0)
        return &node->in.values[0];
    return NULL;
}

static const struct bval *find_equality(const struct filter_node *node, const char *path)
{
    if (node->op == FILTER_AND || (node->op == FILTER_OR && node->children.count == 1)) {
        for (uint32_t i = 0; i < node->children.count; i++) {
            const struct bval *found = find_equality(node->children.items[i], path);
            if (found != NULL)
                return found;
        }
        return NULL;
    }
    const struct bval *value = fixed_value(node);
    bool fixed = value != NULL && node->order == NULL; /* in a collation other strings are equal to it as well */
    return fixed && strcmp(node->path.text, path) == 0 ? value : NULL;
}

bool filter_equality(const struct filter *filter, const char *path, struct bval *out)
{
    const struct bval *found = find_equality(filter->root, path);
    *out = found != NULL ? *found : BVAL_MISSING;
    return found != NULL;
}

static bool each_equality(const struct filter_node *node, const struct filter_equality_visitor *visitor,
                          struct err *err)
{
    if (node->op == FILTER_AND || (node->op == FILTER_OR && node->children.count == 1)) {
        for (uint32_t i = 0; i < node->children.count; i++)
            if (!each_equality(node->children.items[i], visitor, err))
                return false;
        return true;
    }
    const struct bval *value = fixed_value(node);
    return value == NULL || visitor->add(visitor->arg, node->path.text, value, err);
}

bool filter_each_equality(const struct filter *filter, const struct filter_equality_visitor *visitor, struct err *err)
{
    return each_equality(filter->root, visitor, err);
}

static bool node_mentions(const struct filter_node *node, const char *name, size_t len)
{
    bool tree = node->op == FILTER_AND || node->op == FILTER_OR || node->op == FILTER_NOR || node->op == FILTER_NOT;
    for (uint32_t i = 0; tree && i < node->children.count; i++)
        if (node_mentions(node->children.items[i], name, len))
            return true;
    return !node->implied && node->path.count > 0 && node->path.parts[0].len == len &&
           memcmp(node->path.parts[0].name, name, len) == 0;
}

bool filter_mentions(const struct filter *filter, const char *path)
{
    return node_mentions(filter->root, path, strcspn(path, "."));
}
