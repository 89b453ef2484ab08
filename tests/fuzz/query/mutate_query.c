/* Random filters, updates, projections, sorts and pipelines over random documents: nothing may crash, results must be
 * well-formed, refusals must have a code, an unmodified document must have its bytes, and the same input must give the
 * same output. */
#include "aggregate/pipeline.h"
#include "base/check.h"
#include "query/bounds.h"
#include "query/projection.h"
#include "tests/fuzz/query/random_query.h"
#include "update/update.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    DEFAULT_ROUNDS = 4000,
    DOCS = 4,
    DEPTH = 4,
    MEMORY_LIMIT = 1 << 20,
};

struct tally {
    long compiled;
    long refused;
};

static struct bdoc field(const bson_t *bson, const char *name)
{
    struct bval val;
    CHECK(bdoc_find(bdoc_of(bson), name, &val));
    return bval_doc(&val);
}

static void check_document(struct bdoc doc)
{
    struct err err;
    if (bdoc_validate(doc.data, doc.len, BDOC_MAX_WIRE_DEPTH, &err))
        return;
    fprintf(stderr, "malformed result: %s\n", err.msg);
    abort();
}

static bool note(struct tally *tally, bool ok, const struct err *err)
{
    CHECK(ok || (err->code > 0 && err->msg[0] != 0));
    tally->compiled += ok ? 1 : 0;
    tally->refused += ok ? 0 : 1;
    return ok;
}

static void try_filter(struct arena *arena, struct bdoc query, const bson_t *docs, struct tally *tally)
{
    static const char *const names[] = {"0", "1", "2", "3"};
    struct filter *filter;
    struct err err = {0};
    struct bounds bounds;
    struct bounds_pattern pattern = {.fields = {{.path = "a"}, {.path = "b", .descending = true}}, .field_count = 2};
    if (!note(tally, filter_compile(arena, query, NULL, &filter, &err), &err))
        return;
    for (int i = 0; i < DOCS; i++) {
        struct filter_match match;
        bool matched;
        bool ok = filter_eval(filter, field(docs, names[i]), &match, &matched, &err);
        CHECK(ok || filter_can_fail(filter));
        CHECK(!ok || matched == filter_matches(filter, field(docs, names[i])));
        CHECK(!ok || !matched || !filter_is_never(filter));
    }
    bounds_from_filter(arena, filter, &pattern, &bounds);
    for (uint32_t i = 1; i < bounds.interval_count; i++)
        CHECK(bounds.intervals[i - 1].high_len > 0 && bounds.intervals[i].low_len > 0);
}

static void apply_update(const struct update *update, struct bdoc doc)
{
    struct buf first = BUF_INIT;
    struct buf second = BUF_INIT;
    struct update_result result;
    struct filter_match match = {.array_index = 0};
    struct err err = {0};
    bool ok = update_apply(update, doc, &match, &first, &result, &err);
    CHECK(ok || (err.code > 0 && first.len == 0));
    if (ok) {
        struct bdoc after = {first.data, (uint32_t)first.len};
        check_document(after);
        CHECK(result.modified || bdoc_same(doc, after));
        CHECK(update_apply(update, doc, &match, &second, &result, &err));
        CHECK(second.len == first.len && memcmp(first.data, second.data, first.len) == 0);
    }
    buf_deinit(&first);
    buf_deinit(&second);
}

static void try_update(struct arena *arena, const struct bval *source, struct bdoc query, const bson_t *docs,
                       struct tally *tally)
{
    struct update *update;
    struct filter *filter;
    struct err err = {0};
    struct update_options options = {.env = NULL};
    bson_oid_t oid = {.bytes = {0}};
    struct buf out = BUF_INIT;
    if (!note(tally, update_compile(arena, source, &options, &update, &err), &err))
        return;
    apply_update(update, field(docs, "0"));
    apply_update(update, field(docs, "1"));
    if (filter_compile(arena, query, NULL, &filter, &err) && update_build_upsert(update, filter, &oid, &out, &err))
        check_document((struct bdoc){out.data, (uint32_t)out.len});
    buf_deinit(&out);
}

static void try_projection(struct arena *arena, struct bdoc spec, enum projection_kind kind, const bson_t *docs,
                           struct tally *tally)
{
    struct projection *projection;
    struct err err = {0};
    struct projection_options options = {.kind = kind};
    struct buf out = BUF_INIT;
    if (!note(tally, projection_compile(arena, spec, &options, &projection, &err), &err))
        return;
    if (projection_apply(projection, field(docs, "0"), NULL, &out, &err))
        check_document((struct bdoc){out.data, (uint32_t)out.len});
    buf_deinit(&out);
}

static void try_sort(struct arena *arena, struct bdoc spec, const bson_t *docs, struct tally *tally)
{
    struct sort_spec *sort;
    struct err err = {0};
    struct buf key = BUF_INIT;
    if (!note(tally, sort_spec_compile(arena, spec, NULL, &sort, &err), &err))
        return;
    if (!sort_key_append(sort, field(docs, "0"), &key, &err))
        CHECK(err.code > 0 && key.len == 0);
    buf_deinit(&key);
}

struct source {
    const bson_t *docs;
    int at;
};

static bool next_document(void *arg, struct bdoc *out, struct err *err)
{
    static const char *const names[] = {"0", "1", "2", "3"};
    struct source *source = arg;
    (void)err;
    *out = source->at < DOCS ? field(source->docs, names[source->at++]) : (struct bdoc){0};
    return true;
}

static void try_pipeline(struct arena *arena, struct bdoc stages, const bson_t *docs, struct tally *tally)
{
    struct pipeline *pipeline;
    struct pipeline *part;
    struct pipeline_split split;
    struct err err = {0};
    struct source source = {.docs = docs};
    struct bdoc doc;
    if (!note(tally, pipeline_compile(arena, stages, NULL, &pipeline, &err), &err))
        return;
    struct pipeline_run *run = pipeline_run_new(pipeline, 0, (struct doc_source){next_document, &source}, MEMORY_LIMIT);
    while (pipeline_run_next(run, &doc, &err) && doc.data != NULL)
        check_document(doc);
    pipeline_run_free(run);
    /* Both halves of a division must compile. */
    if (pipeline_split(pipeline, arena, &split, &err)) {
        CHECK(pipeline_compile(arena, split.shard, NULL, &part, &err));
        CHECK(pipeline_compile(arena, split.merge, NULL, &part, &err));
    }
}

static void print(const bson_t *bson)
{
    char *json = bson_as_relaxed_extended_json(bson, NULL);
    fprintf(stderr, "%s\n", json);
    bson_free(json);
}

static void run_once(struct chooser *choose, struct tally *tally, bool loud)
{
    static const char *const names[] = {"0", "1", "2", "3"};
    struct arena arena;
    bson_t docs = BSON_INITIALIZER;
    bson_t parts = BSON_INITIALIZER;
    struct bval update;
    arena_init(&arena);
    for (int i = 0; i < DOCS; i++)
        random_query_append(choose, &docs, names[i], RANDOM_DOCUMENT, 3);
    random_query_append(choose, &parts, "filter", RANDOM_FILTER, DEPTH);
    random_query_append(choose, &parts, "update", RANDOM_UPDATE, DEPTH);
    random_query_append(choose, &parts, "projection", RANDOM_PROJECTION, DEPTH);
    random_query_append(choose, &parts, "sort", RANDOM_SORT, DEPTH);
    random_query_append_list(choose, &parts, "stages", RANDOM_STAGE, DEPTH);
    if (loud) {
        print(&docs);
        print(&parts);
    }
    bdoc_find(bdoc_of(&parts), "update", &update);
    try_filter(&arena, field(&parts, "filter"), &docs, tally);
    try_update(&arena, &update, field(&parts, "filter"), &docs, tally);
    bdoc_find(bdoc_of(&parts), "stages", &update);
    try_update(&arena, &update, field(&parts, "filter"), &docs, tally);
    for (int kind = PROJECTION_FIND; kind <= PROJECTION_ADD_FIELDS; kind++)
        try_projection(&arena, field(&parts, "projection"), (enum projection_kind)kind, &docs, tally);
    try_sort(&arena, field(&parts, "sort"), &docs, tally);
    try_pipeline(&arena, field(&parts, "stages"), &docs, tally);
    bson_destroy(&docs);
    bson_destroy(&parts);
    arena_deinit(&arena);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : DEFAULT_ROUNDS;
    struct chooser choose = {.prng = {argc > 2 ? strtoull(argv[2], NULL, 10) : 1}};
    struct tally tally = {0};
    for (long i = 0; i < rounds; i++) {
        /* With a third argument: the seed that repeats just this round, and what it tries. */
        if (argc > 3)
            fprintf(stderr, "%llu\n", (unsigned long long)choose.prng.state);
        run_once(&choose, &tally, argc > 3);
    }
    printf("%ld rounds: %ld compiled, %ld refused\n", rounds, tally.compiled, tally.refused);
    return 0;
}
