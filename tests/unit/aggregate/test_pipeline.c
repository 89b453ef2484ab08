#include "aggregate/pipeline.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

#include <string.h>

struct list_source {
    struct biter iter;
};

static bool next_of_list(void *arg, struct bdoc *out, struct err *err)
{
    struct list_source *list = arg;
    struct belem elem;
    (void)err;
    *out = biter_next(&list->iter, &elem) ? bval_doc(&elem.val) : (struct bdoc){0};
    return true;
}

/* Runs `stages` over `docs` and compares the results with `want`, all JSON arrays. */
static void check(const char *stages, const char *docs, const char *want)
{
    struct arena arena;
    struct pipeline *pipeline;
    struct err err = {0};
    struct list_source list;
    struct bdoc doc;
    arena_init(&arena);
    struct bval stage_list = json_val(&arena, stages);
    struct bval doc_list = json_val(&arena, docs);
    biter_init(&list.iter, bval_doc(&doc_list));
    if (!pipeline_compile(&arena, bval_doc(&stage_list), NULL, &pipeline, &err))
        fail_msg("%s: %d %s", stages, err.code, err.msg);
    struct pipeline_run *run =
        pipeline_run_new(pipeline, 0, (struct doc_source){next_of_list, &list}, PIPELINE_MEMORY_LIMIT_BYTES);
    bson_t got = BSON_INITIALIZER;
    bson_t array;
    BSON_APPEND_ARRAY_BEGIN(&got, "v", &array);
    for (int i = 0;; i++) {
        char key[16];
        if (!pipeline_run_next(run, &doc, &err))
            fail_msg("%s: %d %s", stages, err.code, err.msg);
        if (doc.data == NULL)
            break;
        struct bval val = bval_from_doc(doc);
        snprintf(key, sizeof key, "%d", i);
        bval_append(&array, key, -1, &val);
    }
    bson_append_array_end(&got, &array);
    json_assert_same(&arena, bdoc_of(&got), arena_printf(&arena, "{'v': %s}", want), stages);
    bson_destroy(&got);
    pipeline_run_free(run);
    arena_deinit(&arena);
}

static const char docs[] = "[{'_id': 1, 'k': 'a', 'n': 1, 't': [1, 2]}, {'_id': 2, 'k': 'b', 'n': 5, 't': []},"
                           " {'_id': 3, 'k': 'a', 'n': 2.5}]";

static void pipeline_stages_of_one_document(void **state)
{
    (void)state;
    check("[{'$match': {'k': 'a'}}, {'$project': {'n': 1}}]", docs, "[{'_id': 1, 'n': 1}, {'_id': 3, 'n': 2.5}]");
    check("[{'$skip': 1}, {'$limit': 1}, {'$project': {'_id': 1}}]", docs, "[{'_id': 2}]");
    check("[{'$unwind': '$t'}, {'$project': {'t': 1}}]", docs, "[{'_id': 1, 't': 1}, {'_id': 1, 't': 2}]");
    check("[{'$unwind': {'path': '$t', 'includeArrayIndex': 'i', 'preserveNullAndEmptyArrays': true}},"
          " {'$project': {'t': 1, 'i': 1}}]",
          docs,
          "[{'_id': 1, 't': 1, 'i': {'$numberLong': '0'}}, {'_id': 1, 't': 2, 'i': {'$numberLong': '1'}},"
          " {'_id': 2, 'i': null}, {'_id': 3, 'i': null}]");
    check("[{'$set': {'x': '$n'}}, {'$unset': ['k', 'n', 't']}, {'$limit': 1}]", docs, "[{'_id': 1, 'x': 1}]");
    check("[{'$replaceWith': {'k': '$k'}}]", docs, "[{'k': 'a'}, {'k': 'b'}, {'k': 'a'}]");
}

static void pipeline_stages_of_the_whole_stream(void **state)
{
    (void)state;
    check("[{'$count': 'n'}]", docs, "[{'n': 3}]");
    check("[{'$match': {'k': 'z'}}, {'$count': 'n'}]", docs, "[]");
    check("[{'$sort': {'n': -1}}, {'$limit': 2}, {'$project': {'_id': 1}}]", docs, "[{'_id': 2}, {'_id': 3}]");
    check("[{'$sortByCount': '$k'}]", docs, "[{'_id': 'a', 'count': 2}, {'_id': 'b', 'count': 1}]");
    check("[{'$group': {'_id': '$k', 's': {'$sum': '$n'}, 'a': {'$avg': '$n'}, 'p': {'$push': '$_id'}, 'm': {'$max': "
          "'$n'},"
          " 'f': {'$first': '$_id'}, 'l': {'$last': '$_id'}, 'c': {'$count': {}}}}, {'$sort': {'_id': 1}}]",
          docs,
          "[{'_id': 'a', 's': 3.5, 'a': 1.75, 'p': [1, 3], 'm': 2.5, 'f': 1, 'l': 3, 'c': 2},"
          " {'_id': 'b', 's': 5, 'a': 5.0, 'p': [2], 'm': 5, 'f': 2, 'l': 2, 'c': 1}]");
    check("[{'$group': {'_id': null, 's': {'$addToSet': '$k'}}}]", docs, "[{'_id': null, 's': ['a', 'b']}]");
    check("[{'$facet': {'n': [{'$count': 'n'}], 'k': [{'$limit': 1}, {'$project': {'k': 1, '_id': 0}}]}}]", docs,
          "[{'n': [{'n': 3}], 'k': [{'k': 'a'}]}]");
    check("[{'$bucket': {'groupBy': '$n', 'boundaries': [0, 2, 10]}}]", docs,
          "[{'_id': 0, 'count': 1}, {'_id': 2, 'count': 2}]");
    check("[]", "[{'a': 1}]", "[{'a': 1}]");
}

static void pipeline_accumulators_that_keep_n_values(void **state)
{
    (void)state;
    check("[{'$group': {'_id': null, 'f': {'$firstN': {'n': 2, 'input': '$_id'}}, 'l': {'$lastN': {'n': 2, 'input': "
          "'$k'}}, 'lo': {'$minN': {'n': 2, 'input': '$n'}}, 'hi': {'$maxN': {'n': 9, 'input': '$n'}}}}]",
          docs, "[{'_id': null, 'f': [1, 2], 'l': ['b', 'a'], 'lo': [1, 2.5], 'hi': [5, 2.5, 1]}]");
    check(
        "[{'$group': {'_id': null, 't': {'$top': {'sortBy': {'n': -1}, 'output': '$_id'}}, 'b': {'$bottom': {'sortBy': "
        "{'n': -1}, 'output': ['$k', '$n']}}, 'tn': {'$topN': {'n': 2, 'sortBy': {'k': 1, 'n': -1}, 'output': "
        "'$_id'}}, 'bn': {'$bottomN': {'n': 2, 'sortBy': {'n': 1}, 'output': '$none'}}}}]",
        docs, "[{'_id': null, 't': 2, 'b': ['a', 1], 'tn': [3, 1], 'bn': [null, null]}]");
    check("[{'$group': {'_id': {'k': '$k'}, 'f': {'$firstN': {'n': {'$cond': [{'$eq': ['$k', 'a']}, 2, 1]}, 'input': "
          "'$_id'}}}}]",
          docs, "[{'_id': {'k': 'a'}, 'f': [1, 3]}, {'_id': {'k': 'b'}, 'f': [2]}]");
    check("[{'$group': {'_id': null, 'm': {'$median': {'input': '$n', 'method': 'approximate'}}, 'p': {'$percentile': "
          "{'input': '$k', 'p': [0.5], 'method': 'approximate'}}}}]",
          docs, "[{'_id': null, 'm': 2.5, 'p': [null]}]");
}

static void pipeline_malformed_fails_with_code(void **state)
{
    static const struct {
        const char *stages;
        int code;
    } cases[] = {
        {"[{'$nope': 1}]", 40324},
        {"[{}]", 40323},
        {"[{'$match': {}, '$limit': 1}]", 40323},
        {"[5]", 14},
        {"[{'$limit': 0}]", 15958},
        {"[{'$group': {'a': {'$sum': 1}}}]", 15955},
        {"[{'$group': {'_id': 1, 'a': 5}}]", 40234},
        {"[{'$group': {'_id': 1, 'a': {'$nope': 1}}}]", 15952},
        {"[{'$group': {'_id': 1, 'a': {'$accumulator': {}}}}]", 31264},
        {"[{'$group': {'_id': 1, 'a': {'$firstN': 1}}}]", 5787801},
        {"[{'$group': {'_id': 1, 'a': {'$firstN': {'n': 0, 'input': 1}}}}]", 5787908},
        {"[{'$group': {'_id': 1, 'a': {'$minN': 1}}}]", 5787900},
        {"[{'$group': {'_id': 1, 'a': {'$maxN': {'n': 1}}}}]", 5787907},
        {"[{'$group': {'_id': 1, 'a': {'$top': 1}}}]", 5788001},
        {"[{'$group': {'_id': 1, 'a': {'$top': {'n': 1}}}}]", 5788002},
        {"[{'$group': {'_id': 1, 'a': {'$topN': {'output': 1, 'sortBy': {'a': 1}}}}}]", 5788003},
        {"[{'$group': {'_id': 1, 'a': {'$top': {'sortBy': {'a': 1}}}}}]", 5788004},
        {"[{'$group': {'_id': 1, 'a': {'$bottom': {'output': 1}}}}]", 5788005},
        {"[{'$group': {'_id': 1, 'a': {'$median': {'input': 1, 'method': 'exact'}}}}]", 2},
        {"[{'$group': {'_id': 1, 'a': {'$percentile': {'input': 1, 'p': '$x', 'method': 'approximate'}}}}]", 7750300},
        {"[{'$sort': {}}]", 15976},
        {"[{'$project': {}}]", 51272},
        {"[{'$unwind': 't'}]", 28818},
        {"[{'$count': ''}]", 40157},
        {"[{'$lookup': {}}]", 9},
        {"[{'$sample': {'size': -1}}]", 28747},
        {"[{'$out': 'x'}, {'$match': {}}]", 40601},
        {"[{'$limit': 1}, {'$collStats': {}}]", 40602},
        {"[{'$match': {'a': {'$nope': 1}}}]", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena;
        struct pipeline *pipeline;
        struct err err = {0};
        arena_init(&arena);
        struct bval list = json_val(&arena, cases[i].stages);
        if (pipeline_compile(&arena, bval_doc(&list), NULL, &pipeline, &err))
            fail_msg("%s compiles", cases[i].stages);
        if (err.code != cases[i].code)
            fail_msg("%s: %d instead of %d (%s)", cases[i].stages, err.code, cases[i].code, err.msg);
        arena_deinit(&arena);
    }
}

static void pipeline_beyond_its_memory_fails_with_292(void **state)
{
    static const char *const stages[] = {
        "[{'$sort': {'n': 1}}]", "[{'$group': {'_id': '$_id', 'p': {'$push': '$$ROOT'}}}]", "[{'$facet': {'a': []}}]"};
    (void)state;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        struct arena arena;
        struct pipeline *pipeline;
        struct err err = {0};
        struct list_source list;
        struct bdoc doc;
        arena_init(&arena);
        struct bval stage_list = json_val(&arena, stages[i]);
        struct bval doc_list = json_val(&arena, docs);
        biter_init(&list.iter, bval_doc(&doc_list));
        assert_true(pipeline_compile(&arena, bval_doc(&stage_list), NULL, &pipeline, &err));
        struct pipeline_run *run = pipeline_run_new(pipeline, 0, (struct doc_source){next_of_list, &list}, 100);
        assert_false(pipeline_run_next(run, &doc, &err));
        assert_int_equal(err.code, 292);
        pipeline_run_free(run);
        arena_deinit(&arena);
    }
}

/* Each stage wraps what the one before gave: nothing that reads the result may have to recurse without limit. */
static void pipeline_that_nests_without_end_fails(void **state)
{
    enum { STAGES = 500 };
    static const char stage[] = "{'$replaceRoot': {'newRoot': {'a': '$$ROOT'}}},";
    (void)state;
    struct arena arena;
    struct pipeline *pipeline;
    struct err err = {0};
    struct list_source list;
    struct bdoc doc;
    arena_init(&arena);
    char *text = arena_alloc(&arena, STAGES * sizeof stage + 16);
    char *at = stpcpy(text, "[");
    for (int i = 0; i < STAGES; i++)
        at = stpcpy(at, stage);
    strcpy(at, "{'$limit': 1}]");
    struct bval stage_list = json_val(&arena, text);
    struct bval doc_list = json_val(&arena, docs);
    biter_init(&list.iter, bval_doc(&doc_list));
    assert_true(pipeline_compile(&arena, bval_doc(&stage_list), NULL, &pipeline, &err));
    struct pipeline_run *run =
        pipeline_run_new(pipeline, 0, (struct doc_source){next_of_list, &list}, PIPELINE_MEMORY_LIMIT_BYTES);
    assert_false(pipeline_run_next(run, &doc, &err));
    assert_int_equal(err.code, ERR_Overflow);
    pipeline_run_free(run);
    arena_deinit(&arena);
}

/* Few documents use a name twice; the last one counts, and the first leaves nothing behind. */
static void pipeline_option_given_twice_counts_once(void **state)
{
    (void)state;
    check("[{'$bucketAuto': {'groupBy': '$n', 'buckets': 1, 'output': {'a': {'$sum': 1}, 'b': {'$sum': 1}},"
          " 'output': {'z': {'$sum': '$n'}}}}]",
          docs, "[{'_id': {'min': 1, 'max': 5}, 'z': 8.5}]");
    struct arena arena;
    struct pipeline *pipeline;
    struct err err = {0};
    arena_init(&arena);
    struct bval list = json_val(
        &arena, "[{'$lookup': {'from': 'o', 'as': 'j', 'let': {'a': 1, 'b': 2, 'c': 3}, 'pipeline': [], 'let': {}}}]");
    assert_true(pipeline_compile(&arena, bval_doc(&list), NULL, &pipeline, &err));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline_option_given_twice_counts_once),
        cmocka_unit_test(pipeline_stages_of_one_document),
        cmocka_unit_test(pipeline_stages_of_the_whole_stream),
        cmocka_unit_test(pipeline_accumulators_that_keep_n_values),
        cmocka_unit_test(pipeline_malformed_fails_with_code),
        cmocka_unit_test(pipeline_beyond_its_memory_fails_with_292),
        cmocka_unit_test(pipeline_that_nests_without_end_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
