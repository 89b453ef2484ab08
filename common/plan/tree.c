#include "plan/tree.h"

#include "plan/scan.h"

#include <string.h>

const char *plan_stage_name(enum plan_stage stage)
{
    static const char *const names[] = {
        [STAGE_EOF] = "EOF",
        [STAGE_IDHACK] = "IDHACK",
        [STAGE_COLLSCAN] = "COLLSCAN",
        [STAGE_IXSCAN] = "IXSCAN",
        [STAGE_COUNT_SCAN] = "COUNT_SCAN",
        [STAGE_DISTINCT_SCAN] = "DISTINCT_SCAN",
        [STAGE_FETCH] = "FETCH",
        [STAGE_OR] = "OR",
        [STAGE_SORT_MERGE] = "SORT_MERGE",
        [STAGE_SHARDING_FILTER] = "SHARDING_FILTER",
        [STAGE_SORT] = "SORT",
        [STAGE_SKIP] = "SKIP",
        [STAGE_LIMIT] = "LIMIT",
        [STAGE_PROJECTION_SIMPLE] = "PROJECTION_SIMPLE",
        [STAGE_PROJECTION_COVERED] = "PROJECTION_COVERED",
        [STAGE_PROJECTION_DEFAULT] = "PROJECTION_DEFAULT",
        [STAGE_COUNT] = "COUNT",
        [STAGE_RECORD_STORE_COUNT] = "RECORD_STORE_FAST_COUNT",
        [STAGE_UPDATE] = "UPDATE",
        [STAGE_DELETE] = "DELETE",
    };
    return names[stage];
}

/* ---- making ---- */

/* A stage above one child (NULL: none). */
static struct plan_node *node_new(struct arena *arena, enum plan_stage stage, struct plan_node *child)
{
    struct plan_node *node = arena_alloc(arena, sizeof *node);
    node->stage = stage;
    if (child != NULL) {
        node->children = arena_copy(arena, &child, sizeof(struct plan_node *));
        node->child_count = 1;
    }
    return node;
}

static struct plan_node *scan_node(struct arena *arena, const struct plan *plan, uint32_t at, bool fetch)
{
    enum plan_stage stage = plan->distinct_fields > 0 ? STAGE_DISTINCT_SCAN
                            : plan->keys_only         ? STAGE_COUNT_SCAN
                                                      : STAGE_IXSCAN;
    struct plan_node *node = node_new(arena, stage, NULL);
    node->scan = &plan->scans[at];
    node->backward = plan->scans[at].backward;
    if (!fetch)
        return node;
    struct plan_node *above = node_new(arena, STAGE_FETCH, node);
    above->filter = plan->scans[at].filter;
    return above;
}

static struct plan_node *several_node(struct arena *arena, const struct plan *plan)
{
    struct plan_node *node = node_new(arena, plan->kind == PLAN_MERGE ? STAGE_SORT_MERGE : STAGE_OR, NULL);
    node->children = arena_alloc(arena, plan->scan_count * sizeof(struct plan_node *));
    node->child_count = plan->scan_count;
    node->sort = plan->merge_sort;
    for (uint32_t i = 0; i < plan->scan_count; i++)
        node->children[i] = scan_node(arena, plan, i, true);
    return node;
}

static struct plan_node *source_node(struct arena *arena, const struct plan *plan, bool keys_only)
{
    struct plan_node *node;
    switch (plan->kind) {
    case PLAN_INDEX:
        return scan_node(arena, plan, 0, !keys_only || plan->scans[0].filter != NULL);
    case PLAN_UNION:
    case PLAN_MERGE:
        return several_node(arena, plan);
    case PLAN_ID:
        node = node_new(arena, STAGE_IDHACK, NULL);
        break;
    case PLAN_RECORDS:
        node = node_new(arena, STAGE_COLLSCAN, NULL);
        node->backward = plan->backward;
        break;
    default:
        return node_new(arena, STAGE_EOF, NULL);
    }
    node->filter = plan->test;
    return node;
}

static void ignore_path(void *arg, const char *path)
{
    (void)arg;
    (void)path;
}

static bool is_simple(const struct projection *projection)
{
    return projection_inclusions(projection, ignore_path, NULL);
}

struct plan_node *plan_tree_new(struct arena *arena, const struct plan *plan, const struct plan_shape *shape)
{
    bool covered = plan->covered && !shape->sharding_filter && shape->projection != NULL;
    bool counted = shape->count && plan->keys_only && !shape->sharding_filter;
    struct plan_node *node = source_node(arena, plan, covered || counted);
    if (shape->sharding_filter)
        node = node_new(arena, STAGE_SHARDING_FILTER, node);
    if (shape->sort != NULL) {
        node = node_new(arena, STAGE_SORT, node);
        node->sort = shape->sort;
        node->number = shape->limit > 0 ? shape->skip + shape->limit : 0;
    }
    if (shape->skip > 0) {
        node = node_new(arena, STAGE_SKIP, node);
        node->number = shape->skip;
    }
    if (shape->limit > 0 && shape->sort == NULL) {
        node = node_new(arena, STAGE_LIMIT, node);
        node->number = shape->limit;
    }
    if (shape->projection != NULL) {
        enum plan_stage stage = covered                        ? STAGE_PROJECTION_COVERED
                                : is_simple(shape->projection) ? STAGE_PROJECTION_SIMPLE
                                                               : STAGE_PROJECTION_DEFAULT;
        node = node_new(arena, stage, node);
        node->projection = shape->projection;
    }
    return shape->count ? node_new(arena, STAGE_COUNT, node) : node;
}

/* ---- counting ---- */

static void count_walk(struct plan_node *node, const struct plan_walk *walk)
{
    struct plan_counters *counters = &node->counters;
    if (node->stage == STAGE_FETCH) {
        counters->works = walk->keys_examined + 1;
        counters->advanced = walk->advanced;
        counters->docs_examined = walk->docs_examined;
        counters->eof = walk->done;
        node = node->children[0];
        counters = &node->counters;
    }
    counters->works = walk->keys_examined + (walk->done ? 1 : 0);
    counters->advanced = walk->docs_examined > walk->advanced ? walk->docs_examined : walk->advanced;
    counters->keys_examined = walk->keys_examined;
    counters->seeks = walk->seeks;
    counters->dups_tested = walk->dups_tested;
    counters->dups_dropped = walk->dups_dropped;
    counters->eof = walk->done;
}

static bool counts_itself(enum plan_stage stage)
{
    return stage <= STAGE_SORT_MERGE;
}

static void count_source(struct plan_node *node, const struct scan *scan)
{
    if (node->stage == STAGE_OR || node->stage == STAGE_SORT_MERGE) {
        for (uint32_t i = 0; i < node->child_count && i < scan->walk_count; i++) {
            count_walk(node->children[i], &scan->walks[i]);
            node->counters.dups_tested += scan->walks[i].dups_tested;
            node->counters.dups_dropped += scan->walks[i].dups_dropped;
        }
    } else if (scan->walks != NULL) {
        count_walk(node, &scan->walks[0]);
        return;
    }
    node->counters.eof = scan->ended;
    node->counters.works = scan->works;
    node->counters.advanced = scan->advanced + scan->not_owned;
    node->counters.keys_examined = scan->keys_examined;
    node->counters.docs_examined = scan->docs_examined;
}

void plan_tree_count(struct plan_node *tree, const struct scan *scan)
{
    if (counts_itself(tree->stage)) {
        count_source(tree, scan);
        return;
    }
    if (tree->child_count == 0)
        return;
    plan_tree_count(tree->children[0], scan);
    tree->counters.works = tree->children[0]->counters.works;
    tree->counters.advanced = scan->advanced;
    tree->counters.eof = tree->children[0]->counters.eof;
    if (tree->stage == STAGE_SHARDING_FILTER)
        tree->counters.chunk_skips = scan->not_owned;
}
