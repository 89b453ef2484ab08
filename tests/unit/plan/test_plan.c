#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include "plan/plan.h"

#include <string.h>

struct asked {
    const char *filter;
    const char *sort; /* NULL: none */
    bool limited;
};

/* The summary of the plan that is chosen in collection t.c. */
static void expect_plan(struct fixture *fixture, const struct asked *asked, const char *summary, bool sorted)
{
    struct store_txn *txn;
    struct err err;
    struct arena arena;
    struct plan *plan;
    struct filter *filter;
    struct sort_spec *sort = NULL;
    bson_t *filter_doc = bson_new_from_json((const uint8_t *)asked->filter, -1, NULL);
    bson_t *sort_doc = asked->sort == NULL ? NULL : bson_new_from_json((const uint8_t *)asked->sort, -1, NULL);
    assert_non_null(filter_doc);
    arena_init(&arena);
    assert_true(store_read_begin(fixture->store, &txn, &err));
    assert_true(filter_compile(&arena, bdoc_of(filter_doc), NULL, &filter, &err));
    if (sort_doc != NULL)
        assert_true(sort_spec_compile(&arena, bdoc_of(sort_doc), NULL, &sort, &err));
    struct plan_request request = {.filter = filter, .sort = sort, .limited = asked->limited};
    assert_true(plan_make(&arena, catalog_find(txn, "t.c", 3), &request, &plan, &err));
    assert_string_equal(plan_summary(plan, &arena), summary);
    if (sort != NULL)
        assert_int_equal(plan->sorted, sorted);
    store_read_end(txn);
    arena_deinit(&arena);
    bson_destroy(filter_doc);
    if (sort_doc != NULL)
        bson_destroy(sort_doc);
}

static void planner_chooses_the_narrowest_index(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(
        &fixture,
        "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a'}, {'key': {'a': 1, 'b': 1}, 'name': 'ab'},"
        " {'key': {'u': 1}, 'name': 'u', 'unique': true}, {'key': {'s': 1}, 'name': 's', 'sparse': true},"
        " {'key': {'h': 'hashed'}, 'name': 'h'}]}",
        "{'ok': 1.0}");
    static const struct {
        struct asked asked;
        const char *summary;
        bool sorted;
    } cases[] = {
        {{"{\"_id\": 5}", NULL, false}, "IDHACK", true},
        {{"{\"_id\": 5, \"a\": 1}", "{\"b\": 1}", false}, "IDHACK", true},
        {{"{\"_id\": {\"$gt\": 5}}", NULL, false}, "IXSCAN { _id: 1 }", true},
        {{"{}", NULL, false}, "COLLSCAN", false},
        {{"{\"z\": 1}", NULL, false}, "COLLSCAN", false},
        {{"{\"a\": 1, \"b\": 2}", NULL, false}, "IXSCAN { a: 1, b: 1 }", true},
        {{"{\"a\": 1, \"u\": 2}", NULL, false}, "IXSCAN { u: 1 }", true},
        {{"{\"h\": 1}", NULL, false}, "IXSCAN { h: \"hashed\" }", true},
        {{"{\"h\": {\"$gt\": 1}}", NULL, false}, "COLLSCAN", false},
        {{"{\"s\": 1}", NULL, false}, "IXSCAN { s: 1 }", true},
        {{"{\"s\": null}", NULL, false}, "COLLSCAN", false},
        {{"{}", "{\"a\": 1}", true}, "IXSCAN { a: 1 }", true},
        {{"{}", "{\"a\": -1, \"b\": -1}", true}, "IXSCAN { a: 1, b: 1 }", true},
        {{"{}", "{\"a\": 1, \"b\": -1}", true}, "COLLSCAN", false},
        {{"{}", "{\"s\": 1}", true}, "COLLSCAN", false},
        {{"{\"a\": 5}", "{\"b\": -1}", false}, "IXSCAN { a: 1, b: 1 }", true},
        {{"{\"a\": {\"$gt\": 5}}", "{\"b\": 1}", false}, "IXSCAN { a: 1 }", false},
        {{"{\"a\": {\"$in\": []}}", NULL, false}, "EOF", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_plan(&fixture, &cases[i].asked, cases[i].summary, cases[i].sorted);
    fixture_close(&fixture);
}

static void planner_leaves_indexes_alone_that_miss_documents(void **state)
{
    (void)state;
    struct fixture fixture;
    struct asked equality = {"{\"t\": 1}", NULL, false};
    struct asked order = {"{}", "{\"t\": 1}", true};
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'t': 1}, 'name': 't'}]}", "{'ok': 1.0}");
    expect_plan(&fixture, &order, "IXSCAN { t: 1 }", true);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 't': [1, 2]}]}", "{'n': 1}");
    /* Multikey from now on: it finds, but doesn't sort. */
    expect_plan(&fixture, &equality, "IXSCAN { t: 1 }", false);
    expect_plan(&fixture, &order, "COLLSCAN", false);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planner_chooses_the_narrowest_index),
        cmocka_unit_test(planner_leaves_indexes_alone_that_miss_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
