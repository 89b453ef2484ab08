#include "world.h"

#include "configd/names.h"

#define SET(id, fields) "{\"q\": {\"_id\": \"" id "\"}, \"u\": {\"$set\": {" fields "}}, \"upsert\": true}"

static void settings_upsert_then_update(void **state)
{
    struct world *world = *state;
    world_must(world, plan_delete_settings, "{\"q\": {\"_id\": \"balancer\"}}");
    world_must(world, plan_update_settings, SET("balancer", "\"stopped\": true, \"mode\": \"off\""));
    assert_int_equal(world_reply_i64(world, "n"), 1);
    assert_int_equal(world_reply_i64(world, "nModified"), 0);
    assert_string_equal(world_reply_str(world, "upserted"), "balancer");
    world_must(world, plan_update_settings, SET("balancer", "\"stopped\": false"));
    assert_int_equal(world_reply_i64(world, "nModified"), 1);
    assert_false(world_reply_has(world, "upserted"));
    world_must(world, plan_update_settings, SET("balancer", "\"stopped\": false"));
    assert_int_equal(world_reply_i64(world, "n"), 1);
    assert_int_equal(world_reply_i64(world, "nModified"), 0);
    assert_int_equal(world_count(world, NS_SETTINGS, "{\"_id\": \"balancer\", \"stopped\": false, \"mode\": \"off\"}"),
                     1);
}

static void settings_replacement_and_delete(void **state)
{
    struct world *world = *state;
    world_must(world, plan_update_settings,
               "{\"q\": {\"_id\": \"chunksize\"}, \"u\": {\"_id\": \"chunksize\", \"value\": 64}, \"upsert\": true}");
    assert_int_equal(world_count(world, NS_SETTINGS, "{\"_id\": \"chunksize\", \"value\": 64}"), 1);
    world_must(world, plan_delete_settings, "{\"q\": {\"_id\": \"chunksize\"}, \"limit\": 1}");
    assert_int_equal(world_reply_i64(world, "n"), 1);
    world_must(world, plan_delete_settings, "{\"q\": {\"_id\": \"chunksize\"}, \"limit\": 1}");
    assert_int_equal(world_reply_i64(world, "n"), 0);
    assert_int_equal(world_count(world, NS_SETTINGS, "{\"_id\": \"chunksize\"}"), 0);
}

static void settings_without_upsert_match_nothing(void **state)
{
    struct world *world = *state;
    world_must(world, plan_update_settings,
               "{\"q\": {\"_id\": \"autosplit\"}, \"u\": {\"$set\": {\"enabled\": true}}}");
    assert_int_equal(world_reply_i64(world, "n"), 0);
    assert_int_equal(world_count(world, NS_SETTINGS, "{\"_id\": \"autosplit\"}"), 0);
}

static void settings_refuse_values_that_mean_nothing(void **state)
{
    struct world *world = *state;
    const char *bad[] = {
        SET("chunksize", "\"value\": 0"),
        SET("chunksize", "\"value\": 1025"),
        SET("chunksize", "\"value\": 1.5"),
        SET("chunksize", "\"value\": \"64\""),
        SET("chunksize", "\"other\": 1"),
        SET("balancer", "\"stopped\": 1"),
        SET("balancer", "\"mode\": \"fast\""),
        SET("balancer", "\"activeWindow\": {\"start\": \"23:00\"}"),
        SET("balancer", "\"activeWindow\": {\"start\": \"24:00\", \"stop\": \"06:00\"}"),
        SET("balancer", "\"activeWindow\": {\"start\": \"9:00\", \"stop\": \"06:00\"}"),
        SET("autosplit", "\"enabled\": \"yes\""),
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        world_refuses(world, ERR_BadValue, plan_update_settings, "%s", bad[i]);
    }
    world_refuses(world, ERR_IllegalOperation, plan_update_settings, "%s", SET("other", "\"a\": 1"));
    world_refuses(world, ERR_IllegalOperation, plan_update_settings, "{\"q\": {}, \"u\": {\"$set\": {\"a\": 1}}}");
    world_refuses(world, ERR_IllegalOperation, plan_delete_settings, "{\"q\": {}}");
    assert_int_equal(world_count(world, NS_SETTINGS, "{}"), 1);
    world_must(world, plan_update_settings, "%s",
               SET("balancer", "\"activeWindow\": {\"start\": \"23:00\", \"stop\": \"06:00\"}"));
}

static void collections_take_no_balance_and_nothing_else(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 1);
    world_shard(world, "db.c", "{\"a\": 1}", "");
    world_must(world, plan_update_collections,
               "{\"q\": {\"_id\": \"db.c\"}, \"u\": {\"$set\": {\"noBalance\": true}}}");
    assert_int_equal(world_reply_i64(world, "nModified"), 1);
    assert_int_equal(world_count(world, NS_COLLECTIONS, "{\"noBalance\": true}"), 1);
    world_must(world, plan_update_collections, "{\"q\": {\"_id\": \"db.c\"}, \"u\": {\"$unset\": {\"noBalance\": 1}}}");
    world_must(world, plan_update_collections,
               "{\"q\": {\"_id\": \"db.x\"}, \"u\": {\"$set\": {\"noBalance\": true}}}");
    assert_int_equal(world_reply_i64(world, "n"), 0);
    const char *bad[] = {"{\"$set\": {\"unique\": true}}", "{\"$set\": {\"noBalance\": 1}}",
                         "{\"$set\": {\"x\": 1}}",         "{\"$unset\": {\"key\": 1}}",
                         "{\"noBalance\": true}",          "{\"$set\": {\"key.a\": \"hashed\"}}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        world_refuses(world, ERR_IllegalOperation, plan_update_collections, "{\"q\": {\"_id\": \"db.c\"}, \"u\": %s}",
                      bad[i]);
    }
    world_check_chunks(world);
}

static void ping_keeps_one_document_a_router(void **state)
{
    struct world *world = *state;
    world_must(world, plan_ping, "{\"_configsvrPing\": \"h:27017\", \"up\": 5}");
    world->now_ms += 1000;
    world_must(world, plan_ping, "{\"_configsvrPing\": \"h:27017\", \"up\": 6}");
    world_must(world, plan_ping, "{\"_configsvrPing\": \"h:27018\"}");
    assert_int_equal(world_count(world, NS_MONGOS, "{}"), 2);
    assert_int_equal(world_count(world, NS_MONGOS,
                                 "{\"_id\": \"h:27017\", \"created\": {\"$date\": {\"$numberLong\": "
                                 "\"1700000000000\"}}, \"ping\": {\"$date\": {\"$numberLong\": \"1700000001000\"}}}"),
                     1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(settings_upsert_then_update),
        WORLD_TEST(settings_replacement_and_delete),
        WORLD_TEST(settings_without_upsert_match_nothing),
        WORLD_TEST(settings_refuse_values_that_mean_nothing),
        WORLD_TEST(collections_take_no_balance_and_nothing_else),
        WORLD_TEST(ping_keeps_one_document_a_router),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
