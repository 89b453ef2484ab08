#include "document/views.h"

#include "aggregate/pipeline.h"
#include "base/map.h"

#include <stdio.h>
#include <string.h>

bool views_refuse_write(const struct collection *view, struct err *err)
{
    return err_set(err, ERR_CommandNotSupportedOnView, "Namespace %s is a view, not a collection", view->ns);
}

/* ---- reading one ---- */

static void ns_in_db_of(const struct collection *view, const char *name, char out[CATALOG_NS_MAX + 1])
{
    snprintf(out, CATALOG_NS_MAX + 1, "%.*s.%s", (int)view->db_len, view->ns, name);
}

static void append_stages(bson_t *array, uint32_t *count, struct bdoc stages)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, stages);
    while (biter_next(&iter, &elem)) {
        char digits[16];
        const char *key;
        size_t key_len = bson_uint32_to_string((*count)++, &key, digits, sizeof digits);
        bval_append(array, key, (int)key_len, &elem.val);
    }
}

/* Fills `chain` with the view and the views beneath it; *beneath is what the last one stands on. */
static bool follow(struct store_txn *txn, const struct collection *view,
                   const struct collection_traits *chain[VIEWS_DEPTH_MAX], uint32_t *length,
                   char beneath[CATALOG_NS_MAX + 1], struct err *err)
{
    *length = 0;
    while (view != NULL && view->is_view) {
        if (*length == VIEWS_DEPTH_MAX)
            return err_set(err, ERR_ViewDepthLimitExceeded, "View depth too deep: more than %d views", VIEWS_DEPTH_MAX);
        const struct collection_traits *traits = collection_traits(view);
        if (traits->view_on == NULL)
            return err_set(err, ERR_InvalidBSON, "the definition of the view %s is damaged", view->ns);
        chain[(*length)++] = traits;
        ns_in_db_of(view, traits->view_on, beneath);
        view = catalog_find(txn, beneath, strlen(beneath));
    }
    return true;
}

bool views_resolve(struct store_txn *txn, const struct collection *view, bson_t *out, struct err *err)
{
    const struct collection_traits *chain[VIEWS_DEPTH_MAX];
    char beneath[CATALOG_NS_MAX + 1];
    uint32_t length;
    uint32_t count = 0;
    struct bval collation;
    bson_t pipeline;
    if (!follow(txn, view, chain, &length, beneath, err))
        return false;
    BSON_APPEND_UTF8(out, "ns", beneath);
    BSON_APPEND_ARRAY_BEGIN(out, "pipeline", &pipeline);
    for (uint32_t i = length; i-- > 0;)
        append_stages(&pipeline, &count, chain[i]->pipeline);
    bson_append_array_end(out, &pipeline);
    if (bdoc_find(view->options, "collation", &collation))
        bval_append(out, "collation", -1, &collation);
    return true;
}

bool views_refuse_read(struct store_txn *txn, const struct collection *view, struct err *err)
{
    bson_t details = BSON_INITIALIZER;
    bson_t resolved;
    BSON_APPEND_DOCUMENT_BEGIN(&details, "resolvedView", &resolved);
    bool ok = views_resolve(txn, view, &resolved, err);
    bson_append_document_end(&details, &resolved);
    if (ok) {
        (void)err_set(err, ERR_CommandOnShardedViewNotSupportedOnMongod, "Resolve views before running the command: %s",
                      view->ns);
        err_set_details(err, bson_get_data(&details), details.len);
    }
    bson_destroy(&details);
    return false;
}

/* ---- checking a definition ---- */

/* Stages that write, or that don't come from documents of a collection. */
static bool may_stand_in_view(const char *stage)
{
    static const char *const refused[] = {"$out", "$merge", "$changeStream", "$changeStreamSplitLargeEvent"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (strcmp(stage, refused[i]) == 0)
            return false;
    }
    return true;
}

static bool check_stages(struct bdoc pipeline, struct err *err)
{
    struct biter iter;
    struct belem elem;
    struct biter fields;
    struct belem field;
    biter_init(&iter, pipeline);
    while (biter_next(&iter, &elem)) {
        if (elem.val.type != BT_DOCUMENT)
            return err_set(err, ERR_TypeMismatch, "Each element of the 'pipeline' array must be an object");
        biter_init(&fields, bval_doc(&elem.val));
        if (biter_next(&fields, &field) && !may_stand_in_view(field.key))
            return err_set(err, ERR_OptionNotSupportedOnView,
                           "The aggregation stage %s in location %s of the pipeline cannot be used in the view "
                           "definition",
                           field.key, elem.key);
    }
    return true;
}

bool views_check_pipeline(struct arena *arena, struct bdoc pipeline, struct err *err)
{
    struct pipeline *compiled;
    struct expr_env env = {0};
    if (pipeline.data == NULL)
        return true;
    if (pipeline.len > VIEWS_PIPELINE_MAX_BYTES)
        return err_set(err, ERR_BSONObjectTooLarge, "the view's pipeline is too long");
    if (!check_stages(pipeline, err) || !pipeline_compile(arena, pipeline, &env, &compiled, err))
        return false;
    pipeline_release(compiled);
    return true;
}

/* ---- the graph of a database's views ---- */

struct view_node {
    struct bdoc pipeline;
    struct bdoc collation; /* data NULL: simple */
    const char *view_on;
    bool visiting;
    int height; /* views from here down, itself counted; 0: not known yet */
};

struct view_graph {
    struct arena arena;
    struct map nodes;              /* name -> struct view_node */
    const struct view_node *above; /* the view whose definition is being read */
    struct err *err;
};

static bool measure(struct view_graph *graph, const char *name, int level, int *height);

/* A name that stands beneath: its height counts. */
static bool descend(struct view_graph *graph, const struct bval *name, int level, int *height)
{
    uint32_t len;
    int below;
    if (name->type != BT_STRING)
        return true;
    if (!measure(graph, bval_str(name, &len), level, &below))
        return false;
    if (below > *height)
        *height = below;
    return true;
}

/* Collections that a pipeline names, wherever stages may stand in it. */
static bool descend_stages(struct view_graph *graph, struct bdoc doc, int level, int nesting, int *height)
{
    struct biter iter;
    struct belem elem;
    struct bval name;
    biter_init(&iter, doc);
    while (nesting < BDOC_MAX_DEPTH && biter_next(&iter, &elem)) {
        bool is_doc = elem.val.type == BT_DOCUMENT;
        bool is_union = strcmp(elem.key, "$unionWith") == 0;
        bool is_lookup = strcmp(elem.key, "$lookup") == 0 || strcmp(elem.key, "$graphLookup") == 0;
        if (is_union && !descend(graph, &elem.val, level, height))
            return false;
        if (is_doc && (is_union || is_lookup) && bdoc_find(bval_doc(&elem.val), is_union ? "coll" : "from", &name) &&
            !descend(graph, &name, level, height))
            return false;
        if ((is_doc || elem.val.type == BT_ARRAY) &&
            !descend_stages(graph, bval_doc(&elem.val), level, nesting + 1, height))
            return false;
    }
    return true;
}

/* Both are in the form in which the catalog keeps them. */
static bool same_collation(struct bdoc a, struct bdoc b)
{
    return a.data == NULL || b.data == NULL ? a.data == b.data : bdoc_same(a, b);
}

static bool measure(struct view_graph *graph, const char *name, int level, int *height)
{
    struct view_node *node = map_get(&graph->nodes, name, strlen(name));
    *height = 0;
    if (node == NULL)
        return true;
    if (node->visiting)
        return err_set(graph->err, ERR_GraphContainsCycle, "View cycle detected: %s stands on itself", name);
    if (level > VIEWS_DEPTH_MAX)
        return err_set(graph->err, ERR_ViewDepthLimitExceeded, "View depth limit exceeded; maximum depth is %d",
                       VIEWS_DEPTH_MAX);
    const struct view_node *above = graph->above;
    if (above != NULL && !same_collation(above->collation, node->collation))
        return err_set(graph->err, ERR_OptionNotSupportedOnView,
                       "View %s has another collation than a view that reads it", name);
    if (node->height == 0) {
        int below = 0;
        int piped = 0;
        node->visiting = true;
        graph->above = node;
        if (!measure(graph, node->view_on, level + 1, &below) ||
            !descend_stages(graph, node->pipeline, level + 1, 0, &piped))
            return false;
        node->visiting = false;
        graph->above = above;
        node->height = 1 + (below > piped ? below : piped);
    }
    *height = node->height;
    return level + node->height - 1 <= VIEWS_DEPTH_MAX ||
           err_set(graph->err, ERR_ViewDepthLimitExceeded, "View depth limit exceeded; maximum depth is %d",
                   VIEWS_DEPTH_MAX);
}

static void add_node(struct view_graph *graph, const char *name, const struct view_node *from)
{
    map_put(&graph->nodes, name, strlen(name), arena_copy(&graph->arena, from, sizeof *from));
}

/* False: no view. */
static bool node_of(struct bdoc options, struct view_node *out)
{
    struct bval view_on;
    struct bval val;
    uint32_t len;
    *out = (struct view_node){.pipeline = bdoc_empty()};
    if (!bdoc_find(options, "viewOn", &view_on) || view_on.type != BT_STRING)
        return false;
    out->view_on = bval_str(&view_on, &len);
    if (bdoc_find(options, "pipeline", &val) && val.type == BT_ARRAY)
        out->pipeline = bval_doc(&val);
    if (bdoc_find(options, "collation", &val) && val.type == BT_DOCUMENT)
        out->collation = bval_doc(&val);
    return true;
}

static bool measure_all(struct view_graph *graph)
{
    for (struct map_entry *entry = map_next(&graph->nodes, NULL); entry != NULL;
         entry = map_next(&graph->nodes, entry)) {
        int height;
        if (!measure(graph, entry->key, 1, &height))
            return false;
    }
    return true;
}

bool views_check_graph(struct store_txn *txn, const char *ns, struct bdoc options, struct err *err)
{
    struct view_graph graph = {.err = err};
    const struct collection *coll;
    struct view_node view;
    struct view_node other;
    size_t position = 0;
    size_t db_len = strcspn(ns, ".");
    if (!node_of(options, &view))
        return true;
    arena_init(&graph.arena);
    while ((coll = catalog_next(txn, ns, db_len, &position)) != NULL) {
        if (coll->is_view && node_of(coll->options, &other))
            add_node(&graph, coll->name, &other);
    }
    add_node(&graph, ns + db_len + 1, &view);
    bool ok = measure_all(&graph);
    map_deinit(&graph.nodes);
    arena_deinit(&graph.arena);
    return ok;
}
