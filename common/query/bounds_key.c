/* What a conjunction of predicates says about each component of a key.
 *
 * Without arrays a document has one key, and everything that is said about a field holds for it: the lists are
 * intersected. With an array on the way a document has several keys, and a predicate says that SOME key lies in its
 * list; two predicates may be met by different keys. So of those only one is taken for a field, unless they belong to
 * one $elemMatch, that is to one element. A negation says that ALL keys lie in its list: it goes with any other. The
 * same holds between fields that lie below one array. */
#include "query/bounds_key.h"

#include "query/filter_part.h"

#include <string.h>

enum { GROUPS_MAX = 8 }; /* $elemMatch in $elemMatch; deeper ones are not told apart */

/* The $elemMatch (or equality with a document) whose elements a key belongs to, the outermost first. */
struct groups {
    const struct filter_node *nodes[GROUPS_MAX];
    uint32_t parts[GROUPS_MAX]; /* of the path that lead to the element */
    uint32_t count;
};

struct choice {
    struct value_list list;
    struct groups groups;
    bool narrowed; /* some predicate on a single key made the list */
};

struct contribution {
    struct choice choice;
    bool every_key; /* holds for all keys of a document */
};

/* One level: the query, or the inside of an $elemMatch. */
struct level {
    const struct builder *b;
    const struct conjunction *conj;
    const struct bounds_field *field;
    const char *path;     /* of the field, from this level on */
    uint32_t parts_above; /* of its whole path, that lead to this level */
    struct groups groups;
    bool *consumed; /* for each predicate: the bounds say it exactly; NULL: nobody asks */
};

struct builder {
    struct arena *arena;
    const struct bounds_pattern *pattern;
    const struct bval_order *query_order;
    struct choice chosen[BOUNDS_MAX_COMPONENTS]; /* for the fields before */
    uint32_t at;                                 /* the field under work */
};

/* With arrays a position selects an element whose own elements a filter looks at but the index doesn't, and a document
 * in the array may have a field of that name: the keys don't tell. */
static bool is_unclear(const struct bounds_field *field)
{
    for (const char *at = field->path; field->arrays != 0 && at != NULL; at = strchr(at, '.')) {
        at += *at == '.';
        char end = at[strspn(at, "0123456789")];
        if (*at != end && (end == '.' || end == 0))
            return true;
    }
    return false;
}

/* ---- conjunctions ---- */

void conjunction_add(struct arena *arena, struct conjunction *conj, const struct filter_node *leaf)
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

static const struct filter_node *negation_of(struct arena *arena, struct filter_node *child)
{
    struct filter_node *node = arena_alloc(arena, sizeof *node);
    node->op = FILTER_NOT;
    filter_nodes_add(arena, &node->children, child);
    return node;
}

void conjunction_flatten(struct arena *arena, struct conjunction *conj, const struct filter_node *node)
{
    bool transparent = node->op == FILTER_AND || (node->op == FILTER_OR && node->children.count == 1);
    if (!transparent && node->op != FILTER_NOR) {
        conjunction_add(arena, conj, node);
        return;
    }
    for (uint32_t i = 0; i < node->children.count; i++) {
        if (transparent)
            conjunction_flatten(arena, conj, node->children.items[i]);
        else
            conjunction_add(arena, conj, negation_of(arena, node->children.items[i]));
    }
}

static bool is_empty_in(const struct filter_node *node)
{
    return node->op == FILTER_IN && node->in.count == 0 && node->in.regex_count == 0;
}

bool conjunction_is_never(const struct conjunction *conj)
{
    for (uint32_t i = 0; i < conj->count; i++)
        if (conj->leaves[i]->op == FILTER_FALSE || is_empty_in(conj->leaves[i]))
            return true;
    return false;
}

/* ---- what one predicate says about the field ---- */

static struct value_target target_of(const struct level *level)
{
    return (struct value_target){
        .arena = level->b->arena,
        .field = level->field,
        .index_order = level->b->pattern->order,
        .query_order = level->b->query_order,
        .shard_key = level->b->pattern->shard_key,
    };
}

/* The path that all predicates of the node are on; NULL when there is no single one. */
static const char *path_of(const struct filter_node *node)
{
    if (node->path.text != NULL)
        return node->path.text;
    if ((node->op != FILTER_NOT && node->op != FILTER_AND) || node->children.count == 0)
        return NULL;
    const char *path = path_of(node->children.items[0]);
    for (uint32_t i = 1; path != NULL && i < node->children.count; i++) {
        const char *other = path_of(node->children.items[i]);
        if (other == NULL || strcmp(other, path) != 0)
            return NULL;
    }
    return path;
}

/* What of `path` is left below the node's own path; NULL when it doesn't lie below. */
static const char *below(const struct filter_node *node, const char *path)
{
    size_t len = node->path.len;
    if (node->path.text == NULL || strncmp(path, node->path.text, len) != 0 || path[len] != '.')
        return NULL;
    return path + len + 1;
}

static struct choice choose(const struct level *level);

static void add_group(struct groups *groups, const struct filter_node *node, uint32_t parts)
{
    if (groups->count == GROUPS_MAX)
        return;
    groups->nodes[groups->count] = node;
    groups->parts[groups->count++] = parts;
}

/* {a: {b: 5}} fixes the field "a.b" too. */
static bool from_document(const struct level *level, const struct filter_node *leaf, struct contribution *out)
{
    const char *rest = below(leaf, level->path);
    struct bval val;
    if (rest == NULL || leaf->value.type != BT_DOCUMENT)
        return false;
    path_get_str(bval_doc(&leaf->value), rest, &val);
    if (val.type == BT_ARRAY)
        return false;
    struct value_target target = target_of(level);
    /* With an array below, say {a: {b: 5}} for "a.b.c", nothing is lost: the value itself has none. */
    out->choice.list = value_list_point(&target, &val, false);
    add_group(&out->choice.groups, leaf, level->parts_above + leaf->path.count);
    return true;
}

static bool from_element(const struct level *level, const struct filter_node *leaf, struct contribution *out)
{
    const char *rest = below(leaf, level->path);
    if (rest == NULL || level->b->pattern->shard_key)
        return false;
    struct conjunction conj = {0};
    for (uint32_t i = 0; i < leaf->children.count; i++)
        conjunction_flatten(level->b->arena, &conj, leaf->children.items[i]);
    struct level inner = *level;
    inner.conj = &conj;
    inner.path = rest;
    inner.parts_above += leaf->path.count;
    inner.consumed = NULL;
    add_group(&inner.groups, leaf, inner.parts_above);
    out->choice = choose(&inner);
    out->choice.list.exact = false;
    return true;
}

/* All branches together; every one of them has to say something. */
static bool from_or(const struct level *level, const struct filter_node *leaf, struct contribution *out)
{
    struct value_list all = {.exact = true};
    if (leaf->children.count > BOUNDS_MAX_BRANCHES)
        return false;
    for (uint32_t i = 0; i < leaf->children.count; i++) {
        struct conjunction conj = {0};
        conjunction_flatten(level->b->arena, &conj, leaf->children.items[i]);
        if (conjunction_is_never(&conj))
            continue;
        bool *consumed = arena_alloc(level->b->arena, conj.count + 1);
        struct level inner = *level;
        inner.conj = &conj;
        inner.consumed = consumed;
        struct choice choice = choose(&inner);
        if (choice.list.full)
            return false;
        for (uint32_t j = 0; j < conj.count; j++)
            choice.list.exact = choice.list.exact && consumed[j];
        all = value_list_union(level->b->arena, &all, &choice.list);
    }
    out->choice.list = all;
    return true;
}

/* False: it says nothing. */
static bool contribution_of(const struct level *level, const struct filter_node *leaf, struct contribution *out)
{
    *out = (struct contribution){.choice = {.groups = level->groups, .narrowed = true}};
    if (leaf->op == FILTER_OR)
        return from_or(level, leaf, out);
    const char *path = path_of(leaf);
    if (path == NULL)
        return false;
    if (strcmp(path, level->path) != 0) {
        if (leaf->op == FILTER_EQ)
            return from_document(level, leaf, out);
        return leaf->op == FILTER_ELEM_DOCUMENT && from_element(level, leaf, out) && !out->choice.list.full;
    }
    struct value_target target = target_of(level);
    out->choice.list = value_list_of(&target, leaf);
    if (leaf->path.text != NULL)
        add_group(&out->choice.groups, leaf, level->parts_above + leaf->path.count);
    out->every_key = leaf->op == FILTER_NOT;
    return !out->choice.list.full;
}

/* ---- which of them are taken ---- */

static uint32_t common_parts(const char *a, const char *b)
{
    uint32_t parts = 0;
    for (;; a++, b++) {
        bool a_ends = *a == 0 || *a == '.';
        bool b_ends = *b == 0 || *b == '.';
        if (a_ends && b_ends)
            parts++;
        if (*a != *b || *a == 0)
            return parts;
    }
}

/* Parts of the paths that lead to an element which both keys belong to. */
static uint32_t shared_parts(const struct groups *a, const struct groups *b)
{
    uint32_t parts = 0;
    for (uint32_t i = 0; i < a->count && i < b->count && a->nodes[i] == b->nodes[i]; i++)
        parts = a->parts[i];
    return parts;
}

/* May both be asked of one key? */
static bool goes_with(const struct builder *b, uint32_t other, const struct choice *choice)
{
    const struct bounds_field *x = &b->pattern->fields[other];
    const struct bounds_field *y = &b->pattern->fields[b->at];
    const struct choice *chosen = &b->chosen[other];
    if (x->constant || !chosen->narrowed)
        return true;
    uint32_t common = common_parts(x->path, y->path);
    for (uint32_t part = shared_parts(&chosen->groups, &choice->groups); part < common && part < 64; part++)
        if (((x->arrays | y->arrays) >> part & 1) != 0)
            return false;
    return common <= 64 || x->arrays == 0;
}

static bool goes_with_all(const struct builder *b, const struct choice *choice)
{
    for (uint32_t i = 0; i < b->at; i++)
        if (!goes_with(b, i, choice))
            return false;
    return true;
}

static bool is_better(const struct value_list *a, const struct value_list *b)
{
    return value_list_is_points(a) && !value_list_is_points(b);
}

static void consume(const struct level *level, uint32_t i, const struct value_list *list)
{
    if (level->consumed != NULL && list->exact)
        level->consumed[i] = true;
}

/* Arrays at or below this level: one predicate for a single key, and all that hold for every key. */
static struct choice choose_one(const struct level *level, const struct contribution *said, const bool *says)
{
    struct choice best = {.list = value_list_full(), .groups = level->groups};
    uint32_t best_at = 0;
    for (uint32_t i = 0; i < level->conj->count; i++) {
        if (!says[i] || said[i].every_key || !goes_with_all(level->b, &said[i].choice))
            continue;
        if (best.list.full || is_better(&said[i].choice.list, &best.list)) {
            best = said[i].choice;
            best_at = i;
        }
    }
    if (!best.list.full)
        consume(level, best_at, &best.list);
    for (uint32_t i = 0; i < level->conj->count; i++) {
        if (!says[i] || !said[i].every_key)
            continue;
        bool exact = best.list.full || best.list.exact;
        best.list = value_list_intersect(level->b->arena, &best.list, &said[i].choice.list);
        best.list.exact = exact;
    }
    return best;
}

static struct choice choose_all(const struct level *level, const struct contribution *said, const bool *says)
{
    struct choice all = {.list = value_list_full(), .groups = level->groups};
    for (uint32_t i = 0; i < level->conj->count; i++) {
        if (!says[i])
            continue;
        consume(level, i, &said[i].choice.list);
        all.list = value_list_intersect(level->b->arena, &all.list, &said[i].choice.list);
        all.narrowed = true;
    }
    return all;
}

static struct choice choose(const struct level *level)
{
    uint32_t count = level->conj->count;
    struct contribution *said = arena_alloc(level->b->arena, (count + 1) * sizeof *said);
    bool *says = arena_alloc(level->b->arena, count + 1);
    for (uint32_t i = 0; i < count && !is_unclear(level->field); i++)
        says[i] = contribution_of(level, level->conj->leaves[i], &said[i]);
    uint64_t arrays = level->parts_above < 64 ? level->field->arrays >> level->parts_above : level->field->arrays;
    return arrays == 0 ? choose_all(level, said, says) : choose_one(level, said, says);
}

/* ---- all fields ---- */

static struct value_list constant_list(struct builder *b, const struct bounds_field *field)
{
    struct value_target target = {.arena = b->arena, .field = field};
    return value_list_point(&target, &field->value, true);
}

/* Does the component of a document without the field lie inside? */
static bool may_be_missing(const struct builder *b, const struct conjunction *conj, const struct bounds_field *field,
                           const struct value_list *list)
{
    if (is_unclear(field))
        return true;
    for (uint32_t i = 0; i < conj->count; i++)
        if (conj->leaves[i]->op == FILTER_EXISTS && strcmp(conj->leaves[i]->path.text, field->path) == 0)
            return false;
    if (list->full)
        return true;
    struct value_target target = {.arena = b->arena, .field = field, .index_order = b->pattern->order};
    struct value_list missing = value_list_point(&target, &BVAL_NULL, false);
    return value_list_contains(list, missing.items[0].bytes.low, missing.items[0].bytes.low_len);
}

static void summarise(struct key_bounds *out, uint32_t i, const struct value_list *list)
{
    bool points = value_list_is_points(list);
    if (!list->full) {
        out->used_fields += out->used_fields == i;
        out->bound_fields++;
        out->fixed_fields += out->fixed_fields == i && points && list->count == 1;
    }
    out->points = out->points && points;
    out->never = out->never || (!list->full && list->count == 0);
}

void key_bounds_of_conjunction(struct arena *arena, const struct filter *filter, const struct conjunction *conj,
                               const struct bounds_pattern *pattern, struct key_bounds *out)
{
    struct builder b = {.arena = arena, .pattern = pattern, .query_order = filter->order};
    bool *consumed = arena_alloc(arena, conj->count + 1);
    bool constants = false;
    *out = (struct key_bounds){.field_count = pattern->field_count, .points = true, .needs_missing = true};
    out->fields = arena_alloc(arena, pattern->field_count * sizeof *out->fields);
    out->never = conjunction_is_never(conj);
    for (b.at = 0; b.at < pattern->field_count; b.at++) {
        const struct bounds_field *field = &pattern->fields[b.at];
        struct value_list *list = &out->fields[b.at];
        if (field->descending)
            out->descending |= UINT64_C(1) << b.at;
        if (field->constant) {
            *list = constant_list(&b, field);
            constants = true;
        } else {
            struct level level = {.b = &b, .conj = conj, .field = field, .path = field->path, .consumed = consumed};
            b.chosen[b.at] = choose(&level);
            *list = b.chosen[b.at].list;
            out->needs_missing = out->needs_missing && may_be_missing(&b, conj, field, list);
        }
        summarise(out, b.at, list);
    }
    struct conjunction rest = {0};
    for (uint32_t i = 0; i < conj->count; i++)
        if (!consumed[i] && conj->leaves[i]->op != FILTER_TRUE)
            conjunction_add(arena, &rest, conj->leaves[i]);
    out->exact = rest.count == 0;
    out->rest = out->exact ? NULL : filter_part_new(arena, filter, rest.leaves, rest.count);
    out->all = out->bound_fields == 0 || (constants && out->bound_fields == 1);
}

void key_bounds_of(struct arena *arena, const struct filter *filter, const struct bounds_pattern *pattern,
                   struct key_bounds *out)
{
    struct conjunction conj = {0};
    conjunction_flatten(arena, &conj, filter->root);
    key_bounds_of_conjunction(arena, filter, &conj, pattern, out);
}
