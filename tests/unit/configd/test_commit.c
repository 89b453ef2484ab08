#include "world.h"

#include "configd/names.h"

#define UUID_A "{\"$uuid\": \"0a000000-0000-4000-8000-000000000001\"}"
#define EPOCH  "{\"$oid\": \"0000000000000000000000ee\"}"
#define ENTRY(key)                                                                                                     \
    "{\"put\": \"config.collections\", \"doc\": {\"_id\": \"db.c\", \"lastmodEpoch\": " EPOCH                          \
    ", \"lastmod\": {\"$date\": {\"$numberLong\": \"1\"}}, \"timestamp\": {\"$timestamp\": {\"t\": 1, \"i\": 1}}, "    \
    "\"uuid\": " UUID_A ", \"key\": " key ", \"unique\": false}}"
#define CHUNK(id, min, max, shard, minor)                                                                              \
    "{\"put\": \"config.chunks\", \"doc\": {\"_id\": {\"$oid\": \"0000000000000000000000" id "\"}, \"uuid\": " UUID_A  \
    ", \"min\": {\"a\": " min "}, \"max\": {\"a\": " max "}, \"shard\": \"" shard                                      \
    "\", \"lastmod\": {\"$timestamp\": {\"t\": 1, \"i\": " minor "}}}}"
#define LOW             "{\"$minKey\": 1}"
#define HIGH            "{\"$maxKey\": 1}"
#define COMMIT(writes)  "{\"writes\": [" writes "]}"
#define ERASE_CHUNK(id) "{\"erase\": \"config.chunks\", \"id\": {\"$oid\": \"0000000000000000000000" id "\"}}"
#define ERASE_ENTRY     "{\"erase\": \"config.collections\", \"id\": \"db.c\"}"
#define ERASE_ALL       "{\"eraseChunks\": " UUID_A "}"

/* db.c with the chunks 01 [MinKey, 0), 02 [0, 10), 03 [10, MaxKey). */
static struct world *with_three_chunks(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    if (!world_commit_json(world, COMMIT(ENTRY("{\"a\": 1}") ", " CHUNK("01", LOW, "0", "shard0", "0") ", " CHUNK(
                                      "02", "0", "10", "shard0", "1") ", " CHUNK("03", "10", HIGH, "shard1", "2")))) {
        fail_msg("%s", world->err.msg);
    }
    world_check_chunks(world);
    return world;
}

static void refused(struct world *world, int32_t code, const char *json)
{
    size_t chunks = world_count(world, NS_CHUNKS, "{}");
    size_t entries = world_count(world, NS_COLLECTIONS, "{}");
    if (world_commit_json(world, json)) {
        fail_msg("accepted: %s", json);
    }
    if (world->err.code != code) {
        fail_msg("expected %d, got %d: %s for %s", code, world->err.code, world->err.msg, json);
    }
    assert_int_equal(world_count(world, NS_CHUNKS, "{}"), chunks);
    assert_int_equal(world_count(world, NS_COLLECTIONS, "{}"), entries);
    world_check_chunks(world);
}

static void commit_refuses_first_chunks_with_a_hole(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    refused(world, ERR_RangeOverlapConflict, COMMIT(ENTRY("{\"a\": 1}")));
    refused(world, ERR_RangeOverlapConflict,
            COMMIT(ENTRY("{\"a\": 1}") ", " CHUNK("01", LOW, "0", "shard0", "0") ", " CHUNK("02", "1", HIGH, "shard0",
                                                                                            "1")));
    refused(world, ERR_RangeOverlapConflict,
            COMMIT(ENTRY("{\"a\": 1}") ", " CHUNK("01", LOW, "2", "shard0", "0") ", " CHUNK("02", "1", HIGH, "shard0",
                                                                                            "1")));
    refused(world, ERR_RangeOverlapConflict, COMMIT(CHUNK("01", LOW, HIGH, "shard0", "0")));
    refused(world, ERR_ShardNotFound, COMMIT(ENTRY("{\"a\": 1}") ", " CHUNK("01", LOW, HIGH, "shard9", "0")));
}

static void commit_refuses_changes_that_tear_the_key_space(void **state)
{
    struct world *world = with_three_chunks(state);
    const char *bad[] = {
        COMMIT(ERASE_CHUNK("02")),
        COMMIT(CHUNK("02", "0", "9", "shard0", "3")),
        COMMIT(CHUNK("02", "0", "11", "shard0", "3")),
        COMMIT(CHUNK("04", "0", "10", "shard0", "3")),
        COMMIT(CHUNK("02", "0", "5", "shard0", "3") ", " CHUNK("04", "6", "10", "shard0", "4")),
        COMMIT(CHUNK("02", "0", "5", "shard0", "3") ", " CHUNK("04", "4", "10", "shard0", "4")),
        COMMIT(ERASE_ALL),
        COMMIT(ERASE_ENTRY),
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        refused(world, ERR_RangeOverlapConflict, bad[i]);
    }
}

static void commit_refuses_versions_that_are_not_new(void **state)
{
    struct world *world = with_three_chunks(state);
    refused(world, ERR_RangeOverlapConflict, COMMIT(CHUNK("02", "0", "10", "shard1", "2")));
    refused(world, ERR_RangeOverlapConflict, COMMIT(CHUNK("02", "0", "10", "shard1", "1")));
    refused(world, ERR_RangeOverlapConflict,
            COMMIT(CHUNK("02", "0", "5", "shard0", "3") ", " CHUNK("04", "5", "10", "shard0", "3")));
}

static void commit_takes_split_move_and_merge(void **state)
{
    struct world *world = with_three_chunks(state);
    assert_true(world_commit_json(
        world, COMMIT(CHUNK("02", "0", "5", "shard0", "3") ", " CHUNK("04", "5", "10", "shard0", "4"))));
    world_check_chunks(world);
    assert_true(world_commit_json(world, COMMIT(CHUNK("04", "5", "10", "shard1", "5"))));
    world_check_chunks(world);
    assert_true(world_commit_json(world, COMMIT(CHUNK("04", "5", HIGH, "shard1", "6") ", " ERASE_CHUNK("03"))));
    world_check_chunks(world);
    assert_int_equal(world_count(world, NS_CHUNKS, "{}"), 3);
    assert_true(world_commit_json(world, COMMIT(ERASE_ENTRY ", " ERASE_ALL)));
    world_check_chunks(world);
    assert_int_equal(world_count(world, NS_CHUNKS, "{}"), 0);
}

static void commit_refuses_another_key_or_epoch_for_an_entry(void **state)
{
    struct world *world = with_three_chunks(state);
    refused(world, ERR_BadValue, COMMIT(ENTRY("{\"b\": 1}")));
    assert_true(world_commit_json(world, COMMIT(ENTRY("{\"a\": 1.0}"))));
}

static void commit_on_an_old_sequence_is_refused(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 1); /* two changes */
    const int sequences[] = {0, 1, 3, 2, 2};
    const bool fits[] = {false, false, false, true, false};
    for (size_t i = 0; i < 5; i++) {
        char json[256];
        snprintf(json, sizeof json,
                 "{\"sequence\": {\"$numberLong\": \"%d\"}, \"writes\": [{\"put\": \"config.settings\", "
                 "\"doc\": {\"_id\": \"x\"}}]}",
                 sequences[i]);
        bool ok = world_commit_json(world, json);
        assert_int_equal(ok, fits[i]);
        if (!ok) {
            assert_int_equal(world->err.code, ERR_ConflictingOperationInProgress);
        }
    }
}

static void commit_refuses_documents_that_nobody_could_read(void **state)
{
    struct world *world = *state;
    const char *bad[] = {
        COMMIT("{\"put\": \"config.shards\", \"doc\": {\"_id\": \"s\"}}"),
        COMMIT("{\"put\": \"config.databases\", \"doc\": {\"_id\": \"s\", \"primary\": \"x\"}}"),
        COMMIT("{\"put\": \"config.collections\", \"doc\": {\"_id\": \"s.x\"}}"),
        COMMIT("{\"put\": \"config.settings\", \"doc\": {\"x\": 1}}"),
        COMMIT("{\"put\": \"config.settings\"}"),
        COMMIT("{\"erase\": \"config.settings\"}"),
        COMMIT("{\"unknown\": 1}"),
        "{\"writes\": [1]}",
        "{}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (world_commit_json(world, bad[i])) {
            fail_msg("accepted %s", bad[i]);
        }
    }
    assert_false(world_commit_json(world, COMMIT("{\"put\": \"config.nothing\", \"doc\": {\"_id\": 1}}")));
    assert_int_equal(world->err.code, ERR_NotYetInitialized);
}

static void bootstrap_makes_every_collection_and_one_version(void **state)
{
    struct world *world = *state;
    const char *names[] = {NS_SHARDS, NS_DATABASES, NS_COLLECTIONS, NS_CHUNKS,     NS_TAGS,      NS_LOCKS,
                           NS_MONGOS, NS_CHANGELOG, NS_ACTIONLOG,   NS_MIGRATIONS, NS_OPERATIONS};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(world_count(world, names[i], "{}"), 0);
    }
    assert_int_equal(world_count(world, NS_SETTINGS, "{\"_id\": \"balancer\", \"stopped\": true}"), 1);
    assert_int_equal(world_count(world, NS_VERSION, "{\"_id\": 1}"), 1);
    assert_int_equal(world_count(world, NS_VERSION, "{}"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(commit_refuses_first_chunks_with_a_hole),
        WORLD_TEST(commit_refuses_changes_that_tear_the_key_space),
        WORLD_TEST(commit_refuses_versions_that_are_not_new),
        WORLD_TEST(commit_takes_split_move_and_merge),
        WORLD_TEST(commit_refuses_another_key_or_epoch_for_an_entry),
        WORLD_TEST(commit_on_an_old_sequence_is_refused),
        WORLD_TEST(commit_refuses_documents_that_nobody_could_read),
        WORLD_TEST(bootstrap_makes_every_collection_and_one_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
