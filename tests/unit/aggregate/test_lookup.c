#include "aggregate/pipeline.h"

#include "base/random.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

#include <string.h>

/* Documents end to end, as a source and as the other collection. */
struct docs {
    struct buf bytes;
    size_t at;
};

/* One run: what is joined with what, and how the other collection was read. */
struct world {
    struct arena arena;
    struct docs left;
    struct docs right;
    unsigned opened; /* reads of the other collection */
    unsigned open;   /* of these not closed */
    struct bdoc stages;
};

struct stream {
    struct world *world;
    size_t at;
    struct filter *filter;
    struct arena arena;
};

static bool next_of_docs(void *arg, struct bdoc *out, struct err *err)
{
    struct docs *docs = arg;
    (void)err;
    *out = (struct bdoc){0};
    if (docs->at < docs->bytes.len) {
        out->data = docs->bytes.data + docs->at;
        out->len = load_le32(out->data);
        docs->at += out->len;
    }
    return true;
}

static bool next_match(void *arg, struct bdoc *out, struct err *err)
{
    struct stream *stream = arg;
    (void)err;
    for (*out = (struct bdoc){0}; stream->at < stream->world->right.bytes.len; *out = (struct bdoc){0}) {
        out->data = stream->world->right.bytes.data + stream->at;
        out->len = load_le32(out->data);
        stream->at += out->len;
        if (filter_matches(stream->filter, *out))
            break;
    }
    return true;
}

static bool open_right(void *arg, const struct pipeline_foreign_query *query, struct doc_source *out, struct err *err)
{
    struct world *world = arg;
    struct stream *stream = test_calloc(1, sizeof *stream);
    arena_init(&stream->arena);
    stream->world = world;
    world->opened++;
    world->open++;
    world->stages = query->stages;
    *out = (struct doc_source){.next = next_match, .arg = stream};
    assert_true(
        filter_compile(&stream->arena, query->filter.data ? query->filter : bdoc_empty(), NULL, &stream->filter, err));
    return true;
}

static void close_right(void *arg, struct doc_source *source)
{
    struct stream *stream = source->arg;
    struct world *world = arg;
    world->open--;
    filter_release(stream->filter);
    arena_deinit(&stream->arena);
    test_free(stream);
}

static int set_up(void **state)
{
    struct world *world = test_calloc(1, sizeof *world);
    arena_init(&world->arena);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    buf_deinit(&world->left.bytes);
    buf_deinit(&world->right.bytes);
    arena_deinit(&world->arena);
    test_free(world);
    return 0;
}

static void add(struct docs *docs, struct world *world, const char *json)
{
    struct bdoc doc = json_doc(&world->arena, json);
    buf_append(&docs->bytes, doc.data, doc.len);
}

static struct bdoc stages_of(struct world *world, const char *json)
{
    struct bval array = json_val(&world->arena, json);
    return bval_doc(&array);
}

/* All results one behind the other. */
static const char *run(struct world *world, const char *stages, bool runs_stages)
{
    struct pipeline *pipeline;
    struct err err = {0};
    struct bdoc doc;
    struct buf text = BUF_INIT;
    struct pipeline_foreign foreign = {
        .open = open_right, .close = close_right, .arg = world, .runs_stages = runs_stages};
    world->left.at = 0;
    world->opened = 0;
    if (!pipeline_compile(&world->arena, stages_of(world, stages), NULL, &pipeline, &err))
        fail_msg("%s: %d %s", stages, err.code, err.msg);
    struct pipeline_run *running =
        pipeline_run_new(pipeline, 0, (struct doc_source){next_of_docs, &world->left}, PIPELINE_MEMORY_LIMIT_BYTES);
    pipeline_run_set_foreign(running, &foreign);
    for (;;) {
        if (!pipeline_run_next(running, &doc, &err))
            fail_msg("%s: %d %s", stages, err.code, err.msg);
        if (doc.data == NULL)
            break;
        bson_t view;
        bdoc_to_bson(doc, &view);
        char *json = bson_as_relaxed_extended_json(&view, NULL);
        buf_append(&text, json, strlen(json));
        buf_append(&text, "\n", 1);
        bson_free(json);
    }
    pipeline_run_free(running);
    assert_int_equal(world->open, 0);
    buf_append(&text, "", 1);
    const char *copy = arena_copy_str(&world->arena, (const char *)text.data, text.len - 1);
    buf_deinit(&text);
    return copy;
}

/* Each array is within the limit of one; together they would grow without end. */
static void lookup_after_lookup_is_bounded(void **state)
{
    enum { TEXT_BYTES = 12 * 1024 * 1024 };
    static const char one[] = "{'$lookup': {'from': 'r', 'as': '%s', 'pipeline': []}}";
    struct world *world = *state;
    struct pipeline *pipeline;
    struct err err = {0};
    struct bdoc doc;
    struct buf stages = BUF_INIT;
    char *large = test_calloc(1, TEXT_BYTES + 1);
    memset(large, 'x', TEXT_BYTES);
    add(&world->left, world, "{'_id': 1}");
    add(&world->right, world, arena_printf(&world->arena, "{'t': '%s'}", large));
    test_free(large);
    for (char name[] = "a"; name[0] <= 'h'; name[0]++) {
        const char *stage = arena_printf(&world->arena, one, name);
        buf_append(&stages, stages.len == 0 ? "[" : ",", 1);
        buf_append(&stages, stage, strlen(stage));
    }
    buf_append(&stages, "]", 2);
    assert_true(pipeline_compile(&world->arena, stages_of(world, (const char *)stages.data), NULL, &pipeline, &err));
    struct pipeline_foreign foreign = {.open = open_right, .close = close_right, .arg = world};
    struct pipeline_run *running =
        pipeline_run_new(pipeline, 0, (struct doc_source){next_of_docs, &world->left}, PIPELINE_MEMORY_LIMIT_BYTES);
    pipeline_run_set_foreign(running, &foreign);
    assert_false(pipeline_run_next(running, &doc, &err));
    assert_int_equal(err.code, ERR_BSONObjectTooLarge);
    pipeline_run_free(running);
    buf_deinit(&stages);
}

#define EQUALITY                                                                                                       \
    "[{\"$lookup\": {\"from\": \"r\", \"localField\": \"k\", \"foreignField\": \"f\", \"as\": \"j\"}},"                \
    " {\"$project\": {\"j._id\": 1}}]"
/* The same by a read for each document: the pipeline does nothing. */
#define ONE_BY_ONE                                                                                                     \
    "[{\"$lookup\": {\"from\": \"r\", \"localField\": \"k\", \"foreignField\": \"f\", \"as\": \"j\", \"pipeline\": "   \
    "[]}},"                                                                                                            \
    " {\"$project\": {\"j._id\": 1}}]"

static void lookup_by_equality_reads_for_many_documents_at_once(void **state)
{
    struct world *world = *state;
    char text[64];
    for (int i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "{\"_id\": %d, \"k\": %d}", i, i % 10);
        add(&world->left, world, text);
        snprintf(text, sizeof text, "{\"_id\": %d, \"f\": %d}", i, i % 100);
        add(&world->right, world, text);
    }
    const char *batched = run(world, EQUALITY, false);
    assert_in_range(world->opened, 2, 4);
    assert_string_equal(batched, run(world, ONE_BY_ONE, false));
    assert_int_equal(world->opened, 300);
}

/* Values of all kinds on both sides: what a read for each document finds is the truth. */
static void lookup_batches_find_what_single_reads_find(void **state)
{
    static const char *const values[] = {
        "1",
        "1.0",
        "{\"$numberLong\": \"1\"}",
        "2",
        "\"x\"",
        "\"X\"",
        "null",
        "[1, 2]",
        "[]",
        "[[1, 2]]",
        "[null]",
        "{\"a\": 1}",
        "[{\"a\": 1}]",
        "true",
        "{\"$regularExpression\": {\"pattern\": \"x\", \"options\": \"\"}}",
        "{\"$undefined\": true}",
        "{\"$numberDecimal\": \"2\"}",
        "{\"$minKey\": 1}",
    };
    enum { VALUES = sizeof values / sizeof values[0] };
    struct world *world = *state;
    char text[160];
    for (unsigned round = 0; round < 60; round++) {
        buf_clear(&world->left.bytes);
        buf_clear(&world->right.bytes);
        for (int i = 0; i < 20; i++) {
            uint64_t pick = random_u64();
            const char *value = values[pick % VALUES];
            snprintf(text, sizeof text, pick >> 60 == 0 ? "{\"_id\": %d}" : "{\"_id\": %d, \"k\": %s}", i, value);
            /* A regular expression keeps the whole batch from being one: most rounds go without. */
            if (round % 4 == 0 || strstr(value, "$regular") == NULL)
                add(&world->left, world, text);
            pick = random_u64();
            snprintf(text, sizeof text, pick >> 60 == 0 ? "{\"_id\": %d}" : "{\"_id\": %d, \"f\": %s}", i,
                     values[pick % VALUES]);
            add(&world->right, world, text);
        }
        const char *batched = run(world, EQUALITY, false);
        const char *single = run(world, ONE_BY_ONE, false);
        assert_string_equal(batched, single);
    }
}

static void lookup_pipeline_without_variables_is_read_once(void **state)
{
    struct world *world = *state;
    add(&world->left, world, "{\"_id\": 1}");
    add(&world->left, world, "{\"_id\": 2}");
    add(&world->right, world, "{\"_id\": 7, \"f\": 1}");
    const char *got = run(
        world, "[{\"$lookup\": {\"from\": \"r\", \"as\": \"j\", \"pipeline\": [{\"$match\": {\"f\": 1}}]}}]", false);
    assert_int_equal(world->opened, 1);
    assert_string_equal(got, "{ \"_id\" : 1, \"j\" : [ { \"_id\" : 7, \"f\" : 1 } ] }\n{ \"_id\" : 2, \"j\" : [ { "
                             "\"_id\" : 7, \"f\" : 1 } ] }\n");
}

static void lookup_hands_its_pipeline_to_a_reader_that_runs_it(void **state)
{
    struct world *world = *state;
    add(&world->left, world, "{\"_id\": 1}");
    (void)run(world, "[{\"$lookup\": {\"from\": \"r\", \"as\": \"j\", \"pipeline\": [{\"$limit\": 3}]}}]", true);
    assert_non_null(world->stages.data);
    (void)run(world, "[{\"$lookup\": {\"from\": \"r\", \"as\": \"j\", \"pipeline\": [{\"$limit\": 3}]}}]", false);
    assert_null(world->stages.data);
}

static void lookup_before_a_limit_joins_few_documents(void **state)
{
    struct world *world = *state;
    char text[64];
    for (int i = 0; i < 3000; i++) {
        snprintf(text, sizeof text, "{\"_id\": %d, \"k\": 1}", i);
        add(&world->left, world, text);
    }
    (void)run(world,
              "[{\"$lookup\": {\"from\": \"r\", \"localField\": \"k\", \"foreignField\": \"f\", \"as\": \"j\"}},"
              " {\"$limit\": 1}]",
              false);
    assert_int_equal(world->opened, 1);
    assert_in_range(world->left.at, 1, 20 * load_le32(world->left.bytes.data));
}

static void sample_takes_that_many_different_documents(void **state)
{
    struct world *world = *state;
    struct pipeline *pipeline;
    struct err err;
    char text[64];
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "{\"_id\": %d}", i);
        add(&world->left, world, text);
    }
    const char *got =
        run(world, "[{\"$sample\": {\"size\": 10}}, {\"$group\": {\"_id\": \"$_id\"}}, {\"$count\": \"n\"}]", false);
    assert_string_equal(got, "{ \"n\" : 10 }\n");
    got = run(world, "[{\"$sample\": {\"size\": 1000}}, {\"$count\": \"n\"}]", false);
    assert_string_equal(got, "{ \"n\" : 100 }\n");
    static const struct {
        const char *stages;
        int code;
    } wrong[] = {
        {"[{\"$sample\": 1}]", 28745},
        {"[{\"$sample\": {\"size\": \"x\"}}]", 28746},
        {"[{\"$sample\": {\"size\": -1}}]", 28747},
        {"[{\"$sample\": {\"size\": 1, \"x\": 1}}]", 28748},
        {"[{\"$sample\": {}}]", 28749},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(pipeline_compile(&world->arena, stages_of(world, wrong[i].stages), NULL, &pipeline, &err));
        assert_int_equal(err.code, wrong[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lookup_after_lookup_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lookup_by_equality_reads_for_many_documents_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lookup_batches_find_what_single_reads_find, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lookup_pipeline_without_variables_is_read_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lookup_hands_its_pipeline_to_a_reader_that_runs_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lookup_before_a_limit_joins_few_documents, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sample_takes_that_many_different_documents, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
