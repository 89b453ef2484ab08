#include "world.h"

#include "configd/names.h"

static void add_shard_appears_in_config_shards(void **state)
{
    struct world *world = *state;
    world_must(world, plan_add_shard, "{\"name\": \"a\", \"host\": \"a/h:1,h:2\"}");
    assert_string_equal(world_reply_str(world, "shardAdded"), "a");
    assert_int_equal(world_count(world, NS_SHARDS, "{\"_id\": \"a\", \"host\": \"a/h:1,h:2\", \"state\": 1}"), 1);
    assert_int_equal(world_count(world, NS_CHANGELOG, "{\"what\": \"addShard\"}"), 1);
}

static void add_shard_without_a_name_takes_the_sets(void **state)
{
    struct world *world = *state;
    world_must(world, plan_add_shard, "{\"host\": \"rs7/h:1\"}");
    assert_string_equal(world_reply_str(world, "shardAdded"), "rs7");
}

static void add_shard_again_changes_nothing(void **state)
{
    struct world *world = *state;
    world_must(world, plan_add_shard, "{\"name\": \"a\", \"host\": \"a/h:1,h:2\"}");
    world_must(world, plan_add_shard, "{\"name\": \"a\", \"host\": \"a/h:1\"}");
    assert_string_equal(world_reply_str(world, "shardAdded"), "a");
    assert_int_equal(world_count(world, NS_SHARDS, "{}"), 1);
    assert_int_equal(world_count(world, NS_CHANGELOG, "{}"), 1);
}

static void add_shard_refuses_what_is_taken(void **state)
{
    struct world *world = *state;
    world_must(world, plan_add_shard, "{\"name\": \"a\", \"host\": \"rs/h:1,h:2\"}");
    world_refuses(world, ERR_IllegalOperation, plan_add_shard, "{\"name\": \"b\", \"host\": \"rs/h:9\"}");
    world_refuses(world, ERR_IllegalOperation, plan_add_shard, "{\"name\": \"a\", \"host\": \"other/h:9\"}");
    world_refuses(world, ERR_IllegalOperation, plan_add_shard, "{\"name\": \"b\", \"host\": \"other/h:3,h:2\"}");
    assert_int_equal(world_count(world, NS_SHARDS, "{}"), 1);
}

static void add_shard_refuses_bad_names_and_hosts(void **state)
{
    struct world *world = *state;
    world_refuses(world, ERR_BadValue, plan_add_shard, "{\"name\": \"config\", \"host\": \"rs/h:1\"}");
    world_refuses(world, ERR_BadValue, plan_add_shard, "{\"name\": \"a\", \"host\": \"config/h:1\"}");
    world_refuses(world, ERR_BadValue, plan_add_shard, "{\"name\": \"a\", \"host\": \"h:1\"}");
    world_refuses(world, ERR_BadValue, plan_add_shard, "{\"name\": \"\", \"host\": \"rs/h:1\"}");
    world_refuses(world, ERR_FailedToParse, plan_add_shard, "{\"name\": \"a\", \"host\": \"rs/h\"}");
    world_refuses(world, ERR_NoSuchKey, plan_add_shard, "{\"name\": \"a\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(add_shard_appears_in_config_shards),    WORLD_TEST(add_shard_without_a_name_takes_the_sets),
        WORLD_TEST(add_shard_again_changes_nothing),       WORLD_TEST(add_shard_refuses_what_is_taken),
        WORLD_TEST(add_shard_refuses_bad_names_and_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
