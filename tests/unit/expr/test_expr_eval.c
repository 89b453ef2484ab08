#include "expr/expr.h"
#include "expr/writer.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

#include <string.h>

/* {three: {$add: [1, 2]}} */
static struct expr_env env = {.now_ms = 1700000000000};

/* An operator on one array of a million numbers, sixteen times. */
#define FOUR       "'$$x', '$$x', '$$x', '$$x'"
#define LIST       "[" FOUR ", " FOUR ", " FOUR ", " FOUR "]"
#define MANY(call) "{'$let': {'vars': {'x': {'$range': [0, 1000000]}}, 'in': {" call "}}}"

/* An expression, a document, and {"v": result} ({} for a missing one). */
struct eval_case {
    const char *expr;
    const char *doc;
    const char *want;
};

static void check_all(const struct eval_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena;
        struct expr *expr;
        struct err err = {0};
        struct bval got;
        arena_init(&arena);
        env.let = json_doc(&arena, "{'three': {'$add': [1, 2]}}");
        struct bval source = json_val(&arena, cases[i].expr);
        if (!expr_compile(&arena, &source, &env, &expr, &err) ||
            !expr_eval(expr, json_doc(&arena, cases[i].doc), &arena, &got, &err))
            fail_msg("%s: %d %s", cases[i].expr, err.code, err.msg);
        struct buf out = BUF_INIT;
        size_t start = write_begin(&out);
        write_value(&out, "v", 1, &got);
        write_end(&out, start);
        json_assert_same(&arena, write_view(&out, 0), cases[i].want, cases[i].expr);
        buf_deinit(&out);
        arena_deinit(&arena);
    }
}

static void expr_path_goes_through_arrays_of_documents(void **state)
{
    static const struct eval_case cases[] = {
        {"'$a.b'", "{'a': {'b': 1}}", "{'v': 1}"},
        {"'$a.b'", "{'a': [{'b': 1}, 5, {'c': 2}, {'b': 3}]}", "{'v': [1, 3]}"},
        {"'$a.b'", "{'a': 1}", "{}"},
        {"'$$ROOT.a'", "{'a': 1}", "{'v': 1}"},
        {"'$$REMOVE'", "{}", "{}"},
        {"'$$NOW'", "{}", "{'v': {'$date': {'$numberLong': '1700000000000'}}}"},
        {"{'x': '$a', 'y': '$none'}", "{'a': 1}", "{'v': {'x': 1}}"},
        {"['$a', '$none']", "{'a': 1}", "{'v': [1, null]}"},
        {"{'$literal': '$a'}", "{'a': 1}", "{'v': '$a'}"},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void expr_arithmetic_promotes_and_overflows_to_wider_types(void **state)
{
    static const struct eval_case cases[] = {
        {"{'$add': ['$a', 1]}", "{'a': 2147483647}", "{'v': {'$numberLong': '2147483648'}}"},
        {"{'$add': [{'$numberLong': '9223372036854775807'}, 1]}", "{}", "{'v': 9223372036854775807.0}"},
        {"{'$add': [1, {'$numberDecimal': '0.5'}]}", "{}", "{'v': {'$numberDecimal': '1.5'}}"},
        {"{'$add': [1, '$none']}", "{}", "{'v': null}"},
        {"{'$subtract': [{'$date': {'$numberLong': '5'}}, 2]}", "{}", "{'v': {'$date': {'$numberLong': '3'}}}"},
        {"{'$multiply': [2, 2.5]}", "{}", "{'v': 5.0}"},
        {"{'$divide': [7, 2]}", "{}", "{'v': 3.5}"},
        {"{'$mod': [-7, 3]}", "{}", "{'v': -1}"},
        {"{'$pow': [2, 10]}", "{}", "{'v': 1024}"},
        {"{'$round': [2.5]}", "{}", "{'v': 2.0}"},
        {"{'$trunc': [12345, -2]}", "{}", "{'v': 12300}"},
        {"{'$abs': -5}", "{}", "{'v': 5}"},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void expr_conditions_evaluate_only_what_they_need(void **state)
{
    static const struct eval_case cases[] = {
        {"{'$cond': [{'$eq': ['$a', 0]}, 'zero', {'$divide': [1, '$a']}]}", "{'a': 0}", "{'v': 'zero'}"},
        {"{'$cond': {'if': '$a', 'then': 1, 'else': 2}}", "{'a': null}", "{'v': 2}"},
        {"{'$ifNull': ['$a', '$b', 9]}", "{'b': 3}", "{'v': 3}"},
        {"{'$and': ['$a', {'$divide': [1, 0]}]}", "{'a': false}", "{'v': false}"},
        {"{'$or': [1, {'$divide': [1, 0]}]}", "{}", "{'v': true}"},
        {"{'$switch': {'branches': [{'case': '$a', 'then': 1}], 'default': 2}}", "{}", "{'v': 2}"},
        {"{'$cmp': ['$none', null]}", "{}", "{'v': -1}"},
        {"{'$gt': ['s', 5]}", "{}", "{'v': true}"},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void expr_arrays_strings_and_documents(void **state)
{
    static const struct eval_case cases[] = {
        {"{'$map': {'input': '$a', 'as': 'x', 'in': {'$multiply': ['$$x', 2]}}}", "{'a': [1, 2]}", "{'v': [2, 4]}"},
        {"{'$filter': {'input': '$a', 'cond': {'$gt': ['$$this', 1]}}}", "{'a': [1, 2, 3]}", "{'v': [2, 3]}"},
        {"{'$reduce': {'input': '$a', 'initialValue': 0, 'in': {'$add': ['$$value', '$$this']}}}", "{'a': [1, 2]}",
         "{'v': 3}"},
        {"{'$let': {'vars': {'x': 2}, 'in': {'$add': ['$$x', '$a']}}}", "{'a': 1}", "{'v': 3}"},
        {"{'$arrayElemAt': ['$a', -1]}", "{'a': [1, 2]}", "{'v': 2}"},
        {"{'$slice': ['$a', -2]}", "{'a': [1, 2, 3]}", "{'v': [2, 3]}"},
        {"{'$concatArrays': ['$a', [3]]}", "{'a': [1]}", "{'v': [1, 3]}"},
        {"{'$setUnion': [[2, 1], [2]]}", "{}", "{'v': [1, 2]}"},
        {"{'$concat': ['a', '$s']}", "{'s': 'b'}", "{'v': 'ab'}"},
        {"{'$substrCP': ['h\u00e9llo', 1, 2]}", "{}", "{'v': '\u00e9l'}"},
        {"{'$toString': 1.5}", "{}", "{'v': '1.5'}"},
        {"{'$toInt': '12'}", "{}", "{'v': 12}"},
        {"{'$mergeObjects': ['$a', {'b': 2}]}", "{'a': {'a': 1, 'b': 1}}", "{'v': {'a': 1, 'b': 2}}"},
        {"{'$setField': {'field': {'$literal': '$a.b'}, 'input': '$a', 'value': 1}}", "{'a': {'x': 0}}",
         "{'v': {'x': 0, '$a.b': 1}}"},
        {"{'$unsetField': {'field': 'a.b', 'input': {'$literal': {'a.b': 1, 'c': 2}}}}", "{}", "{'v': {'c': 2}}"},
        {"{'$add': ['$$three', 1]}", "{}", "{'v': 4}"},
        {"{'$sum': '$a'}", "{'a': [1, 'x', 2.5]}", "{'v': 3.5}"},
        {"{'$dateToString': {'date': {'$date': {'$numberLong': '0'}}, 'format': '%Y-%m-%d'}}", "{}",
         "{'v': '1970-01-01'}"},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

/* Compilation or evaluation must fail with the code. */
static void expr_malformed_fails_with_code(void **state)
{
    static const struct {
        const char *expr;
        int code;
    } cases[] = {
        {"{'$reduce': {'input': {'$range': [0, 300]}, 'initialValue': {}, 'in': {'a': '$$value'}}}", ERR_Overflow},
        {"{'$reduce': {'input': {'$range': [0, 300]}, 'initialValue': [], 'in': ['$$value']}}", ERR_Overflow},
        {"{'$setField': {'field': 'a\\u0000b', 'input': {}, 'value': 1}}", 9534700},
        {"{'$arrayToObject': {'$literal': [['a\\u0000b', 1]]}}", 4940400},
        {"{'$foo': 1}", 168},
        {"{'$add': 1, '$sum': 2}", 15983},
        {"'$$nope'", 17276},
        {"'$'", 16872},
        {"'$a..b'", 15998},
        {"'$a.'", 40353},
        {"{'$subtract': [1]}", 16020},
        {"{'$divide': [1, 0]}", 2},
        {"{'$add': [1, 'x']}", 14},
        {"{'$size': 5}", 17124},
        {"{'a.b': 1}", 16412},
        {"{'$dateToString': null}", 18629},
        {"{'$reduce': {'input': {'$range': [0, 100000]}, 'initialValue': '', 'in': {'$concat': ['$$value', "
         "'xxxxxxxx']}}}",
         146},
        {MANY("'$concatArrays': " LIST), 146},
        {MANY("'$setUnion': " LIST), 146},
        {MANY("'$setIntersection': " LIST), 146},
        {MANY("'$setEquals': " LIST), 146},
        {MANY("'$zip': {'inputs': " LIST "}"), 146},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena;
        struct expr *expr;
        struct err err = {0};
        struct bval got;
        arena_init(&arena);
        struct bval source = json_val(&arena, cases[i].expr);
        bool ok = expr_compile(&arena, &source, NULL, &expr, &err) && expr_eval(expr, bdoc_empty(), &arena, &got, &err);
        assert_false(ok);
        if (err.code != cases[i].code)
            fail_msg("%s: %d instead of %d (%s)", cases[i].expr, err.code, cases[i].code, err.msg);
        arena_deinit(&arena);
    }
}

/* Nesting beyond the limit is an error, not a stack overflow. */
static void expr_too_deep_is_refused(void **state)
{
    struct arena arena;
    struct expr *expr;
    struct err err = {0};
    (void)state;
    arena_init(&arena);
    struct buf buf = BUF_INIT;
    size_t starts[EXPR_MAX_DEPTH * 2];
    size_t depth = 0;
    starts[depth++] = write_begin(&buf);
    while (depth < EXPR_MAX_DEPTH * 2)
        starts[depth++] = write_begin_field(&buf, "0", 1, BT_ARRAY);
    while (depth > 0)
        write_end(&buf, starts[--depth]);
    struct bval source = make_doc(&arena, &buf, BT_ARRAY);
    assert_false(expr_compile(&arena, &source, NULL, &expr, &err));
    assert_int_equal(err.code, ERR_Overflow);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expr_path_goes_through_arrays_of_documents),
        cmocka_unit_test(expr_arithmetic_promotes_and_overflows_to_wider_types),
        cmocka_unit_test(expr_conditions_evaluate_only_what_they_need),
        cmocka_unit_test(expr_arrays_strings_and_documents),
        cmocka_unit_test(expr_malformed_fails_with_code),
        cmocka_unit_test(expr_too_deep_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
