#include "query/projection_tree.h"

#include "expr/writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ERR_PATH_COLLISION = 31249,
    ERR_PATH_COLLISION_ABOVE = 31250,
    ERR_COMPUTE_IN_EXCLUSION = 31252,
    ERR_INCLUDE_IN_EXCLUSION = 31253,
    ERR_EXCLUDE_IN_INCLUSION = 31254,
    ERR_ELEM_MATCH_TYPE = 31274,
    ERR_ELEM_MATCH_NESTED = 31275,
    ERR_POSITIONAL_AND_ELEM_MATCH = 31256,
    ERR_POSITIONAL_TWICE = 31276,
    ERR_POSITIONAL_EXCLUSION = 31395,
    ERR_POSITIONAL_IN_MIDDLE = 31394,
    ERR_EMPTY_SUB_PROJECTION = 51270,
    ERR_EMPTY_PROJECTION = 51272,
    MANY_CHILDREN = 8, /* from here on children are found by binary search */
};

struct compiler {
    struct arena *arena;
    const struct expr_env *env;
    struct err *err;
    struct projection *projection;
    enum projection_kind kind;
    const struct filter *filter;
    bool inclusion; /* the mode is settled as inclusion */
    bool exclusion; /* ... as exclusion */
    bool has_elem_match;
    uint32_t field_count;
    int depth;
};

static bool compile_fields(struct compiler *c, struct projection_node *parent, const char *prefix, struct bdoc spec);

static struct projection_node *find_child(const struct projection_node *parent, const char *name, size_t len)
{
    for (uint32_t i = 0; i < parent->child_count; i++)
        if (parent->children[i]->name_len == len && memcmp(parent->children[i]->name, name, len) == 0)
            return parent->children[i];
    return NULL;
}

static struct projection_node *add_child(struct compiler *c, struct projection_node *parent, const char *name,
                                         size_t len)
{
    if (parent->child_count == parent->child_capacity) {
        uint32_t capacity = parent->child_capacity == 0 ? 4 : parent->child_capacity * 2;
        struct projection_node **children = arena_alloc(c->arena, capacity * sizeof *children);
        if (parent->child_count > 0)
            memcpy(children, parent->children, parent->child_count * sizeof *children);
        parent->children = children;
        parent->child_capacity = capacity;
    }
    struct projection_node *child = arena_alloc(c->arena, sizeof *child);
    child->name = arena_copy_str(c->arena, name, len);
    child->name_len = (uint32_t)len;
    parent->children[parent->child_count++] = child;
    return child;
}

static bool check_name(struct compiler *c, const char *name, size_t len)
{
    if (len == 0)
        return err_set(c->err, 15998, "FieldPath field names may not be empty strings.");
    if (name[0] == '$')
        return err_set(c->err, 16410,
                       "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    return true;
}

/* Makes the nodes of a dotted path below `parent`; the last one is new, else two paths collide. NULL after an error. */
static struct projection_node *make_path(struct compiler *c, struct projection_node *parent, const char *path)
{
    const char *at = path;
    if (++c->field_count > PROJECTION_MAX_FIELDS) {
        err_set(c->err, ERR_BadValue, "a projection has at most %d fields", PROJECTION_MAX_FIELDS);
        return NULL;
    }
    if (path[0] == 0) {
        err_set(c->err, 40352, "FieldPath cannot be constructed with empty string");
        return NULL;
    }
    if (path[strlen(path) - 1] == '.') {
        err_set(c->err, 40353, "FieldPath must not end with a '.'.");
        return NULL;
    }
    for (int depth = 0;; depth++) {
        size_t len = strcspn(at, ".");
        if (!check_name(c, at, len))
            return NULL;
        if (c->depth + depth > PROJECTION_MAX_DEPTH) {
            err_set(c->err, ERR_Overflow, "a projection is nested more than %d levels deep", PROJECTION_MAX_DEPTH);
            return NULL;
        }
        struct projection_node *child = find_child(parent, at, len);
        if (child != NULL && (at[len] == 0 || child->action != PROJECT_NESTED)) {
            err_set(c->err, at[len] == 0 ? ERR_PATH_COLLISION_ABOVE : ERR_PATH_COLLISION,
                    at[len] == 0 ? "Path collision at %s" : "Path collision at %s remaining portion %s", path,
                    at[len] == 0 ? "" : at + len + 1);
            return NULL;
        }
        if (child == NULL)
            child = add_child(c, parent, at, len);
        if (at[len] == 0)
            return child;
        parent = child;
        at += len + 1;
    }
}

static bool is_id(const struct projection_node *parent, const struct compiler *c, const char *path)
{
    return parent == c->projection->root && strcmp(path, "_id") == 0;
}

static bool set_inclusion(struct compiler *c, const char *path)
{
    if (c->exclusion)
        return err_set(c->err, ERR_INCLUDE_IN_EXCLUSION, "Cannot do inclusion on field %s in exclusion projection",
                       path);
    c->inclusion = true;
    return true;
}

static bool compile_flag(struct compiler *c, struct projection_node *parent, const struct belem *elem, const char *path)
{
    bool include = bval_truthy(&elem->val);
    bool id = is_id(parent, c, elem->key);
    if (include && !id && !set_inclusion(c, path))
        return false;
    if (!include && !id) {
        if (c->inclusion)
            return err_set(c->err, ERR_EXCLUDE_IN_INCLUSION, "Cannot do exclusion on field %s in inclusion projection",
                           path);
        c->exclusion = true;
    }
    struct projection_node *node = make_path(c, parent, elem->key);
    if (node == NULL)
        return false;
    node->action = include ? PROJECT_INCLUDE : PROJECT_EXCLUDE;
    return true;
}

/* {$meta: ...} goes with either mode and decides none. */
static bool is_meta(const struct bval *val)
{
    return val->type == BT_DOCUMENT && bdoc_has(bval_doc(val), "$meta");
}

static bool compile_computed(struct compiler *c, struct projection_node *parent, const struct belem *elem,
                             const char *path)
{
    bool meta = is_meta(&elem->val);
    if (c->exclusion && !meta)
        return err_set(c->err, ERR_COMPUTE_IN_EXCLUSION,
                       "Cannot use expression other than $meta in exclusion projection (field %s)", path);
    c->inclusion = c->inclusion || !meta;
    struct projection_node *node = make_path(c, parent, elem->key);
    if (node == NULL)
        return false;
    node->action = PROJECT_COMPUTE;
    node->computes = true;
    if (!expr_compile(c->arena, &elem->val, c->env, &node->expr, c->err))
        return false;
    c->projection->wanted_meta |= expr_wanted_meta(node->expr);
    return true;
}

/* {$slice: 5} and {$slice: [1, 5]} cut the field; {$slice: ["$a", 5]} is an expression. */
static bool is_find_slice(const struct bval *arg)
{
    struct bval skip;
    struct bval limit;
    if (arg->type != BT_ARRAY)
        return bval_is_number(arg);
    struct bdoc list = bval_doc(arg);
    return bdoc_count(list) == 2 && bdoc_find(list, "0", &skip) && bdoc_find(list, "1", &limit) &&
           bval_is_number(&skip) && bval_is_number(&limit);
}

/* Towards zero; what is no number is 0. */
static int64_t whole_of(const struct bval *val)
{
    int64_t whole;
    double number = 0;
    if (bval_to_i64(val, &whole))
        return whole == INT64_MIN ? -INT64_MAX : whole;
    bval_to_f64(val, &number);
    return number >= 9e18 ? INT64_MAX : number <= -9e18 ? -INT64_MAX : isnan(number) ? 0 : (int64_t)number;
}

static bool read_slice(struct compiler *c, const struct bval *arg, struct projection_node *node)
{
    struct bval skip;
    struct bval limit;
    if (bval_is_number(arg)) {
        int64_t first = whole_of(arg);
        node->slice_skip = first < 0 ? first : 0;
        node->slice_limit = first < 0 ? INT64_MAX : first;
        return true;
    }
    bdoc_find(bval_doc(arg), "0", &skip);
    bdoc_find(bval_doc(arg), "1", &limit);
    node->slice_skip = whole_of(&skip);
    node->slice_limit = whole_of(&limit);
    if (node->slice_limit <= 0)
        return err_set(c->err, 28729, "$slice limit must be positive: %lld", (long long)node->slice_limit);
    return true;
}

static bool compile_slice(struct compiler *c, struct projection_node *parent, const struct belem *elem,
                          const struct bval *arg)
{
    struct projection_node *node = make_path(c, parent, elem->key);
    if (node == NULL)
        return false;
    node->action = PROJECT_SLICE;
    return read_slice(c, arg, node);
}

/* The operand becomes the filter {name: {$elemMatch: operand}}. */
static bool compile_elem_match(struct compiler *c, struct projection_node *parent, const struct belem *elem)
{
    if (strchr(elem->key, '.') != NULL || parent != c->projection->root)
        return err_set(c->err, ERR_ELEM_MATCH_NESTED, "Cannot use $elemMatch projection on a nested field.");
    struct bval arg;
    if (c->projection->positional != NULL)
        return err_set(c->err, ERR_POSITIONAL_AND_ELEM_MATCH,
                       "Cannot specify positional operator and $elemMatch projection together.");
    bdoc_find(bval_doc(&elem->val), "$elemMatch", &arg);
    if (arg.type != BT_DOCUMENT)
        return err_set(c->err, ERR_ELEM_MATCH_TYPE, "elemMatch: Invalid argument, object required, but got %s",
                       bval_type_name(arg.type));
    struct projection_node *node = make_path(c, parent, elem->key);
    if (node == NULL)
        return false;
    struct buf buf = BUF_INIT;
    size_t start = write_begin(&buf);
    write_elem(&buf, elem);
    write_end(&buf, start);
    struct bval query = make_doc(c->arena, &buf, BT_DOCUMENT);
    struct filter *filter;
    if (!filter_compile(c->arena, bval_doc(&query), c->env, &filter, c->err))
        return false;
    node->action = PROJECT_ELEM_MATCH;
    node->elem_filter = filter;
    c->has_elem_match = true;
    return true;
}

/* {field: {...}}: an operator of find, an expression, or names below. */
static bool compile_object(struct compiler *c, struct projection_node *parent, const struct belem *elem,
                           const char *path)
{
    struct bdoc doc = bval_doc(&elem->val);
    struct biter iter;
    struct belem first;
    biter_init(&iter, doc);
    if (!biter_next(&iter, &first))
        return err_set(c->err, ERR_EMPTY_SUB_PROJECTION,
                       "An empty sub-projection is not a valid value. Found empty object at path");
    if (c->kind == PROJECTION_FIND && strcmp(first.key, "$slice") == 0 && bdoc_count(doc) == 1 &&
        is_find_slice(&first.val))
        return compile_slice(c, parent, elem, &first.val);
    if (c->kind == PROJECTION_FIND && strcmp(first.key, "$elemMatch") == 0 && bdoc_count(doc) == 1)
        return compile_elem_match(c, parent, elem);
    if (first.key[0] == '$')
        return compile_computed(c, parent, elem, path);
    /* Several specifications may share the names above: {"a.b": 1, a: {c: 1}}. */
    struct projection_node *node = strchr(elem->key, '.') == NULL ? find_child(parent, elem->key, elem->key_len) : NULL;
    if (node == NULL || node->action != PROJECT_NESTED || node->child_count == 0)
        node = make_path(c, parent, elem->key);
    if (node == NULL)
        return false;
    node->action = PROJECT_NESTED;
    return compile_fields(c, node, path, doc);
}

static bool compile_positional(struct compiler *c, const struct belem *elem, const char *path)
{
    if (c->kind != PROJECTION_FIND)
        return err_set(c->err, 31324, "Cannot use positional projection in an aggregation: %s", path);
    if (c->has_elem_match)
        return err_set(c->err, ERR_POSITIONAL_AND_ELEM_MATCH,
                       "Cannot specify positional operator and $elemMatch projection together.");
    if (c->projection->positional != NULL)
        return err_set(c->err, ERR_POSITIONAL_TWICE, "Cannot specify more than one positional projection per query.");
    if (!bval_truthy(&elem->val))
        return err_set(c->err, ERR_POSITIONAL_EXCLUSION, "positional projection cannot be used with exclusion");
    if (c->filter == NULL)
        return err_set(c->err, 51050, "Positional projections require a query");
    if (!filter_mentions(c->filter, elem->key))
        return err_set(c->err, 51050, "Positional projection '%s' does not match the query document.", path);
    if (!set_inclusion(c, path))
        return false;
    char *cut = arena_copy_str(c->arena, elem->key, elem->key_len - 2);
    if (strstr(cut, ".$.") != NULL || strncmp(cut, "$.", 2) == 0)
        return err_set(c->err, ERR_POSITIONAL_IN_MIDDLE,
                       "As of 4.4, it's illegal to specify positional operator in the middle of a path.");
    struct projection_node *node = make_path(c, c->projection->root, cut);
    if (node == NULL)
        return false;
    node->action = PROJECT_INCLUDE;
    c->projection->positional = cut;
    return true;
}

static bool compile_field(struct compiler *c, struct projection_node *parent, const char *prefix,
                          const struct belem *elem)
{
    const char *path = prefix[0] != 0 ? arena_printf(c->arena, "%s.%s", prefix, elem->key) : elem->key;
    bool positional = elem->key_len > 2 && strcmp(elem->key + elem->key_len - 2, ".$") == 0;
    if (positional && elem->val.type != BT_DOCUMENT)
        return compile_positional(c, elem, path);
    if (elem->val.type == BT_DOCUMENT && (c->kind != PROJECTION_ADD_FIELDS || !bdoc_is_empty(bval_doc(&elem->val))))
        return compile_object(c, parent, elem, path);
    bool flag = bval_is_number(&elem->val) || elem->val.type == BT_BOOL;
    if (flag && c->kind != PROJECTION_ADD_FIELDS)
        return compile_flag(c, parent, elem, path);
    return compile_computed(c, parent, elem, path);
}

static bool compile_fields(struct compiler *c, struct projection_node *parent, const char *prefix, struct bdoc spec)
{
    struct biter iter;
    struct belem elem;
    if (++c->depth > PROJECTION_MAX_DEPTH)
        return err_set(c->err, ERR_Overflow, "a projection is nested more than %d levels deep", PROJECTION_MAX_DEPTH);
    biter_init(&iter, spec);
    while (biter_next(&iter, &elem))
        if (!compile_field(c, parent, prefix, &elem))
            return false;
    c->depth--;
    return true;
}

static int compare_names(const void *a, const void *b)
{
    const struct projection_node *const *x = a;
    const struct projection_node *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Fills what is derived from the children. */
static void finish_node(struct arena *arena, struct projection_node *node)
{
    for (uint32_t i = 0; i < node->child_count; i++) {
        finish_node(arena, node->children[i]);
        node->computes = node->computes || node->children[i]->computes;
    }
    if (node->child_count < MANY_CHILDREN)
        return;
    node->by_name = arena_copy(arena, node->children, node->child_count * sizeof(struct projection_node *));
    qsort(node->by_name, node->child_count, sizeof(struct projection_node *), compare_names);
}

/* {_id: 1} alone includes, {_id: 0} alone excludes, {a: {$slice: 1}} alone keeps the rest. */
static bool settle_mode(struct compiler *c)
{
    struct projection *p = c->projection;
    struct projection_node *id = find_child(p->root, "_id", 3);
    bool id_included = id != NULL && id->action == PROJECT_INCLUDE;
    if (c->kind == PROJECTION_ADD_FIELDS) {
        p->adds = true;
        return true;
    }
    if (!c->inclusion && !c->exclusion) {
        bool includes = id_included || (c->has_elem_match && !(id != NULL && id->action == PROJECT_EXCLUDE));
        c->inclusion = includes || c->has_elem_match;
        c->exclusion = !c->inclusion;
    }
    p->excludes = c->exclusion;
    if (p->excludes && c->has_elem_match && c->kind == PROJECTION_FIND)
        return true;
    /* _id comes along unless it was named. */
    if (!p->excludes && id == NULL)
        add_child(c, p->root, "_id", 3)->action = PROJECT_INCLUDE;
    return true;
}

bool projection_compile(struct arena *arena, struct bdoc spec, const struct projection_options *options,
                        struct projection **out, struct err *err)
{
    struct compiler c = {
        .arena = arena, .env = options->env, .err = err, .kind = options->kind, .filter = options->filter};
    c.projection = arena_alloc(arena, sizeof *c.projection);
    c.projection->root = arena_alloc(arena, sizeof *c.projection->root);
    if (!compile_fields(&c, c.projection->root, "", spec))
        return false;
    if (!bdoc_is_empty(spec) && !settle_mode(&c))
        return false;
    if (bdoc_is_empty(spec))
        c.projection->excludes = true;
    finish_node(arena, c.projection->root);
    *out = c.projection;
    return true;
}

bool projection_is_identity(const struct projection *projection)
{
    return projection->root->child_count == 0;
}

unsigned projection_wanted_meta(const struct projection *projection)
{
    return projection->wanted_meta;
}

bool projection_needs_match(const struct projection *projection)
{
    return projection->positional != NULL;
}

/* Every leaf below is an inclusion. */
static bool all_included(const struct projection_node *node)
{
    for (uint32_t i = 0; i < node->child_count; i++) {
        const struct projection_node *child = node->children[i];
        bool dropped_id = strcmp(child->name, "_id") == 0 && child->action == PROJECT_EXCLUDE;
        if (child->action == PROJECT_NESTED ? !all_included(child) : child->action != PROJECT_INCLUDE && !dropped_id)
            return false;
    }
    return true;
}

static void add_inclusions(const struct projection_node *node, struct buf *path, void (*add)(void *, const char *),
                           void *arg)
{
    size_t old_len = path->len;
    for (uint32_t i = 0; i < node->child_count; i++) {
        const struct projection_node *child = node->children[i];
        path->len = old_len;
        if (old_len > 0)
            buf_append_u8(path, '.');
        buf_append(path, child->name, child->name_len);
        if (child->action == PROJECT_NESTED) {
            add_inclusions(child, path, add, arg);
        } else if (child->action == PROJECT_INCLUDE) {
            buf_append_u8(path, 0);
            add(arg, (const char *)path->data);
        }
    }
    path->len = old_len;
}

bool projection_inclusions(const struct projection *projection, void (*add)(void *arg, const char *path), void *arg)
{
    bool plain = !projection->excludes && !projection->adds && projection->positional == NULL;
    if (!plain || !all_included(projection->root))
        return false;
    struct buf path = BUF_INIT;
    add_inclusions(projection->root, &path, add, arg);
    buf_deinit(&path);
    return true;
}
