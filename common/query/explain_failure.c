#include "query/explain_failure.h"

#include "bson/path.h"
#include "expr/writer.h"
#include "query/explain_schema.h"
#include "query/filter_tree.h"

#include <string.h>

enum {
    MAX_CONSIDERED = 10, /* values of one path that are listed */
};

/* One explanation. Parts of the query are compiled on their own, to see which of them fail. */
struct explain {
    struct arena arena;
    struct expr_env env;
    struct buf *out;
    size_t max_len; /* of `out`: beyond it values are left out, the whole is cut anyway */
};

static void explain_query(struct explain *e, struct bdoc query, struct bdoc doc, bool inverted);

static void write_text(struct explain *e, const char *key, const char *text)
{
    write_str(e->out, key, text, strlen(text));
}

static void put_value(struct explain *e, const char *key, const struct bval *val)
{
    if (e->out->len <= e->max_len)
        write_value(e->out, key, strlen(key), val);
}

/* {name: value} as a query of its own. */
static struct bdoc make_clause(struct explain *e, const char *name, const struct bval *value)
{
    struct buf buf = BUF_INIT;
    size_t start = write_begin(&buf);
    write_value(&buf, name, strlen(name), value);
    write_end(&buf, start);
    struct bval clause = make_doc(&e->arena, &buf, BT_DOCUMENT);
    return bval_doc(&clause);
}

static struct filter *compile(struct explain *e, struct bdoc query)
{
    struct filter *filter;
    struct err ignored;
    return filter_compile(&e->arena, query, &e->env, &filter, &ignored) ? filter : NULL;
}

static bool matches(struct explain *e, struct bdoc query, struct bdoc doc)
{
    const struct filter *filter = compile(e, query);
    return filter != NULL && filter_matches(filter, doc);
}

/* Predicates of a query, each as a document of its own. */
struct clauses {
    struct bdoc *items;
    uint32_t count;
};

static void add_operators(struct explain *e, const struct belem *field, struct clauses *out)
{
    struct biter iter;
    struct belem op;
    struct bval options;
    biter_init(&iter, bval_doc(&field->val));
    while (biter_next(&iter, &op)) {
        if (strcmp(op.key, "$comment") == 0 || strcmp(op.key, "$options") == 0)
            continue;
        struct buf buf = BUF_INIT;
        size_t start = write_begin(&buf);
        write_elem(&buf, &op);
        if (strcmp(op.key, "$regex") == 0 && bdoc_find(bval_doc(&field->val), "$options", &options))
            write_value(&buf, "$options", 8, &options);
        write_end(&buf, start);
        struct bval condition = make_doc(&e->arena, &buf, BT_DOCUMENT);
        out->items[out->count++] = make_clause(e, field->key, &condition);
    }
}

static struct clauses split(struct explain *e, struct bdoc query)
{
    struct biter iter;
    struct belem elem;
    struct clauses clauses = {0};
    size_t most = 0;
    biter_init(&iter, query);
    while (biter_next(&iter, &elem))
        most += filter_is_condition(&elem.val) ? bdoc_count(bval_doc(&elem.val)) : 1;
    clauses.items = arena_alloc(&e->arena, (most + 1) * sizeof *clauses.items);
    biter_init(&iter, query);
    while (biter_next(&iter, &elem)) {
        if (strcmp(elem.key, "$comment") == 0)
            continue;
        if (elem.key[0] != '$' && filter_is_condition(&elem.val))
            add_operators(e, &elem, &clauses);
        else
            clauses.items[clauses.count++] = make_clause(e, elem.key, &elem.val);
    }
    return clauses;
}

/* What the path leads to in the document. */
struct considered {
    struct bval values[MAX_CONSIDERED];
    uint32_t count;
    bool more;
};

static bool collect(void *arg, const struct path_hit *hit)
{
    struct considered *considered = arg;
    if (hit->val.type == BT_EOO)
        return true;
    if (considered->count == MAX_CONSIDERED) {
        considered->more = true;
        return false;
    }
    considered->values[considered->count++] = hit->val;
    return true;
}

static void find_considered(const char *text, struct bdoc doc, enum path_leaf leaf, struct considered *out)
{
    struct path path;
    struct err ignored;
    *out = (struct considered){0};
    if (!path_init(&path, text, strlen(text), &ignored))
        return;
    path_each(&path, doc, leaf, collect, out);
    path_deinit(&path);
}

static void write_considered(struct explain *e, const struct considered *considered, bool types)
{
    if (considered->count == 1) {
        put_value(e, "consideredValue", &considered->values[0]);
        if (types)
            write_text(e, "consideredType", bval_type_name(considered->values[0].type));
        return;
    }
    size_t list = write_begin_field(e->out, "consideredValues", 16, BT_ARRAY);
    for (uint32_t i = 0; i < considered->count; i++)
        if (e->out->len <= e->max_len)
            write_item(e->out, i, &considered->values[i]);
    write_end(e->out, list);
    if (types) {
        list = write_begin_field(e->out, "consideredTypes", 15, BT_ARRAY);
        for (uint32_t i = 0; i < considered->count; i++) {
            char index[WRITER_INDEX_BYTES];
            write_index_name(index, i);
            write_text(e, index, bval_type_name(considered->values[i].type));
        }
        write_end(e->out, list);
    }
    if (considered->more) {
        struct bval yes = make_bool(true);
        write_value(e->out, "consideredValuesTruncated", 25, &yes);
    }
}

struct reason {
    const char *op;
    const char *failed;
    const char *held; /* below a $not or $nor */
};

static const struct reason *find_reason(const char *op)
{
    static const struct reason reasons[] = {
        {"$in", "no matching value found in array", "matching value found in array"},
        {"$nin", "matching value found in array", "no matching value found in array"},
        {"$exists", "path does not exist", "path does exist"},
        {"$type", "type did not match", "type did match"},
        {"$size", "array length was not equal to given size", "array length was equal to given size"},
        {"$all", "array did not contain all specified values", "array did contain all specified values"},
        {"$elemMatch", "array did not satisfy the child predicate", "array did satisfy the child predicate"},
        {"$regex", "regular expression did not match", "regular expression did match"},
        {"$mod", "$mod did not evaluate to expected remainder", "$mod did evaluate to expected remainder"},
        {"$bitsAllSet", "bitwise operator failed to match", "bitwise operator matched successfully"},
        {"$bitsAllClear", "bitwise operator failed to match", "bitwise operator matched successfully"},
        {"$bitsAnySet", "bitwise operator failed to match", "bitwise operator matched successfully"},
        {"$bitsAnyClear", "bitwise operator failed to match", "bitwise operator matched successfully"},
        {"", "comparison failed", "comparison succeeded"},
    };
    size_t i = 0;
    while (reasons[i].op[0] != 0 && strcmp(reasons[i].op, op) != 0)
        i++;
    return &reasons[i];
}

/* {path: value} and {path: {$op: value}}. */
static void explain_leaf(struct explain *e, struct bdoc clause, const struct belem *field, struct bdoc doc,
                         bool inverted)
{
    struct biter iter;
    struct belem op = {.key = "$eq"};
    bool condition = filter_is_condition(&field->val);
    if (condition) {
        biter_init(&iter, bval_doc(&field->val));
        biter_next(&iter, &op);
    } else if (field->val.type == BT_REGEX) {
        op.key = "$regex";
    }
    write_text(e, "operatorName", op.key);
    if (strcmp(op.key, "$not") == 0) {
        struct bdoc inner = make_clause(e, field->key, &op.val);
        size_t details = write_begin_field(e->out, "details", 7, BT_DOCUMENT);
        explain_query(e, inner, doc, !inverted);
        write_end(e->out, details);
        return;
    }
    struct bval specified = bval_from_doc(clause);
    put_value(e, "specifiedAs", &specified);
    bool array_op = strcmp(op.key, "$size") == 0 || strcmp(op.key, "$elemMatch") == 0 || strcmp(op.key, "$all") == 0;
    struct considered considered;
    find_considered(field->key, doc, array_op ? PATH_LEAF_ARRAY : PATH_LEAF_ELEMENTS_AND_ARRAY, &considered);
    const struct reason *reason = find_reason(op.key);
    bool exists = strcmp(op.key, "$exists") == 0;
    bool wants = exists && bval_truthy(&op.val);
    if (exists)
        write_text(e, "reason", wants != inverted ? "path does not exist" : "path does exist");
    else if (considered.count == 0)
        write_text(e, "reason", "field was missing");
    else
        write_text(e, "reason", inverted ? reason->held : reason->failed);
    if (!exists && considered.count > 0)
        write_considered(e, &considered, strcmp(op.key, "$type") == 0);
}

/* $and, $or, $nor: those members that made it fail (or hold). */
static void explain_tree(struct explain *e, const struct belem *tree, struct bdoc doc, bool inverted)
{
    struct biter iter;
    struct belem item;
    bool nor = strcmp(tree->key, "$nor") == 0;
    bool want_matching = nor != inverted;
    const char *name = want_matching ? "clausesSatisfied" : "clausesNotSatisfied";
    uint32_t count = 0;
    write_text(e, "operatorName", tree->key);
    size_t list = write_begin_field(e->out, name, strlen(name), BT_ARRAY);
    biter_init(&iter, bval_doc(&tree->val));
    for (int32_t i = 0; biter_next(&iter, &item); i++) {
        if (matches(e, bval_doc(&item.val), doc) != want_matching)
            continue;
        char index[WRITER_INDEX_BYTES];
        size_t len = write_index_name(index, count++);
        size_t start = write_begin_field(e->out, index, len, BT_DOCUMENT);
        write_i32(e->out, "index", i);
        size_t details = write_begin_field(e->out, "details", 7, BT_DOCUMENT);
        explain_query(e, bval_doc(&item.val), doc, want_matching);
        write_end(e->out, details);
        write_end(e->out, start);
    }
    write_end(e->out, list);
}

static void explain_expr(struct explain *e, struct bdoc clause, const struct filter_node *node, struct bdoc doc,
                         bool inverted)
{
    struct bval specified = bval_from_doc(clause);
    struct bval result;
    struct err ignored;
    write_text(e, "operatorName", "$expr");
    put_value(e, "specifiedAs", &specified);
    write_text(e, "reason", inverted ? "expression matched" : "expression did not match");
    if (expr_eval(node->expr, doc, &e->arena, &result, &ignored))
        put_value(e, "expressionResult", &result);
}

static void explain_schema(struct explain *e, const struct filter_node *node, struct bdoc doc, bool inverted)
{
    struct schema_test test = {.order = e->env.order, .max_len = e->max_len};
    struct bval val = bval_from_doc(doc);
    write_text(e, "operatorName", "$jsonSchema");
    if (inverted) {
        put_value(e, "specifiedAs", &node->value);
        write_text(e, "reason", "schema matched");
        return;
    }
    schema_explain_texts(node->schema, e->out);
    schema_explain(node->schema, &val, &test, "schemaRulesNotSatisfied", e->out);
}

/* One predicate; writes into the document that the caller opened. */
static void explain_clause(struct explain *e, struct bdoc clause, struct bdoc doc, bool inverted)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, clause);
    if (!biter_next(&iter, &elem))
        return;
    const char *name = elem.key;
    if (strcmp(name, "$and") == 0 || strcmp(name, "$or") == 0 || strcmp(name, "$nor") == 0) {
        explain_tree(e, &elem, doc, inverted);
        return;
    }
    const struct filter *filter = compile(e, clause);
    const struct filter_node *node = filter != NULL ? filter->root : NULL;
    if (node != NULL && node->op == FILTER_AND && node->children.count > 0)
        node = node->children.items[node->children.count - 1]; /* an $expr stands behind what it implies */
    if (node != NULL && node->op == FILTER_EXPR) {
        explain_expr(e, clause, node, doc, inverted);
    } else if (node != NULL && node->op == FILTER_SCHEMA) {
        explain_schema(e, node, doc, inverted);
    } else if (name[0] == '$') {
        struct bval specified = bval_from_doc(clause);
        write_text(e, "operatorName", name);
        put_value(e, "specifiedAs", &specified);
        write_text(e, "reason",
                   inverted ? "expression always evaluates to true" : "expression always evaluates to false");
    } else {
        explain_leaf(e, clause, &elem, doc, inverted);
    }
}

static void explain_query(struct explain *e, struct bdoc query, struct bdoc doc, bool inverted)
{
    struct clauses clauses = split(e, query);
    if (clauses.count == 1) {
        explain_clause(e, clauses.items[0], doc, inverted);
        return;
    }
    const char *name = inverted ? "clausesSatisfied" : "clausesNotSatisfied";
    uint32_t count = 0;
    write_text(e, "operatorName", "$and");
    size_t list = write_begin_field(e->out, name, strlen(name), BT_ARRAY);
    for (uint32_t i = 0; i < clauses.count; i++) {
        if (matches(e, clauses.items[i], doc) != inverted)
            continue;
        char index[WRITER_INDEX_BYTES];
        size_t len = write_index_name(index, count++);
        size_t start = write_begin_field(e->out, index, len, BT_DOCUMENT);
        write_i32(e->out, "index", (int32_t)i);
        size_t details = write_begin_field(e->out, "details", 7, BT_DOCUMENT);
        explain_clause(e, clauses.items[i], doc, inverted);
        write_end(e->out, details);
        write_end(e->out, start);
    }
    write_end(e->out, list);
}

void filter_explain_failure(const struct filter *filter, struct bdoc doc, size_t max_bytes, struct buf *out)
{
    struct explain e = {.env = {.order = filter->order}, .out = out, .max_len = out->len + max_bytes};
    size_t before = out->len;
    arena_init(&e.arena);
    size_t start = write_begin(out);
    explain_query(&e, filter->source, doc, false);
    write_end(out, start);
    arena_deinit(&e.arena);
    if (out->len - before <= max_bytes)
        return;
    struct bval name;
    bdoc_find((struct bdoc){out->data + before, (uint32_t)(out->len - before)}, "operatorName", &name);
    struct bval copy = {.type = name.type, .len = name.len, .data = NULL};
    struct buf kept = BUF_INIT;
    buf_append(&kept, name.data, name.len);
    copy.data = kept.data;
    out->len = before;
    start = write_begin(out);
    write_value(out, "operatorName", 12, &copy);
    write_text(&e, "reason", "the explanation is too long to be shown");
    write_end(out, start);
    buf_deinit(&kept);
}
