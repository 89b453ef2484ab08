#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include <stdio.h>

static void reads_are_told_what_a_view_stands_for(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'v', 'viewOn': 'c', 'pipeline': [{'$match': {'a': 1}}]}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'create': 'w', 'viewOn': 'v', 'pipeline': [{'$limit': 3}]}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'find': 'w'}",
                   "{'code': 169, 'resolvedView': {'ns': 't.c', 'pipeline': [{'$match': {'a': 1}}, {'$limit': 3}]}}");
    fixture_expect_error(&fixture, "{'count': 'v'}", 169);
    fixture_expect_error(&fixture, "{'distinct': 'v', 'key': 'a'}", 169);
    fixture_expect_error(&fixture, "{'aggregate': 'v', 'pipeline': [], 'cursor': {}}", 169);
    fixture_close(&fixture);
}

static void writes_and_index_commands_are_refused(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "{'insert': 'v', 'documents': [{'_id': 1}]}",
        "{'update': 'v', 'updates': [{'q': {'a': 1}, 'u': {'$set': {'a': 1}}}]}",
        "{'delete': 'v', 'deletes': [{'q': {}, 'limit': 0}]}",
        "{'findAndModify': 'v', 'query': {'a': 1}, 'remove': true}",
        "{'createIndexes': 'v', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}]}",
        "{'dropIndexes': 'v', 'index': '*'}",
        "{'listIndexes': 'v'}",
        "{'collStats': 'v'}",
        "{'validate': 'v'}",
        "{'convertToCapped': 'v', 'size': 1000}",
        "{'renameCollection': 't.v', 'to': 't.x', '$db': 'admin'}",
    };
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'v', 'viewOn': 'c'}", "{'ok': 1.0}");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        fixture_expect_error(&fixture, commands[i], 166);
    fixture_close(&fixture);
}

static void definitions_that_run_in_a_circle_are_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect_error(&fixture, "{'create': 'a', 'viewOn': 'a'}", 5);
    fixture_expect(&fixture, "{'create': 'a', 'viewOn': 'b'}", "{'ok': 1.0}");
    fixture_expect_error(&fixture, "{'create': 'b', 'viewOn': 'a'}", 5);
    fixture_expect_error(
        &fixture,
        "{'create': 'b', 'viewOn': 'c', 'pipeline': [{'$lookup': {'from': 'a', 'localField': 'x', 'foreignField': 'y',"
        " 'as': 'z'}}]}",
        5);
    fixture_expect_error(&fixture, "{'create': 'b', 'viewOn': 'c', 'pipeline': [{'$unionWith': 'a'}]}", 5);
    fixture_expect_error(
        &fixture, "{'create': 'b', 'viewOn': 'c', 'pipeline': [{'$facet': {'f': [{'$unionWith': {'coll': 'a'}}]}}]}",
        5);
    fixture_expect(&fixture, "{'create': 'd', 'viewOn': 'c'}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'create': 'e', 'viewOn': 'd'}", "{'ok': 1.0}");
    fixture_expect_error(&fixture, "{'collMod': 'd', 'viewOn': 'e', 'pipeline': []}", 5);
    fixture_close(&fixture);
}

static void views_stand_on_each_other_twenty_deep(void **state)
{
    (void)state;
    struct fixture fixture;
    char command[128];
    fixture_open(&fixture);
    /* From the middle: v11..v20 first, on a name that comes later. */
    for (int i = 20; i >= 1; i--) {
        snprintf(command, sizeof command, "{'create': 'v%d', 'viewOn': 'v%d'}", i, i - 1);
        fixture_expect(&fixture, command, "{'ok': 1.0}");
    }
    fixture_expect_error(&fixture, "{'create': 'v21', 'viewOn': 'v20'}", 165);
    fixture_expect_error(&fixture, "{'create': 'v0', 'viewOn': 'c'}", 165);
    fixture_expect_error(&fixture, "{'find': 'v20'}", 169);
    fixture_close(&fixture);
}

static void views_that_read_each_other_have_one_collation(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c', 'collation': {'locale': 'fr'}}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'create': 'v', 'viewOn': 'c', 'collation': {'locale': 'en', 'strength': 2}}",
                   "{'ok': 1.0}");
    fixture_expect_error(&fixture, "{'create': 'w', 'viewOn': 'v'}", 167);
    fixture_expect_error(&fixture, "{'create': 'w', 'viewOn': 'v', 'collation': {'locale': 'fr'}}", 167);
    fixture_expect_error(&fixture, "{'create': 'w', 'viewOn': 'c', 'pipeline': [{'$unionWith': 'v'}]}", 167);
    fixture_expect(&fixture,
                   "{'create': 'w', 'viewOn': 'v', 'collation': {'strength': 2, 'locale': 'en', 'caseLevel': false}}",
                   "{'ok': 1.0}");
    fixture_expect(&fixture, "{'create': 'x', 'viewOn': 'c'}", "{'ok': 1.0}");
    fixture_expect_error(&fixture, "{'collMod': 'x', 'viewOn': 'w', 'pipeline': []}", 167);
    fixture_close(&fixture);
}

static void pipelines_of_views_are_checked(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect_error(&fixture, "{'create': 'v', 'viewOn': 'c', 'pipeline': [{'$out': 'x'}]}", 167);
    fixture_expect_error(&fixture, "{'create': 'v', 'viewOn': 'c', 'pipeline': [{'$merge': {'into': 'x'}}]}", 167);
    fixture_expect_error(&fixture, "{'create': 'v', 'viewOn': 'c', 'pipeline': [{'$nonsense': 1}]}", 40324);
    fixture_expect_error(&fixture, "{'create': 'v', 'viewOn': 'c', 'pipeline': [1]}", 14);
    fixture_expect_error(&fixture, "{'create': 'v', 'viewOn': '$c'}", 73);
    fixture_expect_error(&fixture, "{'create': 'v', 'viewOn': ''}", 2);
    fixture_close(&fixture);
}

static void system_views_follows_the_definitions(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'v', 'viewOn': 'c', 'pipeline': []}", "{'ok': 1.0}");
    fixture_expect_batch(&fixture, "{'find': 'system.views'}", "[{'_id': 't.v', 'viewOn': 'c', 'pipeline': []}]");
    fixture_expect(&fixture, "{'collMod': 'v', 'viewOn': 'd', 'pipeline': [{'$limit': 1}]}", "{'ok': 1.0}");
    fixture_expect_batch(&fixture, "{'find': 'system.views'}",
                         "[{'_id': 't.v', 'viewOn': 'd', 'pipeline': [{'$limit': 1}]}]");
    fixture_expect_batch(&fixture, "{'listCollections': 1, 'filter': {'type': 'view'}}",
                         "[{'name': 'v', 'type': 'view', 'options': {'viewOn': 'd', 'pipeline': [{'$limit': 1}]},"
                         " 'info': {'readOnly': true}}]");
    fixture_expect(&fixture, "{'dbStats': 1}", "{'collections': 1, 'views': 1}");
    fixture_expect(&fixture, "{'drop': 'v'}", "{'ok': 1.0}");
    fixture_expect_batch(&fixture, "{'find': 'system.views'}", "[]");
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_are_told_what_a_view_stands_for),
        cmocka_unit_test(writes_and_index_commands_are_refused),
        cmocka_unit_test(definitions_that_run_in_a_circle_are_refused),
        cmocka_unit_test(views_stand_on_each_other_twenty_deep),
        cmocka_unit_test(views_that_read_each_other_have_one_collation),
        cmocka_unit_test(pipelines_of_views_are_checked),
        cmocka_unit_test(system_views_follows_the_definitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
