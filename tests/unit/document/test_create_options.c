#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include <stdio.h>

/* The options of collection "c" as they are listed. */
static void expect_options(struct fixture *fixture, const char *name, const char *options)
{
    char command[256];
    char expected[1024];
    snprintf(command, sizeof command, "{'listCollections': 1, 'filter': {'name': '%s'}}", name);
    bson_t *reply = fixture_run(fixture, command);
    struct bval cursor;
    struct bval batch;
    struct bval first;
    struct bval found;
    assert_true(bdoc_find(bdoc_of(reply), "cursor", &cursor) && bdoc_find(bval_doc(&cursor), "firstBatch", &batch) &&
                bdoc_find(bval_doc(&batch), "0", &first) && bdoc_find(bval_doc(&first), "options", &found));
    bson_t view;
    bdoc_to_bson(bval_doc(&found), &view);
    char *text = bson_as_relaxed_extended_json(&view, NULL);
    size_t len = 0;
    for (const char *at = options; *at != '\0'; at++)
        expected[len++] = *at == '\'' ? '"' : *at;
    expected[len] = '\0';
    assert_string_equal(text, expected);
    bson_free(text);
    bson_destroy(reply);
}

static void options_are_stored_in_one_form_whatever_their_order(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture,
                   "{'create': 'c', 'validationAction': 'warn', 'validator': {'a': 1}, 'max': 3, 'size': 1000,"
                   " 'capped': true, 'comment': 'x', 'changeStreamPreAndPostImages': {'enabled': true}}",
                   "{'ok': 1.0}");
    expect_options(&fixture, "c",
                   "{ 'capped' : true, 'size' : 1024, 'max' : 3, 'changeStreamPreAndPostImages' : { 'enabled' : true },"
                   " 'validator' : { 'a' : 1 }, 'validationAction' : 'warn' }");
    fixture_expect(&fixture,
                   "{'create': 'c', 'capped': true, 'size': 1024, 'max': 3, 'validator': {'a': 1},"
                   " 'changeStreamPreAndPostImages': {'enabled': true}, 'validationAction': 'warn'}",
                   "{'ok': 1.0}");
    fixture_expect_error(&fixture, "{'create': 'c', 'capped': true, 'size': 2048}", 48);
    fixture_expect_error(&fixture, "{'create': 'c'}", 48);
    fixture_close(&fixture);
}

static void options_that_mean_nothing_are_not_stored(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture,
                   "{'create': 'c', 'validator': {}, 'storageEngine': {}, 'capped': false,"
                   " 'changeStreamPreAndPostImages': {'enabled': false}, 'collation': {'locale': 'simple'}}",
                   "{'ok': 1.0}");
    expect_options(&fixture, "c", "{ }");
    fixture_expect(&fixture, "{'create': 'c'}", "{'ok': 1.0}");
    fixture_close(&fixture);
}

static void create_refuses_wrong_types_and_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        int code;
    } cases[] = {
        {"'nonsense': 1", 40415},
        {"'capped': 'x', 'size': 1", 14},
        {"'capped': true, 'size': 'x'", 14},
        {"'capped': true, 'size': 0", 51024},
        {"'capped': true, 'size': {'$numberLong': '1125899906842625'}", 51024},
        {"'capped': true, 'size': 1, 'max': {'$numberLong': '2147483648'}", 51024},
        {"'validator': 1", 14},
        {"'validator': {'a': {'$nonsense': 1}}", 2},
        {"'validationLevel': 1", 14},
        {"'validationLevel': 'x'", 2},
        {"'validationAction': 'x'", 2},
        {"'storageEngine': {'other': {}}", 72},
        {"'storageEngine': {'wiredTiger': 1}", 2},
        {"'indexOptionDefaults': {'x': 1}", 40415},
        {"'collation': {}", 40414},
        {"'idIndex': {'key': {'a': 1}, 'name': 'x'}", 2},
        {"'changeStreamPreAndPostImages': {}", 40414},
        {"'changeStreamPreAndPostImages': {'enabled': 'x'}", 14},
        {"'changeStreamPreAndPostImages': {'enabled': true, 'x': 1}", 40415},
        {"'clusteredIndex': {'key': {'_id': 1}}", 40414},
        {"'clusteredIndex': {'key': {'_id': -1}, 'unique': true}", 197},
        {"'clusteredIndex': {'key': {'_id': 1}, 'unique': false}", 197},
        {"'clusteredIndex': {'key': {'_id': 1}, 'unique': true, 'x': 1}", 40415},
        {"'clusteredIndex': 1", 14},
        {"'timeseries': {}", 40414},
        {"'timeseries': {'timeField': 'a', 'granularity': 'days'}", 2},
        {"'timeseries': {'timeField': 'a', 'bucketMaxSpanSeconds': 0, 'bucketRoundingSeconds': 0}", 51024},
        {"'encryptedFields': {'fields': []}", 238},
    };
    struct fixture fixture;
    fixture_open(&fixture);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char command[512];
        snprintf(command, sizeof command, "{'create': 'c', %s}", cases[i].options);
        fixture_expect_error(&fixture, command, cases[i].code);
    }
    fixture_expect_batch(&fixture, "{'listCollections': 1}", "[]");
    fixture_close(&fixture);
}

static void create_refuses_options_that_exclude_each_other(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "'capped': true",
        "'size': 100",
        "'max': 100",
        "'temp': true",
        "'autoIndexId': false",
        "'pipeline': []",
        "'expireAfterSeconds': 5",
        "'viewOn': 'x', 'capped': true, 'size': 5",
        "'viewOn': 'x', 'validator': {'a': 1}",
        "'viewOn': 'x', 'changeStreamPreAndPostImages': {'enabled': true}",
        "'timeseries': {'timeField': 't'}, 'capped': true, 'size': 5",
        "'timeseries': {'timeField': 't'}, 'viewOn': 'x'",
        "'timeseries': {'timeField': 't'}, 'validator': {'a': 1}",
        "'timeseries': {'timeField': 't', 'metaField': 't'}",
        "'timeseries': {'timeField': 't', 'metaField': '_id'}",
        "'timeseries': {'timeField': 'a.b'}",
        "'timeseries': {'timeField': 't', 'bucketMaxSpanSeconds': 5}",
        "'timeseries': {'timeField': 't', 'granularity': 'hours', 'bucketRoundingSeconds': 5}",
        "'timeseries': {'timeField': 't'}, 'expireAfterSeconds': -1",
        "'clusteredIndex': true",
    };
    struct fixture fixture;
    fixture_open(&fixture);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char command[512];
        snprintf(command, sizeof command, "{'create': 'c', %s}", cases[i]);
        fixture_expect_error(&fixture, command, 72);
    }
    fixture_expect_error(&fixture,
                         "{'create': 'c', 'clusteredIndex': {'key': {'_id': 1}, 'unique': true}, 'capped': true,"
                         " 'size': 5}",
                         6127800);
    fixture_close(&fixture);
}

static void clustered_collections_name_their_index_and_keep_id_order(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture,
                   "{'create': 'c', 'clusteredIndex': {'key': {'_id': 1}, 'unique': true, 'name': 'mine'},"
                   " 'expireAfterSeconds': 60}",
                   "{'ok': 1.0}");
    expect_options(&fixture, "c",
                   "{ 'expireAfterSeconds' : 60, 'clusteredIndex' : { 'v' : 2, 'key' : { '_id' : 1 }, 'name' : 'mine',"
                   " 'unique' : true } }");
    fixture_expect_batch(&fixture, "{'listIndexes': 'c'}",
                         "[{'v': 2, 'key': {'_id': 1}, 'name': 'mine', 'unique': true, 'clustered': true}]");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 2}, {'_id': 1}, {'_id': 1}], 'ordered': false}",
                   "{'n': 2}");
    fixture_close(&fixture);
}

static void timeseries_take_dates_only_and_ids_twice(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c', 'timeseries': {'timeField': 't', 'metaField': 'm'}}", "{'ok': 1.0}");
    expect_options(&fixture, "c",
                   "{ 'timeseries' : { 'timeField' : 't', 'metaField' : 'm', 'granularity' : 'seconds',"
                   " 'bucketMaxSpanSeconds' : 3600 } }");
    fixture_expect_batch(&fixture, "{'listCollections': 1, 'nameOnly': true}", "[{'name': 'c', 'type': 'timeseries'}]");
    fixture_expect(&fixture,
                   "{'insert': 'c', 'documents': [{'_id': 1, 'm': 1, 't': {'$date': 5}},"
                   " {'_id': 1, 'm': 2, 't': {'$date': 6}}]}",
                   "{'n': 2}");
    bson_t *reply = fixture_run(&fixture, "{'insert': 'c', 'documents': [{'_id': 3, 't': 5}, {'_id': 4}],"
                                          " 'ordered': false}");
    assert_int_equal(fixture_i64(reply, "writeErrors.0.code"), 2);
    assert_int_equal(fixture_i64(reply, "writeErrors.1.code"), 2);
    bson_destroy(reply);
    fixture_expect(&fixture, "{'delete': 'c', 'deletes': [{'q': {'_id': 1}, 'limit': 0}]}", "{'n': 2}");
    fixture_close(&fixture);
}

static void timeseries_updates_are_of_the_meta_field_only(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "{'q': {'m': 1}, 'u': {'$set': {'m': 2}}}",
        "{'q': {'m': 1}, 'u': {'$set': {'x': 2}}, 'multi': true}",
        "{'q': {'x': 1}, 'u': {'$set': {'m': 2}}, 'multi': true}",
        "{'q': {'$or': [{'m': 1}, {'x': 1}]}, 'u': {'$set': {'m': 2}}, 'multi': true}",
        "{'q': {'m': 1}, 'u': {'$rename': {'m.a': 'x'}}, 'multi': true}",
        "{'q': {'m': 1}, 'u': [{'$set': {'m': 2}}], 'multi': true}",
        "{'q': {'m': 1}, 'u': {'$set': {'m': 2}}, 'multi': true, 'upsert': true}",
    };
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c', 'timeseries': {'timeField': 't', 'metaField': 'm'}}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'm': 1, 't': {'$date': 5}}]}", "{'n': 1}");
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char command[256];
        snprintf(command, sizeof command, "{'update': 'c', 'updates': [%s]}", refused[i]);
        bson_t *reply = fixture_run(&fixture, command);
        assert_int_equal(fixture_i64(reply, "writeErrors.0.code"), 72);
        bson_destroy(reply);
    }
    fixture_expect(&fixture,
                   "{'update': 'c', 'updates': [{'q': {'$or': [{'m': 1}, {'m.x': 1}]}, 'u': {'$set': {'m': 2}},"
                   " 'multi': true}]}",
                   "{'n': 1, 'nModified': 1}");
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_stored_in_one_form_whatever_their_order),
        cmocka_unit_test(options_that_mean_nothing_are_not_stored),
        cmocka_unit_test(create_refuses_wrong_types_and_ranges),
        cmocka_unit_test(create_refuses_options_that_exclude_each_other),
        cmocka_unit_test(clustered_collections_name_their_index_and_keep_id_order),
        cmocka_unit_test(timeseries_take_dates_only_and_ids_twice),
        cmocka_unit_test(timeseries_updates_are_of_the_meta_field_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
