#include "support.h"

#include "routerd/view.h"

struct fixture {
    struct arena arena;
    struct view view;
};

static int set_up(void **state)
{
    struct fixture *fixture = test_calloc(1, sizeof *fixture);
    struct err err;
    arena_init(&fixture->arena);
    assert_true(ns_parse(&fixture->view.view, "db.v", &err));
    assert_true(ns_parse(&fixture->view.on, "db.c", &err));
    fixture->view.pipeline = json_doc(&fixture->arena, "[{\"$match\": {\"a\": 1}}]");
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    arena_deinit(&fixture->arena);
    test_free(fixture);
    return 0;
}

/* The command as an aggregate, in relaxed JSON; NULL: refused with *code. */
static const char *rewrite(struct fixture *fixture, const char *command, int32_t *code)
{
    bson_t body = BSON_INITIALIZER;
    struct err err = {0};
    const char *text = NULL;
    if (view_aggregate_body(&fixture->arena, &fixture->view, json_doc(&fixture->arena, command), &body, &err)) {
        char *json = bson_as_relaxed_extended_json(&body, NULL);
        text = arena_copy_str(&fixture->arena, json, strlen(json));
        bson_free(json);
    }
    *code = err.code;
    bson_destroy(&body);
    return text;
}

static void expect(void **state, const char *command, const char *aggregate)
{
    int32_t code;
    const char *text = rewrite(*state, command, &code);
    assert_non_null(text);
    assert_string_equal(text, aggregate);
}

static void expect_code(void **state, const char *command, int32_t wanted)
{
    int32_t code;
    assert_null(rewrite(*state, command, &code));
    assert_int_equal(code, wanted);
}

#define VIEW   "{ \"aggregate\" : \"c\", \"pipeline\" : [ { \"$match\" : { \"a\" : 1 } }"
#define SIMPLE "\"collation\" : { \"locale\" : \"simple\" }"

static void view_find_becomes_stages(void **state)
{
    expect(state,
           "{\"find\": \"v\", \"filter\": {\"b\": 2}, \"sort\": {\"c\": -1}, \"skip\": 3, \"limit\": 4,"
           " \"projection\": {\"_id\": 0}, \"batchSize\": 5, \"comment\": \"x\", \"$db\": \"db\"}",
           VIEW ", { \"$match\" : { \"b\" : 2 } }, { \"$sort\" : { \"c\" : -1 } }, { \"$skip\" : 3 },"
                " { \"$limit\" : 4 }, { \"$project\" : { \"_id\" : 0 } } ], \"comment\" : \"x\", " SIMPLE
                ", \"cursor\" : { \"batchSize\" : 5 } }");
}

static void view_find_of_everything_adds_no_stage(void **state)
{
    expect(state, "{\"find\": \"v\", \"filter\": {}}", VIEW " ], " SIMPLE ", \"cursor\" : {  } }");
}

static void view_count_counts_what_is_left(void **state)
{
    expect(state, "{\"count\": \"v\", \"query\": {\"b\": 2}, \"limit\": -7}",
           VIEW ", { \"$match\" : { \"b\" : 2 } }, { \"$limit\" : 7 }, { \"$count\" : \"count\" } ], " SIMPLE
                ", \"cursor\" : {  } }");
}

static void view_distinct_groups_by_the_first_name(void **state)
{
    expect(state, "{\"distinct\": \"v\", \"key\": \"x.y\"}",
           VIEW
           ", { \"$match\" : { \"x\" : { \"$exists\" : true } } }, { \"$group\" : { \"_id\" : \"$x\" } } ], " SIMPLE
           ", \"cursor\" : {  } }");
}

static void view_aggregate_goes_on_behind_the_views_stages(void **state)
{
    expect(state, "{\"aggregate\": \"v\", \"pipeline\": [{\"$limit\": 1}], \"cursor\": {\"batchSize\": 0}}",
           VIEW ", { \"$limit\" : 1 } ], " SIMPLE ", \"cursor\" : { \"batchSize\" : 0 } }");
}

static void view_collation_must_be_the_views(void **state)
{
    struct fixture *fixture = *state;
    expect_code(state, "{\"find\": \"v\", \"collation\": {\"locale\": \"de\"}}", ERR_OptionNotSupportedOnView);
    fixture->view.collation = json_doc(&fixture->arena, "{\"locale\": \"de\"}");
    expect(state, "{\"find\": \"v\", \"collation\": {\"locale\": \"de\", \"strength\": 3}}",
           VIEW " ], \"collation\" : { \"locale\" : \"de\" }, \"cursor\" : {  } }");
    expect_code(state, "{\"find\": \"v\", \"collation\": {\"locale\": \"simple\"}}", ERR_OptionNotSupportedOnView);
}

static void view_find_options_without_a_stage_are_refused(void **state)
{
    expect_code(state, "{\"find\": \"v\", \"returnKey\": true}", ERR_InvalidPipelineOperator);
    expect_code(state, "{\"find\": \"v\", \"min\": {\"a\": 1}}", ERR_InvalidPipelineOperator);
    expect_code(state, "{\"find\": \"v\", \"sort\": {\"$natural\": 1}}", ERR_InvalidPipelineOperator);
    expect_code(state, "{\"update\": \"v\"}", ERR_CommandNotSupportedOnView);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(view_find_becomes_stages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(view_find_of_everything_adds_no_stage, set_up, tear_down),
        cmocka_unit_test_setup_teardown(view_count_counts_what_is_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(view_distinct_groups_by_the_first_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(view_aggregate_goes_on_behind_the_views_stages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(view_collation_must_be_the_views, set_up, tear_down),
        cmocka_unit_test_setup_teardown(view_find_options_without_a_stage_are_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
