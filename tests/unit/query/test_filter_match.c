#include "query/filter.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

struct match_case {
    const char *filter;
    const char *doc;
    bool want;
};

static void check_all(const struct match_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena;
        struct filter *filter;
        struct err err = {0};
        arena_init(&arena);
        if (!filter_compile(&arena, json_doc(&arena, cases[i].filter), NULL, &filter, &err))
            fail_msg("%s: %d %s", cases[i].filter, err.code, err.msg);
        if (filter_matches(filter, json_doc(&arena, cases[i].doc)) != cases[i].want)
            fail_msg("%s on %s should be %s", cases[i].filter, cases[i].doc, cases[i].want ? "true" : "false");
        arena_deinit(&arena);
    }
}

static void filter_comparison_keeps_to_the_operand_class(void **state)
{
    static const struct match_case cases[] = {
        {"{'a': 1}", "{'a': {'$numberLong': '1'}}", true},
        {"{'a': 1}", "{'a': {'$numberDecimal': '1.0'}}", true},
        {"{'a': {'$gt': 5}}", "{'a': 'x'}", false},
        {"{'a': {'$lt': 5}}", "{'a': {'$numberDouble': 'NaN'}}", false},
        {"{'a': {'$gte': {'$numberDouble': 'NaN'}}}", "{'a': {'$numberDouble': 'NaN'}}", true},
        {"{'a': {'$gt': 'a', '$lt': 'c'}}", "{'a': 'b'}", true},
        {"{'a': {'$ne': 1}}", "{'a': [1, 2]}", false},
        {"{'a': {'$ne': 1}}", "{}", true},
        {"{'a': {'$lte': {'$maxKey': 1}}}", "{'a': 5}", true},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void filter_null_matches_missing_but_not_an_empty_array(void **state)
{
    static const struct match_case cases[] = {
        {"{'a': null}", "{}", true},
        {"{'a': null}", "{'a': null}", true},
        {"{'a': null}", "{'a': []}", false},
        {"{'a': null}", "{'a': [null]}", true},
        {"{'a.b': null}", "{'a': 1}", true},
        {"{'a.b': null}", "{'a': [1]}", false},
        {"{'a.b': null}", "{'a': [{}]}", true},
        {"{'a': {'$in': [null]}}", "{}", true},
        {"{'a': {'$gte': null}}", "{}", true},
        {"{'a': {'$gt': null}}", "{'a': null}", false},
        {"{'a': {'$exists': false}}", "{'a': null}", false},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void filter_dotted_path_expands_arrays(void **state)
{
    static const struct match_case cases[] = {
        {"{'a.b': 2}", "{'a': [{'b': 1}, {'b': 2}]}", true},
        {"{'a.b': 2}", "{'a': [{'b': [2]}]}", true},
        {"{'a.1': 5}", "{'a': [4, 5]}", true},
        {"{'a.0.b': 1}", "{'a': [{'b': 1}]}", true},
        {"{'a.b': 1}", "{'a': [[{'b': 1}]]}", false},
        {"{'a': [1, 2]}", "{'a': [1, 2]}", true},
        {"{'a': [1, 2]}", "{'a': [[1, 2]]}", true},
        {"{'a': {'$size': 2}}", "{'a': [1, [2, 3]]}", true},
        {"{'a': {'$size': 2}}", "{'a': [[2, 3]]}", false},
        {"{'a': {'$elemMatch': {'b': 1, 'c': 2}}}", "{'a': [{'b': 1, 'c': 3}, {'b': 2, 'c': 2}]}", false},
        {"{'a': {'$elemMatch': {'$gt': 1, '$lt': 3}}}", "{'a': [0, 2]}", true},
        {"{'a': {'$gt': 1, '$lt': 3}}", "{'a': [0, 5]}", true},
        {"{'a': {'$all': [1, 2]}}", "{'a': [2, 1, 0]}", true},
        {"{'a': {'$all': []}}", "{'a': []}", false},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void filter_other_operators(void **state)
{
    static const struct match_case cases[] = {
        {"{'$or': [{'a': 1}, {'b': 1}]}", "{'b': 1}", true},
        {"{'$nor': [{'a': 1}, {'b': 1}]}", "{'c': 1}", true},
        {"{'a': {'$not': {'$gt': 1}}}", "{}", true},
        {"{'a': {'$in': [1, {'$regularExpression': {'pattern': '^x', 'options': ''}}]}}", "{'a': 'xy'}", true},
        {"{'a': {'$nin': [1]}}", "{'a': [1]}", false},
        {"{'a': {'$regex': 'B', '$options': 'i'}}", "{'a': 'abc'}", true},
        {"{'a': {'$type': 'number'}}", "{'a': 1.5}", true},
        {"{'a': {'$type': ['string', 10]}}", "{'a': null}", true},
        {"{'a': {'$mod': [4, 1]}}", "{'a': 5.9}", true},
        {"{'a': {'$mod': [-1, 0]}}", "{'a': {'$numberLong': '-9223372036854775808'}}", true},
        {"{'a': {'$bitsAllSet': [0, 2]}}", "{'a': 5}", true},
        {"{'a': {'$bitsAnyClear': 7}}", "{'a': 7}", false},
        {"{'a': {'$bitsAllSet': [200]}}", "{'a': -1}", true},
        {"{'$expr': {'$gt': ['$a', '$b']}}", "{'a': 2, 'b': 1}", true},
        {"{'$comment': 'x', 'a': {'$comment': 'y', '$eq': 1}}", "{'a': 1}", true},
        {"{'$alwaysFalse': 1}", "{}", false},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void filter_eval_tells_the_position_of_the_last_array_predicate(void **state)
{
    struct arena arena;
    struct filter *filter;
    struct filter_match match;
    struct err err;
    bool matched;
    (void)state;
    arena_init(&arena);
    assert_true(
        filter_compile(&arena, json_doc(&arena, "{'a.b': 2, 'c': {'$elemMatch': {'x': 1}}}"), NULL, &filter, &err));
    struct bdoc doc = json_doc(&arena, "{'a': [{'b': 1}, {'b': 2}], 'c': [{}, {}, {'x': 1}]}");
    assert_true(filter_eval(filter, doc, &match, &matched, &err));
    assert_true(matched);
    assert_int_equal(match.array_index, 2);
    assert_true(filter_compile(&arena, json_doc(&arena, "{'a.b': 2}"), NULL, &filter, &err));
    assert_true(filter_eval(filter, doc, &match, &matched, &err));
    assert_int_equal(match.array_index, 1);
    arena_deinit(&arena);
}

/* A pattern that explodes is given up, and says so. */
static void filter_regex_beyond_its_limit_is_an_error(void **state)
{
    struct arena arena;
    struct filter *filter;
    struct err err = {0};
    bool matched;
    (void)state;
    arena_init(&arena);
    assert_true(filter_compile(&arena, json_doc(&arena, "{'a': {'$regex': '(x+x+)+[yz]'}}"), NULL, &filter, &err));
    struct bdoc doc = json_doc(&arena, "{'a': 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}");
    assert_false(filter_eval(filter, doc, NULL, &matched, &err));
    assert_int_equal(err.code, 51156);
    assert_true(filter_can_fail(filter));
    arena_deinit(&arena);
}

/* What an $expr implies stands beside it for the planner, and changes no answer. */
static void filter_expr_with_a_constant_matches_as_before(void **state)
{
    static const struct match_case cases[] = {
        {"{'$expr': {'$eq': ['$a', 5]}}", "{'a': 5.0}", true},
        {"{'$expr': {'$eq': ['$a', 5]}}", "{'a': [5]}", false},
        {"{'$expr': {'$eq': [[5], '$a.b']}}", "{'a': [{'b': 5}]}", true},
        {"{'$expr': {'$eq': ['$a', null]}}", "{}", false},
        {"{'$expr': {'$in': ['$a', [1, 2]]}}", "{'a': 2}", true},
        {"{'$expr': {'$in': ['$a', [1, [2]]]}}", "{'a': [2]}", true},
        {"{'$expr': {'$and': [{'$eq': ['$a', 1]}, {'$gt': ['$b', 'x']}]}}", "{'a': 1, 'b': [0]}", true},
        {"{'$nor': [{'$expr': {'$eq': ['$a', 1]}}]}", "{'a': 1}", false},
        {"{'$nor': [{'$expr': {'$eq': ['$a', 1]}}]}", "{'a': [1]}", true},
    };
    struct arena arena;
    struct filter *filter;
    struct err err;
    struct bval value;
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
    arena_init(&arena);
    assert_true(filter_compile(&arena, json_doc(&arena, "{'$expr': {'$eq': ['$a', 5]}}"), NULL, &filter, &err));
    assert_false(filter_equality(filter, "a", &value));
    assert_false(filter_mentions(filter, "a"));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filter_comparison_keeps_to_the_operand_class),
        cmocka_unit_test(filter_null_matches_missing_but_not_an_empty_array),
        cmocka_unit_test(filter_dotted_path_expands_arrays),
        cmocka_unit_test(filter_other_operators),
        cmocka_unit_test(filter_eval_tells_the_position_of_the_last_array_predicate),
        cmocka_unit_test(filter_regex_beyond_its_limit_is_an_error),
        cmocka_unit_test(filter_expr_with_a_constant_matches_as_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
