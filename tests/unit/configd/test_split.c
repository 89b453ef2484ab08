#include "world.h"

#include "cluster/fields.h"
#include "cluster/routing.h"
#include "configd/names.h"

/* The epoch of db.c as extended JSON, from its entry. */
static const char *epoch_json(struct world *world)
{
    static char json[64];
    bson_t *reply = world_routing(world, "db.c", NULL);
    struct bdoc version;
    struct chunk_version parsed;
    char hex[25];
    assert_true(field_doc(bdoc_of(reply), "version", &version, NULL));
    assert_true(chunk_version_parse(version, &parsed, NULL));
    bson_oid_to_string(&parsed.epoch, hex);
    snprintf(json, sizeof json, "{\"$oid\": \"%s\"}", hex);
    bson_destroy(reply);
    return json;
}

#define SPLIT(min, max, points)                                                                                        \
    "{\"_configsvrSplit\": \"db.c\", \"epoch\": %s, \"min\": {\"a\": " min "}, \"max\": {\"a\": " max                  \
    "}, \"points\": [" points "]}"
#define LOW  "{\"$minKey\": 1}"
#define HIGH "{\"$maxKey\": 1}"

static void split_makes_two_chunks_with_new_versions(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_shard(world, "db.c", "{\"a\": 1}", "");
    world_must(world, plan_split, SPLIT(LOW, HIGH, "{\"a\": 5}"), epoch_json(world));
    assert_int_equal(world_reply_i64(world, "chunks"), 2);
    world_check_chunks(world);
    assert_int_equal(world_count(world, NS_CHUNKS, "{\"lastmod\": {\"$timestamp\": {\"t\": 1, \"i\": 1}}}"), 1);
    assert_int_equal(world_count(world, NS_CHUNKS, "{\"lastmod\": {\"$timestamp\": {\"t\": 1, \"i\": 2}}}"), 1);
    assert_int_equal(world_count(world, NS_CHUNKS, "{\"min\": {\"a\": 5}, \"shard\": \"shard0\"}"), 1);
    assert_int_equal(world_count(world, NS_CHANGELOG, "{\"what\": \"split\"}"), 1);
    world_must(world, plan_split, SPLIT("5", HIGH, "{\"a\": 6}, {\"a\": 7.5}, {\"a\": \"x\"}"), epoch_json(world));
    assert_int_equal(world_count(world, NS_CHUNKS, "{}"), 5);
    assert_int_equal(world_count(world, NS_CHANGELOG, "{\"what\": \"multi-split\"}"), 1);
    world_check_chunks(world);
}

static void split_refuses_points_on_or_outside_the_bounds(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_shard(world, "db.c", "{\"a\": 1}", "");
    world_must(world, plan_split, SPLIT(LOW, HIGH, "{\"a\": 5}, {\"a\": 10}"), epoch_json(world));
    const char *bad[] = {"{\"a\": 5}",
                         "{\"a\": 5.0}",
                         "{\"a\": 10}",
                         "{\"a\": 4}",
                         "{\"a\": 11}",
                         "{\"a\": 7}, {\"a\": 6}",
                         "{\"a\": 7}, {\"a\": 7}",
                         "{\"a\": " HIGH "}",
                         ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        world_refuses(world, ERR_InvalidOptions, plan_split, SPLIT("5", "10", "%s"), epoch_json(world), bad[i]);
    }
    world_refuses(world, ERR_BadValue, plan_split, SPLIT("5", "10", "{\"b\": 7}"), epoch_json(world));
    world_refuses(world, ERR_BadValue, plan_split, SPLIT("5", "10", "{\"a\": [7]}"), epoch_json(world));
    assert_int_equal(world_count(world, NS_CHUNKS, "{}"), 3);
}

static void split_refuses_bounds_that_no_chunk_has(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_shard(world, "db.c", "{\"a\": 1}", "");
    world_must(world, plan_split, SPLIT(LOW, HIGH, "{\"a\": 5}"), epoch_json(world));
    world_refuses(world, ERR_BadValue, plan_split, SPLIT(LOW, HIGH, "{\"a\": 6}"), epoch_json(world));
    world_refuses(world, ERR_BadValue, plan_split, SPLIT("4", HIGH, "{\"a\": 6}"), epoch_json(world));
    world_refuses(world, ERR_BadValue, plan_split, SPLIT("5", "9", "{\"a\": 6}"), epoch_json(world));
    /* Equal by value is the same bound. */
    world_must(world, plan_split, SPLIT("5.0", HIGH, "{\"a\": 6}"), epoch_json(world));
}

static void split_refuses_another_epoch_and_unsharded(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_refuses(world, ERR_NamespaceNotSharded, plan_split, SPLIT(LOW, HIGH, "{\"a\": 5}"),
                  "{\"$oid\": \"000000000000000000000001\"}");
    world_shard(world, "db.c", "{\"a\": 1}", "");
    world_refuses(world, ERR_StaleEpoch, plan_split, SPLIT(LOW, HIGH, "{\"a\": 5}"),
                  "{\"$oid\": \"000000000000000000000001\"}");
}

static void split_with_the_same_op_gets_the_same_answer(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_shard(world, "db.c", "{\"a\": 1}", "");
    char json[1024];
    bson_error_t error;
    snprintf(json, sizeof json,
             "{\"_configsvrSplit\": \"db.c\", \"epoch\": %s, \"min\": {\"a\": " LOW "}, \"max\": {\"a\": " HIGH
             "}, \"points\": [{\"a\": 5}], \"op\": {\"$uuid\": \"0a000000-0000-4000-8000-000000000009\"}}",
             epoch_json(world));
    bson_t *request = bson_new_from_json((const uint8_t *)json, -1, &error);
    assert_non_null(request);
    assert_true(world_change(world, plan_split, request));
    bson_t *first = bson_copy(world->reply);
    assert_true(world_change(world, plan_split, request));
    assert_true(bson_equal(first, world->reply));
    assert_int_equal(world_count(world, NS_CHUNKS, "{}"), 2);
    bson_destroy(first);
    bson_destroy(request);
}

static void split_of_a_hashed_key_takes_64_bit_points_only(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_shard(world, "db.c", "{\"a\": \"hashed\"}", "");
    world_refuses(world, ERR_BadValue, plan_split, SPLIT(LOW, HIGH, "{\"a\": 5}"), epoch_json(world));
    world_must(world, plan_split, SPLIT(LOW, HIGH, "{\"a\": {\"$numberLong\": \"5\"}}"), epoch_json(world));
    world_check_chunks(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(split_makes_two_chunks_with_new_versions),
        WORLD_TEST(split_refuses_points_on_or_outside_the_bounds),
        WORLD_TEST(split_refuses_bounds_that_no_chunk_has),
        WORLD_TEST(split_refuses_another_epoch_and_unsharded),
        WORLD_TEST(split_with_the_same_op_gets_the_same_answer),
        WORLD_TEST(split_of_a_hashed_key_takes_64_bit_points_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
