/* Validators that only the leader can test, and what happens when one changes between its test and apply. */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#define NOT_DETERMINISTIC "{'$expr': {'$gte': ['$x', {'$add': [1, 0]}]}}"

static void create(struct fixture *fixture)
{
    fixture_open(fixture);
    fixture_expect(fixture, "{'create': 'c', 'validator': " NOT_DETERMINISTIC "}", "{'ok': 1.0}");
}

static void expect_write_error(struct fixture *fixture, const char *command, int code)
{
    bson_t *reply = fixture_run(fixture, command);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.code"), code);
    bson_destroy(reply);
}

static void the_leader_tests_every_kind_of_write(void **state)
{
    (void)state;
    struct fixture fixture;
    create(&fixture);
    bson_t *reply = fixture_run(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'x': 5}, {'_id': 2, 'x': 0},"
                                          " {'_id': 3, 'x': 6}], 'ordered': false}");
    assert_int_equal(fixture_i64(reply, "n"), 2);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.index"), 1);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.code"), 121);
    bson_destroy(reply);
    expect_write_error(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'x': 0}}}]}", 121);
    expect_write_error(&fixture, "{'update': 'c', 'updates': [{'q': {}, 'u': {'$set': {'x': 0}}, 'multi': true}]}",
                       121);
    expect_write_error(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': 9}, 'u': {'x': 0}, 'upsert': true}]}", 121);
    fixture_expect_error(&fixture, "{'findAndModify': 'c', 'query': {'_id': 1}, 'update': {'x': 0}}", 121);
    fixture_expect(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'x': 7}}}]}",
                   "{'nModified': 1}");
    fixture_expect(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': 9}, 'u': {'x': 9}, 'upsert': true}]}",
                   "{'n': 1}");
    fixture_expect_batch(&fixture, "{'find': 'c'}", "[{'_id': 1, 'x': 7}, {'_id': 3, 'x': 6}, {'_id': 9, 'x': 9}]");
    fixture_close(&fixture);
}

/* A write is in the log behind a collMod that the leader didn't know of when it tested. */
static void finish(struct fixture *fixture, struct fixture_call *mod, struct fixture_call *write)
{
    fixture->hold = false;
    fixture_apply(fixture);
    fixture_drain(fixture);
    assert_true(mod->done);
    assert_true(write->done);
    bson_destroy(mod->reply);
}

static void an_insert_is_tested_again_when_the_validator_changed(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call mod;
    struct fixture_call insert;
    create(&fixture);
    fixture.hold = true;
    fixture_start(&fixture, &mod, "{'collMod': 'c', 'validator': {'$expr': {'$gte': ['$x', {'$add': [10, 0]}]}}}");
    fixture_start(&fixture, &insert,
                  "{'insert': 'c', 'documents': [{'_id': 1, 'x': 5}, {'_id': 2, 'x': 50}],"
                  " 'ordered': false}");
    finish(&fixture, &mod, &insert);
    assert_int_equal(fixture_i64(insert.reply, "n"), 1);
    assert_int_equal(fixture_i64(insert.reply, "writeErrors.0.index"), 0);
    bson_destroy(insert.reply);
    fixture_expect_batch(&fixture, "{'find': 'c'}", "[{'_id': 2, 'x': 50}]");
    fixture_close(&fixture);
}

static void an_insert_meets_a_validator_that_is_new(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call mod;
    struct fixture_call insert;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c'}", "{'ok': 1.0}");
    fixture.hold = true;
    fixture_start(&fixture, &mod, "{'collMod': 'c', 'validator': " NOT_DETERMINISTIC "}");
    fixture_start(&fixture, &insert, "{'insert': 'c', 'documents': [{'_id': 1, 'x': 0}]}");
    finish(&fixture, &mod, &insert);
    assert_int_equal(fixture_i64(insert.reply, "writeErrors.0.code"), 121);
    bson_destroy(insert.reply);
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 0}");
    fixture_close(&fixture);
}

static void an_update_is_tested_again_when_the_validator_changed(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call mod;
    struct fixture_call update;
    create(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'x': 5}]}", "{'n': 1}");
    fixture.hold = true;
    fixture_start(&fixture, &mod, "{'collMod': 'c', 'validator': {'$expr': {'$gte': ['$x', {'$add': [10, 0]}]}}}");
    fixture_start(&fixture, &update, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'x': 6}}}]}");
    finish(&fixture, &mod, &update);
    assert_int_equal(fixture_i64(update.reply, "writeErrors.0.code"), 121);
    bson_destroy(update.reply);
    fixture_expect_batch(&fixture, "{'find': 'c'}", "[{'_id': 1, 'x': 5}]");
    fixture_close(&fixture);
}

static void a_group_of_updates_meets_a_validator_that_is_new(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call mod;
    struct fixture_call update;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'x': 5}, {'_id': 2, 'x': 5}, {'_id': 3}]}",
                   "{'n': 3}");
    fixture.hold = true;
    fixture_start(&fixture, &mod, "{'collMod': 'c', 'validator': " NOT_DETERMINISTIC "}");
    fixture_start(&fixture, &update,
                  "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$inc': {'x': 1}}},"
                  " {'q': {'_id': 2}, 'u': {'$set': {'x': 0}}}, {'q': {'_id': 1}, 'u': {'$inc': {'x': 1}}}],"
                  " 'ordered': false}");
    finish(&fixture, &mod, &update);
    assert_int_equal(fixture_i64(update.reply, "nModified"), 2);
    assert_int_equal(fixture_i64(update.reply, "writeErrors.0.index"), 1);
    assert_int_equal(fixture_i64(update.reply, "writeErrors.0.code"), 121);
    bson_destroy(update.reply);
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'x': {'$exists': true}}}",
                         "[{'_id': 1, 'x': 7}, {'_id': 2, 'x': 5}]");
    fixture_close(&fixture);
}

static void deletes_care_for_no_validator(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call mod;
    struct fixture_call delete;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1}]}", "{'n': 1}");
    fixture.hold = true;
    fixture_start(&fixture, &mod, "{'collMod': 'c', 'validator': " NOT_DETERMINISTIC "}");
    fixture_start(&fixture, &delete, "{'delete': 'c', 'deletes': [{'q': {'_id': 1}, 'limit': 1}]}");
    finish(&fixture, &mod, &delete);
    assert_int_equal(fixture_i64(delete.reply, "n"), 1);
    bson_destroy(delete.reply);
    fixture_close(&fixture);
}

static void a_validator_that_goes_away_holds_nothing_up(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call mod;
    struct fixture_call update;
    create(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'x': 5}]}", "{'n': 1}");
    fixture.hold = true;
    fixture_start(&fixture, &mod, "{'collMod': 'c', 'validator': {}}");
    fixture_start(&fixture, &update, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'x': 6}}}]}");
    finish(&fixture, &mod, &update);
    assert_int_equal(fixture_i64(update.reply, "nModified"), 1);
    bson_destroy(update.reply);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_leader_tests_every_kind_of_write),
        cmocka_unit_test(an_insert_is_tested_again_when_the_validator_changed),
        cmocka_unit_test(an_insert_meets_a_validator_that_is_new),
        cmocka_unit_test(an_update_is_tested_again_when_the_validator_changed),
        cmocka_unit_test(a_group_of_updates_meets_a_validator_that_is_new),
        cmocka_unit_test(deletes_care_for_no_validator),
        cmocka_unit_test(a_validator_that_goes_away_holds_nothing_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
