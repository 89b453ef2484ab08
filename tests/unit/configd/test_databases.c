#include "world.h"

#include "configd/names.h"

static void create_database_answers_its_entry(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_must(world, plan_create_database, "{\"_configsvrCreateDatabase\": \"shop\", \"primaryShard\": \"shard1\"}");
    assert_true(world_reply_has(world, "database"));
    assert_int_equal(world_count(world, NS_DATABASES, "{\"_id\": \"shop\", \"primary\": \"shard1\"}"), 1);
}

static void create_database_again_is_the_same_one(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_must(world, plan_create_database, "{\"_configsvrCreateDatabase\": \"shop\", \"primaryShard\": \"shard1\"}");
    bson_t *first = bson_copy(world->reply);
    world_must(world, plan_create_database, "{\"_configsvrCreateDatabase\": \"shop\"}");
    assert_true(bson_equal(first, world->reply));
    world_must(world, plan_create_database, "{\"_configsvrCreateDatabase\": \"shop\", \"preferredShard\": \"shard0\"}");
    assert_true(bson_equal(first, world->reply));
    world_refuses(world, ERR_NamespaceExists, plan_create_database,
                  "{\"_configsvrCreateDatabase\": \"shop\", \"primaryShard\": \"shard0\"}");
    bson_destroy(first);
}

static void create_database_refuses_another_case(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 1);
    world_must(world, plan_create_database, "{\"_configsvrCreateDatabase\": \"Shop\"}");
    world_refuses(world, 13297, plan_create_database, "{\"_configsvrCreateDatabase\": \"shop\"}");
    assert_non_null(strstr(world->err.msg, "[Shop]"));
}

static void create_database_refuses_bad_names(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 1);
    const char *bad[] = {"a.b", "a b", "a/b", "$x"};
    for (size_t i = 0; i < 4; i++) {
        world_refuses(world, ERR_InvalidNamespace, plan_create_database, "{\"_configsvrCreateDatabase\": \"%s\"}",
                      bad[i]);
    }
    world_refuses(world, ERR_InvalidOptions, plan_create_database, "{\"_configsvrCreateDatabase\": \"config\"}");
    world_refuses(world, ERR_InvalidOptions, plan_create_database, "{\"_configsvrCreateDatabase\": \"admin\"}");
}

static void create_database_without_a_shard_says_so(void **state)
{
    struct world *world = *state;
    world_refuses(world, ERR_ShardNotFound, plan_create_database, "{\"_configsvrCreateDatabase\": \"a\"}");
    world_add_shards(world, 1);
    world_refuses(world, ERR_ShardNotFound, plan_create_database,
                  "{\"_configsvrCreateDatabase\": \"a\", \"primaryShard\": \"nowhere\"}");
}

static void create_database_spreads_over_the_shards(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 3);
    for (int i = 0; i < 8; i++) {
        world_must(world, plan_create_database, "{\"_configsvrCreateDatabase\": \"d%d\"}", i);
    }
    for (int i = 0; i < 3; i++) {
        char match[64];
        snprintf(match, sizeof match, "{\"primary\": \"shard%d\"}", i);
        assert_int_equal(world_count(world, NS_DATABASES, match), 3);
    }
    world_must(world, plan_create_database, "{\"_configsvrCreateDatabase\": \"x\", \"preferredShard\": \"shard2\"}");
    assert_int_equal(world_count(world, NS_DATABASES, "{\"_id\": \"x\", \"primary\": \"shard2\"}"), 1);
}

static void drop_collection_takes_its_chunks_along(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 3);
    world_shard(world, "db.a", "{\"_id\": \"hashed\"}", ", \"empty\": true");
    world_shard(world, "db.b", "{\"_id\": \"hashed\"}", ", \"empty\": true");
    world_must(world, plan_drop_collection, "{\"_configsvrDropCollection\": \"db.a\"}");
    assert_int_equal(world_count(world, NS_COLLECTIONS, "{}"), 1);
    assert_int_equal(world_count(world, NS_CHUNKS, "{}"), 6);
    world_check_chunks(world);
    world_must(world, plan_drop_collection, "{\"_configsvrDropCollection\": \"db.a\"}");
    world_must(world, plan_drop_collection,
               "{\"_configsvrDropCollection\": \"db.b\", \"uuid\": {\"$uuid\": "
               "\"00000000-0000-0000-0000-000000000001\"}}");
    assert_int_equal(world_count(world, NS_COLLECTIONS, "{}"), 1);
}

static void drop_database_takes_its_collections_along(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_must(world, plan_create_database, "{\"_configsvrCreateDatabase\": \"db2\"}");
    world_shard(world, "db.a", "{\"_id\": \"hashed\"}", ", \"empty\": true");
    world_shard(world, "db.b", "{\"_id\": 1}", "");
    world_shard(world, "db2.a", "{\"_id\": \"hashed\"}", ", \"empty\": true");
    world_must(world, plan_drop_database, "{\"_configsvrDropDatabase\": \"db\"}");
    assert_int_equal(world_count(world, NS_DATABASES, "{}"), 1);
    assert_int_equal(world_count(world, NS_COLLECTIONS, "{\"_id\": \"db2.a\"}"), 1);
    assert_int_equal(world_count(world, NS_COLLECTIONS, "{}"), 1);
    world_check_chunks(world);
    world_must(world, plan_drop_database, "{\"_configsvrDropDatabase\": \"db\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(create_database_answers_its_entry),       WORLD_TEST(create_database_again_is_the_same_one),
        WORLD_TEST(create_database_refuses_another_case),    WORLD_TEST(create_database_refuses_bad_names),
        WORLD_TEST(create_database_without_a_shard_says_so), WORLD_TEST(create_database_spreads_over_the_shards),
        WORLD_TEST(drop_collection_takes_its_chunks_along),  WORLD_TEST(drop_database_takes_its_collections_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
