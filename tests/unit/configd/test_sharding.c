#include "world.h"

#include "configd/names.h"

#define OP_A "{\"$uuid\": \"0a000000-0000-4000-8000-000000000001\"}"
#define OP_B "{\"$uuid\": \"0b000000-0000-4000-8000-000000000001\"}"
#define COLL "{\"$uuid\": \"0c000000-0000-4000-8000-000000000001\"}"
#define BEGIN(op, key, more)                                                                                           \
    "{\"_configsvrShardCollectionBegin\": \"db.c\", \"op\": " op ", \"uuid\": " COLL ", \"key\": " key more "}"
#define COMMIT(op)       "{\"_configsvrShardCollectionCommit\": \"db.c\", \"op\": " op "}"
#define ABORT(op)        "{\"_configsvrShardCollectionAbort\": \"db.c\", \"op\": " op "}"
#define STATUS(op, more) "{\"_configsvrShardCollectionStatus\": \"db.c\", \"op\": " op more "}"

static void shard_empty_hashed_spreads_two_chunks_a_shard(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 3);
    world_must(world, plan_shard_begin, BEGIN(OP_A, "{\"_id\": \"hashed\"}", ", \"empty\": true"));
    assert_string_equal(world_reply_str(world, "state"), "begun");
    assert_string_equal(world_reply_str(world, "primary"), "shard0");
    assert_int_equal(world_reply_i64(world, "chunks"), 6);
    assert_int_equal(world_count(world, NS_COLLECTIONS, "{}"), 0);
    world_must(world, plan_shard_commit, COMMIT(OP_A));
    assert_string_equal(world_reply_str(world, "state"), "committed");
    for (int i = 0; i < 3; i++) {
        char match[64];
        snprintf(match, sizeof match, "{\"shard\": \"shard%d\"}", i);
        assert_int_equal(world_count(world, NS_CHUNKS, match), 2);
    }
    assert_int_equal(world_count(world, NS_COLLECTIONS, "{\"_id\": \"db.c\", \"uuid\": " COLL "}"), 1);
    assert_int_equal(world_count(world, NS_CHANGELOG, "{\"what\": \"shardCollection.end\", \"ns\": \"db.c\"}"), 1);
    world_check_chunks(world);
}

static void shard_filled_or_range_stays_one_chunk_where_it_is(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 3);
    world_shard(world, "db.filled", "{\"_id\": \"hashed\"}", ", \"empty\": false");
    world_shard(world, "db.range", "{\"a\": 1}", ", \"empty\": true");
    assert_int_equal(world_count(world, NS_CHUNKS, "{\"shard\": \"shard0\"}"), 2);
    assert_int_equal(world_count(world, NS_CHUNKS, "{}"), 2);
    world_check_chunks(world);
}

static void shard_begin_again_gets_the_same_answer(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_must(world, plan_shard_begin, BEGIN(OP_A, "{\"_id\": \"hashed\"}", ", \"empty\": true"));
    bson_t *first = bson_copy(world->reply);
    world_must(world, plan_shard_begin, BEGIN(OP_A, "{\"_id\": \"hashed\"}", ", \"empty\": true"));
    assert_true(bson_equal(first, world->reply));
    bson_destroy(first);
    world_must(world, plan_shard_commit, COMMIT(OP_A));
    first = bson_copy(world->reply);
    world_must(world, plan_shard_commit, COMMIT(OP_A));
    assert_true(bson_equal(first, world->reply));
    bson_destroy(first);
    world_must(world, plan_shard_begin, BEGIN(OP_A, "{\"_id\": \"hashed\"}", ", \"empty\": true"));
    assert_string_equal(world_reply_str(world, "state"), "committed");
    assert_int_equal(world_count(world, NS_CHUNKS, "{}"), 4);
}

static void shard_already_sharded_is_fine_with_the_same_key_only(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_shard(world, "db.c", "{\"a\": 1}", "");
    world_must(world, plan_shard_begin, BEGIN(OP_A, "{\"a\": 1.0}", ""));
    assert_true(world_reply_has(world, "alreadySharded"));
    world_refuses(world, ERR_AlreadyInitialized, plan_shard_begin, BEGIN(OP_A, "{\"a\": \"hashed\"}", ""));
    world_refuses(world, ERR_AlreadyInitialized, plan_shard_begin, BEGIN(OP_A, "{\"a\": 1}", ", \"unique\": true"));
}

static void shard_begin_refuses_what_can_not_be(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_refuses(world, ERR_BadValue, plan_shard_begin, BEGIN(OP_A, "{}", ""));
    world_refuses(world, ERR_BadValue, plan_shard_begin, BEGIN(OP_A, "{\"a\": -1}", ""));
    world_refuses(world, ERR_InvalidOptions, plan_shard_begin,
                  BEGIN(OP_A, "{\"a\": \"hashed\"}", ", \"unique\": true"));
    world_refuses(world, ERR_InvalidOptions, plan_shard_begin, BEGIN(OP_A, "{\"a\": 1}", ", \"numInitialChunks\": 4"));
    world_refuses(world, ERR_InvalidOptions, plan_shard_begin,
                  BEGIN(OP_A, "{\"a\": \"hashed\"}", ", \"empty\": true, \"numInitialChunks\": 1000000"));
    const char *names[] = {"nodb.c", "config.x", "admin.x", "local.x", "db.system.js", "db"};
    const int32_t codes[] = {ERR_NamespaceNotFound, ERR_IllegalOperation, ERR_IllegalOperation,
                             ERR_IllegalOperation,  ERR_IllegalOperation, ERR_InvalidNamespace};
    for (size_t i = 0; i < 6; i++) {
        world_refuses(world, codes[i], plan_shard_begin,
                      "{\"_configsvrShardCollectionBegin\": \"%s\", \"op\": " OP_A ", \"uuid\": " COLL
                      ", \"key\": {\"a\": 1}}",
                      names[i]);
    }
    assert_int_equal(world_count(world, NS_OPERATIONS, "{}"), 0);
}

static void shard_abort_makes_a_late_commit_fail(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_must(world, plan_shard_begin, BEGIN(OP_A, "{\"a\": 1}", ""));
    world_must(world, plan_shard_abort, ABORT(OP_A));
    assert_string_equal(world_reply_str(world, "state"), "aborted");
    world_refuses(world, ERR_ConflictingOperationInProgress, plan_shard_commit, COMMIT(OP_A));
    world_refuses(world, ERR_ConflictingOperationInProgress, plan_shard_begin, BEGIN(OP_A, "{\"a\": 1}", ""));
    world_must(world, plan_shard_begin, BEGIN(OP_B, "{\"a\": 1}", ""));
    world_must(world, plan_shard_commit, COMMIT(OP_B));
    world_must(world, plan_shard_abort, ABORT(OP_B));
    assert_string_equal(world_reply_str(world, "state"), "committed");
}

static void shard_status_with_abort_ends_even_the_unknown(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_must(world, plan_shard_status, STATUS(OP_A, ""));
    assert_string_equal(world_reply_str(world, "state"), "unknown");
    world_must(world, plan_shard_status, STATUS(OP_A, ", \"abort\": true"));
    assert_string_equal(world_reply_str(world, "state"), "aborted");
    world_refuses(world, ERR_ConflictingOperationInProgress, plan_shard_begin, BEGIN(OP_A, "{\"a\": 1}", ""));
    world_must(world, plan_shard_begin, BEGIN(OP_B, "{\"a\": 1}", ""));
    world_must(world, plan_shard_status, STATUS(OP_B, ""));
    assert_string_equal(world_reply_str(world, "state"), "begun");
    world_must(world, plan_shard_commit, COMMIT(OP_B));
    world_must(world, plan_shard_status, STATUS(OP_B, ", \"abort\": true"));
    assert_string_equal(world_reply_str(world, "state"), "committed");
}

static void shard_begin_waits_for_a_young_one_and_ends_a_stale_one(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_must(world, plan_shard_begin, BEGIN(OP_A, "{\"a\": 1}", ""));
    world_refuses(world, ERR_ConflictingOperationInProgress, plan_shard_begin, BEGIN(OP_B, "{\"a\": 1}", ""));
    world->now_ms += OPERATION_STALE_MS + 1;
    world_must(world, plan_shard_begin, BEGIN(OP_B, "{\"a\": 1}", ""));
    world_refuses(world, ERR_ConflictingOperationInProgress, plan_shard_commit, COMMIT(OP_A));
    world_must(world, plan_shard_commit, COMMIT(OP_B));
    world_check_chunks(world);
}

static void shard_commit_after_a_drop_of_the_database_fails(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_must(world, plan_shard_begin, BEGIN(OP_A, "{\"a\": 1}", ""));
    world_must(world, plan_drop_database, "{\"_configsvrDropDatabase\": \"db\"}");
    world_must(world, plan_create_database, "{\"_configsvrCreateDatabase\": \"db\", \"primaryShard\": \"shard0\"}");
    world_refuses(world, ERR_ConflictingOperationInProgress, plan_shard_commit, COMMIT(OP_A));
    world_check_chunks(world);
}

static void shard_commit_after_a_drop_of_the_collection_fails(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_must(world, plan_shard_begin, BEGIN(OP_A, "{\"a\": 1}", ""));
    world_must(world, plan_drop_collection, "{\"_configsvrDropCollection\": \"db.c\"}");
    world_refuses(world, ERR_ConflictingOperationInProgress, plan_shard_commit, COMMIT(OP_A));
}

static void prune_forgets_operations_after_their_time(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    world_must(world, plan_shard_begin, BEGIN(OP_A, "{\"a\": 1}", ""));
    world_must(world, plan_shard_commit, COMMIT(OP_A));
    world->now_ms += OPERATION_KEEP_MS;
    world_must(world, plan_shard_begin,
               "{\"_configsvrShardCollectionBegin\": \"db.d\", \"op\": " OP_B ", \"uuid\": " OP_B
               ", \"key\": {\"a\": 1}}");
    world_must(world, plan_prune, "{}");
    assert_int_equal(world_count(world, NS_OPERATIONS, "{}"), 2);
    world->now_ms++;
    world_must(world, plan_prune, "{}");
    assert_int_equal(world_count(world, NS_OPERATIONS, "{\"state\": \"begun\"}"), 1);
    assert_int_equal(world_count(world, NS_OPERATIONS, "{}"), 1);
    /* A begun one that nobody ended is forgotten, too: its late commit fails. */
    world->now_ms += OPERATION_KEEP_MS + 1;
    world_must(world, plan_prune, "{}");
    world_refuses(world, ERR_ConflictingOperationInProgress, plan_shard_commit,
                  "{\"_configsvrShardCollectionCommit\": \"db.d\", \"op\": " OP_B "}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(shard_empty_hashed_spreads_two_chunks_a_shard),
        WORLD_TEST(shard_filled_or_range_stays_one_chunk_where_it_is),
        WORLD_TEST(shard_begin_again_gets_the_same_answer),
        WORLD_TEST(shard_already_sharded_is_fine_with_the_same_key_only),
        WORLD_TEST(shard_begin_refuses_what_can_not_be),
        WORLD_TEST(shard_abort_makes_a_late_commit_fail),
        WORLD_TEST(shard_status_with_abort_ends_even_the_unknown),
        WORLD_TEST(shard_begin_waits_for_a_young_one_and_ends_a_stale_one),
        WORLD_TEST(shard_commit_after_a_drop_of_the_database_fails),
        WORLD_TEST(shard_commit_after_a_drop_of_the_collection_fails),
        WORLD_TEST(prune_forgets_operations_after_their_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
