#include "world.h"

#include "base/random.h"
#include "cluster/fields.h"
#include "cluster/routing.h"
#include "configd/names.h"

#include <stdio.h>

static struct routing_table *full_table(struct world *world, const char *ns)
{
    bson_t *doc = world_routing(world, ns, NULL);
    struct routing_reply reply;
    struct routing_table *table = NULL;
    struct err err;
    if (!routing_reply_parse(bdoc_of(doc), &reply, &err)) {
        fail_msg("%s", err.msg);
    }
    if (reply.collection.data != NULL && !routing_table_build(&reply, &table, &err)) {
        fail_msg("%s: %s", ns, err.msg);
    }
    bson_destroy(doc);
    return table;
}

/* What a router does with an old table: asks for what is newer, and for everything when that doesn't fit. */
static struct routing_table *refreshed_table(struct world *world, const char *ns, struct routing_table *old,
                                             bool *incremental)
{
    bson_t *doc = world_routing(world, ns, routing_table_version(old));
    struct routing_reply reply;
    struct routing_table *table = NULL;
    struct err err;
    assert_true(routing_reply_parse(bdoc_of(doc), &reply, &err));
    *incremental = reply.collection.data != NULL && routing_table_update(old, &reply, &table, &err);
    if (!*incremental && reply.collection.data != NULL) {
        assert_int_equal(err.code, ERR_ConflictingOperationInProgress);
        table = full_table(world, ns);
    }
    bson_destroy(doc);
    return table;
}

static void routing_of_nothing_is_null(void **state)
{
    struct world *world = *state;
    const char *names[] = {"nodb.c", "nodb", "nodb.$cmd"};
    for (size_t i = 0; i < 3; i++) {
        bson_t *doc = world_routing(world, names[i], NULL);
        struct routing_reply reply;
        assert_true(routing_reply_parse(bdoc_of(doc), &reply, NULL));
        assert_null(reply.database.data);
        assert_null(reply.collection.data);
        bson_destroy(doc);
    }
}

static void routing_of_an_unsharded_collection_names_the_database(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 2);
    const char *names[] = {"db.c", "db", "db.$cmd"};
    for (size_t i = 0; i < 3; i++) {
        bson_t *doc = world_routing(world, names[i], NULL);
        struct routing_reply reply;
        struct database_entry entry;
        assert_true(routing_reply_parse(bdoc_of(doc), &reply, NULL));
        assert_true(database_entry_parse(reply.database, &entry, NULL));
        assert_string_equal(entry.primary, "shard0");
        assert_null(reply.collection.data);
        bson_destroy(doc);
    }
}

static void routing_with_a_version_sends_only_what_is_newer(void **state)
{
    struct world *world = *state;
    world_add_shards(world, 3);
    world_shard(world, "db.c", "{\"_id\": \"hashed\"}", ", \"empty\": true, \"numInitialChunks\": 300");
    struct routing_table *table = full_table(world, "db.c");
    assert_int_equal(routing_table_chunk_count(table), 300);
    bson_t *doc = world_routing(world, "db.c", routing_table_version(table));
    struct bdoc chunks;
    assert_true(field_array(bdoc_of(doc), "chunks", &chunks, NULL));
    assert_int_equal(bdoc_count(chunks), 1);
    bson_destroy(doc);
    routing_table_unref(table);
}

/* ---- random histories ---- */

enum { STEPS = 120, NAMES = 3, HISTORY = 40 };

static const char *const names[NAMES] = {"db.a", "db.b", "db.c"};

struct history {
    struct routing_table *tables[HISTORY];
    size_t count;
};

/* Splits a random chunk at a random number; refused when the number lies outside, which is fine. */
static void random_split(struct world *world, const char *ns, struct routing_table *table, struct prng *prng)
{
    size_t index = (size_t)prng_below(prng, routing_table_chunk_count(table));
    const struct chunk *chunk = routing_table_chunk(table, index);
    bool hashed = shardkey_hashed_field(routing_table_key(table)) == 0;
    bson_t request = BSON_INITIALIZER;
    bson_t points;
    bson_append_utf8(&request, "_configsvrSplit", -1, ns, -1);
    bson_append_oid(&request, "epoch", -1, &routing_table_version(table)->epoch);
    append_bdoc(&request, "min", chunk->min);
    append_bdoc(&request, "max", chunk->max);
    bson_append_array_begin(&request, "points", -1, &points);
    int64_t at = hashed ? (int64_t)prng_next(prng) : (int64_t)prng_below(prng, 1000);
    for (uint32_t i = 0; i <= prng_below(prng, 3); i++, at += 1 + (int64_t)prng_below(prng, 50)) {
        char text[16];
        const char *name;
        bson_t point;
        bson_uint32_to_string(i, &name, text, sizeof text);
        bson_append_document_begin(&points, name, -1, &point);
        bson_append_int64(&point, "k", -1, at > INT64_MAX - 100 ? 0 : at);
        bson_append_document_end(&points, &point);
    }
    bson_append_array_end(&request, &points);
    if (!world_change(world, plan_split, &request)) {
        assert_int_equal(world->err.code, ERR_InvalidOptions);
    }
    bson_destroy(&request);
}

static void random_shard(struct world *world, const char *ns, struct prng *prng)
{
    static const char *const keys[] = {"{\"k\": 1}", "{\"k\": \"hashed\"}"};
    bool hashed = prng_below(prng, 2) == 1;
    char options[80] = ", \"empty\": true";
    if (hashed && prng_below(prng, 2) == 0) {
        snprintf(options, sizeof options, ", \"empty\": true, \"numInitialChunks\": %d", 1 + (int)prng_below(prng, 20));
    }
    world_shard(world, ns, keys[hashed], options);
}

static void random_step(struct world *world, struct prng *prng)
{
    const char *ns = names[prng_below(prng, NAMES)];
    struct routing_table *table = full_table(world, ns);
    world->now_ms += (int64_t)prng_below(prng, 3000);
    if (table == NULL) {
        random_shard(world, ns, prng);
    } else if (prng_below(prng, 25) == 0) {
        world_must(world, plan_drop_collection, "{\"_configsvrDropCollection\": \"%s\"}", ns);
    } else if (prng_below(prng, 60) == 0) {
        world_must(world, plan_drop_database, "{\"_configsvrDropDatabase\": \"db\"}");
        world_must(world, plan_create_database, "{\"_configsvrCreateDatabase\": \"db\"}");
    } else {
        random_split(world, ns, table, prng);
    }
    routing_table_unref(table);
}

/* Every remembered table of the collection, refreshed, is the full one. */
static void check_refresh(struct world *world, const char *ns, struct history *history, size_t *incremental_count)
{
    struct routing_table *full = full_table(world, ns);
    for (size_t i = 0; i < history->count; i++) {
        bool incremental;
        struct routing_table *refreshed = refreshed_table(world, ns, history->tables[i], &incremental);
        *incremental_count += incremental;
        assert_true((refreshed == NULL) == (full == NULL));
        assert_true(full == NULL || routing_table_equal(refreshed, full));
        routing_table_unref(refreshed);
    }
    if (full == NULL) {
        return;
    }
    if (history->count == HISTORY) {
        routing_table_unref(history->tables[0]);
        memmove(history->tables, history->tables + 1, (HISTORY - 1) * sizeof history->tables[0]);
        history->count--;
    }
    history->tables[history->count++] = full;
}

static void routing_after_random_changes_refreshes_from_every_version(void **state)
{
    struct world *world = *state;
    struct history histories[NAMES] = {0};
    size_t incremental_count = 0;
    struct prng prng = {.state = 7};
    world_add_shards(world, 3);
    for (int step = 0; step < STEPS; step++) {
        random_step(world, &prng);
        world_check_chunks(world);
        for (size_t i = 0; i < NAMES; i++) {
            check_refresh(world, names[i], &histories[i], &incremental_count);
        }
    }
    /* The test means nothing if every refresh was a full load. */
    assert_true(incremental_count > STEPS);
    for (size_t i = 0; i < NAMES; i++) {
        for (size_t t = 0; t < histories[i].count; t++) {
            routing_table_unref(histories[i].tables[t]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(routing_of_nothing_is_null),
        WORLD_TEST(routing_of_an_unsharded_collection_names_the_database),
        WORLD_TEST(routing_with_a_version_sends_only_what_is_newer),
        WORLD_TEST(routing_after_random_changes_refreshes_from_every_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
