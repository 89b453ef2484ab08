#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include "base/mem.h"
#include "cluster/shardkey.h"
#include "command/context.h"
#include "shardd/ownership.h"
#include "shardd/ownership_apply.h"
#include "shardd/shard.h"
#include "storage/catalog.h"
#include "storage/counters.h"

#include <stdio.h>
#include <string.h>

/* A shard without a network: the document fixture with ownership hooked in. */
struct world {
    struct fixture fixture;
    struct shard shard;
    bson_oid_t epoch;
    uint8_t db_uuid[16];
    uint8_t uuid[16];
};

static bool apply_shard_kind(void *arg, struct document_apply *apply, const uint8_t *command, size_t len,
                             struct buf *result, struct err *err)
{
    for (size_t i = 0; i < shard_applier_count; i++) {
        if (shard_appliers[i].kind == command[0])
            return shard_appliers[i].apply(arg, apply, command + 1, len - 1, result, err);
    }
    return err_set(err, ERR_InternalError, "unknown kind");
}

static void apply_doc(struct world *world, uint8_t kind, bson_t *doc, int expected_code)
{
    struct err err;
    fixture_apply_command(&world->fixture, kind, bson_get_data(doc), doc->len, &err);
    if (err.code != expected_code)
        fail_msg("expected %d, got %d %s", expected_code, err.code, err.msg);
    bson_destroy(doc);
}

static void set_identity(struct world *world)
{
    bson_t doc = BSON_INITIALIZER;
    bson_oid_t cluster;
    memset(&cluster, 1, sizeof cluster);
    BSON_APPEND_UTF8(&doc, "shardName", "s1");
    BSON_APPEND_OID(&doc, "clusterId", &cluster);
    BSON_APPEND_UTF8(&doc, "configdb", "config/h:1");
    apply_doc(world, SHARD_KIND_IDENTITY, &doc, 0);
}

static void world_open(struct world *world)
{
    memset(world, 0, sizeof *world);
    ownership_init(&world->shard.ownership);
    refresher_init(&world->shard.refresher);
    fixture_open_with(&world->fixture, ownership_hooks(&world->shard.ownership));
    world->fixture.apply_other = apply_shard_kind;
    world->fixture.apply_other_arg = &world->shard;
    memset(&world->epoch, 7, sizeof world->epoch);
    memset(world->db_uuid, 8, sizeof world->db_uuid);
    set_identity(world);
}

static void world_close(struct world *world)
{
    ownership_deinit(&world->shard.ownership);
    refresher_deinit(&world->shard.refresher);
    fixture_close(&world->fixture);
}

/* The shard learns the database, and (unless count is 0) that it owns [bounds[0], bounds[1]), [bounds[1], bounds[2])
 * ... of {k: 1}; INT32_MIN and INT32_MAX stand for the ends. */
static void append_bound(struct buf *out, int32_t bound)
{
    bson_t doc = BSON_INITIALIZER;
    struct shardkey *key;
    struct err err;
    bson_t pattern = BSON_INITIALIZER;
    BSON_APPEND_INT32(&pattern, "k", 1);
    assert_true(shardkey_parse(bdoc_of(&pattern), &key, &err));
    if (bound == INT32_MIN)
        shardkey_global_min(key, &doc);
    else if (bound == INT32_MAX)
        shardkey_global_max(key, &doc);
    else
        BSON_APPEND_INT32(&doc, "k", bound);
    assert_true(shardkey_encode_bound(key, bdoc_of(&doc), out, &err));
    shardkey_unref(key);
    bson_destroy(&pattern);
    bson_destroy(&doc);
}

static void append_range(bson_t *array, size_t index, int32_t min, int32_t max)
{
    struct buf low = BUF_INIT;
    struct buf high = BUF_INIT;
    bson_t one;
    char name[24];
    append_bound(&low, min);
    append_bound(&high, max);
    snprintf(name, sizeof name, "%zu", index);
    BSON_APPEND_DOCUMENT_BEGIN(array, name, &one);
    bson_append_binary(&one, "min", -1, BSON_SUBTYPE_BINARY, low.data, (uint32_t)low.len);
    bson_append_binary(&one, "max", -1, BSON_SUBTYPE_BINARY, high.data, (uint32_t)high.len);
    bson_append_document_end(array, &one);
    buf_deinit(&low);
    buf_deinit(&high);
}

static void find_uuid(struct world *world)
{
    struct store_txn *txn;
    struct err err;
    assert_true(store_read_begin(world->fixture.store, &txn, &err));
    const struct collection *coll = catalog_find(txn, "t.c", 3);
    assert_non_null(coll);
    memcpy(world->uuid, coll->uuid, 16);
    store_read_end(txn);
}

static void own(struct world *world, int64_t major, const int32_t *bounds, size_t bound_count)
{
    bson_t doc = BSON_INITIALIZER;
    bson_t sub;
    bson_t array;
    BSON_APPEND_UTF8(&doc, "ns", "t.c");
    BSON_APPEND_DOCUMENT_BEGIN(&doc, "database", &sub);
    BSON_APPEND_UTF8(&sub, "_id", "t");
    BSON_APPEND_UTF8(&sub, "primary", "s1");
    bson_append_binary(&sub, "uuid", -1, BSON_SUBTYPE_UUID, world->db_uuid, 16);
    bson_append_document_end(&doc, &sub);
    if (bound_count == 0) {
        BSON_APPEND_NULL(&doc, "collection");
        apply_doc(world, SHARD_KIND_OWNERSHIP, &doc, 0);
        return;
    }
    static const uint8_t unknown[16];
    if (memcmp(world->uuid, unknown, sizeof unknown) == 0)
        find_uuid(world);
    bson_t key = BSON_INITIALIZER;
    BSON_APPEND_INT32(&key, "k", 1);
    BSON_APPEND_DOCUMENT_BEGIN(&doc, "collection", &sub);
    BSON_APPEND_UTF8(&sub, "_id", "t.c");
    bson_append_binary(&sub, "uuid", -1, BSON_SUBTYPE_UUID, world->uuid, 16);
    BSON_APPEND_OID(&sub, "epoch", &world->epoch);
    BSON_APPEND_INT64(&sub, "major", major);
    BSON_APPEND_INT64(&sub, "minor", 0);
    BSON_APPEND_INT64(&sub, "timestamp", 1);
    BSON_APPEND_DOCUMENT(&sub, "key", &key);
    BSON_APPEND_BOOL(&sub, "unique", false);
    BSON_APPEND_ARRAY_BEGIN(&sub, "ranges", &array);
    for (size_t i = 0; i + 1 < bound_count; i++)
        append_range(&array, i, bounds[i], bounds[i + 1]);
    bson_append_array_end(&sub, &array);
    bson_append_document_end(&doc, &sub);
    bson_destroy(&key);
    apply_doc(world, SHARD_KIND_OWNERSHIP, &doc, 0);
}

/* A command with a $sherdVersion: of the database, or of the collection at `major`. */
static bson_t *run_versioned(struct world *world, const char *json, int64_t major)
{
    bson_error_t error;
    char *text = mem_copy_str(json);
    for (char *at = text; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    bson_t *command = bson_new_from_json((const uint8_t *)text, -1, &error);
    assert_non_null(command);
    bson_t version;
    BSON_APPEND_UTF8(command, "$db", "t");
    BSON_APPEND_DOCUMENT_BEGIN(command, "$sherdVersion", &version);
    if (major < 0) {
        bson_append_binary(&version, "db", -1, BSON_SUBTYPE_UUID, world->db_uuid, 16);
    } else {
        bson_append_binary(&version, "uuid", -1, BSON_SUBTYPE_UUID, world->uuid, 16);
        BSON_APPEND_OID(&version, "epoch", &world->epoch);
        BSON_APPEND_INT64(&version, "major", major);
        BSON_APPEND_INT64(&version, "minor", 0);
    }
    bson_append_document_end(command, &version);
    bson_t *reply = fixture_run_bson(&world->fixture, command);
    bson_destroy(command);
    mem_free(text);
    return reply;
}

/* `path` is where the code stands. */
static void expect_code(struct world *world, const char *json, int64_t major, const char *path, int64_t code)
{
    bson_t *reply = run_versioned(world, json, major);
    assert_int_equal(fixture_i64(reply, path), code);
    bson_destroy(reply);
}

static void make_collection(struct world *world)
{
    fixture_expect(&world->fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'k': 1}, 'name': 'k_1'}]}",
                   "{'ok': 1.0}");
}

static void ownership_unsharded_needs_the_database_version(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    expect_code(&world, "{'insert': 'c', 'documents': [{'_id': 1}]}", -1, "code", 13388);
    own(&world, 0, NULL, 0);
    expect_code(&world, "{'insert': 'c', 'documents': [{'_id': 1}]}", -1, "n", 1);
    expect_code(&world, "{'count': 'c'}", -1, "n", 1);
    world.db_uuid[0] ^= 1;
    expect_code(&world, "{'count': 'c'}", -1, "code", 13388);
    world.db_uuid[0] ^= 1;
    find_uuid(&world);
    expect_code(&world, "{'count': 'c'}", 1, "code", 13388);
    world_close(&world);
}

static void ownership_sharded_checks_version_and_each_key(void **state)
{
    (void)state;
    struct world world;
    const int32_t bounds[] = {0, 10, 20};
    world_open(&world);
    make_collection(&world);
    own(&world, 2, bounds, 3);
    expect_code(&world, "{'insert': 'c', 'documents': [{'_id': 1, 'k': 0}, {'_id': 2, 'k': 19}]}", 2, "n", 2);
    expect_code(&world, "{'insert': 'c', 'documents': [{'_id': 3, 'k': 5}, {'_id': 4, 'k': 20}]}", 2,
                "writeErrors.0.code", 13388);
    expect_code(&world, "{'insert': 'c', 'documents': [{'_id': 5}]}", 2, "writeErrors.0.code", 13388);
    expect_code(&world, "{'insert': 'c', 'documents': [{'_id': 6, 'k': [5]}]}", 2, "writeErrors.0.code", 61);
    expect_code(&world, "{'count': 'c'}", 2, "n", 3);
    expect_code(&world, "{'count': 'c'}", 1, "code", 13388);
    expect_code(&world, "{'count': 'c'}", 3, "code", 13388);
    expect_code(&world, "{'count': 'c'}", -1, "code", 13388);
    world_close(&world);
}

static void ownership_key_change_stays_or_is_refused(void **state)
{
    (void)state;
    struct world world;
    const int32_t bounds[] = {0, 10, 20};
    world_open(&world);
    make_collection(&world);
    own(&world, 1, bounds, 3);
    expect_code(&world, "{'insert': 'c', 'documents': [{'_id': 1, 'k': 5}]}", 1, "n", 1);
    expect_code(&world, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'k': 15}}}]}", 1, "nModified", 1);
    expect_code(&world, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'k': 25}}}]}", 1,
                "writeErrors.0.code", 283);
    expect_code(&world, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'k': [1]}}}]}", 1,
                "writeErrors.0.code", 61);
    expect_code(&world, "{'update': 'c', 'updates': [{'q': {'k': 99}, 'u': {'$set': {'x': 1}}, 'upsert': true}]}", 1,
                "writeErrors.0.code", 13388);
    world_close(&world);
}

/* Counter of the range that begins at `min`; -1: there is none. */
static int64_t docs_of(struct world *world, int32_t min)
{
    struct store_txn *txn;
    struct err err;
    struct counter counter;
    struct buf key = BUF_INIT;
    append_bound(&key, min);
    assert_true(store_read_begin(world->fixture.store, &txn, &err));
    bool found = counter_range(txn, catalog_find(txn, "t.c", 3), key.data, key.len, &counter);
    store_read_end(txn);
    buf_deinit(&key);
    return found ? counter.docs : -1;
}

static void ownership_counts_documents_of_each_range(void **state)
{
    (void)state;
    struct world world;
    const int32_t bounds[] = {0, 10, 20};
    world_open(&world);
    make_collection(&world);
    own(&world, 1, bounds, 3);
    expect_code(&world, "{'insert': 'c', 'documents': [{'_id': 1, 'k': 5}, {'_id': 2, 'k': 6}, {'_id': 3, 'k': 15}]}",
                1, "n", 3);
    assert_int_equal(docs_of(&world, 0), 2);
    assert_int_equal(docs_of(&world, 10), 1);
    expect_code(&world, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'k': 11}}}]}", 1, "nModified", 1);
    assert_int_equal(docs_of(&world, 0), 1);
    assert_int_equal(docs_of(&world, 10), 2);
    expect_code(&world, "{'delete': 'c', 'deletes': [{'q': {}, 'limit': 0}]}", 1, "n", 3);
    assert_int_equal(docs_of(&world, 0), 0);
    assert_int_equal(docs_of(&world, 10), 0);
    world_close(&world);
}

static void insert_many(struct world *world, int from, int count)
{
    bson_t command = BSON_INITIALIZER;
    bson_t array;
    BSON_APPEND_UTF8(&command, "insert", "c");
    BSON_APPEND_ARRAY_BEGIN(&command, "documents", &array);
    for (int i = 0; i < count; i++) {
        bson_t doc;
        char name[24];
        snprintf(name, sizeof name, "%d", i);
        BSON_APPEND_DOCUMENT_BEGIN(&array, name, &doc);
        BSON_APPEND_INT32(&doc, "_id", from + i);
        BSON_APPEND_INT32(&doc, "k", (from + i) % 100);
        bson_append_document_end(&array, &doc);
    }
    bson_append_array_end(&command, &array);
    BSON_APPEND_UTF8(&command, "$db", "t");
    bson_t *reply = fixture_run_bson(&world->fixture, &command);
    assert_int_equal(fixture_i64(reply, "n"), count);
    bson_destroy(reply);
    bson_destroy(&command);
}

static void recount_once(struct world *world)
{
    bson_t doc = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&doc, "ns", "t.c");
    bson_append_binary(&doc, "uuid", -1, BSON_SUBTYPE_UUID, world->uuid, 16);
    BSON_APPEND_INT32(&doc, "max", 700);
    apply_doc(world, SHARD_KIND_RECOUNT, &doc, 0);
}

static bool is_pending(struct world *world)
{
    struct store_txn *txn;
    struct err err;
    assert_true(store_read_begin(world->fixture.store, &txn, &err));
    struct ownership_table *table = ownership_table_get(&world->shard.ownership, txn);
    store_read_end(txn);
    const struct document_view *view = map_get(&table->collections, "t.c", 3);
    bool pending = view->pending != NULL;
    ownership_table_unref(table);
    return pending;
}

/* Writes go on between the steps of the count; it must come out exact all the same. */
static void ownership_split_counts_exactly_under_writes(void **state)
{
    (void)state;
    struct world world;
    const int32_t whole[] = {INT32_MIN, INT32_MAX};
    const int32_t split[] = {INT32_MIN, 30, 31, 70, INT32_MAX};
    world_open(&world);
    make_collection(&world);
    insert_many(&world, 0, 5000);
    own(&world, 1, whole, 2);
    int steps = 0;
    while (is_pending(&world)) {
        recount_once(&world);
        steps++;
    }
    assert_true(steps > 2);
    assert_int_equal(docs_of(&world, INT32_MIN), 5000);
    own(&world, 2, split, 5);
    steps = 0;
    while (is_pending(&world)) {
        insert_many(&world, 10000 + steps * 100, 100);
        fixture_expect(&world.fixture,
                       "{'delete': 'c', 'deletes': [{'q': {'k': 29}, 'limit': 1}, {'q': {'k': 30}, 'limit': 1}, {'q': "
                       "{'k': 90}, 'limit': 1}]}",
                       "{'n': 3}");
        fixture_expect(&world.fixture,
                       "{'update': 'c', 'updates': [{'q': {'k': 80}, 'u': {'$set': {'k': 1}}}, {'q': {'k': 2}, 'u': "
                       "{'$set': {'k': 99}}}]}",
                       "{'nModified': 2}");
        recount_once(&world);
        steps++;
    }
    for (size_t i = 0; i + 1 < 5; i++) {
        char command[160];
        int32_t high = split[i + 1] == INT32_MAX ? 1000000 : split[i + 1];
        int32_t low = split[i] == INT32_MIN ? -1000000 : split[i];
        snprintf(command, sizeof command, "{'count': 'c', 'query': {'k': {'$gte': %d, '$lt': %d}}}", low, high);
        bson_t *reply = fixture_run(&world.fixture, command);
        assert_int_equal(docs_of(&world, split[i]), fixture_i64(reply, "n"));
        bson_destroy(reply);
    }
    world_close(&world);
}

/* The index that the count walked along becomes multikey, and with it useless, in the middle. */
static void ownership_count_that_loses_its_index_stays_exact(void **state)
{
    (void)state;
    struct world world;
    const int32_t whole[] = {INT32_MIN, INT32_MAX};
    world_open(&world);
    fixture_expect(&world.fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'k': 1, 'a': 1}, 'name': 'k_1_a_1'}]}",
                   "{'ok': 1.0}");
    insert_many(&world, 0, 3000);
    own(&world, 1, whole, 2);
    recount_once(&world);
    assert_true(is_pending(&world));
    assert_true(docs_of(&world, INT32_MIN) > 0);
    fixture_expect(&world.fixture, "{'insert': 'c', 'documents': [{'_id': 5000, 'k': 5, 'a': [1, 2]}]}", "{'n': 1}");
    while (is_pending(&world))
        recount_once(&world);
    assert_int_equal(docs_of(&world, INT32_MIN), 3001);
    world_close(&world);
}

static void ownership_hides_documents_of_lost_ranges(void **state)
{
    (void)state;
    struct world world;
    const int32_t whole[] = {INT32_MIN, INT32_MAX};
    const int32_t part[] = {0, 50};
    world_open(&world);
    make_collection(&world);
    insert_many(&world, 0, 200);
    own(&world, 1, whole, 2);
    expect_code(&world, "{'count': 'c'}", 1, "n", 200);
    own(&world, 2, part, 2);
    expect_code(&world, "{'count': 'c'}", 2, "n", 100);
    expect_code(&world, "{'count': 'c', 'query': {'k': {'$gte': 40}}}", 2, "n", 20);
    expect_code(&world, "{'delete': 'c', 'deletes': [{'q': {}, 'limit': 0}]}", 2, "n", 100);
    /* A foreign document is no conflict for a unique key, and can't be written. */
    expect_code(&world, "{'update': 'c', 'updates': [{'q': {'_id': 60}, 'u': {'$set': {'x': 1}}}]}", 2, "n", 0);
    world_close(&world);
}

static void cursor_keeps_the_ownership_it_was_opened_under(void **state)
{
    (void)state;
    struct world world;
    char command[160];
    const int32_t whole[] = {INT32_MIN, INT32_MAX};
    const int32_t part[] = {0, 50};
    world_open(&world);
    make_collection(&world);
    insert_many(&world, 0, 100);
    own(&world, 1, whole, 2);
    bson_t *reply = run_versioned(&world, "{'find': 'c', 'batchSize': 10}", 1);
    int64_t old_cursor = fixture_i64(reply, "cursor.id");
    bson_destroy(reply);
    own(&world, 2, part, 2);
    reply = run_versioned(&world, "{'find': 'c', 'batchSize': 10}", 2);
    int64_t new_cursor = fixture_i64(reply, "cursor.id");
    bson_destroy(reply);
    snprintf(command, sizeof command, "{'getMore': {'$numberLong': '%lld'}, 'collection': 'c'}", (long long)old_cursor);
    reply = fixture_run(&world.fixture, command);
    assert_int_equal(fixture_i64(reply, "cursor.nextBatch.89._id"), 99);
    bson_destroy(reply);
    snprintf(command, sizeof command, "{'getMore': {'$numberLong': '%lld'}, 'collection': 'c'}", (long long)new_cursor);
    reply = fixture_run(&world.fixture, command);
    assert_int_equal(fixture_i64(reply, "cursor.nextBatch.39._id"), 49);
    assert_int_equal(fixture_i64(reply, "cursor.id"), 0);
    bson_destroy(reply);
    world_close(&world);
}

static void ownership_older_knowledge_changes_nothing(void **state)
{
    (void)state;
    struct world world;
    const int32_t whole[] = {INT32_MIN, INT32_MAX};
    const int32_t part[] = {0, 50};
    world_open(&world);
    make_collection(&world);
    own(&world, 5, whole, 2);
    own(&world, 4, part, 2);
    expect_code(&world, "{'insert': 'c', 'documents': [{'_id': 1, 'k': 70}]}", 5, "n", 1);
    world_close(&world);
}

static void prepare(struct world *world, const uint8_t op[16], int expected_code)
{
    bson_t doc = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&doc, "ns", "t.c");
    bson_append_binary(&doc, "uuid", -1, BSON_SUBTYPE_UUID, world->uuid, 16);
    bson_append_binary(&doc, "op", -1, BSON_SUBTYPE_UUID, op, 16);
    BSON_APPEND_INT64(&doc, "at", 1);
    apply_doc(world, SHARD_KIND_PREPARE, &doc, expected_code);
}

static void prepare_blocks_writes_until_the_outcome_is_known(void **state)
{
    (void)state;
    struct world world;
    const int32_t whole[] = {INT32_MIN, INT32_MAX};
    uint8_t op[16] = {1};
    uint8_t other[16] = {2};
    world_open(&world);
    own(&world, 0, NULL, 0);
    make_collection(&world);
    find_uuid(&world);
    prepare(&world, op, 0);
    prepare(&world, op, 0);
    /* A late message of an operation that was given up: its end would end the block. */
    prepare(&world, other, 46);
    bson_t *reply = run_versioned(&world, "{'insert': 'c', 'documents': [{'_id': 1}]}", -1);
    assert_int_equal(fixture_i64(reply, "code"), 46);
    assert_int_equal(fixture_i64(reply, "notExecuted"), 1);
    bson_destroy(reply);
    bson_t wrong = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&wrong, "ns", "t.c");
    bson_append_binary(&wrong, "op", -1, BSON_SUBTYPE_UUID, other, 16);
    apply_doc(&world, SHARD_KIND_UNPREPARE, &wrong, 0);
    expect_code(&world, "{'insert': 'c', 'documents': [{'_id': 1}]}", -1, "code", 46);
    own(&world, 1, whole, 2);
    expect_code(&world, "{'insert': 'c', 'documents': [{'_id': 1, 'k': 1}]}", 1, "n", 1);
    /* A collection with documents isn't prepared. */
    prepare(&world, op, 20);
    world_close(&world);
}

static void ownership_indexes_of_a_sharded_collection_are_guarded(void **state)
{
    (void)state;
    struct world world;
    const int32_t whole[] = {INT32_MIN, INT32_MAX};
    world_open(&world);
    make_collection(&world);
    own(&world, 1, whole, 2);
    fixture_expect_error(&world.fixture,
                         "{'createIndexes': 'c', 'indexes': [{'key': {'x': 1}, 'name': 'x', 'unique': true}]}", 67);
    fixture_expect(&world.fixture,
                   "{'createIndexes': 'c', 'indexes': [{'key': {'k': 1, 'x': 1}, 'name': 'kx', 'unique': true}]}",
                   "{'numIndexesAfter': 3}");
    fixture_expect(&world.fixture, "{'dropIndexes': 'c', 'index': 'k_1'}", "{'nIndexesWas': 3}");
    fixture_expect_error(&world.fixture, "{'dropIndexes': 'c', 'index': 'kx'}", 303);
    fixture_expect(&world.fixture, "{'dropIndexes': 'c', 'index': '*'}", "{'nIndexesWas': 2}");
    fixture_expect(&world.fixture, "{'listIndexes': 'c'}", "{'ok': 1.0}");
    world_close(&world);
}

static void drop_forgets_ownership(void **state)
{
    (void)state;
    struct world world;
    const int32_t whole[] = {INT32_MIN, INT32_MAX};
    world_open(&world);
    make_collection(&world);
    own(&world, 1, whole, 2);
    bson_t doc = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&doc, "ns", "t.c");
    bson_append_binary(&doc, "uuid", -1, BSON_SUBTYPE_UUID, world.uuid, 16);
    apply_doc(&world, SHARD_KIND_DROP, &doc, 0);
    expect_code(&world, "{'count': 'c'}", 1, "code", 13388);
    expect_code(&world, "{'count': 'c'}", -1, "n", 0);
    fixture_expect(&world.fixture, "{'dropDatabase': 1}", "{'ok': 1.0}");
    expect_code(&world, "{'count': 'c'}", -1, "code", 13388);
    world_close(&world);
}

/* The config service still has the collection when its drop has been through here. */
static void ownership_without_its_collection_takes_no_writes(void **state)
{
    (void)state;
    struct world world;
    const int32_t whole[] = {INT32_MIN, INT32_MAX};
    world_open(&world);
    make_collection(&world);
    own(&world, 1, whole, 2);
    bson_t doc = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&doc, "ns", "t.c");
    bson_append_binary(&doc, "uuid", -1, BSON_SUBTYPE_UUID, world.uuid, 16);
    apply_doc(&world, SHARD_KIND_DROP, &doc, 0);
    own(&world, 1, whole, 2);
    expect_code(&world, "{'insert': 'c', 'documents': [{'_id': 1, 'k': 1}]}", 1, "code", 13388);
    fixture_expect_error(&world.fixture, "{'listIndexes': 'c'}", 26);
    world_close(&world);
}

static void identity_of_another_cluster_is_refused(void **state)
{
    (void)state;
    struct world world;
    bson_oid_t cluster;
    world_open(&world);
    set_identity(&world);
    memset(&cluster, 2, sizeof cluster);
    bson_t doc = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&doc, "shardName", "s1");
    BSON_APPEND_OID(&doc, "clusterId", &cluster);
    BSON_APPEND_UTF8(&doc, "configdb", "config/h:1");
    apply_doc(&world, SHARD_KIND_IDENTITY, &doc, 20);
    world_close(&world);
}

static void shard_log_gives_the_same_store_on_another_member(void **state)
{
    (void)state;
    struct world world;
    struct world copy;
    const int32_t whole[] = {INT32_MIN, INT32_MAX};
    const int32_t split[] = {INT32_MIN, 30, INT32_MAX};
    world_open(&world);
    make_collection(&world);
    insert_many(&world, 0, 3000);
    own(&world, 1, whole, 2);
    recount_once(&world);
    own(&world, 2, split, 3);
    insert_many(&world, 5000, 300);
    recount_once(&world);
    recount_once(&world);
    memset(&copy, 0, sizeof copy);
    ownership_init(&copy.shard.ownership);
    refresher_init(&copy.shard.refresher);
    fixture_open_with(&copy.fixture, ownership_hooks(&copy.shard.ownership));
    copy.fixture.apply_other = apply_shard_kind;
    copy.fixture.apply_other_arg = &copy.shard;
    fixture_replay(&world.fixture, &copy.fixture);
    assert_int_equal(fixture_hash(&world.fixture), fixture_hash(&copy.fixture));
    world_close(&world);
    world_close(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ownership_unsharded_needs_the_database_version),
        cmocka_unit_test(ownership_sharded_checks_version_and_each_key),
        cmocka_unit_test(ownership_key_change_stays_or_is_refused),
        cmocka_unit_test(ownership_counts_documents_of_each_range),
        cmocka_unit_test(ownership_split_counts_exactly_under_writes),
        cmocka_unit_test(ownership_count_that_loses_its_index_stays_exact),
        cmocka_unit_test(ownership_hides_documents_of_lost_ranges),
        cmocka_unit_test(cursor_keeps_the_ownership_it_was_opened_under),
        cmocka_unit_test(ownership_older_knowledge_changes_nothing),
        cmocka_unit_test(prepare_blocks_writes_until_the_outcome_is_known),
        cmocka_unit_test(ownership_indexes_of_a_sharded_collection_are_guarded),
        cmocka_unit_test(drop_forgets_ownership),
        cmocka_unit_test(ownership_without_its_collection_takes_no_writes),
        cmocka_unit_test(identity_of_another_cluster_is_refused),
        cmocka_unit_test(shard_log_gives_the_same_store_on_another_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
