#include "bson/compare.h"
#include "bson/path.h"
#include "update/update_tree.h"

#include <stdio.h>
#include <string.h>

enum {
    FEW_NODES = 8, /* sets of this size need no scratch memory */
};

/* Several nodes meet at one value when $[], $[id], $ or a position name the same element. */
struct node_set {
    const struct update_node **nodes;
    uint32_t count;
    const struct update_node *few[FEW_NODES];
};

static bool apply_field(struct applier *a, const struct node_set *set, const struct belem *elem, bool in_array,
                        struct buf *out);

static void set_init(struct node_set *set)
{
    set->nodes = set->few;
    set->count = 0;
}

static void set_add(struct applier *a, struct node_set *set, const struct update_node *node)
{
    if (set->count >= FEW_NODES && (set->count & (set->count - 1)) == 0) {
        const struct update_node **more = arena_alloc(&a->scratch, set->count * 2 * sizeof(struct update_node *));
        for (uint32_t i = 0; i < set->count; i++)
            more[i] = set->nodes[i];
        set->nodes = more;
    }
    set->nodes[set->count++] = node;
}

static bool same_name(const struct update_node *node, const char *key, size_t len)
{
    return node->name_len == len && memcmp(node->name, key, len) == 0;
}

/* The position that `$` stands for as a name. */
static bool matched_position(struct applier *a, char *name, size_t *len)
{
    if (a->match == NULL || a->match->array_index < 0)
        return err_set(a->err, ERR_BadValue, "The positional operator did not find the match needed from the query.");
    *len = write_index_name(name, (uint32_t)a->match->array_index);
    return true;
}

static bool filtered_matches(struct applier *a, const struct update_node *node, const struct bval *val)
{
    bool matched = false;
    a->failed = a->failed || !filter_eval_value(node->filter, node->filter_name, val, &matched, a->err);
    return matched && !a->failed;
}

static bool node_selects(struct applier *a, const struct update_node *node, const struct belem *elem)
{
    char name[WRITER_INDEX_BYTES];
    switch (node->kind) {
    case NODE_NAME:
        return same_name(node, elem->key, elem->key_len);
    case NODE_POSITIONAL:
        return a->match != NULL && a->match->array_index >= 0 &&
               write_index_name(name, (uint32_t)a->match->array_index) == elem->key_len &&
               memcmp(name, elem->key, elem->key_len) == 0;
    case NODE_ALL:
        return true;
    case NODE_FILTERED:
        return filtered_matches(a, node, &elem->val);
    }
    return false;
}

static void select_children(struct applier *a, const struct node_set *set, const struct belem *elem,
                            struct node_set *out)
{
    set_init(out);
    for (uint32_t i = 0; i < set->count; i++)
        for (uint32_t j = 0; j < set->nodes[i]->child_count; j++)
            if (node_selects(a, set->nodes[i]->children[j], elem))
                set_add(a, out, set->nodes[i]->children[j]);
}

static bool op_creates(struct applier *a, const struct update_op *op)
{
    switch (op->operator_of->creates) {
    case CREATES_NEVER:
        return false;
    case CREATES_ALWAYS:
        return true;
    case CREATES_ON_INSERT:
        return a->insert;
    case CREATES_IF_SOURCE:
        return op->source != NULL && update_rename_has_source(a, op);
    }
    return false;
}

static const struct update_op *first_creator(struct applier *a, const struct update_node *node)
{
    if (node->op != NULL)
        return op_creates(a, node->op) ? node->op : NULL;
    for (uint32_t i = 0; i < node->child_count; i++) {
        const struct update_op *op = first_creator(a, node->children[i]);
        if (op != NULL)
            return op;
    }
    return NULL;
}

/* An operator below that fails when it cannot get through. */
static const struct update_op *first_blocked(struct applier *a, const struct update_node *node)
{
    if (node->op != NULL)
        return node->op->operator_of->needs_path || op_creates(a, node->op) ? node->op : NULL;
    for (uint32_t i = 0; i < node->child_count; i++) {
        const struct update_op *op = first_blocked(a, node->children[i]);
        if (op != NULL)
            return op;
    }
    return NULL;
}

/* Does an operator in the set, or below it, make fields that are missing? */
static bool set_creates(struct applier *a, const struct node_set *set)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (first_creator(a, set->nodes[i]) != NULL)
            return true;
    return false;
}

/* A value stands where `node` wants to go further: fine when nothing below minds. */
static bool blocked(struct applier *a, const struct update_node *node, const struct belem *elem)
{
    const struct update_op *op = first_blocked(a, node);
    char position[WRITER_INDEX_BYTES];
    size_t len = 0;
    if (op == NULL)
        return true;
    if (node->kind == NODE_POSITIONAL && !matched_position(a, position, &len))
        return false;
    if (op->operator_of->creates == CREATES_IF_SOURCE && !update_check_rename(a, op))
        return false;
    return err_set(a->err, ERR_PathNotViable, "Cannot create field '%s' in element {%s: %s} (%s)", node->name,
                   elem->key, bval_type_name(elem->val.type), update_id_text(a));
}

/* Children of the set that the document lacks, one name after the other. */
static bool add_missing(struct applier *a, const struct node_set *set, struct bdoc doc, struct buf *out)
{
    for (uint32_t i = 0; i < set->count; i++) {
        for (uint32_t j = 0; j < set->nodes[i]->child_count; j++) {
            const struct update_node *child = set->nodes[i]->children[j];
            char position[WRITER_INDEX_BYTES];
            struct belem elem = {.key = child->name, .key_len = child->name_len};
            struct bval present;
            if (child->kind == NODE_POSITIONAL) {
                size_t len = 0;
                if (!matched_position(a, position, &len))
                    return false;
                elem.key = position;
                elem.key_len = (uint32_t)len;
            } else if (child->kind != NODE_NAME) {
                return err_set(a->err, ERR_BadValue,
                               "Cannot apply array updates to non-array element (path component '%s')", child->name);
            }
            if (bdoc_find_n(doc, elem.key, elem.key_len, &present))
                continue;
            struct node_set same;
            select_children(a, set, &elem, &same);
            if (same.nodes[0] == child && !apply_field(a, &same, &elem, false, out))
                return false;
        }
    }
    return true;
}

/* The field written at `start` against the document's _id. */
static bool same_id(struct applier *a, const struct buf *out, size_t start)
{
    struct bval old;
    size_t head = 1 + sizeof "_id";
    if (!bdoc_find(a->doc, "_id", &old))
        return true;
    if (out->len > start) {
        struct bval now = {.type = out->data[start], .len = (uint32_t)(out->len - start - head)};
        now.data = out->data + start + head;
        if (bval_equal(&old, &now))
            return true;
    }
    return err_set(a->err, ERR_ImmutableField,
                   "Performing an update on the path '_id' would modify the immutable field '_id'");
}

/* The children in the order of their names, whether the document has them or not. */
static bool diagnose_document(struct applier *a, const struct node_set *set, struct bdoc doc, struct buf *out)
{
    for (uint32_t i = 0; i < set->count; i++) {
        for (uint32_t j = 0; j < set->nodes[i]->child_count; j++) {
            const struct update_node *child = set->nodes[i]->children[j];
            struct belem elem = {.key = child->name, .key_len = child->name_len};
            struct node_set chosen;
            if (child->kind != NODE_NAME)
                continue;
            size_t start = out->len;
            bdoc_find_n(doc, elem.key, elem.key_len, &elem.val);
            select_children(a, set, &elem, &chosen);
            if (!apply_field(a, &chosen, &elem, false, out))
                return false;
            bool moved =
                child->op != NULL && child->op->source == NULL && child->op->operator_of->creates == CREATES_IF_SOURCE;
            if (set->nodes[0] == a->update->root && strcmp(child->name, "_id") == 0 && !moved &&
                !same_id(a, out, start))
                return false;
        }
    }
    return add_missing(a, set, doc, out);
}

static bool apply_document(struct applier *a, const struct node_set *set, struct bdoc doc, struct buf *out)
{
    struct biter iter;
    struct belem elem;
    if (a->diagnosing)
        return diagnose_document(a, set, doc, out);
    bool array_only = set->nodes[0]->child_count > 0 && set->nodes[0]->children[0]->kind >= NODE_ALL;
    biter_init(&iter, doc);
    /* Fields that nothing touches are copied in runs. */
    const uint8_t *run = iter.pos;
    const uint8_t *end = iter.pos;
    uint32_t found = 0;
    while (!array_only && biter_next(&iter, &elem)) {
        struct node_set chosen;
        select_children(a, set, &elem, &chosen);
        if (chosen.count > 0) {
            found++;
            buf_append(out, run, (size_t)(end - run));
            if (!apply_field(a, &chosen, &elem, false, out))
                return false;
            run = iter.pos;
        }
        end = iter.pos;
    }
    buf_append(out, run, (size_t)(end - run));
    if (set->count == 1 && set->nodes[0]->child_count == 1 && found > 0)
        return true;
    return add_missing(a, set, doc, out);
}

/* Positions past the end: nulls fill the way. */
static bool extend_array(struct applier *a, const struct node_set *set, uint32_t *count, const struct belem *array,
                         struct buf *out)
{
    for (uint32_t i = 0; i < set->count; i++) {
        for (uint32_t j = 0; j < set->nodes[i]->child_count; j++) {
            const struct update_node *child = set->nodes[i]->children[j];
            int64_t index = child->index;
            char name[WRITER_INDEX_BYTES];
            size_t len = 0;
            if (child->kind >= NODE_ALL)
                continue;
            if (child->kind == NODE_POSITIONAL) {
                if (!matched_position(a, name, &len))
                    return false;
                index = a->match->array_index;
            }
            if (index >= 0 && index < *count)
                continue;
            if (index < 0) {
                if (!blocked(a, child, array))
                    return false;
                continue;
            }
            if (first_creator(a, child) == NULL)
                continue;
            if (index - *count > UPDATE_MAX_BACKFILL)
                return err_set(a->err, ERR_BadValue, "can't backfill more than %d elements", UPDATE_MAX_BACKFILL);
            while (*count < index)
                write_item(out, (*count)++, &BVAL_NULL);
            struct belem elem = {.key = name, .key_len = (uint32_t)write_index_name(name, (uint32_t)index)};
            struct node_set same;
            select_children(a, set, &elem, &same);
            if (!apply_field(a, &same, &elem, true, out))
                return false;
            *count = (uint32_t)index + 1;
        }
    }
    return true;
}

static bool apply_array(struct applier *a, const struct node_set *set, const struct belem *array, struct buf *out)
{
    struct biter iter;
    struct belem elem;
    uint32_t count = 0;
    biter_init(&iter, bval_doc(&array->val));
    for (; biter_next(&iter, &elem); count++) {
        struct node_set chosen;
        select_children(a, set, &elem, &chosen);
        if (chosen.count == 0)
            write_elem(out, &elem);
        else if (!apply_field(a, &chosen, &elem, true, out))
            return false;
    }
    return extend_array(a, set, &count, array, out);
}

static bool same_value(const struct bval *a, const struct bval *b)
{
    return a->type == b->type && a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static bool apply_leaf(struct applier *a, const struct update_op *op, const struct belem *elem, bool in_array,
                       struct buf *out)
{
    struct outcome outcome = {.kind = OUTCOME_KEEP};
    if (elem->val.type == BT_EOO && !op_creates(a, op))
        return true;
    if (!op->operator_of->apply(a, op, &elem->val, &outcome))
        return false;
    if (outcome.kind == OUTCOME_SET && same_value(&outcome.value, &elem->val))
        outcome.kind = OUTCOME_KEEP;
    if (outcome.kind == OUTCOME_KEEP) {
        write_elem(out, elem);
        return true;
    }
    if (outcome.kind == OUTCOME_REMOVE) {
        /* An array keeps its length. */
        a->modified = true;
        if (in_array)
            write_value(out, elem->key, elem->key_len, &BVAL_NULL);
        return true;
    }
    a->modified = true;
    write_value(out, elem->key, elem->key_len, &outcome.value);
    return true;
}

/* The field is missing: a document with what is created below, or nothing. */
static bool create_below(struct applier *a, const struct node_set *set, const struct belem *elem, struct buf *out)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (set->nodes[i]->children[0]->kind >= NODE_ALL)
            return err_set(a->err, ERR_BadValue,
                           "The path '%s' must exist in the document in order to apply array updates.", elem->key);
    if (!set_creates(a, set))
        return true;
    size_t start = write_begin_field(out, elem->key, elem->key_len, BT_DOCUMENT);
    if (!add_missing(a, set, bdoc_empty(), out))
        return false;
    write_end(out, start);
    return true;
}

static bool apply_field(struct applier *a, const struct node_set *set, const struct belem *elem, bool in_array,
                        struct buf *out)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->nodes[i]->op == NULL)
            continue;
        if (set->count > 1)
            return err_set(a->err, 40, "Update created a conflict at '%s'", set->nodes[i]->op->path);
        return apply_leaf(a, set->nodes[i]->op, elem, in_array, out);
    }
    bool array_update = set->nodes[0]->children[0]->kind >= NODE_ALL;
    switch (elem->val.type) {
    case BT_EOO:
        return create_below(a, set, elem, out);
    case BT_DOCUMENT:
    case BT_ARRAY: {
        size_t start = write_begin_field(out, elem->key, elem->key_len, elem->val.type);
        bool ok = elem->val.type == BT_ARRAY ? apply_array(a, set, elem, out)
                                             : apply_document(a, set, bval_doc(&elem->val), out);
        write_end(out, start);
        return ok;
    }
    default:
        if (array_update)
            return err_set(a->err, ERR_BadValue, "Cannot apply array updates to non-array element %s: %s", elem->key,
                           bval_type_name(elem->val.type));
        for (uint32_t i = 0; i < set->count; i++)
            for (uint32_t j = 0; j < set->nodes[i]->child_count; j++)
                if (!blocked(a, set->nodes[i]->children[j], elem))
                    return false;
        write_elem(out, elem);
        return true;
    }
}

const char *update_id_text(struct applier *a)
{
    struct bval id;
    bdoc_find(a->doc, "_id", &id);
    if (id.type == BT_INT32)
        return arena_printf(&a->scratch, "_id: %d", bval_i32(&id));
    if (id.type == BT_OBJECT_ID) {
        char text[25];
        bson_oid_to_string(bval_oid(&id), text);
        return arena_printf(&a->scratch, "_id: ObjectId('%s')", text);
    }
    return arena_printf(&a->scratch, "_id: %s", bval_type_name(id.type));
}

static bool apply_root(struct applier *a, struct bdoc doc, struct buf *out)
{
    struct node_set root;
    set_init(&root);
    set_add(a, &root, a->update->root);
    return apply_document(a, &root, doc, out);
}

bool update_apply_tree(struct applier *a, struct bdoc doc, struct buf *out)
{
    bool ok = apply_root(a, doc, out);
    if (ok || a->failed)
        return !a->failed;
    /* Of several errors the one of the least path is told. */
    struct buf unwanted = BUF_INIT;
    a->diagnosing = true;
    bool again = apply_root(a, doc, &unwanted);
    buf_deinit(&unwanted);
    (void)again;
    return false;
}
