#include "support.h"

#include "cluster/metadata.h"

static void shard_entry_round_trips(void **state)
{
    (void)state;
    struct shard_entry entry = {.name = "shard0", .host = "shard0/h:1,h:2", .draining = true, .topology_time = 77};
    struct shard_entry back;
    struct err err;
    bson_t doc = BSON_INITIALIZER;
    shard_entry_append(&doc, &entry);
    assert_true(shard_entry_parse(bdoc_of(&doc), &back, &err));
    assert_string_equal(back.name, entry.name);
    assert_string_equal(back.host, entry.host);
    assert_true(back.draining);
    assert_true(back.topology_time == 77);
    struct bval val;
    assert_true(bdoc_find(bdoc_of(&doc), "state", &val));
    bson_destroy(&doc);
}

static void database_entry_round_trips(void **state)
{
    (void)state;
    struct database_entry entry = {
        .name = "shop", .primary = "s1", .uuid = {1, 2}, .timestamp = (uint64_t)5 << 32 | 1, .last_mod = 3};
    struct database_entry back;
    struct err err;
    bson_t doc = BSON_INITIALIZER;
    database_entry_append(&doc, &entry);
    assert_true(database_entry_parse(bdoc_of(&doc), &back, &err));
    assert_string_equal(back.name, "shop");
    assert_string_equal(back.primary, "s1");
    assert_memory_equal(back.uuid, entry.uuid, sizeof back.uuid);
    assert_true(back.timestamp == entry.timestamp);
    assert_int_equal(back.last_mod, 3);
    bson_destroy(&doc);
}

static void collection_entry_round_trips(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    struct collection_entry entry = {.ns = "shop.items",
                                     .uuid = {4},
                                     .epoch.bytes = {7},
                                     .timestamp = 9,
                                     .last_mod_ms = 1234,
                                     .key = json_key(&arena, "{\"a\": \"hashed\"}"),
                                     .unique = true,
                                     .no_balance = true};
    struct collection_entry back;
    struct err err;
    bson_t doc = BSON_INITIALIZER;
    collection_entry_append(&doc, &entry);
    assert_true(collection_entry_parse(bdoc_of(&doc), &back, &err));
    assert_string_equal(back.ns, "shop.items");
    assert_true(bson_oid_equal(&back.epoch, &entry.epoch));
    assert_true(shardkey_equal(back.key, entry.key));
    assert_true(back.unique && back.no_balance);
    assert_int_equal(back.last_mod_ms, 1234);
    assert_null(collection_entry_collation(&back).data);
    collection_entry_deinit(&back);
    collection_entry_deinit(&entry);
    bson_destroy(&doc);
    arena_deinit(&arena);
}

static void entry_parse_refuses_missing_and_wrong_fields(void **state)
{
    (void)state;
    struct arena arena;
    struct shard_entry shard;
    struct database_entry db;
    struct collection_entry collection;
    struct err err;
    arena_init(&arena);
    assert_false(shard_entry_parse(json_doc(&arena, "{\"_id\": \"a\"}"), &shard, &err));
    assert_int_equal(err.code, ERR_NoSuchKey);
    assert_false(shard_entry_parse(json_doc(&arena, "{\"_id\": 1, \"host\": \"h:1\"}"), &shard, &err));
    assert_int_equal(err.code, ERR_TypeMismatch);
    assert_false(database_entry_parse(json_doc(&arena, "{\"_id\": \"d\", \"primary\": \"s\"}"), &db, &err));
    assert_false(collection_entry_parse(json_doc(&arena, "{\"_id\": \"d.c\"}"), &collection, &err));
    arena_deinit(&arena);
}

static void ns_check_takes_only_database_dot_collection(void **state)
{
    (void)state;
    struct err err;
    const char *good[] = {"a.b", "a.b.c", "db-1.x$y", "a.b."};
    const char *bad[] = {"", "a", "a.", ".a", "a..b", "a b.c", "a/b.c", "a\"b.c", "$a.b"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(ns_check(good[i], strlen(good[i]), &err));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (ns_check(bad[i], strlen(bad[i]), &err)) {
            fail_msg("accepted '%s'", bad[i]);
        }
        assert_int_equal(err.code, ERR_InvalidNamespace);
    }
    char longest[400];
    memset(longest, 'x', sizeof longest);
    longest[3] = '.';
    assert_true(ns_check(longest, CLUSTER_NS_MAX, &err));
    assert_false(ns_check(longest, CLUSTER_NS_MAX + 1, &err));
    assert_false(ns_check("a.b\0c", 5, &err));
}

static void ns_split_gives_both_parts(void **state)
{
    (void)state;
    char db[CLUSTER_DB_NAME_MAX + 1];
    const char *collection;
    assert_true(ns_split("shop.a.b", 8, db, &collection));
    assert_string_equal(db, "shop");
    assert_string_equal(collection, "a.b");
}

static void host_list_parse_splits_set_and_hosts(void **state)
{
    (void)state;
    struct host_list list;
    struct err err;
    assert_true(host_list_parse("rs0/a:1,[::1]:27017,c.example:65535", &list, &err));
    assert_string_equal(list.set, "rs0");
    assert_int_equal(list.count, 3);
    assert_string_equal(list.hosts[1], "[::1]:27017");
    assert_true(host_list_parse("localhost:5", &list, &err));
    assert_string_equal(list.set, "");
    const char *bad[] = {"", "rs/", "/a:1", "a", "a:0", "a:65536", "a:1,", "rs/a:x", ":1", "a:1,b", "a:"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (host_list_parse(bad[i], &list, &err)) {
            fail_msg("accepted '%s'", bad[i]);
        }
        assert_int_equal(err.code, ERR_FailedToParse);
    }
    assert_false(host_list_parse("s/a:1,a:2,a:3,a:4,a:5,a:6,a:7,a:8,a:9", &list, &err));
}

static void metadata_collection_keeps_its_default_collation(void **state)
{
    (void)state;
    struct arena arena;
    struct err err;
    struct collection_entry entry = {.ns = "d.c", .timestamp = 1};
    struct collection_entry back;
    bson_t doc = BSON_INITIALIZER;
    arena_init(&arena);
    assert_true(shardkey_parse(json_doc(&arena, "{\"a\": 1}"), &entry.key, &err));
    struct bdoc collation = json_doc(&arena, "{\"locale\": \"de\", \"strength\": 2}");
    collection_entry_set_collation(&entry, json_doc(&arena, "{\"locale\": \"en\"}"));
    collection_entry_set_collation(&entry, collation);
    collection_entry_append(&doc, &entry);
    assert_true(collection_entry_parse(bdoc_of(&doc), &back, &err));
    assert_int_equal(collection_entry_collation(&back).len, collation.len);
    assert_memory_equal(collection_entry_collation(&back).data, collation.data, collation.len);
    collection_entry_deinit(&back);
    collection_entry_deinit(&entry);
    bson_destroy(&doc);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metadata_collection_keeps_its_default_collation),
        cmocka_unit_test(shard_entry_round_trips),
        cmocka_unit_test(database_entry_round_trips),
        cmocka_unit_test(collection_entry_round_trips),
        cmocka_unit_test(entry_parse_refuses_missing_and_wrong_fields),
        cmocka_unit_test(ns_check_takes_only_database_dot_collection),
        cmocka_unit_test(ns_split_gives_both_parts),
        cmocka_unit_test(host_list_parse_splits_set_and_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
