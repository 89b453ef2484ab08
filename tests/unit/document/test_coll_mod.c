#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

static void expect_listed(struct fixture *fixture, const char *options)
{
    bson_t *reply = fixture_run(fixture, "{'listCollections': 1, 'filter': {'name': 'c'}}");
    struct bval cursor;
    struct bval batch;
    struct bval first;
    struct bval found;
    assert_true(bdoc_find(bdoc_of(reply), "cursor", &cursor) && bdoc_find(bval_doc(&cursor), "firstBatch", &batch) &&
                bdoc_find(bval_doc(&batch), "0", &first) && bdoc_find(bval_doc(&first), "options", &found));
    bson_t view;
    bdoc_to_bson(bval_doc(&found), &view);
    char *text = bson_as_relaxed_extended_json(&view, NULL);
    assert_string_equal(text, options);
    bson_free(text);
    bson_destroy(reply);
}

static void validators_come_and_go(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c'}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'collMod': 'c', 'validator': {'a': 1}, 'validationAction': 'warn'}", "{'ok': 1.0}");
    expect_listed(&fixture, "{ \"validator\" : { \"a\" : 1 }, \"validationAction\" : \"warn\" }");
    fixture_expect(&fixture, "{'collMod': 'c', 'validator': {}, 'validationLevel': 'off'}", "{'ok': 1.0}");
    expect_listed(&fixture, "{ \"validationLevel\" : \"off\", \"validationAction\" : \"warn\" }");
    fixture_expect(&fixture, "{'collMod': 'c', 'changeStreamPreAndPostImages': {'enabled': true}}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'collMod': 'c', 'changeStreamPreAndPostImages': {'enabled': false}}", "{'ok': 1.0}");
    expect_listed(&fixture, "{ \"validationLevel\" : \"off\", \"validationAction\" : \"warn\" }");
    fixture_close(&fixture);
}

static void coll_mod_refuses_what_the_kind_does_not_have(void **state)
{
    (void)state;
    static const struct {
        const char *command;
        int code;
    } cases[] = {
        {"{'collMod': 'nothing', 'validator': {}}", 26},
        {"{'collMod': 'c', 'nonsense': 1}", 40415},
        {"{'collMod': 'c', 'validator': 1}", 14},
        {"{'collMod': 'c', 'validationLevel': 'x'}", 2},
        {"{'collMod': 'c', 'viewOn': 'x'}", 72},
        {"{'collMod': 'c', 'pipeline': []}", 72},
        {"{'collMod': 'c', 'cappedSize': 4096}", 72},
        {"{'collMod': 'c', 'expireAfterSeconds': 5}", 72},
        {"{'collMod': 'c', 'timeseries': {'granularity': 'hours'}}", 72},
        {"{'collMod': 'c', 'dryRun': true, 'validator': {}}", 72},
        {"{'collMod': 'cap', 'cappedSize': 0}", 51024},
        {"{'collMod': 'v', 'validator': {}}", 72},
        {"{'collMod': 'v', 'viewOn': ''}", 2},
        {"{'collMod': 'v', 'pipeline': [{'$out': 'x'}]}", 167},
        {"{'collMod': 'ts', 'validator': {'a': 1}}", 72},
        {"{'collMod': 'ts', 'timeseries': {'granularity': 'seconds'}}", 72},
        {"{'collMod': 'ts', 'timeseries': {'granularity': 'years'}}", 2},
        {"{'collMod': 'ts', 'expireAfterSeconds': -1}", 72},
        {"{'collMod': 'ts', 'expireAfterSeconds': 'on'}", 72},
        {"{'collMod': 'ts', 'expireAfterSeconds': []}", 14},
    };
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c'}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'create': 'cap', 'capped': true, 'size': 4096}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'create': 'v', 'viewOn': 'c'}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'create': 'ts', 'timeseries': {'timeField': 't', 'granularity': 'minutes'}}",
                   "{'ok': 1.0}");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        fixture_expect_error(&fixture, cases[i].command, cases[i].code);
    fixture_close(&fixture);
}

static void timeseries_buckets_grow_and_expiry_is_switched(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c', 'timeseries': {'timeField': 't', 'metaField': 'm'}}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'collMod': 'c', 'timeseries': {'granularity': 'hours'}, 'expireAfterSeconds': 60}",
                   "{'ok': 1.0}");
    expect_listed(&fixture, "{ \"expireAfterSeconds\" : 60, \"timeseries\" : { \"timeField\" : \"t\", \"metaField\" : "
                            "\"m\", \"granularity\" : \"hours\", \"bucketMaxSpanSeconds\" : 2592000 } }");
    fixture_expect(&fixture, "{'collMod': 'c', 'expireAfterSeconds': 'off'}", "{'ok': 1.0}");
    expect_listed(&fixture, "{ \"timeseries\" : { \"timeField\" : \"t\", \"metaField\" : \"m\", \"granularity\" : "
                            "\"hours\", \"bucketMaxSpanSeconds\" : 2592000 } }");
    fixture_close(&fixture);
}

static void indexes_change_in_the_same_command(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture,
                   "{'createIndexes': 'c', 'indexes': [{'key': {'d': 1}, 'name': 'd_1', "
                   "'expireAfterSeconds': 100}]}",
                   "{'ok': 1.0}");
    fixture_expect(&fixture, "{'collMod': 'c', 'index': {'name': 'd_1', 'hidden': true}, 'validator': {'a': 1}}",
                   "{'hidden_old': false, 'hidden_new': true}");
    expect_listed(&fixture, "{ \"validator\" : { \"a\" : 1 } }");
    fixture_expect_error(&fixture, "{'collMod': 'c', 'index': {'name': 'nothing', 'hidden': true}, 'validator': {}}",
                         27);
    expect_listed(&fixture, "{ \"validator\" : { \"a\" : 1 } }");
    fixture_close(&fixture);
}

static void a_dry_run_leaves_the_index_as_it_was(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}]}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'collMod': 'c', 'index': {'name': 'a_1', 'prepareUnique': true}}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'collMod': 'c', 'index': {'name': 'a_1', 'unique': true}, 'dryRun': true}",
                   "{'ok': 1.0}");
    fixture_expect_batch(&fixture, "{'listIndexes': 'c'}",
                         "[{'v': 2, 'key': {'_id': 1}, 'name': '_id_'},"
                         " {'v': 2, 'key': {'a': 1}, 'name': 'a_1', 'prepareUnique': true}]");
    fixture_close(&fixture);
}

static void replay_gives_the_same_options(void **state)
{
    (void)state;
    struct fixture first;
    struct fixture second;
    fixture_open(&first);
    fixture_open(&second);
    fixture_expect(&first, "{'create': 'c', 'capped': true, 'size': 4096}", "{'ok': 1.0}");
    fixture_expect(&first, "{'create': 'v', 'viewOn': 'c'}", "{'ok': 1.0}");
    fixture_expect(&first, "{'collMod': 'v', 'viewOn': 'd'}", "{'ok': 1.0}");
    fixture_expect(&first, "{'collMod': 'c', 'validator': {'a': {'$type': 'int'}}, 'cappedMax': 4}", "{'ok': 1.0}");
    fixture_expect(&first, "{'insert': 'c', 'documents': [{'_id': 1, 'a': 1}, {'_id': 2}], 'ordered': false}",
                   "{'n': 1}");
    fixture_replay(&first, &second);
    assert_int_equal(fixture_hash(&first), fixture_hash(&second));
    fixture_close(&first);
    fixture_close(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validators_come_and_go),
        cmocka_unit_test(coll_mod_refuses_what_the_kind_does_not_have),
        cmocka_unit_test(timeseries_buckets_grow_and_expiry_is_switched),
        cmocka_unit_test(indexes_change_in_the_same_command),
        cmocka_unit_test(a_dry_run_leaves_the_index_as_it_was),
        cmocka_unit_test(replay_gives_the_same_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
