#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include "base/interrupt.h"
#include "document/validator.h"

static void expect_write_error(struct fixture *fixture, const char *command, int code)
{
    bson_t *reply = fixture_run(fixture, command);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.code"), code);
    bson_destroy(reply);
}

static void every_write_is_held_to_the_validator(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c', 'validator': {'x': {'$gte': 1}}}", "{'ok': 1.0}");
    expect_write_error(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'x': 0}]}", 121);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'x': 1}]}", "{'n': 1}");
    expect_write_error(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'x': 0}}}]}", 121);
    expect_write_error(&fixture,
                       "{'update': 'c', 'updates': [{'q': {'x': 1}, 'u': {'$inc': {'x': -1}}, 'multi': true}]}", 121);
    expect_write_error(&fixture,
                       "{'update': 'c', 'updates': [{'q': {'_id': 2}, 'u': {'$set': {'y': 0}},"
                       " 'upsert': true}]}",
                       121);
    fixture_expect_error(&fixture, "{'findAndModify': 'c', 'query': {'_id': 1}, 'update': {'x': 0}}", 121);
    fixture_expect_batch(&fixture, "{'find': 'c'}", "[{'_id': 1, 'x': 1}]");
    fixture_close(&fixture);
}

static void the_error_says_which_document_failed(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c', 'validator': {'x': {'$gte': 1}}}", "{'ok': 1.0}");
    bson_t *reply = fixture_run(&fixture, "{'insert': 'c', 'documents': [{'_id': 7, 'x': 0}]}");
    assert_int_equal(fixture_i64(reply, "writeErrors.0.errInfo.failingDocumentId"), 7);
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void bypass_stores_what_is_invalid(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c', 'validator': {'x': 1}}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1}], 'bypassDocumentValidation': true}",
                   "{'n': 1}");
    fixture_expect(&fixture,
                   "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'y': 1}}}],"
                   " 'bypassDocumentValidation': true}",
                   "{'nModified': 1}");
    fixture_expect(&fixture,
                   "{'findAndModify': 'c', 'query': {'_id': 1}, 'update': {'$set': {'z': 1}},"
                   " 'bypassDocumentValidation': true}",
                   "{'ok': 1.0}");
    fixture_expect_batch(&fixture, "{'find': 'c'}", "[{'_id': 1, 'y': 1, 'z': 1}]");
    fixture_close(&fixture);
}

static void moderate_lets_invalid_documents_be_changed(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1}, {'_id': 2, 'x': 1}]}", "{'n': 2}");
    fixture_expect(&fixture, "{'collMod': 'c', 'validator': {'x': 1}}", "{'ok': 1.0}");
    expect_write_error(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'y': 1}}}]}", 121);
    fixture_expect(&fixture, "{'collMod': 'c', 'validationLevel': 'moderate'}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'y': 1}}}]}",
                   "{'nModified': 1}");
    expect_write_error(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': 2}, 'u': {'$set': {'x': 2}}}]}", 121);
    expect_write_error(&fixture, "{'insert': 'c', 'documents': [{'_id': 3}]}", 121);
    fixture_expect(&fixture, "{'collMod': 'c', 'validationLevel': 'off'}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 3}]}", "{'n': 1}");
    fixture_close(&fixture);
}

static void warn_stores_and_only_logs(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c', 'validator': {'x': 1}, 'validationAction': 'warn'}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1}]}", "{'n': 1}");
    fixture_expect(&fixture, "{'collMod': 'c', 'validationAction': 'errorAndLog'}", "{'ok': 1.0}");
    expect_write_error(&fixture, "{'insert': 'c', 'documents': [{'_id': 2}]}", 121);
    fixture_close(&fixture);
}

static void an_update_that_changes_nothing_is_no_failure(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'y': 1}]}", "{'n': 1}");
    fixture_expect(&fixture, "{'collMod': 'c', 'validator': {'x': 1}}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'y': 1}}}]}",
                   "{'n': 1, 'nModified': 0}");
    fixture_close(&fixture);
}

static void a_validator_compares_strings_as_the_collection_does(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c', 'collation': {'locale': 'en', 'strength': 2}, 'validator': {'s': 'abc'}}",
                   "{'ok': 1.0}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 's': 'ABC'}]}", "{'n': 1}");
    expect_write_error(&fixture, "{'insert': 'c', 'documents': [{'_id': 2, 's': 'abd'}]}", 121);
    expect_write_error(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'s': 'x'}}}]}", 121);
    fixture_expect(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'s': 'aBc'}}}]}",
                   "{'nModified': 1}");
    fixture_close(&fixture);
}

static void apply_tells_what_to_do_with_a_tested_version(void **state)
{
    (void)state;
    struct err err;
    struct validator none = {0};
    struct validator leaders = {.source = bdoc_empty(), .version = 77};
    assert_int_equal(validator_apply(&none, VALIDATOR_UNCHECKED, (struct bdoc){0}, bdoc_empty(), &err), VALIDATOR_PASS);
    assert_int_equal(validator_apply(&leaders, VALIDATOR_UNCHECKED, (struct bdoc){0}, bdoc_empty(), &err),
                     VALIDATOR_REDO);
    assert_int_equal(validator_apply(&leaders, 76, (struct bdoc){0}, bdoc_empty(), &err), VALIDATOR_REDO);
    assert_int_equal(validator_apply(&leaders, 77, (struct bdoc){0}, bdoc_empty(), &err), VALIDATOR_PASS);
    assert_int_equal(validator_apply(&leaders, VALIDATOR_BYPASSED, (struct bdoc){0}, bdoc_empty(), &err),
                     VALIDATOR_PASS);
}

/* Level "moderate" lets pass what replaces an invalid document: one that nobody had the time to look at isn't that. */
static void an_interrupted_look_at_the_old_document_lets_nothing_pass(void **state)
{
    (void)state;
    enum { ITEMS = 4 * INTERRUPT_EVERY };
    struct arena arena;
    struct err err;
    struct expr_env env = {0};
    const struct filter *filter;
    const char *json = "{\"$expr\": {\"$allElementsTrue\": {\"$map\": {\"input\": \"$a\", \"in\": {\"$gte\": "
                       "[\"$$this\", 0]}}}}}";
    bson_t *source = bson_new_from_json((const uint8_t *)json, -1, NULL);
    bson_t *invalid = bson_new_from_json((const uint8_t *)"{\"_id\": 1, \"a\": [-1]}", -1, NULL);
    bson_t valid = BSON_INITIALIZER;
    bson_t items;
    struct interrupt interrupt = {.deadline_ms = INT64_MAX};
    BSON_APPEND_INT32(&valid, "_id", 1);
    BSON_APPEND_ARRAY_BEGIN(&valid, "a", &items);
    for (int i = 0; i < ITEMS; i++)
        BSON_APPEND_INT32(&items, "0", i);
    bson_append_array_end(&valid, &items);
    struct validator validator = {.source = bdoc_of(source), .level = VALIDATOR_MODERATE, .version = 77};
    arena_init(&arena);
    assert_true(validator_compile(&arena, &validator, &env, &filter, &err));
    assert_false(validator_check(&validator, filter, bdoc_of(&valid), bdoc_of(invalid), &err));
    assert_int_equal(err.code, 121);
    struct interrupt *before = interrupt_enter(&interrupt);
    interrupt_kill(&interrupt, 11601);
    interrupt_steps = 0;
    assert_false(validator_check(&validator, filter, bdoc_of(&valid), bdoc_of(invalid), &err));
    assert_int_equal(err.code, 11601);
    /* Nor is a document invalid that nobody had the time to look at. */
    assert_false(validator_check(&validator, filter, (struct bdoc){0}, bdoc_of(&valid), &err));
    assert_int_equal(err.code, 11601);
    validator.action = VALIDATOR_WARN;
    assert_false(validator_check(&validator, filter, (struct bdoc){0}, bdoc_of(&valid), &err));
    assert_int_equal(err.code, 11601);
    interrupt_enter(before);
    arena_deinit(&arena);
    bson_destroy(source);
    bson_destroy(invalid);
    bson_destroy(&valid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_write_is_held_to_the_validator),
        cmocka_unit_test(the_error_says_which_document_failed),
        cmocka_unit_test(bypass_stores_what_is_invalid),
        cmocka_unit_test(moderate_lets_invalid_documents_be_changed),
        cmocka_unit_test(warn_stores_and_only_logs),
        cmocka_unit_test(an_update_that_changes_nothing_is_no_failure),
        cmocka_unit_test(a_validator_compares_strings_as_the_collection_does),
        cmocka_unit_test(apply_tells_what_to_do_with_a_tested_version),
        cmocka_unit_test(an_interrupted_look_at_the_old_document_lets_nothing_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
