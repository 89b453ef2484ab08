/* Replies of a config service for the router's unit tests: the collection db.c, sharded by {a: 1} into [MinKey, 10) on
 * s0, [10, 20) on s1 and [20, MaxKey) on s0, at a version of the caller's choice. */
#ifndef SHERD_TESTS_UNIT_ROUTERD_SUPPORT_H
#define SHERD_TESTS_UNIT_ROUTERD_SUPPORT_H

#include "tests/unit/cmocka_all.h"

#include "base/arena.h"
#include "cluster/routing.h"

#include <stdio.h>
#include <string.h>

static inline struct bdoc json_doc(struct arena *arena, const char *json)
{
    bson_error_t error;
    bson_t *bson = bson_new_from_json((const uint8_t *)json, -1, &error);
    assert_non_null(bson);
    struct bdoc doc = {arena_copy(arena, bson_get_data(bson), bson->len), bson->len};
    bson_destroy(bson);
    return doc;
}

static inline void support_append_chunk(bson_t *chunks, uint32_t index, const struct chunk_spec *spec,
                                        const struct shardkey *key)
{
    struct chunk *chunk;
    struct err err;
    char number[16];
    const char *name;
    bson_t child;
    size_t len = bson_uint32_to_string(index, &name, number, sizeof number);
    assert_true(chunk_new(key, spec, &chunk, &err));
    bson_append_document_begin(chunks, name, (int)len, &child);
    chunk_append(&child, chunk);
    bson_append_document_end(chunks, &child);
    chunk_unref(chunk);
}

/* The answer to _configsvrGetRouting for db.c; `sharded` false: only the database. */
static inline void support_reply(struct arena *arena, bool sharded, int64_t minor, bson_t *out)
{
    struct database_entry db = {.name = "db", .primary = "s0", .uuid = {7}, .timestamp = 1, .last_mod = 1};
    struct collection_entry entry = {.ns = "db.c", .uuid = {1}, .epoch.bytes = {1}, .timestamp = 1};
    struct err err;
    bson_t child;
    BSON_APPEND_DOCUMENT_BEGIN(out, "database", &child);
    database_entry_append(&child, &db);
    bson_append_document_end(out, &child);
    if (!sharded) {
        BSON_APPEND_NULL(out, "collection");
        return;
    }
    assert_true(shardkey_parse(json_doc(arena, "{\"a\": 1}"), &entry.key, &err));
    BSON_APPEND_DOCUMENT_BEGIN(out, "collection", &child);
    collection_entry_append(&child, &entry);
    bson_append_document_end(out, &child);
    static const char *const bounds[] = {"{\"a\": {\"$minKey\": 1}}", "{\"a\": 10}", "{\"a\": 20}",
                                         "{\"a\": {\"$maxKey\": 1}}"};
    static const char *const shards[] = {"s0", "s1", "s0"};
    BSON_APPEND_ARRAY_BEGIN(out, "chunks", &child);
    for (uint32_t i = 0; i < 3; i++) {
        bson_oid_t id = {.bytes = {(uint8_t)(i + 1)}};
        struct chunk_spec spec = {.id = &id,
                                  .uuid = entry.uuid,
                                  .min = json_doc(arena, bounds[i]),
                                  .max = json_doc(arena, bounds[i + 1]),
                                  .shard = shards[i],
                                  .version = {.epoch = entry.epoch, .major = 1, .minor = minor + i},
                                  .since = 1};
        support_append_chunk(&child, i, &spec, entry.key);
    }
    bson_append_array_end(out, &child);
    struct chunk_version version = {.epoch = entry.epoch, .major = 1, .minor = minor + 2};
    chunk_version_append(out, "version", &version);
    collection_entry_deinit(&entry);
}

/* The table itself; the caller ends with routing_table_unref. */
static inline struct routing_table *support_table(struct arena *arena)
{
    bson_t doc = BSON_INITIALIZER;
    struct routing_reply reply;
    struct routing_table *table = NULL;
    struct err err;
    support_reply(arena, true, 0, &doc);
    assert_true(routing_reply_parse(bdoc_of(&doc), &reply, &err));
    assert_true(routing_table_build(&reply, &table, &err));
    bson_destroy(&doc);
    return table;
}

#endif
