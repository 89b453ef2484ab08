/* $group and $sort beyond their memory: the same results through temporary files. */
#include "aggregate/pipeline.h"
#include "base/random.h"
#include "base/temp_space.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SMALL_LIMIT_BYTES = 40000,
};

/* Documents made from a seed: {_id: n, k: random, v: random, s: text}. */
struct made_source {
    struct prng prng;
    int count;
    int at;
    bson_t doc;
};

static bool next_made(void *arg, struct bdoc *out, struct err *err)
{
    struct made_source *source = arg;
    (void)err;
    *out = (struct bdoc){0};
    if (source->at == source->count)
        return true;
    bson_reinit(&source->doc);
    BSON_APPEND_INT32(&source->doc, "_id", source->at++);
    BSON_APPEND_INT32(&source->doc, "k", (int32_t)prng_below(&source->prng, 500));
    BSON_APPEND_INT32(&source->doc, "v", (int32_t)prng_below(&source->prng, 1000));
    BSON_APPEND_UTF8(&source->doc, "s", "some text that takes a little room");
    *out = bdoc_of(&source->doc);
    return true;
}

/* All results as one array; `space` NULL: in memory. */
static void run(const char *stages, int count, struct temp_space *space, bson_t *out)
{
    struct arena arena;
    struct pipeline *pipeline;
    struct err err = {0};
    struct bdoc doc;
    struct made_source made = {.prng = {5}, .count = count};
    bson_init(&made.doc);
    arena_init(&arena);
    struct bval list = json_val(&arena, stages);
    if (!pipeline_compile(&arena, bval_doc(&list), NULL, &pipeline, &err))
        fail_msg("%s: %d %s", stages, err.code, err.msg);
    struct pipeline_run *run = pipeline_run_new(pipeline, 0, (struct doc_source){next_made, &made},
                                                space == NULL ? PIPELINE_MEMORY_LIMIT_BYTES : SMALL_LIMIT_BYTES);
    pipeline_run_set_space(run, space);
    for (uint32_t n = 0;; n++) {
        char digits[16];
        const char *key;
        if (!pipeline_run_next(run, &doc, &err))
            fail_msg("%s: %d %s", stages, err.code, err.msg);
        if (doc.data == NULL)
            break;
        bson_uint32_to_string(n, &key, digits, sizeof digits);
        struct bval val = bval_from_doc(doc);
        bval_append(out, key, -1, &val);
    }
    if (space != NULL && temp_space_used_bytes(space) == 0)
        fail_msg("%s went without the disk", stages);

    pipeline_run_free(run);
    arena_deinit(&arena);
    bson_destroy(&made.doc);
}

static void check_same(const char *stages)
{
    char dir[] = "/tmp/sherd-spill-XXXXXX";
    struct temp_space *space;
    struct err err;
    bson_t in_memory = BSON_INITIALIZER;
    bson_t on_disk = BSON_INITIALIZER;
    assert_non_null(mkdtemp(dir));
    assert_true(temp_space_open(dir, TEMP_SPACE_DEFAULT_BYTES, &space, &err));
    run(stages, 5000, NULL, &in_memory);
    run(stages, 5000, space, &on_disk);
    assert_true(bdoc_count(bdoc_of(&in_memory)) > 0);
    if (bson_compare(&in_memory, &on_disk) != 0)
        fail_msg("%s differs", stages);
    assert_int_equal(temp_space_used_bytes(space), 0);
    temp_space_close(space);
    rmdir(dir);
    bson_destroy(&in_memory);
    bson_destroy(&on_disk);
}

static void spill_of_group_gives_the_same_groups(void **state)
{
    (void)state;
    check_same("[{'$group': {'_id': '$k', 'n': {'$sum': 1}, 'v': {'$sum': '$v'}, 'a': {'$avg': '$v'},"
               " 'lo': {'$min': '$v'}, 'hi': {'$max': '$v'}, 'first': {'$first': '$_id'}, 'last': {'$last': '$_id'},"
               " 'all': {'$push': '$v'}}}, {'$sort': {'_id': 1}}, {'$limit': 500}]");
    check_same("[{'$group': {'_id': {'k': '$k', 'v': '$v'}, 'ids': {'$push': '$_id'}}}, {'$sort': {'_id': 1}}]");
}

static void spill_of_sort_gives_the_same_order(void **state)
{
    (void)state;
    check_same("[{'$sort': {'k': -1, 'v': 1}}]");
    check_same("[{'$sort': {'v': 1}}, {'$limit': 3000}]");
}

static void group_beyond_its_memory_without_a_disk_fails_with_292(void **state)
{
    struct arena arena;
    struct pipeline *pipeline;
    struct err err = {0};
    struct bdoc doc;
    struct made_source made = {.prng = {5}, .count = 5000};
    (void)state;
    bson_init(&made.doc);
    arena_init(&arena);
    struct bval list = json_val(&arena, "[{'$group': {'_id': '$_id', 'all': {'$push': '$s'}}}]");
    assert_true(pipeline_compile(&arena, bval_doc(&list), NULL, &pipeline, &err));
    struct pipeline_run *run = pipeline_run_new(pipeline, 0, (struct doc_source){next_made, &made}, SMALL_LIMIT_BYTES);
    assert_false(pipeline_run_next(run, &doc, &err));
    assert_int_equal(err.code, 292);
    pipeline_run_free(run);
    arena_deinit(&arena);
    bson_destroy(&made.doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spill_of_group_gives_the_same_groups),
        cmocka_unit_test(spill_of_sort_gives_the_same_order),
        cmocka_unit_test(group_beyond_its_memory_without_a_disk_fails_with_292),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
