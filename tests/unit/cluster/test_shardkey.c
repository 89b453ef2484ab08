#include "support.h"

#include "bson/hash.h"

static int arena_setup(void **state)
{
    struct arena *arena = malloc(sizeof *arena);
    arena_init(arena);
    *state = arena;
    return 0;
}

static int arena_teardown(void **state)
{
    arena_deinit(*state);
    free(*state);
    return 0;
}

static void shardkey_parse_takes_the_four_kinds(void **state)
{
    const char *good[] = {"{\"a\": 1}", "{\"a\": 1.0, \"b.c\": 1}", "{\"_id\": \"hashed\"}",
                          "{\"a\": \"hashed\", \"b\": 1}", "{\"a\": 1, \"b\": \"hashed\", \"c\": 1}"};
    size_t hashed[] = {SIZE_MAX, SIZE_MAX, 0, 0, 1};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct shardkey *key = json_key(*state, good[i]);
        assert_true(shardkey_hashed_field(key) == hashed[i]);
        assert_true(bdoc_same(shardkey_pattern(key), json_doc(*state, good[i])));
        shardkey_unref(key);
    }
}

static void shardkey_parse_refuses_bad_patterns(void **state)
{
    const char *bad[] = {"{}",
                         "{\"a\": -1}",
                         "{\"a\": 2}",
                         "{\"a\": \"text\"}",
                         "{\"a\": true}",
                         "{\"a\": \"hashed\", \"b\": \"hashed\"}",
                         "{\"\": 1}",
                         "{\"a..b\": 1}",
                         "{\".a\": 1}",
                         "{\"a.\": 1}",
                         "{\"$a\": 1}",
                         "{\"a.$b\": 1}",
                         "{\"a\": 1, \"a\": 1}",
                         "{\"a\": 1, \"a.b\": 1}",
                         "{\"a.b.c\": 1, \"a.b\": 1}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct shardkey *key;
        struct err err;
        if (shardkey_parse(json_doc(*state, bad[i]), &key, &err)) {
            fail_msg("accepted %s", bad[i]);
        }
        assert_int_equal(err.code, ERR_BadValue);
    }
    struct shardkey *key = json_key(*state, "{\"a.b\": 1, \"a.bc\": 1, \"ab\": 1}");
    assert_int_equal(shardkey_field_count(key), 3);
    shardkey_unref(key);
}

static void shardkey_equal_ignores_number_types(void **state)
{
    struct shardkey *a = json_key(*state, "{\"a\": 1, \"b\": 1}");
    struct shardkey *b = json_key(*state, "{\"a\": 1.0, \"b\": {\"$numberLong\": \"1\"}}");
    struct shardkey *c = json_key(*state, "{\"b\": 1, \"a\": 1}");
    struct shardkey *d = json_key(*state, "{\"a\": \"hashed\", \"b\": 1}");
    assert_true(shardkey_equal(a, b));
    assert_false(shardkey_equal(a, c));
    assert_false(shardkey_equal(a, d));
    shardkey_unref(a);
    shardkey_unref(b);
    shardkey_unref(c);
    shardkey_unref(d);
}

static void check_extract(struct arena *arena, const struct shardkey *key, const char *json, const char *expected)
{
    bson_t out = BSON_INITIALIZER;
    struct err err;
    if (!shardkey_extract(key, json_doc(arena, json), &out, &err)) {
        fail_msg("%s: %s", json, err.msg);
    }
    assert_true(bdoc_same(bdoc_of(&out), json_doc(arena, expected)));
    bson_destroy(&out);
}

static void shardkey_extract_takes_missing_for_null(void **state)
{
    struct shardkey *key = json_key(*state, "{\"a\": 1, \"b.c\": 1}");
    check_extract(*state, key, "{\"b\": {\"x\": 0, \"c\": \"t\"}, \"a\": 5}", "{\"a\": 5, \"b.c\": \"t\"}");
    check_extract(*state, key, "{\"a\": null}", "{\"a\": null, \"b.c\": null}");
    check_extract(*state, key, "{\"b\": 7}", "{\"a\": null, \"b.c\": null}");
    check_extract(*state, key, "{\"b\": {\"c\": {\"d\": 1}}}", "{\"a\": null, \"b.c\": {\"d\": 1}}");
    shardkey_unref(key);
}

static void shardkey_extract_refuses_arrays_by_name(void **state)
{
    struct shardkey *key = json_key(*state, "{\"a\": 1, \"b.c\": 1}");
    const char *bad[] = {"{\"a\": [1]}", "{\"a\": []}", "{\"b\": [{\"c\": 1}]}", "{\"b\": {\"c\": [1]}}"};
    const char *named[] = {"'a'", "'a'", "'b' of 'b.c'", "'b.c'"};
    for (size_t i = 0; i < 4; i++) {
        bson_t out = BSON_INITIALIZER;
        struct buf buf = BUF_INIT;
        struct err err;
        assert_false(shardkey_extract(key, json_doc(*state, bad[i]), &out, &err));
        assert_int_equal(err.code, ERR_ShardKeyNotFound);
        assert_non_null(strstr(err.msg, named[i]));
        assert_false(shardkey_encode_doc(key, json_doc(*state, bad[i]), &buf, &err));
        assert_int_equal(buf.len, 0);
        bson_destroy(&out);
        buf_deinit(&buf);
    }
    shardkey_unref(key);
}

static void shardkey_hashed_component_is_the_values_hash(void **state)
{
    struct shardkey *key = json_key(*state, "{\"a\": \"hashed\", \"b\": 1}");
    bson_t out = BSON_INITIALIZER;
    struct err err;
    struct bdoc doc = json_doc(*state, "{\"a\": \"word\", \"b\": 3}");
    struct bval val;
    bdoc_find(doc, "a", &val);
    assert_true(shardkey_extract(key, doc, &out, &err));
    struct bval hash;
    bdoc_find(bdoc_of(&out), "a", &hash);
    assert_int_equal(hash.type, BT_INT64);
    assert_true(bval_i64(&hash) == bval_hash(&val));

    /* The stored form of a bound and the document's own key are the same bytes. */
    struct buf bound = BUF_INIT;
    assert_true(shardkey_encode_bound(key, bdoc_of(&out), &bound, &err));
    struct key_bytes from_doc = json_doc_key(*state, key, "{\"b\": 3.0, \"a\": \"word\"}");
    assert_int_equal(key_bytes_compare(from_doc, key_bytes_of(&bound)), 0);
    buf_deinit(&bound);
    bson_destroy(&out);
    shardkey_unref(key);
}

static void shardkey_encoding_orders_like_the_values(void **state)
{
    struct shardkey *key = json_key(*state, "{\"a\": 1, \"b\": 1}");
    const char *sorted[] = {"{\"a\": {\"$minKey\": 1}, \"b\": {\"$minKey\": 1}}",
                            "{\"a\": null, \"b\": 5}",
                            "{\"a\": -1, \"b\": \"z\"}",
                            "{\"a\": 1, \"b\": {\"$minKey\": 1}}",
                            "{\"a\": 1, \"b\": 2}",
                            "{\"a\": 1.5, \"b\": 1}",
                            "{\"a\": \"a\", \"b\": 1}",
                            "{\"a\": \"ab\", \"b\": 0}",
                            "{\"a\": {\"$oid\": \"000000000000000000000001\"}, \"b\": 0}",
                            "{\"a\": {\"$maxKey\": 1}, \"b\": 0}",
                            "{\"a\": {\"$maxKey\": 1}, \"b\": {\"$maxKey\": 1}}"};
    for (size_t i = 1; i < sizeof sorted / sizeof sorted[0]; i++) {
        assert_true(key_bytes_compare(json_bound(*state, key, sorted[i - 1]), json_bound(*state, key, sorted[i])) < 0);
    }
    shardkey_unref(key);
}

static void shardkey_maxkey_document_lies_below_the_global_bound(void **state)
{
    struct shardkey *key = json_key(*state, "{\"a\": 1}");
    struct key_bytes end = json_bound(*state, key, "{\"a\": {\"$maxKey\": 1}}");
    struct key_bytes begin = json_bound(*state, key, "{\"a\": {\"$minKey\": 1}}");
    assert_true(key_bytes_compare(json_doc_key(*state, key, "{\"a\": {\"$maxKey\": 1}}"), end) < 0);
    assert_true(key_bytes_compare(begin, json_doc_key(*state, key, "{\"a\": {\"$minKey\": 1}}")) <= 0);
    shardkey_unref(key);
}

static void shardkey_prefix_end_lies_behind_every_extension(void **state)
{
    struct shardkey *key = json_key(*state, "{\"a\": 1, \"b\": 1}");
    struct bdoc doc = json_doc(*state, "{\"a\": 5}");
    struct bval five;
    struct err err;
    bdoc_find(doc, "a", &five);
    struct buf prefix = BUF_INIT;
    assert_true(shardkey_encode_component(key, 0, &five, &prefix, &err));
    struct key_bytes low = json_doc_key(*state, key, "{\"a\": 5, \"b\": {\"$minKey\": 1}}");
    struct key_bytes high = json_doc_key(*state, key, "{\"a\": 5, \"b\": {\"$maxKey\": 1}}");
    assert_true(key_bytes_compare(key_bytes_of(&prefix), low) <= 0);
    buf_append_u8(&prefix, KEY_AFTER_PREFIX);
    assert_true(key_bytes_compare(high, key_bytes_of(&prefix)) < 0);
    assert_true(key_bytes_compare(key_bytes_of(&prefix), json_doc_key(*state, key, "{\"a\": 6}")) < 0);
    buf_deinit(&prefix);
    shardkey_unref(key);
}

static void shardkey_encode_bound_refuses_what_does_not_fit(void **state)
{
    struct shardkey *key = json_key(*state, "{\"a\": \"hashed\", \"b\": 1}");
    const char *bad[] = {"{}",
                         "{\"a\": {\"$numberLong\": \"1\"}}",
                         "{\"b\": 1, \"a\": {\"$numberLong\": \"1\"}}",
                         "{\"a\": 1, \"b\": 1}",
                         "{\"a\": {\"$numberLong\": \"1\"}, \"b\": [1]}",
                         "{\"a\": {\"$numberLong\": \"1\"}, \"b\": 1, \"c\": 1}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct buf buf = BUF_INIT;
        struct err err;
        if (shardkey_encode_bound(key, json_doc(*state, bad[i]), &buf, &err)) {
            fail_msg("accepted %s", bad[i]);
        }
        assert_int_equal(err.code, ERR_BadValue);
        assert_int_equal(buf.len, 0);
        buf_deinit(&buf);
    }
    shardkey_unref(key);
}

static void shardkey_extend_bound_fills_with_minkey(void **state)
{
    struct shardkey *key = json_key(*state, "{\"a\": 1, \"b\": 1}");
    bson_t out = BSON_INITIALIZER;
    struct err err;
    assert_true(shardkey_extend_bound(key, json_doc(*state, "{\"a\": 4}"), &out, &err));
    assert_true(bdoc_same(bdoc_of(&out), json_doc(*state, "{\"a\": 4, \"b\": {\"$minKey\": 1}}")));
    bson_reinit(&out);
    assert_false(shardkey_extend_bound(key, json_doc(*state, "{\"b\": 4}"), &out, &err));
    bson_destroy(&out);
    shardkey_unref(key);
}

static void shardkey_is_prefix_of_decides_about_unique_indexes(void **state)
{
    struct shardkey *key = json_key(*state, "{\"a\": \"hashed\", \"b\": 1}");
    assert_true(shardkey_is_prefix_of(key, json_doc(*state, "{\"a\": 1, \"b\": 1}")));
    assert_true(shardkey_is_prefix_of(key, json_doc(*state, "{\"b\": -1, \"a\": 1, \"c\": 1}")));
    assert_false(shardkey_is_prefix_of(key, json_doc(*state, "{\"a\": 1, \"c\": 1, \"b\": 1}")));
    assert_false(shardkey_is_prefix_of(key, json_doc(*state, "{\"a\": 1}")));
    shardkey_unref(key);
}

#define ARENA_TEST(name) cmocka_unit_test_setup_teardown(name, arena_setup, arena_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(shardkey_parse_takes_the_four_kinds),
        ARENA_TEST(shardkey_parse_refuses_bad_patterns),
        ARENA_TEST(shardkey_equal_ignores_number_types),
        ARENA_TEST(shardkey_extract_takes_missing_for_null),
        ARENA_TEST(shardkey_extract_refuses_arrays_by_name),
        ARENA_TEST(shardkey_hashed_component_is_the_values_hash),
        ARENA_TEST(shardkey_encoding_orders_like_the_values),
        ARENA_TEST(shardkey_maxkey_document_lies_below_the_global_bound),
        ARENA_TEST(shardkey_prefix_end_lies_behind_every_extension),
        ARENA_TEST(shardkey_encode_bound_refuses_what_does_not_fit),
        ARENA_TEST(shardkey_extend_bound_fills_with_minkey),
        ARENA_TEST(shardkey_is_prefix_of_decides_about_unique_indexes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
