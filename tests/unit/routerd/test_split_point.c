#include "support.h"

#include "query/filter.h"
#include "routerd/split_point.h"

/* Whether documents {a, b} around the bounds fall in or out as the key order says. */
static void split_range_filter_compound_key_compares_like_the_key(void **state)
{
    (void)state;
    struct arena arena;
    struct shardkey *key;
    struct filter *filter;
    struct err err;
    bson_t query = BSON_INITIALIZER;
    arena_init(&arena);
    assert_true(shardkey_parse(json_doc(&arena, "{\"a\": 1, \"b\": 1}"), &key, &err));
    struct bdoc min = json_doc(&arena, "{\"a\": 2, \"b\": 5}");
    struct bdoc max = json_doc(&arena, "{\"a\": 4, \"b\": 1}");
    split_range_filter(key, min, max, &query);
    assert_true(filter_compile(&arena, bdoc_of(&query), NULL, &filter, &err));
    for (int a = 0; a < 7; a++) {
        for (int b = 0; b < 7; b++) {
            bson_t doc = BSON_INITIALIZER;
            BSON_APPEND_INT32(&doc, "a", a);
            BSON_APPEND_INT32(&doc, "b", b);
            bool inside = (a > 2 || (a == 2 && b >= 5)) && (a < 4 || (a == 4 && b < 1));
            assert_int_equal(filter_matches(filter, bdoc_of(&doc)), inside);
            bson_destroy(&doc);
        }
    }
    filter_release(filter);
    shardkey_unref(key);
    bson_destroy(&query);
    arena_deinit(&arena);
}

static void split_range_filter_whole_range_is_empty(void **state)
{
    (void)state;
    struct arena arena;
    struct shardkey *key;
    struct err err;
    bson_t query = BSON_INITIALIZER;
    arena_init(&arena);
    assert_true(shardkey_parse(json_doc(&arena, "{\"a\": 1}"), &key, &err));
    split_range_filter(key, json_doc(&arena, "{\"a\": {\"$minKey\": 1}}"),
                       json_doc(&arena, "{\"a\": {\"$maxKey\": 1}}"), &query);
    assert_int_equal(bson_count_keys(&query), 0);
    shardkey_unref(key);
    bson_destroy(&query);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_range_filter_compound_key_compares_like_the_key),
        cmocka_unit_test(split_range_filter_whole_range_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
