#include "support.h"

#include "cluster/fields.h"
#include "cluster/version.h"

static const struct chunk_version base = {.epoch.bytes = {1}, .major = 3, .minor = 7};

static void chunk_version_compare_orders_by_major_then_minor(void **state)
{
    (void)state;
    struct chunk_version other = base;
    assert_int_equal(chunk_version_compare(&base, &other), VERSION_SAME);
    other.minor = 8;
    assert_int_equal(chunk_version_compare(&base, &other), VERSION_OLDER);
    assert_int_equal(chunk_version_compare_major(&base, &other), VERSION_SAME);
    other = (struct chunk_version){.epoch = base.epoch, .major = 2, .minor = 900};
    assert_int_equal(chunk_version_compare(&base, &other), VERSION_NEWER);
    assert_int_equal(chunk_version_compare_major(&base, &other), VERSION_NEWER);
}

static void chunk_version_compare_other_epoch_is_unrelated(void **state)
{
    (void)state;
    struct chunk_version other = base;
    other.epoch.bytes[0] = 2;
    assert_int_equal(chunk_version_compare(&base, &other), VERSION_UNRELATED);
    assert_false(chunk_version_is_set(&(struct chunk_version){.major = 1}));
    assert_true(chunk_version_is_set(&base));
}

static void chunk_version_timestamp_round_trips(void **state)
{
    (void)state;
    struct chunk_version copy = {0};
    uint64_t timestamp = chunk_version_to_timestamp(&base);
    assert_true(timestamp == ((uint64_t)3 << 32 | 7));
    chunk_version_set_timestamp(&copy, timestamp);
    assert_int_equal(copy.major, 3);
    assert_int_equal(copy.minor, 7);
}

static void chunk_version_parse_refuses_numbers_out_of_range(void **state)
{
    (void)state;
    struct arena arena;
    struct err err;
    struct chunk_version out;
    arena_init(&arena);
    const char *bad[] = {
        "{\"epoch\": {\"$oid\": \"000000000000000000000001\"}, \"major\": -1, \"minor\": 0}",
        "{\"epoch\": {\"$oid\": \"000000000000000000000001\"}, \"major\": 0, \"minor\": 4294967296}",
        "{\"epoch\": {\"$oid\": \"000000000000000000000001\"}, \"major\": 1.5, \"minor\": 0}",
        "{\"epoch\": 1, \"major\": 1, \"minor\": 0}",
        "{\"major\": 1, \"minor\": 0}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(chunk_version_parse(json_doc(&arena, bad[i]), &out, &err));
    }
    arena_deinit(&arena);
}

static void append_pair(bson_t *array, const char *index, const char *min, const char *max)
{
    bson_t pair;
    bson_append_array_begin(array, index, -1, &pair);
    bson_append_binary(&pair, "0", -1, BSON_SUBTYPE_BINARY, (const uint8_t *)min, (uint32_t)strlen(min));
    bson_append_binary(&pair, "1", -1, BSON_SUBTYPE_BINARY, (const uint8_t *)max, (uint32_t)strlen(max));
    bson_append_array_end(array, &pair);
}

static bool parse_back(const struct op_version *version, struct op_version *out, bson_t *request, struct err *err)
{
    bson_init(request);
    op_version_append(request, version);
    struct bdoc doc;
    return field_doc(bdoc_of(request), OP_VERSION_FIELD, &doc, err) && op_version_parse(doc, out, err);
}

static void op_version_collection_round_trips(void **state)
{
    (void)state;
    bson_t ranges = BSON_INITIALIZER;
    append_pair(&ranges, "0", "", "b");
    append_pair(&ranges, "1", "b", "\xff");
    struct op_version version = {
        .kind = OP_VERSION_COLLECTION, .uuid = {9, 8, 7}, .version = base, .ranges = bdoc_of(&ranges)};
    struct op_version out;
    bson_t request;
    struct err err;
    assert_true(parse_back(&version, &out, &request, &err));
    assert_int_equal(out.kind, OP_VERSION_COLLECTION);
    assert_memory_equal(out.uuid, version.uuid, sizeof out.uuid);
    assert_int_equal(chunk_version_compare(&out.version, &base), VERSION_SAME);
    assert_true(bdoc_same(out.ranges, version.ranges));
    bson_destroy(&request);
    bson_destroy(&ranges);
}

static void op_version_database_round_trips(void **state)
{
    (void)state;
    struct op_version version = {.kind = OP_VERSION_DATABASE, .db_uuid = {5, 6}};
    struct op_version out;
    bson_t request;
    struct err err;
    assert_true(parse_back(&version, &out, &request, &err));
    assert_int_equal(out.kind, OP_VERSION_DATABASE);
    assert_memory_equal(out.db_uuid, version.db_uuid, sizeof out.db_uuid);
    bson_destroy(&request);
}

static void op_version_parse_refuses_unsorted_and_empty_ranges(void **state)
{
    (void)state;
    const char *bad[][4] = {{"b", "c", "a", "b"}, {"a", "c", "b", "d"}, {"b", "b", "c", "d"}, {"c", "b", "c", "d"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bson_t ranges = BSON_INITIALIZER;
        append_pair(&ranges, "0", bad[i][0], bad[i][1]);
        append_pair(&ranges, "1", bad[i][2], bad[i][3]);
        struct op_version version = {.kind = OP_VERSION_COLLECTION, .version = base, .ranges = bdoc_of(&ranges)};
        struct op_version out;
        bson_t request;
        struct err err;
        assert_false(parse_back(&version, &out, &request, &err));
        assert_int_equal(err.code, ERR_BadValue);
        bson_destroy(&request);
        bson_destroy(&ranges);
    }
}

static void stale_config_details_carry_the_wanted_version(void **state)
{
    (void)state;
    struct err err;
    struct chunk_version received = base;
    received.major = 1;
    assert_false(stale_config_set(&err, "db.c", "shard1", &received, &base));
    assert_int_equal(err.code, ERR_StaleConfig);
    struct chunk_version wanted;
    struct bdoc details = {.data = err.details, .len = err.details_len};
    assert_true(stale_config_wanted(details, &wanted));
    assert_int_equal(chunk_version_compare(&wanted, &base), VERSION_SAME);
    stale_config_set(&err, "db.c", "shard1", &received, NULL);
    assert_false(stale_config_wanted((struct bdoc){.data = err.details, .len = err.details_len}, &wanted));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunk_version_compare_orders_by_major_then_minor),
        cmocka_unit_test(chunk_version_compare_other_epoch_is_unrelated),
        cmocka_unit_test(chunk_version_timestamp_round_trips),
        cmocka_unit_test(chunk_version_parse_refuses_numbers_out_of_range),
        cmocka_unit_test(op_version_collection_round_trips),
        cmocka_unit_test(op_version_database_round_trips),
        cmocka_unit_test(op_version_parse_refuses_unsorted_and_empty_ranges),
        cmocka_unit_test(stale_config_details_carry_the_wanted_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
