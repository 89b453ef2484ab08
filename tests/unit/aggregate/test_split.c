#include "aggregate/pipeline.h"

#include "base/random.h"
#include "tests/unit/aggregate/replay.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

#include <string.h>

enum {
    SHARDS = 3,
};

/* Documents one after the other in a buffer. */
struct docs {
    struct buf bytes;
    size_t at;
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

static void add_doc(struct docs *docs, struct bdoc doc)
{
    buf_append(&docs->bytes, doc.data, doc.len);
}

static void run_stages(struct arena *arena, struct bdoc stages, struct docs *in, struct docs *out)
{
    struct pipeline *pipeline;
    struct err err = {0};
    struct bdoc doc;
    in->at = 0;
    if (!pipeline_compile(arena, stages, NULL, &pipeline, &err))
        fail_msg("%s: %d %s", json_text(arena, stages), err.code, err.msg);
    struct pipeline_run *run =
        pipeline_run_new(pipeline, 0, (struct doc_source){next_of_docs, in}, PIPELINE_MEMORY_LIMIT_BYTES);
    for (;;) {
        if (!pipeline_run_next(run, &doc, &err))
            fail_msg("%s: %d %s", json_text(arena, stages), err.code, err.msg);
        if (doc.data == NULL)
            break;
        add_doc(out, doc);
    }
    pipeline_run_free(run);
}

/* What a router does with the shards' streams: one after the other, or merged by sort keys. */
static void merge_streams(struct arena *arena, struct docs *shards, struct bdoc sort, struct docs *out)
{
    struct sort_spec *spec = NULL;
    struct err err;
    struct bdoc doc;
    struct sort_item item;
    struct sorter *sorter = sorter_new(&(struct sorter_options){.memory_limit_bytes = SORT_MEMORY_LIMIT_BYTES});
    if (sort.data != NULL)
        assert_true(sort_spec_compile(arena, sort, NULL, &spec, &err));
    for (int i = 0; i < SHARDS; i++) {
        struct buf last = BUF_INIT;
        shards[i].at = 0;
        while (next_of_docs(&shards[i], &doc, &err) && doc.data != NULL) {
            struct buf key = BUF_INIT;
            if (spec != NULL)
                assert_true(sort_key_append(spec, doc, &key, &err));
            /* Each stream must come sorted, or a merge would be wrong. */
            if (last.len > 0)
                assert_true(memcmp(last.data, key.data, last.len < key.len ? last.len : key.len) <= 0);
            assert_true(sorter_add(sorter, key.data, key.len, doc, 0, &err));
            buf_deinit(&last);
            last = key;
        }
        buf_deinit(&last);
    }
    bool found = true;
    assert_true(sorter_finish(sorter, &err));
    while (sorter_next(sorter, &item, &found, &err) && found)
        add_doc(out, item.doc);
    sorter_free(sorter);
}

static void as_array(const struct docs *docs, bson_t *out)
{
    struct docs copy = *docs;
    struct bdoc doc;
    struct err err;
    char key[16];
    copy.at = 0;
    bson_init(out);
    for (int i = 0; next_of_docs(&copy, &doc, &err) && doc.data != NULL; i++) {
        struct bval val = bval_from_doc(doc);
        snprintf(key, sizeof key, "%d", i);
        bval_append(out, key, -1, &val);
    }
}

static void check_same(struct arena *arena, const char *stages, const struct docs *whole, const struct docs *split,
                       bool ordered)
{
    static const uint8_t array_type = BT_ARRAY;
    /* Which of several equal numbers a set or a minimum keeps depends on the order. */
    struct replay_flags flags = {.unordered = !ordered, .numeric_classes = true, .tolerance = 1e-12};
    bson_t a;
    bson_t b;
    as_array(whole, &a);
    as_array(split, &b);
    struct bdoc x = bdoc_of(&a);
    struct bdoc y = bdoc_of(&b);
    struct bval want = {.type = array_type, .len = x.len, .data = x.data};
    struct bval got = {.type = array_type, .len = y.len, .data = y.data};
    struct bval sets = json_val(arena, "['set', 'list']");
    flags.unordered_arrays = bval_doc(&sets);
    if (!replay_equal(&want, &got, &flags))
        fail_msg("%s\n  whole %s\n  split %s", stages, json_text(arena, x), json_text(arena, y));
    bson_destroy(&a);
    bson_destroy(&b);
}

static void make_docs(struct prng *prng, struct docs *whole, struct docs *shards)
{
    static const char *const keys[] = {"x", "y", "z"};
    for (int i = 0; i < 60; i++) {
        bson_t doc = BSON_INITIALIZER;
        BSON_APPEND_INT32(&doc, "_id", i);
        BSON_APPEND_UTF8(&doc, "k", keys[prng_below(prng, 3)]);
        switch (prng_below(prng, 4)) {
        case 0:
            BSON_APPEND_INT32(&doc, "n", (int32_t)prng_below(prng, 10));
            break;
        case 1:
            BSON_APPEND_DOUBLE(&doc, "n", (double)prng_below(prng, 100) / 8);
            break;
        case 2:
            BSON_APPEND_INT64(&doc, "n", INT64_MAX - (int64_t)prng_below(prng, 3));
            break;
        default:
            break;
        }
        add_doc(whole, bdoc_of(&doc));
        add_doc(&shards[prng_below(prng, SHARDS)], bdoc_of(&doc));
        bson_destroy(&doc);
    }
}

static void check_split(struct prng *prng, const char *stages, bool ordered)
{
    struct arena arena;
    struct pipeline *pipeline;
    struct pipeline_split split;
    struct err err = {0};
    struct docs whole = {0};
    struct docs shards[SHARDS] = {0};
    struct docs parts[SHARDS] = {0};
    struct docs merged = {0};
    struct docs want = {0};
    struct docs got = {0};
    arena_init(&arena);
    make_docs(prng, &whole, shards);
    struct bval list = json_val(&arena, stages);
    assert_true(pipeline_compile(&arena, bval_doc(&list), NULL, &pipeline, &err));
    assert_true(pipeline_split(pipeline, &arena, &split, &err));
    run_stages(&arena, bval_doc(&list), &whole, &want);
    for (int i = 0; i < SHARDS; i++)
        run_stages(&arena, split.shard, &shards[i], &parts[i]);
    merge_streams(&arena, parts, split.merge_sort, &merged);
    run_stages(&arena, split.merge, &merged, &got);
    check_same(&arena, stages, &want, &got, ordered);
    for (int i = 0; i < SHARDS; i++) {
        buf_deinit(&shards[i].bytes);
        buf_deinit(&parts[i].bytes);
    }
    buf_deinit(&whole.bytes);
    buf_deinit(&merged.bytes);
    buf_deinit(&want.bytes);
    buf_deinit(&got.bytes);
    arena_deinit(&arena);
}

static void split_gives_what_one_server_gives(void **state)
{
    static const struct {
        const char *stages;
        bool ordered;
    } cases[] = {
        {"[{'$match': {'n': {'$gt': 3}}}, {'$project': {'n': 1}}]", false},
        {"[{'$sort': {'n': -1, '_id': 1}}, {'$skip': 5}, {'$limit': 7}, {'$project': {'_id': 1}}]", true},
        {"[{'$sort': {'k': 1, '_id': -1}}, {'$match': {'n': {'$exists': true}}}]", true},
        {"[{'$match': {'k': 'x'}}, {'$count': 'c'}]", false},
        {"[{'$match': {'k': 'nope'}}, {'$count': 'c'}]", false},
        {"[{'$group': {'_id': '$k', 's': {'$sum': '$n'}, 'a': {'$avg': '$n'}, 'lo': {'$min': '$n'}, 'hi': {'$max': "
         "'$n'},"
         " 'c': {'$count': {}}, 'set': {'$addToSet': '$n'}, 'list': {'$push': '$_id'}}}, {'$sort': {'_id': 1}}]",
         true},
        {"[{'$group': {'_id': null, 'd': {'$stdDevPop': '$_id'}, 'e': {'$stdDevSamp': '$_id'}}}]", false},
        {"[{'$sort': {'_id': 1}}, {'$group': {'_id': '$k', 'f': {'$first': '$_id'}, 'l': {'$last': '$_id'}}}]", false},
        {"[{'$group': {'_id': '$k', 'n': {'$sum': 1}}}, {'$group': {'_id': null, 'all': {'$sum': '$n'}}}]", false},
        {"[{'$sortByCount': '$k'}, {'$group': {'_id': null, 'n': {'$sum': '$count'}}}]", false},
        {"[{'$sort': {'_id': 1}}, {'$limit': 10}, {'$group': {'_id': '$k', 'n': {'$sum': 1}}}, {'$match': {'n': "
         "{'$gt': 1}}}]",
         false},
        {"[{'$facet': {'a': [{'$count': 'n'}]}}]", false},
        {"[{'$group': {'_id': '$k', 'm': {'$median': {'input': '$_id', 'method': 'approximate'}}, 'p': {'$percentile': "
         "{'input': '$_id', 'p': [0, 0.3, 1], 'method': 'approximate'}}, 'lo': {'$minN': {'n': 3, 'input': '$_id'}}, "
         "'hi': {'$maxN': {'n': 2, 'input': '$_id'}}, 't': {'$top': {'sortBy': {'_id': -1}, 'output': '$_id'}}, 'tn': "
         "{'$topN': {'n': 4, 'sortBy': {'n': 1, '_id': 1}, 'output': ['$n', '$_id']}}, 'bn': {'$bottomN': {'n': 4, "
         "'sortBy': {'n': 1, '_id': 1}, 'output': '$_id'}}}}]",
         false},
    };
    struct prng prng = {99};
    (void)state;
    for (int round = 0; round < 15; round++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            check_split(&prng, cases[i].stages, cases[i].ordered);
}

static void split_pushes_work_to_the_shards(void **state)
{
    static const struct {
        const char *stages;
        const char *shard;
        const char *merge;
    } cases[] = {
        {"[{'$match': {'a': 1}}, {'$limit': 5}]", "{'0': {'$match': {'a': 1}}, '1': {'$limit': {'$numberLong': '5'}}}",
         "{'0': {'$limit': 5}}"},
        {"[{'$skip': 3}, {'$limit': 5}]", "{'0': {'$limit': {'$numberLong': '8'}}}",
         "{'0': {'$skip': 3}, '1': {'$limit': 5}}"},
        {"[{'$skip': 3}]", "{}", "{'0': {'$skip': 3}}"},
        {"[{'$sort': {'a': 1}}, {'$limit': 2}]", "{'0': {'$sort': {'a': 1}}, '1': {'$limit': {'$numberLong': '2'}}}",
         "{'0': {'$limit': 2}}"},
        {"[{'$group': {'_id': '$a'}}]", "{'0': {'$_internalGroupPartial': {'_id': '$a'}}}",
         "{'0': {'$_internalGroupMerge': {'_id': '$a'}}}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena;
        struct pipeline *pipeline;
        struct pipeline_split split;
        struct err err = {0};
        arena_init(&arena);
        struct bval list = json_val(&arena, cases[i].stages);
        assert_true(pipeline_compile(&arena, bval_doc(&list), NULL, &pipeline, &err));
        assert_true(pipeline_split(pipeline, &arena, &split, &err));
        json_assert_same(&arena, split.shard, cases[i].shard, cases[i].stages);
        json_assert_same(&arena, split.merge, cases[i].merge, cases[i].stages);
        arena_deinit(&arena);
    }
}

static void lead_takes_match_sort_skip_and_limit(void **state)
{
    struct arena arena;
    struct pipeline *pipeline;
    struct pipeline_lead lead;
    struct err err = {0};
    (void)state;
    arena_init(&arena);
    struct bval list =
        json_val(&arena, "[{'$match': {'a': 1}}, {'$sort': {'b': 1}}, {'$match': {'c': 2}}, {'$skip': 1},"
                         " {'$limit': 4}, {'$project': {'a': 1}}]");
    assert_true(pipeline_compile(&arena, bval_doc(&list), NULL, &pipeline, &err));
    pipeline_lead(pipeline, &arena, &lead);
    json_assert_same(&arena, lead.match, "{'$and': [{'a': 1}, {'c': 2}]}", "match");
    json_assert_same(&arena, lead.sort, "{'b': 1}", "sort");
    assert_int_equal(lead.skip, 1);
    assert_int_equal(lead.limit, 4);
    assert_int_equal(lead.stage_count, 5);
    arena_deinit(&arena);
}

/* States come over the network: nonsense is an error. */
static void merge_of_a_malformed_state_is_refused(void **state)
{
    static const char *const states[] = {"{'_id': 1, 's': 5}", "{'_id': 1, 's': {}}", "{'_id': 1}",
                                         "{'_id': 1, 's': {'t': 77, 'i': 1, 'n': 1, 'h': 0, 'l': 0}}"};
    (void)state;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct arena arena;
        struct pipeline *pipeline;
        struct err err = {0};
        struct docs in = {0};
        struct bdoc doc;
        arena_init(&arena);
        add_doc(&in, json_doc(&arena, states[i]));
        struct bval list = json_val(&arena, "[{'$_internalGroupMerge': {'_id': 1, 's': {'$sum': '$x'}}}]");
        assert_true(pipeline_compile(&arena, bval_doc(&list), NULL, &pipeline, &err));
        struct pipeline_run *run = pipeline_run_new(pipeline, 0, (struct doc_source){next_of_docs, &in}, 1 << 20);
        assert_false(pipeline_run_next(run, &doc, &err));
        assert_int_equal(err.code, 9);
        pipeline_run_free(run);
        buf_deinit(&in.bytes);
        arena_deinit(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_gives_what_one_server_gives),
        cmocka_unit_test(split_pushes_work_to_the_shards),
        cmocka_unit_test(lead_takes_match_sort_skip_and_limit),
        cmocka_unit_test(merge_of_a_malformed_state_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
