#include "bson/compare.h"
#include "update/update_tree.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct update_operator *find_operator(const char *name)
{
    const struct update_operator *const tables[] = {update_operators_value, update_operators_array};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct update_operator *op = tables[i]; op->name != NULL; op++)
            if (strcmp(op->name, name) == 0)
                return op;
    return NULL;
}

/* The position that digits without a leading zero stand for; -1: a name. */
static int64_t index_of(const char *name, size_t len)
{
    int64_t value = 0;
    if (len == 0 || len > 9 || (name[0] == '0' && len > 1))
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (!isdigit((unsigned char)name[i]))
            return -1;
        value = value * 10 + (name[i] - '0');
    }
    return value;
}

static enum node_kind kind_of(const char *part, size_t len)
{
    if (len == 1 && part[0] == '$')
        return NODE_POSITIONAL;
    if (len == 3 && memcmp(part, "$[]", 3) == 0)
        return NODE_ALL;
    if (len > 3 && part[0] == '$' && part[1] == '[' && part[len - 1] == ']')
        return NODE_FILTERED;
    return NODE_NAME;
}

static int compare_nodes(const struct update_node *a, const struct update_node *b)
{
    if (a->index >= 0 && b->index >= 0)
        return (a->index > b->index) - (a->index < b->index);
    uint32_t common = a->name_len < b->name_len ? a->name_len : b->name_len;
    int order = memcmp(a->name, b->name, common);
    return order != 0 ? order : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

static struct update_node *insert_child(struct arena *arena, struct update_node *parent, struct update_node *child)
{
    if (parent->child_count == parent->child_capacity) {
        uint32_t capacity = parent->child_capacity == 0 ? 4 : parent->child_capacity * 2;
        struct update_node **children = arena_alloc(arena, capacity * sizeof *children);
        if (parent->child_count > 0)
            memcpy(children, parent->children, parent->child_count * sizeof *children);
        parent->children = children;
        parent->child_capacity = capacity;
    }
    uint32_t at = parent->child_count++;
    while (at > 0 && compare_nodes(child, parent->children[at - 1]) < 0) {
        parent->children[at] = parent->children[at - 1];
        at--;
    }
    parent->children[at] = child;
    return child;
}

static bool conflict(struct update_compiler *c, const char *path, size_t at_len)
{
    return err_set(c->err, 40, "Updating the path '%s' would create a conflict at '%.*s'", path, (int)at_len, path);
}

/* Finds or makes the child for one component; NULL after an error. `end` is where the component ends in `path`. */
static struct update_node *child_for(struct update_compiler *c, struct update_node *parent, const char *path,
                                     const char *part, size_t len)
{
    enum node_kind kind = kind_of(part, len);
    size_t end = (size_t)(part - path) + len;
    for (uint32_t i = 0; i < parent->child_count; i++) {
        struct update_node *child = parent->children[i];
        if (child->name_len == len && memcmp(child->name, part, len) == 0)
            return child;
        /* $[] and $[id] do not mix with names and positions. */
        if ((child->kind >= NODE_ALL) != (kind >= NODE_ALL)) {
            conflict(c, path, (size_t)(part - path) - 1);
            return NULL;
        }
    }
    struct update_node *child = arena_alloc(c->arena, sizeof *child);
    child->kind = kind;
    child->name = arena_copy_str(c->arena, part, len);
    child->name_len = (uint32_t)len;
    child->index = kind == NODE_NAME ? index_of(part, len) : -1;
    if (kind == NODE_POSITIONAL)
        c->update->needs_match = true;
    if (kind == NODE_FILTERED) {
        struct array_filter *filter = update_find_array_filter(c->update, part + 2, len - 3);
        if (filter == NULL) {
            err_set(c->err, ERR_BadValue, "No array filter found for identifier '%.*s' in path '%s'", (int)len - 3,
                    part + 2, path);
            return NULL;
        }
        filter->used = true;
        child->filter = filter->filter;
        child->filter_name = filter->name;
    }
    (void)end;
    return insert_child(c->arena, parent, child);
}

static bool check_path(struct update_compiler *c, const char *path)
{
    size_t len = strlen(path);
    uint32_t parts = 0;
    if (len == 0)
        return err_set(c->err, ERR_EmptyFieldName, "An empty update path is not valid.");
    for (const char *part = path;; parts++) {
        size_t part_len = strcspn(part, ".");
        if (part_len == 0)
            return err_set(c->err, ERR_EmptyFieldName,
                           "The update path '%s' contains an empty field name, which is not allowed.", path);
        enum node_kind kind = kind_of(part, part_len);
        if (part == path && kind != NODE_NAME)
            return err_set(c->err, ERR_BadValue,
                           "Cannot have positional (i.e. '$') element in the first position in path '%s'", path);
        if (part[part_len] == 0)
            break;
        part += part_len + 1;
    }
    if (parts >= BDOC_MAX_WIRE_DEPTH)
        return err_set(c->err, ERR_Overflow, "the update path '%.64s...' is too deep", path);
    return true;
}

bool update_add_op(struct update_compiler *c, struct update_op *op)
{
    struct update_node *node = c->update->root;
    if (++c->op_count > UPDATE_MAX_OPS)
        return err_set(c->err, ERR_BadValue, "an update has at most %d paths", UPDATE_MAX_OPS);
    if (!check_path(c, op->path))
        return false;
    bool creates = op->operator_of->creates == CREATES_ALWAYS || op->source != NULL;
    if (op->path[0] == '$' && creates)
        c->update->dollar_name = op->path;
    const char *part = op->path;
    for (;;) {
        size_t len = strcspn(part, ".");
        node = child_for(c, node, op->path, part, len);
        if (node == NULL)
            return false;
        if (node->op != NULL)
            return conflict(c, op->path, (size_t)(part - op->path) + len);
        if (part[len] == 0)
            break;
        part += len + 1;
    }
    if (node->child_count > 0)
        return conflict(c, op->path, strlen(op->path));
    node->op = op;
    return true;
}

void update_note_order(struct update_compiler *c, const struct bval *operand)
{
    if (c->update->order != NULL && bval_order_concerns(operand))
        c->update->deterministic = false;
}

/* One operator with all its fields. */
static bool compile_operator(struct update_compiler *c, const struct belem *elem)
{
    const struct update_operator *operator_of = find_operator(elem->key);
    if (operator_of == NULL)
        return err_set(
            c->err, ERR_FailedToParse,
            "Unknown modifier: %s. Expected a valid update modifier or pipeline-style update specified as an "
            "array",
            elem->key);
    if (elem->val.type != BT_DOCUMENT)
        return err_set(
            c->err, ERR_FailedToParse,
            "Modifiers operate on fields but we found type %s instead. For example: {$mod: {<field>: ...}} not "
            "{%s: ...}",
            bval_type_name(elem->val.type), elem->key);
    struct biter iter;
    struct belem field;
    biter_init(&iter, bval_doc(&elem->val));
    while (biter_next(&iter, &field)) {
        struct update_op *op = arena_alloc(c->arena, sizeof *op);
        op->operator_of = operator_of;
        op->path = field.key;
        op->arg = field.val;
        if (operator_of->compile != NULL && !operator_of->compile(c, op))
            return false;
        if (!update_add_op(c, op))
            return false;
    }
    return true;
}

static bool all_filters_used(struct update_compiler *c)
{
    for (uint32_t i = 0; i < c->update->filter_count; i++)
        if (!c->update->filters[i].used)
            return err_set(c->err, ERR_FailedToParse, "The array filter for identifier '%s' was not used in the update",
                           c->update->filters[i].name);
    return true;
}

static bool compile_operators(struct update_compiler *c, struct bdoc doc)
{
    struct biter iter;
    struct belem elem;
    c->update->kind = UPDATE_OPERATORS;
    c->update->root = arena_alloc(c->arena, sizeof *c->update->root);
    if (!update_compile_array_filters(c))
        return false;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem))
        if (!compile_operator(c, &elem))
            return false;
    return all_filters_used(c);
}

static bool compile_replacement(struct update_compiler *c, struct bdoc doc)
{
    struct biter iter;
    struct belem elem;
    c->update->kind = UPDATE_REPLACEMENT;
    c->update->source = doc;
    if (c->options->multi)
        return err_set(c->err, ERR_FailedToParse, "multi update is not supported for replacement-style update");
    if (c->options->array_filters.data != NULL && !bdoc_is_empty(c->options->array_filters))
        return err_set(c->err, ERR_FailedToParse, "arrayFilters may not be specified for replacement-style updates");
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem))
        if (elem.key[0] == '$')
            c->update->dollar_name = elem.key;
    return true;
}

bool update_compile(struct arena *arena, const struct bval *source, const struct update_options *options,
                    struct update **out, struct err *err)
{
    struct update_compiler c = {.arena = arena, .options = options, .err = err};
    struct biter iter;
    struct belem first;
    c.update = arena_alloc(arena, sizeof *c.update);
    c.update->now_ms = options->env != NULL ? options->env->now_ms : 0;
    c.update->order = options->env != NULL ? options->env->order : NULL;
    c.update->deterministic = true;
    *out = c.update;
    if (source->type == BT_ARRAY)
        return update_compile_pipeline(&c, bval_doc(source));
    if (source->type != BT_DOCUMENT)
        return err_set(err, ERR_FailedToParse, "Update argument must be either an object or an array");
    biter_init(&iter, bval_doc(source));
    if (biter_next(&iter, &first) && first.key[0] == '$')
        return compile_operators(&c, bval_doc(source));
    return compile_replacement(&c, bval_doc(source));
}

void update_release(struct update *update)
{
    if (update == NULL)
        return;
    for (uint32_t i = 0; i < update->filter_count; i++)
        filter_release(update->filters[i].filter);
}

enum update_kind update_kind(const struct update *update)
{
    return update->kind;
}

bool update_is_deterministic(const struct update *update)
{
    return update->kind != UPDATE_PIPELINE && update->deterministic;
}

bool update_needs_match(const struct update *update)
{
    return update->needs_match;
}

/* Names that stand for array positions may be any of them: "a.$.b" touches "a.b" and "a.0.b". */
static bool node_touches(const struct update_node *node, const char *path)
{
    if (node->op != NULL || *path == 0)
        return true;
    size_t len = strcspn(path, ".");
    const char *rest = path[len] == '.' ? path + len + 1 : path + len;
    for (uint32_t i = 0; i < node->child_count; i++) {
        const struct update_node *child = node->children[i];
        bool position = child->kind != NODE_NAME || child->index >= 0;
        if (position && node_touches(child, path))
            return true;
        bool named = child->kind == NODE_NAME && child->name_len == len && memcmp(child->name, path, len) == 0;
        bool digits = child->kind != NODE_NAME && index_of(path, len) >= 0;
        if ((named || digits) && node_touches(child, rest))
            return true;
    }
    return false;
}

bool update_touches(const struct update *update, const char *path)
{
    if (update->kind != UPDATE_OPERATORS)
        return true;
    return update->root->child_count > 0 && node_touches(update->root, path);
}
