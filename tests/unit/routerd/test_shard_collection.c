#include "support.h"

#include "query/filter.h"
#include "routerd/shard_collection.h"

static struct shardkey *key_of(struct arena *arena, const char *pattern)
{
    struct shardkey *key;
    struct err err;
    assert_true(shardkey_parse(json_doc(arena, pattern), &key, &err));
    return key;
}

static int32_t check(const char *pattern, const char *indexes)
{
    struct arena arena;
    struct err err = {0};
    struct bval list;
    arena_init(&arena);
    struct shardkey *key = key_of(&arena, pattern);
    assert_true(bdoc_find(json_doc(&arena, indexes), "i", &list));
    bool ok = shard_collection_check_unique(key, bval_doc(&list), &err);
    shardkey_unref(key);
    arena_deinit(&arena);
    return ok ? 0 : err.code;
}

#define ID "{\"v\": 2, \"key\": {\"_id\": 1}, \"name\": \"_id_\"}"

static void shard_collection_unique_index_without_the_key_is_refused(void **state)
{
    (void)state;
    const char *other = "{\"i\": [" ID ", {\"key\": {\"e\": 1}, \"name\": \"e_1\", \"unique\": true}]}";
    assert_int_equal(check("{\"a\": 1}", other), ERR_InvalidOptions);
    assert_int_equal(check("{\"e\": 1, \"a\": 1}", other), ERR_InvalidOptions);
}

static void shard_collection_indexes_that_stay_unique_are_fine(void **state)
{
    (void)state;
    const char *indexes = "{\"i\": [" ID ", {\"key\": {\"e\": 1, \"f\": 1}, \"name\": \"x\", \"unique\": true},"
                          " {\"key\": {\"g\": 1}, \"name\": \"g_1\"}]}";
    assert_int_equal(check("{\"e\": 1}", indexes), 0);
    assert_int_equal(check("{\"e\": \"hashed\"}", indexes), 0);
    assert_int_equal(check("{\"a\": 1}", "{\"i\": [" ID "]}"), 0);
}

static bool misfits(struct arena *arena, const char *pattern, const char *doc)
{
    struct filter *filter;
    struct filter_match match = {.array_index = -1};
    struct err err;
    bool matched;
    bson_t spec = BSON_INITIALIZER;
    struct shardkey *key = key_of(arena, pattern);
    shard_collection_misfits(key, &spec);
    assert_true(filter_compile(arena, bdoc_of(&spec), NULL, &filter, &err));
    assert_true(filter_eval(filter, json_doc(arena, doc), &match, &matched, &err));
    /* The rule is the one by which documents get their places. */
    struct buf bytes = BUF_INIT;
    assert_int_equal(matched, !shardkey_encode_doc(key, json_doc(arena, doc), &bytes, &err));
    buf_deinit(&bytes);
    filter_release(filter);
    shardkey_unref(key);
    bson_destroy(&spec);
    return matched;
}

static void shard_collection_misfits_are_those_with_arrays_in_the_key(void **state)
{
    struct arena arena;
    (void)state;
    arena_init(&arena);
    assert_true(misfits(&arena, "{\"a\": 1}", "{\"a\": [1]}"));
    assert_true(misfits(&arena, "{\"a\": 1, \"b.c\": 1}", "{\"b\": [{\"c\": 1}]}"));
    assert_true(misfits(&arena, "{\"b.c\": \"hashed\"}", "{\"b\": {\"c\": []}}"));
    assert_false(misfits(&arena, "{\"a\": 1, \"b.c\": 1}", "{\"a\": 1, \"b\": {\"c\": 2, \"d\": [1]}}"));
    assert_false(misfits(&arena, "{\"a\": 1}", "{}"));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shard_collection_unique_index_without_the_key_is_refused),
        cmocka_unit_test(shard_collection_indexes_that_stay_unique_are_fine),
        cmocka_unit_test(shard_collection_misfits_are_those_with_arrays_in_the_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
