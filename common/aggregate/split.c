/* What the planner takes over from a pipeline's front, and how a pipeline is divided between shards and router. */
#include "aggregate/stage.h"

#include <string.h>

/* {$and: [a, b]} of all leading filters; one alone stays as it is. */
static struct bdoc join_matches(const struct pipeline *p, uint32_t count, struct arena *arena)
{
    struct buf buf = BUF_INIT;
    if (count == 1)
        return bval_doc(&p->stages[0].operand);
    size_t start = write_begin(&buf);
    size_t list = write_begin_field(&buf, "$and", 4, BT_ARRAY);
    for (uint32_t i = 0; i < count; i++)
        write_item(&buf, i, &p->stages[i].operand);
    write_end(&buf, list);
    write_end(&buf, start);
    struct bval doc = make_doc(arena, &buf, BT_DOCUMENT);
    return bval_doc(&doc);
}

void pipeline_lead(const struct pipeline *pipeline, struct arena *arena, struct pipeline_lead *out)
{
    uint32_t at = 0;
    *out = (struct pipeline_lead){0};
    while (at < pipeline->count && pipeline->stages[at].type == &stage_match)
        at++;
    if (at > 0)
        out->match = join_matches(pipeline, at, arena);
    if (at < pipeline->count && pipeline->stages[at].type == &stage_sort)
        out->sort = bval_doc(&pipeline->stages[at++].operand);
    if (at < pipeline->count && pipeline->stages[at].type == &stage_skip)
        out->skip = pipeline->stages[at++].count;
    if (at < pipeline->count && pipeline->stages[at].type == &stage_limit)
        out->limit = pipeline->stages[at++].count;
    out->stage_count = at;
}

/* A list of stages under construction. */
struct list {
    struct arena *arena;
    struct buf buf;
    uint32_t count;
};

static void list_init(struct list *list, struct arena *arena)
{
    *list = (struct list){.arena = arena};
    write_begin(&list->buf);
}

static void list_add(struct list *list, struct bdoc stage)
{
    struct bval val = bval_from_doc(stage);
    write_item(&list->buf, list->count++, &val);
}

static void list_add_number(struct list *list, const char *name, int64_t number)
{
    struct bval val = make_i64(list->arena, number);
    list_add(list, stage_wrap(list->arena, name, &val));
}

static struct bdoc list_finish(struct list *list)
{
    write_end(&list->buf, 0);
    struct bval doc = make_doc(list->arena, &list->buf, BT_ARRAY);
    return bval_doc(&doc);
}

static void add_rest(const struct pipeline *p, uint32_t from, struct list *list)
{
    for (uint32_t i = from; i < p->count; i++)
        if (p->stages[i].type->spread != SPREAD_SINK)
            list_add(list, p->stages[i].source);
}

/* $limit n, or $skip s with $limit n behind: how many documents of each shard can matter; 0: all. */
static int64_t wanted_after(const struct pipeline *p, uint32_t at)
{
    int64_t skip = 0;
    int64_t wanted;
    if (at < p->count && p->stages[at].type == &stage_skip)
        skip = p->stages[at++].count;
    if (at >= p->count || p->stages[at].type != &stage_limit)
        return 0;
    return __builtin_add_overflow(skip, p->stages[at].count, &wanted) ? 0 : wanted;
}

/* {$count: "n"} of each shard is summed up. */
static void merge_count(const struct stage *stage, struct list *merge)
{
    struct buf buf = BUF_INIT;
    const char *name = stage->path;
    char *field = arena_printf(merge->arena, "$%s", name);
    size_t start = write_begin(&buf);
    size_t group = write_begin_field(&buf, "$group", 6, BT_DOCUMENT);
    write_value(&buf, "_id", 3, &BVAL_NULL);
    size_t sum = write_begin_field(&buf, name, strlen(name), BT_DOCUMENT);
    write_str(&buf, "$sum", field, strlen(field));
    write_end(&buf, sum);
    write_end(&buf, group);
    write_end(&buf, start);
    struct bval doc = make_doc(merge->arena, &buf, BT_DOCUMENT);
    list_add(merge, bval_doc(&doc));
    start = write_begin(&buf);
    size_t project = write_begin_field(&buf, "$project", 8, BT_DOCUMENT);
    write_i32(&buf, "_id", 0);
    write_end(&buf, project);
    write_end(&buf, start);
    doc = make_doc(merge->arena, &buf, BT_DOCUMENT);
    list_add(merge, bval_doc(&doc));
}

/* Divides at the first stage that needs the whole stream. */
static void split_at(const struct pipeline *p, uint32_t at, struct list *shard, struct list *merge,
                     struct pipeline_split *out)
{
    const struct stage *stage = &p->stages[at];
    int64_t wanted;
    switch (stage->type->spread) {
    case SPREAD_SORT:
        list_add(shard, stage->source);
        wanted = wanted_after(p, at + 1);
        if (wanted > 0)
            list_add_number(shard, "$limit", wanted);
        out->merge_sort = bval_doc(&stage->operand);
        add_rest(p, at + 1, merge);
        break;
    case SPREAD_LIMIT:
    case SPREAD_SKIP:
        wanted = wanted_after(p, at);
        if (wanted > 0)
            list_add_number(shard, "$limit", wanted);
        add_rest(p, at, merge);
        break;
    case SPREAD_GROUP:
        list_add(shard, stage_wrap(shard->arena, stage_group_partial.name, &stage->operand));
        list_add(merge, stage_wrap(merge->arena, stage_group_merge.name, &stage->operand));
        add_rest(p, at + 1, merge);
        break;
    case SPREAD_COUNT:
        list_add(shard, stage->source);
        merge_count(stage, merge);
        add_rest(p, at + 1, merge);
        out->single_document = true;
        break;
    default:
        add_rest(p, at, merge);
        break;
    }
}

/* Documents that the pipeline makes itself are of no collection. */
static bool check_source(const struct pipeline *pipeline, struct err *err)
{
    bool documents = pipeline->count > 0 && pipeline->stages[0].type->spread == SPREAD_SOURCE &&
                     strcmp(pipeline->stages[0].type->name, "$documents") == 0;
    return !documents || err_set(err, ERR_InvalidNamespace, "$documents is only valid with {aggregate: 1}");
}

bool pipeline_split(const struct pipeline *pipeline, struct arena *arena, struct pipeline_split *out, struct err *err)
{
    struct list shard;
    struct list merge;
    uint32_t at = 0;
    *out = (struct pipeline_split){0};
    if (!check_source(pipeline, err))
        return false;
    list_init(&shard, arena);
    list_init(&merge, arena);
    while (at < pipeline->count) {
        enum stage_spread spread = pipeline->stages[at].type->spread;
        if (spread != SPREAD_LOCAL && spread != SPREAD_SOURCE)
            break;
        list_add(&shard, pipeline->stages[at++].source);
    }
    if (at < pipeline->count)
        split_at(pipeline, at, &shard, &merge, out);
    out->shard = list_finish(&shard);
    out->merge = list_finish(&merge);
    return true;
}

static void note_foreign(void *arg, const char *coll)
{
    (void)coll;
    *(bool *)arg = true;
}

/* The stage, or a pipeline inside it, reads another collection. */
static bool reads_foreign(const struct stage *stage)
{
    struct stage copy = *stage;
    struct pipeline one = {.stages = &copy, .count = 1};
    bool reads = stage->type == &stage_lookup || stage->type == &stage_union_with;
    pipeline_foreign_names(&one, note_foreign, &reads);
    return reads;
}

bool pipeline_split_others(const struct pipeline *pipeline, struct arena *arena, struct pipeline_split *out,
                           struct err *err)
{
    struct list shard;
    struct list merge;
    uint32_t at = 0;
    *out = (struct pipeline_split){0};
    if (!check_source(pipeline, err))
        return false;
    list_init(&shard, arena);
    list_init(&merge, arena);
    while (at < pipeline->count && pipeline->stages[at].type->spread != SPREAD_SINK &&
           !reads_foreign(&pipeline->stages[at]))
        list_add(&shard, pipeline->stages[at++].source);
    add_rest(pipeline, at, &merge);
    out->shard = list_finish(&shard);
    out->merge = list_finish(&merge);
    return true;
}
