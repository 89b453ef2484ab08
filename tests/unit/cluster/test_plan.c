#include "support.h"

#include "cluster/plan.h"

static const char *const shards[] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6"};

struct plan_case {
    const char *pattern;
    size_t shard_count;
    bool empty;
    int64_t initial;
};

static bool make(struct arena *arena, const struct plan_case *wanted, struct chunk_plan *plan, struct err *err)
{
    struct shardkey *key = json_key(arena, wanted->pattern);
    struct chunk_plan_input input = {.key = key,
                                     .shards = shards,
                                     .shard_count = wanted->shard_count,
                                     .empty = wanted->empty,
                                     .initial_chunks = wanted->initial};
    bool ok = chunk_plan_make(&input, plan, err);
    shardkey_unref(key);
    return ok;
}

/* MinKey to MaxKey, each bound the next one's start, every chunk below its successor. */
static void check_contiguous(struct arena *arena, const char *pattern, const struct chunk_plan *plan)
{
    struct shardkey *key = json_key(arena, pattern);
    assert_true(shardkey_bound_is_global_min(key, plan->items[0].min));
    assert_true(shardkey_bound_is_global_max(key, plan->items[plan->count - 1].max));
    for (size_t i = 0; i < plan->count; i++) {
        struct buf min = BUF_INIT;
        struct buf max = BUF_INIT;
        struct err err;
        assert_true(shardkey_encode_bound(key, plan->items[i].min, &min, &err));
        assert_true(shardkey_encode_bound(key, plan->items[i].max, &max, &err));
        assert_true(key_bytes_compare(key_bytes_of(&min), key_bytes_of(&max)) < 0);
        if (i > 0) {
            assert_true(bdoc_same(plan->items[i - 1].max, plan->items[i].min));
        }
        buf_deinit(&min);
        buf_deinit(&max);
    }
    shardkey_unref(key);
}

static void plan_hashed_spreads_evenly(void **state)
{
    (void)state;
    for (size_t shard_count = 1; shard_count <= 7; shard_count++) {
        for (int64_t initial = 0; initial <= 40; initial++) {
            struct arena arena;
            struct chunk_plan plan;
            struct err err;
            struct plan_case wanted = {"{\"a\": \"hashed\", \"b\": 1}", shard_count, true, initial};
            arena_init(&arena);
            assert_true(make(&arena, &wanted, &plan, &err));
            assert_int_equal(plan.count, initial == 0 ? 2 * shard_count : (size_t)initial);
            check_contiguous(&arena, "{\"a\": \"hashed\", \"b\": 1}", &plan);
            size_t counts[7] = {0};
            for (size_t i = 0; i < plan.count; i++) {
                counts[plan.items[i].shard]++;
            }
            for (size_t i = 0; i < shard_count; i++) {
                assert_true(counts[i] >= plan.count / shard_count);
                assert_true(counts[i] <= (plan.count + shard_count - 1) / shard_count);
            }
            chunk_plan_deinit(&plan);
            arena_deinit(&arena);
        }
    }
}

static void plan_hashed_on_three_shards_cuts_where_mongodb_does(void **state)
{
    (void)state;
    struct arena arena;
    struct chunk_plan plan;
    struct err err;
    arena_init(&arena);
    assert_true(make(&arena, &(struct plan_case){"{\"a\": \"hashed\"}", 3, true, 0}, &plan, &err));
    const int64_t points[] = {-6148914691236517204, -3074457345618258602, 0, 3074457345618258602, 6148914691236517204};
    const size_t owners[] = {0, 0, 1, 1, 2, 2};
    assert_int_equal(plan.count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(plan.items[i].shard, owners[i]);
        if (i > 0) {
            struct bval val;
            assert_true(bdoc_find(plan.items[i].min, "a", &val));
            assert_true(bval_i64(&val) == points[i - 1]);
        }
    }
    chunk_plan_deinit(&plan);
    arena_deinit(&arena);
}

static void plan_single_chunk_on_the_first_shard(void **state)
{
    (void)state;
    const struct plan_case cases[] = {{"{\"a\": 1}", 3, true, 0},
                                      {"{\"a\": 1}", 3, false, 0},
                                      {"{\"a\": \"hashed\"}", 3, false, 0},
                                      {"{\"b\": 1, \"a\": \"hashed\"}", 3, true, 0}};
    for (size_t i = 0; i < 4; i++) {
        struct arena arena;
        struct chunk_plan plan;
        struct err err;
        arena_init(&arena);
        assert_true(make(&arena, &cases[i], &plan, &err));
        assert_int_equal(plan.count, 1);
        assert_int_equal(plan.items[0].shard, 0);
        check_contiguous(&arena, cases[i].pattern, &plan);
        chunk_plan_deinit(&plan);
        arena_deinit(&arena);
    }
}

static void plan_refuses_chunk_numbers_that_mean_nothing(void **state)
{
    (void)state;
    const struct plan_case cases[] = {{"{\"a\": 1}", 3, true, 4},
                                      {"{\"a\": \"hashed\"}", 3, false, 4},
                                      {"{\"a\": \"hashed\"}", 3, true, -1},
                                      {"{\"a\": \"hashed\"}", 3, true, PLAN_MAX_CHUNKS + 1},
                                      {"{\"a\": \"hashed\"}", 3, true, INT64_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena;
        struct chunk_plan plan;
        struct err err;
        arena_init(&arena);
        assert_false(make(&arena, &cases[i], &plan, &err));
        assert_int_equal(err.code, ERR_InvalidOptions);
        arena_deinit(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan_hashed_spreads_evenly),
        cmocka_unit_test(plan_hashed_on_three_shards_cuts_where_mongodb_does),
        cmocka_unit_test(plan_single_chunk_on_the_first_shard),
        cmocka_unit_test(plan_refuses_chunk_numbers_that_mean_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
