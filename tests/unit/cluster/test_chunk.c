#include "support.h"

#include "cluster/chunk.h"

struct fixture {
    struct arena arena;
    struct shardkey *key;
};

static int fixture_setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    arena_init(&fixture->arena);
    fixture->key = json_key(&fixture->arena, "{\"a\": 1}");
    *state = fixture;
    return 0;
}

static int fixture_teardown(void **state)
{
    struct fixture *fixture = *state;
    shardkey_unref(fixture->key);
    arena_deinit(&fixture->arena);
    free(fixture);
    return 0;
}

static const char *const lowest = "{\"a\": {\"$minKey\": 1}}";
static const char *const highest = "{\"a\": {\"$maxKey\": 1}}";

static struct chunk *chunk_of(struct fixture *fixture, const char *min, const char *max, int64_t minor)
{
    static const uint8_t uuid[CLUSTER_UUID_BYTES] = {3};
    bson_oid_t id = {.bytes = {(uint8_t)minor}};
    struct chunk_spec spec = {.id = &id,
                              .uuid = uuid,
                              .min = json_doc(&fixture->arena, min),
                              .max = json_doc(&fixture->arena, max),
                              .shard = "s0",
                              .version = {.epoch.bytes = {1}, .major = 1, .minor = minor},
                              .since = 42};
    struct chunk *chunk = NULL;
    struct err err;
    if (!chunk_new(fixture->key, &spec, &chunk, &err)) {
        fail_msg("%s", err.msg);
    }
    return chunk;
}

static void chunk_document_round_trips(void **state)
{
    struct fixture *fixture = *state;
    struct chunk *chunk = chunk_of(fixture, "{\"a\": 1}", "{\"a\": \"x\"}", 5);
    bson_t doc = BSON_INITIALIZER;
    chunk_append(&doc, chunk);
    struct chunk *back;
    struct err err;
    assert_true(chunk_parse(fixture->key, &chunk->version.epoch, bdoc_of(&doc), &back, &err));
    assert_true(bdoc_same(back->min, chunk->min) && bdoc_same(back->max, chunk->max));
    assert_int_equal(chunk_version_compare(&back->version, &chunk->version), VERSION_SAME);
    assert_string_equal(back->shard, "s0");
    assert_true(back->since == 42);
    assert_int_equal(key_bytes_compare(back->range.max, chunk->range.max), 0);
    chunk_unref(back);
    chunk_unref(chunk);
    bson_destroy(&doc);
}

static void chunk_document_has_the_fields_that_mongosh_reads(void **state)
{
    struct chunk *chunk = chunk_of(*state, lowest, highest, 5);
    bson_t doc = BSON_INITIALIZER;
    chunk_append(&doc, chunk);
    const char *names[] = {"_id", "uuid", "min", "max", "shard", "lastmod", "onCurrentShardSince", "history"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_true(bdoc_has(bdoc_of(&doc), names[i]));
    }
    bson_iter_t iter;
    bson_iter_t at;
    assert_true(bson_iter_init(&iter, &doc));
    assert_true(bson_iter_find_descendant(&iter, "history.0.validAfter", &at));
    assert_true(BSON_ITER_HOLDS_TIMESTAMP(&at));
    chunk_unref(chunk);
    bson_destroy(&doc);
}

static void chunk_new_refuses_min_at_or_above_max(void **state)
{
    struct fixture *fixture = *state;
    static const uint8_t uuid[CLUSTER_UUID_BYTES];
    bson_oid_t id = {0};
    struct chunk_spec spec = {.id = &id, .uuid = uuid, .min = json_doc(&fixture->arena, "{\"a\": 2}"), .shard = "s"};
    const char *bad[] = {"{\"a\": 2.0}", "{\"a\": 1}", "{\"b\": 3}", "{}"};
    for (size_t i = 0; i < 4; i++) {
        struct chunk *chunk;
        struct err err;
        spec.max = json_doc(&fixture->arena, bad[i]);
        assert_false(chunk_new(fixture->key, &spec, &chunk, &err));
        assert_int_equal(err.code, ERR_BadValue);
    }
}

static bool covers(struct fixture *fixture, const char *const *bounds, const int64_t *minors, size_t count)
{
    struct chunk *chunks[8];
    for (size_t i = 0; i < count; i++) {
        chunks[i] = chunk_of(fixture, bounds[2 * i], bounds[2 * i + 1], minors[i]);
    }
    chunks_sort(chunks, count);
    struct err err;
    bool ok = chunks_check_cover(fixture->key, chunks, count, &err);
    assert_true(ok || err.code == ERR_RangeOverlapConflict);
    for (size_t i = 0; i < count; i++) {
        chunk_unref(chunks[i]);
    }
    return ok;
}

static void chunks_check_cover_finds_holes_and_overlaps(void **state)
{
    const int64_t minors[] = {0, 1, 2};
    const char *one = "{\"a\": 1}";
    const char *two = "{\"a\": 2}";
    assert_true(covers(*state, (const char *[]){lowest, highest}, minors, 1));
    assert_true(covers(*state, (const char *[]){two, highest, lowest, one, one, two}, minors, 3));
    assert_false(covers(*state, NULL, minors, 0));
    assert_false(covers(*state, (const char *[]){lowest, one, two, highest}, minors, 2));
    assert_false(covers(*state, (const char *[]){lowest, two, one, highest}, minors, 2));
    assert_false(covers(*state, (const char *[]){one, highest}, minors, 1));
    assert_false(covers(*state, (const char *[]){lowest, one}, minors, 1));
    assert_false(covers(*state, (const char *[]){lowest, highest, lowest, one}, minors, 2));
    assert_false(covers(*state, (const char *[]){lowest, highest, lowest, highest}, minors, 2));
}

static void chunks_check_cover_refuses_equal_versions(void **state)
{
    const char *one = "{\"a\": 1}";
    const char *two = "{\"a\": 2}";
    const char *bounds[] = {lowest, one, one, two, two, highest};
    assert_true(covers(*state, bounds, (int64_t[]){4, 0, 2}, 3));
    assert_false(covers(*state, bounds, (int64_t[]){2, 0, 2}, 3));
}

static void chunks_find_gives_the_chunk_of_a_key(void **state)
{
    struct fixture *fixture = *state;
    struct chunk *chunks[] = {chunk_of(fixture, lowest, "{\"a\": 0}", 0),
                              chunk_of(fixture, "{\"a\": 0}", "{\"a\": \"k\"}", 1),
                              chunk_of(fixture, "{\"a\": \"k\"}", highest, 2)};
    struct {
        const char *doc;
        size_t index;
    } cases[] = {{"{\"a\": null}", 0},
                 {"{}", 0},
                 {"{\"a\": -0.5}", 0},
                 {"{\"a\": 0.0}", 1},
                 {"{\"a\": \"j\"}", 1},
                 {"{\"a\": \"k\"}", 2},
                 {"{\"a\": true}", 2},
                 {"{\"a\": {\"$maxKey\": 1}}", 2},
                 {"{\"a\": {\"$minKey\": 1}}", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct key_bytes key = json_doc_key(&fixture->arena, fixture->key, cases[i].doc);
        assert_int_equal(chunks_find(chunks, 3, key), cases[i].index);
    }
    for (size_t i = 0; i < 3; i++) {
        chunk_unref(chunks[i]);
    }
}

#define FIXTURE_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(chunk_document_round_trips),
        FIXTURE_TEST(chunk_document_has_the_fields_that_mongosh_reads),
        FIXTURE_TEST(chunk_new_refuses_min_at_or_above_max),
        FIXTURE_TEST(chunks_check_cover_finds_holes_and_overlaps),
        FIXTURE_TEST(chunks_check_cover_refuses_equal_versions),
        FIXTURE_TEST(chunks_find_gives_the_chunk_of_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
