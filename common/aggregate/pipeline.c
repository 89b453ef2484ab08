#include "aggregate/stage.h"

#include <string.h>

static const struct stage_type *const stage_table[] = {
    &stage_match,         &stage_project,      &stage_add_fields,   &stage_set,           &stage_unset,
    &stage_limit,         &stage_skip,         &stage_sort,         &stage_count,         &stage_unwind,
    &stage_replace_root,  &stage_replace_with, &stage_group,        &stage_group_partial, &stage_group_merge,
    &stage_sort_by_count, &stage_facet,        &stage_bucket,       &stage_bucket_auto,   &stage_redact,
    &stage_lookup,        &stage_union_with,   &stage_graph_lookup, &stage_sample,
};

static bool compile_source(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    (void)operand;
    if (c->pipeline->count > 0)
        return err_set(c->err, 40602, "%s is only valid as the first stage in a pipeline", stage->type->name);
    return true;
}

/* Runs from the start of a pipeline only when somebody forgot to produce its documents: then there are none. */
static bool next_source(struct stage_run *run, struct bdoc *out, struct err *err)
{
    return stage_input(run, out, err);
}

static bool compile_sink(struct stage_compiler *c, struct stage *stage, const struct bval *operand)
{
    if (operand->type != BT_STRING && operand->type != BT_DOCUMENT)
        return err_set(c->err, 16990, "%s only supports a string or object argument, but found %s", stage->type->name,
                       bval_type_name(operand->type));
    if (c->depth > 0)
        return err_set(c->err, 40600, "%s is not allowed to be used within a nested pipeline", stage->type->name);
    return true;
}

static bool next_sink(struct stage_run *run, struct bdoc *out, struct err *err)
{
    *out = (struct bdoc){0};
    return err_set(err, ERR_NotImplemented, "%s is not supported here", run->stage->type->name);
}

static const struct stage_type sink_stages[] = {
    {.name = "$out", .compile = compile_sink, .next = next_sink, .spread = SPREAD_SINK},
    {.name = "$merge", .compile = compile_sink, .next = next_sink, .spread = SPREAD_SINK},
};

#define SOURCE_STAGE(stage_name)                                                                                       \
    {                                                                                                                  \
        .name = (stage_name), .compile = compile_source, .next = next_source, .spread = SPREAD_SOURCE                  \
    }

static const struct stage_type source_stages[] = {
    SOURCE_STAGE("$collStats"),      SOURCE_STAGE("$indexStats"),
    SOURCE_STAGE("$documents"),      SOURCE_STAGE("$currentOp"),
    SOURCE_STAGE("$listSessions"),   SOURCE_STAGE("$listLocalSessions"),
    SOURCE_STAGE("$planCacheStats"), SOURCE_STAGE("$shardedDataDistribution"),
};

static const char *const unsupported_stages[] = {
    "$changeStream", "$geoNear",    "$densify",      "$fill",       "$setWindowFields",
    "$search",       "$searchMeta", "$vectorSearch", "$queryStats", "$listCatalog",
};

static const struct stage_type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof stage_table / sizeof *stage_table; i++)
        if (strcmp(stage_table[i]->name, name) == 0)
            return stage_table[i];
    for (size_t i = 0; i < sizeof source_stages / sizeof *source_stages; i++)
        if (strcmp(source_stages[i].name, name) == 0)
            return &source_stages[i];
    for (size_t i = 0; i < sizeof sink_stages / sizeof *sink_stages; i++)
        if (strcmp(sink_stages[i].name, name) == 0)
            return &sink_stages[i];
    return NULL;
}

static bool unknown_stage(const char *name, struct err *err)
{
    for (size_t i = 0; i < sizeof unsupported_stages / sizeof *unsupported_stages; i++)
        if (strcmp(unsupported_stages[i], name) == 0)
            return err_set(err, ERR_NotImplemented, "the pipeline stage %s is not supported", name);
    return err_set(err, 40324, "Unrecognized pipeline stage name: '%s'", name);
}

static void append(struct stage_compiler *c, const struct stage *stage)
{
    struct pipeline *p = c->pipeline;
    if (p->count == p->capacity) {
        uint32_t capacity = p->capacity == 0 ? 8 : p->capacity * 2;
        struct stage *stages = arena_alloc(c->arena, capacity * sizeof *stages);
        if (p->count > 0)
            memcpy(stages, p->stages, p->count * sizeof *stages);
        p->stages = stages;
        p->capacity = capacity;
    }
    p->stages[p->count++] = *stage;
}

bool stage_add(struct stage_compiler *c, struct bdoc spec)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, spec);
    if (bdoc_count(spec) != 1 || !biter_next(&iter, &elem))
        return err_set(c->err, 40323, "A pipeline stage specification object must contain exactly one field.");
    if (c->pipeline->count >= PIPELINE_MAX_STAGES)
        return err_set(c->err, 7749501, "Pipeline length must be no longer than %d stages", PIPELINE_MAX_STAGES);
    if (c->pipeline->count > 0 && c->pipeline->stages[c->pipeline->count - 1].type->spread == SPREAD_SINK)
        return err_set(c->err, 40601, "%s can only be the final stage in the pipeline",
                       c->pipeline->stages[c->pipeline->count - 1].type->name);
    struct stage stage = {.type = find_type(elem.key), .source = spec, .operand = elem.val};
    stage.order = c->env != NULL ? c->env->order : NULL;
    if (stage.type == NULL)
        return unknown_stage(elem.key, c->err);
    if (!stage.type->compile(c, &stage, &elem.val))
        return false;
    if (stage.type != NULL)
        append(c, &stage);
    return true;
}

struct bdoc stage_wrap(struct arena *arena, const char *name, const struct bval *value)
{
    struct buf buf = BUF_INIT;
    size_t start = write_begin(&buf);
    write_value(&buf, name, strlen(name), value);
    write_end(&buf, start);
    struct bval doc = make_doc(arena, &buf, BT_DOCUMENT);
    return bval_doc(&doc);
}

/* A filter after a sort may as well run before it. */
static void move_matches(struct pipeline *p)
{
    for (uint32_t i = 1; i < p->count; i++) {
        for (uint32_t j = i; j > 0; j--) {
            bool swap = p->stages[j].type == &stage_match && p->stages[j - 1].type == &stage_sort;
            if (!swap)
                break;
            struct stage match = p->stages[j];
            p->stages[j] = p->stages[j - 1];
            p->stages[j - 1] = match;
        }
    }
}

/* A sort whose stream is cut afterwards keeps only that many. */
static void find_sort_limits(struct pipeline *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->stages[i].type != &stage_sort)
            continue;
        int64_t skip = 0;
        uint32_t at = i + 1;
        if (at < p->count && p->stages[at].type == &stage_skip)
            skip = p->stages[at++].count;
        int64_t limit = at < p->count && p->stages[at].type == &stage_limit ? p->stages[at].count : 0;
        int64_t wanted;
        p->stages[i].count = limit > 0 && !__builtin_add_overflow(limit, skip, &wanted) ? wanted : 0;
    }
}

bool pipeline_compile(struct arena *arena, struct bdoc stages, const struct expr_env *env, struct pipeline **out,
                      struct err *err)
{
    struct stage_compiler c = {.arena = arena, .env = env, .err = err};
    struct biter iter;
    struct belem elem;
    c.pipeline = arena_alloc(arena, sizeof *c.pipeline);
    c.pipeline->arena = arena;
    biter_init(&iter, stages);
    while (biter_next(&iter, &elem)) {
        if (elem.val.type != BT_DOCUMENT)
            return err_set(err, ERR_TypeMismatch, "Each element of the 'pipeline' array must be an object");
        if (!stage_add(&c, bval_doc(&elem.val)))
            return false;
    }
    move_matches(c.pipeline);
    find_sort_limits(c.pipeline);
    *out = c.pipeline;
    return true;
}

void pipeline_release(struct pipeline *pipeline)
{
    if (pipeline == NULL)
        return;
    for (uint32_t i = 0; i < pipeline->count; i++)
        filter_release(pipeline->stages[i].filter);
}

uint32_t pipeline_stage_count(const struct pipeline *pipeline)
{
    return pipeline->count;
}

struct bdoc pipeline_stage_source(const struct pipeline *pipeline, uint32_t index)
{
    return pipeline->stages[index].source;
}

const char *pipeline_source_stage(const struct pipeline *pipeline, struct bval *spec)
{
    *spec = BVAL_MISSING;
    if (pipeline->count == 0 || pipeline->stages[0].type->spread != SPREAD_SOURCE)
        return NULL;
    *spec = pipeline->stages[0].operand;
    return pipeline->stages[0].type->name;
}

const char *pipeline_sink_stage(const struct pipeline *pipeline, struct bval *spec)
{
    *spec = BVAL_MISSING;
    if (pipeline->count == 0 || pipeline->stages[pipeline->count - 1].type->spread != SPREAD_SINK)
        return NULL;
    *spec = pipeline->stages[pipeline->count - 1].operand;
    return pipeline->stages[pipeline->count - 1].type->name;
}

struct names {
    void (*add)(void *arg, const char *coll);
    void *arg;
};

static void add_foreign(const struct names *names, const struct belem *stage)
{
    struct bval from = stage->val;
    uint32_t len;
    const char *member = strcmp(stage->key, "$unionWith") == 0 ? "coll" : "from";
    if (stage->val.type == BT_DOCUMENT)
        bdoc_find(bval_doc(&stage->val), member, &from);
    if (from.type == BT_STRING)
        names->add(names->arg, bval_str(&from, &len));
}

/* Stages may stand at any depth: pipelines within pipelines. */
static void find_foreign(const struct names *names, struct bdoc doc)
{
    static const char *const readers[] = {"$lookup", "$unionWith", "$graphLookup"};
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
            if (strcmp(elem.key, readers[i]) == 0)
                add_foreign(names, &elem);
        if (elem.val.type == BT_DOCUMENT || elem.val.type == BT_ARRAY)
            find_foreign(names, bval_doc(&elem.val));
    }
}

void pipeline_foreign_names(const struct pipeline *pipeline, void (*add)(void *arg, const char *coll), void *arg)
{
    struct names names = {.add = add, .arg = arg};
    for (uint32_t i = 0; i < pipeline->count; i++)
        find_foreign(&names, pipeline->stages[i].source);
}
