/* Options of writes: collation, constants, collectionUUID, sort, projections of findAndModify. */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

static void fill(struct fixture *fixture)
{
    fixture_open(fixture);
    fixture_expect(fixture,
                   "{'insert': 'c', 'documents': [{'_id': 1, 's': 'a', 'n': 3}, {'_id': 2, 's': 'A', 'n': 1},"
                   " {'_id': 3, 's': 'b', 'n': 2}]}",
                   "{'n': 3}");
}

#define ALIKE "'collation': {'locale': 'en', 'strength': 2}"

static void update_statement_compares_by_its_collation(void **state)
{
    struct fixture fixture;
    (void)state;
    fill(&fixture);
    fixture_expect(&fixture,
                   "{'update': 'c', 'updates': [{'q': {'s': 'A'}, 'u': {'$set': {'x': 1}}, 'multi': true, " ALIKE "},"
                   " {'q': {'s': 'B'}, 'u': {'$set': {'x': 2}}, 'multi': true}]}",
                   "{'n': 2, 'nModified': 2}");
    fixture_expect(&fixture, "{'delete': 'c', 'deletes': [{'q': {'s': 'B'}, 'limit': 1, " ALIKE "}]}", "{'n': 1}");
    fixture_expect(&fixture, "{'delete': 'c', 'deletes': [{'q': {'s': 'B'}, 'limit': 1}]}", "{'n': 0}");
    fixture_expect_batch(&fixture, "{'find': 'c', 'projection': {'x': 1}}", "[{'_id': 1, 'x': 1}, {'_id': 2, 'x': 1}]");
    fixture_close(&fixture);
}

static void update_with_a_collation_decides_once_for_all_members(void **state)
{
    struct fixture fixture;
    (void)state;
    fill(&fixture);
    fixture_expect(&fixture,
                   "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$max': {'s': 'B'}}, " ALIKE "},"
                   " {'q': {'_id': 3}, 'u': {'$inc': {'n': 5}}, " ALIKE "}]}",
                   "{'n': 2, 'nModified': 2}");
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'_id': {'$in': [1, 3]}}}",
                         "[{'_id': 1, 's': 'B', 'n': 3}, {'_id': 3, 's': 'b', 'n': 7}]");
    fixture_close(&fixture);
}

static void update_malformed_collation_is_an_error_of_its_statement(void **state)
{
    struct fixture fixture;
    (void)state;
    fill(&fixture);
    bson_t *reply =
        fixture_run(&fixture, "{'update': 'c', 'ordered': false, 'updates': [{'q': {}, 'u': {'$set': {'x': 1}},"
                              " 'collation': {'locale': 'nope'}}, {'q': {'_id': 2}, 'u': {'$set': {'x': 1}}}]}");
    assert_int_equal(fixture_i64(reply, "n"), 1);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.code"), 2);
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void update_constants_are_variables_of_the_pipeline(void **state)
{
    struct fixture fixture;
    (void)state;
    fill(&fixture);
    fixture_expect(
        &fixture,
        "{'update': 'c', 'let': {'k': 1, 'm': 2}, 'updates': [{'q': {'_id': 1}, 'u': [{'$set': {'x': ['$$k', '$$m']}}],"
        " 'c': {'k': '$s'}}]}",
        "{'n': 1, 'nModified': 1}");
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'_id': 1}, 'projection': {'x': 1}}",
                         "[{'_id': 1, 'x': ['$s', 2]}]");
    bson_t *reply = fixture_run(
        &fixture, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'x': 1}}, 'c': {'k': 1}}]}");
    assert_int_equal(fixture_i64(reply, "writeErrors.0.code"), 51198);
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void upsert_supplied_inserts_the_document_as_it_stands(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_open(&fixture);
    fixture_expect(&fixture,
                   "{'update': 'c', 'updates': [{'q': {'k': 5}, 'u': [{'$set': {'a': 1}}], 'upsert': true,"
                   " 'upsertSupplied': true, 'c': {'new': {'_id': 60, 'z': 1}}}]}",
                   "{'n': 1, 'nModified': 0, 'upserted': [{'index': 0, '_id': 60}]}");
    fixture_expect_batch(&fixture, "{'find': 'c'}", "[{'_id': 60, 'z': 1}]");
    fixture_close(&fixture);
}

static void update_sort_takes_the_first_in_order(void **state)
{
    struct fixture fixture;
    (void)state;
    fill(&fixture);
    fixture_expect(&fixture,
                   "{'update': 'c', 'updates': [{'q': {}, 'u': {'$set': {'x': 1}}, 'sort': {'n': 1}},"
                   " {'q': {}, 'u': {'y': 1}, 'sort': {'n': -1}}]}",
                   "{'n': 2, 'nModified': 2}");
    fixture_expect_batch(&fixture, "{'find': 'c', 'projection': {'x': 1, 'y': 1}}",
                         "[{'_id': 1, 'y': 1}, {'_id': 2, 'x': 1}, {'_id': 3}]");
    fixture_close(&fixture);
}

static void write_hint_and_sort_may_be_the_natural_order(void **state)
{
    struct fixture fixture;
    (void)state;
    fill(&fixture);
    fixture_expect(
        &fixture,
        "{'update': 'c', 'updates': [{'q': {'n': {'$gt': 0}}, 'u': {'$set': {'x': 1}}, 'hint': {'$natural': 1}},"
        " {'q': {'n': {'$gt': 0}}, 'u': {'$set': {'y': 1}}, 'sort': {'$natural': -1}}]}",
        "{'n': 2, 'nModified': 2}");
    fixture_expect(&fixture, "{'delete': 'c', 'deletes': [{'q': {'_id': 2}, 'limit': 1, 'hint': {'$natural': -1}}]}",
                   "{'n': 1}");
    fixture_expect_batch(&fixture, "{'find': 'c', 'projection': {'x': 1, 'y': 1}}",
                         "[{'_id': 1, 'x': 1}, {'_id': 3, 'y': 1}]");
    fixture_close(&fixture);
}

static void write_with_another_uuid_is_refused(void **state)
{
#define OTHER "'collectionUUID': {'$binary': {'base64': 'AAAAAAAAAAAAAAAAAAAAAA==', 'subType': '04'}}"
    static const char *const commands[] = {
        "{'insert': 'c', 'documents': [{'_id': 9}], " OTHER "}",
        "{'update': 'c', 'updates': [{'q': {}, 'u': {'$set': {'x': 1}}}], " OTHER "}",
        "{'delete': 'c', 'deletes': [{'q': {}, 'limit': 0}], " OTHER "}",
        "{'findAndModify': 'c', 'remove': true, " OTHER "}",
    };
#undef OTHER
    struct fixture fixture;
    (void)state;
    fill(&fixture);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fixture_expect_error(&fixture, commands[i], 361);
    fixture_expect(&fixture, "{'count': 'c', 'query': {'x': {'$exists': false}}}", "{'n': 3}");
    fixture_close(&fixture);
}

static void find_and_modify_takes_all_its_options(void **state)
{
    struct fixture fixture;
    (void)state;
    fill(&fixture);
    fixture_expect(
        &fixture,
        "{'findAndModify': 'c', 'query': {'$expr': {'$eq': ['$s', '$$want']}}, 'let': {'want': 'a'},"
        " 'update': [{'$set': {'when': {'$type': '$$NOW'}, 'n': {'$add': ['$n', 1]}}}], 'new': true, 'fields': {'n': 1,"
        " 'when': 1}}",
        "{'value': {'_id': 1, 'n': 4, 'when': 'date'}}");
    fixture_expect(&fixture,
                   "{'findAndModify': 'c', 'query': {'s': 'A'}, 'sort': {'n': 1}, 'update': {'$set': {'z': 1}}, " ALIKE
                   "}",
                   "{'value': {'_id': 2, 's': 'A', 'n': 1}, 'lastErrorObject': {'n': 1, 'updatedExisting': true}}");
    fixture_expect(
        &fixture,
        "{'findAndModify': 'c', 'query': {'_id': 7}, 'update': {'$set': {'z': 1}}, 'upsert': true, 'new': true}",
        "{'value': {'_id': 7, 'z': 1}, 'lastErrorObject': {'n': 1, 'updatedExisting': false, 'upserted': 7}}");
    fixture_expect(&fixture,
                   "{'findAndModify': 'c', 'query': {'_id': 7}, 'remove': true, 'fields': {'z': 1, '_id': 0}}",
                   "{'value': {'z': 1}, 'lastErrorObject': {'n': 1}}");
    fixture_close(&fixture);
}

static void find_and_modify_projects_a_position_of_the_old_document_only(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'a': [1, 2, 3]}]}", "{'n': 1}");
    fixture_expect(&fixture,
                   "{'findAndModify': 'c', 'query': {'a': 2}, 'update': {'$set': {'x': 1}}, 'fields': {'a.$': 1}}",
                   "{'value': {'_id': 1, 'a': [2]}}");
    fixture_expect_error(
        &fixture,
        "{'findAndModify': 'c', 'query': {'a': 2}, 'update': {'$set': {'x': 2}}, 'fields': {'a.$': 1}, 'new': true}",
        2);
    fixture_expect(&fixture, "{'count': 'c', 'query': {'x': 1}}", "{'n': 1}");
    fixture_close(&fixture);
}

static void write_of_a_collated_collection_uses_its_default(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'd', " ALIKE "}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'insert': 'd', 'documents': [{'_id': 'x', 'n': 1}, {'_id': 2, 's': 'q'}]}", "{'n': 2}");
    fixture_expect(&fixture,
                   "{'update': 'd', 'updates': [{'q': {'_id': 'X'}, 'u': {'$set': {'n': 2}}},"
                   " {'q': {'_id': 'X'}, 'u': {'$set': {'n': 3}}, 'collation': {'locale': 'simple'}}]}",
                   "{'n': 1, 'nModified': 1}");
    fixture_expect(&fixture,
                   "{'update': 'd', 'updates': [{'q': {'_id': 'X'}, 'u': {'$inc': {'n': 5}}, 'upsert': true}]}",
                   "{'n': 1, 'nModified': 1}");
    fixture_expect(&fixture, "{'delete': 'd', 'deletes': [{'q': {'s': 'Q'}, 'limit': 1}]}", "{'n': 1}");
    fixture_expect_batch(&fixture, "{'find': 'd'}", "[{'_id': 'x', 'n': 7}]");
    fixture_close(&fixture);
}

static void upsert_whose_key_another_document_holds_fails_soon(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'a': 1}]}", "{'n': 1}");
    unsigned before = fixture.history_count;
    bson_t *reply = fixture_run(
        &fixture, "{'update': 'c', 'updates': [{'q': {'_id': 1, 'a': 2}, 'u': {'$set': {'b': 1}}, 'upsert': true}]}");
    assert_int_equal(fixture_i64(reply, "writeErrors.0.code"), 11000);
    bson_destroy(reply);
    assert_in_range(fixture.history_count - before, 1, 10);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(upsert_whose_key_another_document_holds_fails_soon),
        cmocka_unit_test(update_statement_compares_by_its_collation),
        cmocka_unit_test(update_with_a_collation_decides_once_for_all_members),
        cmocka_unit_test(update_malformed_collation_is_an_error_of_its_statement),
        cmocka_unit_test(update_constants_are_variables_of_the_pipeline),
        cmocka_unit_test(upsert_supplied_inserts_the_document_as_it_stands),
        cmocka_unit_test(update_sort_takes_the_first_in_order),
        cmocka_unit_test(write_hint_and_sort_may_be_the_natural_order),
        cmocka_unit_test(write_with_another_uuid_is_refused),
        cmocka_unit_test(find_and_modify_takes_all_its_options),
        cmocka_unit_test(find_and_modify_projects_a_position_of_the_old_document_only),
        cmocka_unit_test(write_of_a_collated_collection_uses_its_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
