#include "query/projection.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

#include <string.h>

struct projection_case {
    enum projection_kind kind;
    const char *spec;
    const char *doc;
    const char *want;
};

static void check_all(const struct projection_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena;
        struct projection *projection;
        struct err err = {0};
        struct buf out = BUF_INIT;
        arena_init(&arena);
        if (!projection_compile(&arena, json_doc(&arena, cases[i].spec),
                                &(struct projection_options){.kind = cases[i].kind}, &projection, &err) ||
            !projection_apply(projection, json_doc(&arena, cases[i].doc), NULL, &out, &err))
            fail_msg("%s: %d %s", cases[i].spec, err.code, err.msg);
        json_assert_same(&arena, (struct bdoc){out.data, (uint32_t)out.len}, cases[i].want, cases[i].spec);
        buf_deinit(&out);
        arena_deinit(&arena);
    }
}

static void projection_find_includes_and_excludes(void **state)
{
    static const struct projection_case cases[] = {
        {PROJECTION_FIND, "{}", "{'_id': 1, 'a': 2}", "{'_id': 1, 'a': 2}"},
        {PROJECTION_FIND, "{'a': 1}", "{'_id': 1, 'b': 3, 'a': 2}", "{'_id': 1, 'a': 2}"},
        {PROJECTION_FIND, "{'a': 1, '_id': 0}", "{'_id': 1, 'a': 2}", "{'a': 2}"},
        {PROJECTION_FIND, "{'_id': 1}", "{'_id': 1, 'a': 2}", "{'_id': 1}"},
        {PROJECTION_FIND, "{'_id': 0}", "{'_id': 1, 'a': 2}", "{'a': 2}"},
        {PROJECTION_FIND, "{'a.b': 1}", "{'a': [{'b': 1, 'c': 2}, 5, [{'b': 3}]]}", "{'a': [{'b': 1}, [{'b': 3}]]}"},
        {PROJECTION_FIND, "{'a': {'b': 1}}", "{'a': {'b': 1, 'c': 2}}", "{'a': {'b': 1}}"},
        {PROJECTION_FIND, "{'a.b': 0}", "{'a': [{'b': 1, 'c': 2}, 5]}", "{'a': [{'c': 2}, 5]}"},
        {PROJECTION_FIND, "{'a': {'$slice': -1}}", "{'a': [1, 2], 'b': 3}", "{'a': [2], 'b': 3}"},
        {PROJECTION_FIND, "{'a': {'$slice': {'$numberDouble': 'NaN'}}}", "{'a': [1, 2]}", "{'a': []}"},
        {PROJECTION_FIND, "{'a': {'$slice': [1, 1]}, 'b': 1}", "{'a': [1, 2, 3], 'b': 3}", "{'a': [2], 'b': 3}"},
        {PROJECTION_FIND, "{'a': {'$elemMatch': {'x': 2}}}", "{'_id': 1, 'a': [{'x': 1}, {'x': 2}]}",
         "{'_id': 1, 'a': [{'x': 2}]}"},
        {PROJECTION_FIND, "{'c': {'$add': ['$a', 1]}}", "{'_id': 1, 'a': 2}", "{'_id': 1, 'c': 3}"},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void projection_stage_computes_and_adds(void **state)
{
    static const struct projection_case cases[] = {
        {PROJECTION_STAGE, "{'a': '$b', 'b': 1}", "{'_id': 1, 'a': 0, 'b': 2}", "{'_id': 1, 'b': 2, 'a': 2}"},
        {PROJECTION_STAGE, "{'a': {'x': '$b'}}", "{'a': {'y': 1}, 'b': 2}", "{'a': {'x': 2}}"},
        {PROJECTION_ADD_FIELDS, "{'a': '$b', 'c': 7}", "{'a': 0, 'b': 2}", "{'a': 2, 'b': 2, 'c': 7}"},
        {PROJECTION_ADD_FIELDS, "{'a.x': 1}", "{'a': [{'y': 1}, 5]}", "{'a': [{'y': 1, 'x': 1}, {'x': 1}]}"},
        {PROJECTION_ADD_FIELDS, "{'a': '$$REMOVE'}", "{'a': 0, 'b': 2}", "{'b': 2}"},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void projection_malformed_fails_with_code(void **state)
{
    static const struct {
        const char *spec;
        int code;
    } cases[] = {
        {"{'a': 1, 'b': 0}", 31254},   {"{'a': 0, 'b': 1}", 31253},
        {"{'a': 1, 'a.b': 1}", 31249}, {"{'a.b': 1, 'a': 1}", 31250},
        {"{'a': {}}", 51270},          {"{'a..b': 1}", 15998},
        {"{'a': {'$nope': 1}}", 168},  {"{'a.b': {'$elemMatch': {}}}", 31275},
        {"{'a.$': 1}", 51050},         {"{'a': {'$slice': 'x'}}", 28667},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena;
        struct projection *projection;
        struct err err = {0};
        arena_init(&arena);
        if (projection_compile(&arena, json_doc(&arena, cases[i].spec),
                               &(struct projection_options){.kind = PROJECTION_FIND}, &projection, &err))
            fail_msg("%s compiles", cases[i].spec);
        if (err.code != cases[i].code)
            fail_msg("%s: %d instead of %d (%s)", cases[i].spec, err.code, cases[i].code, err.msg);
        arena_deinit(&arena);
    }
}

static void projection_of_many_large_values_fails_with_10334(void **state)
{
    struct arena arena;
    struct projection *projection;
    struct err err = {0};
    struct buf out = BUF_INIT;
    (void)state;
    arena_init(&arena);
    const char *spec = "{'a': {'$range': [0, 600000]}, 'b': {'$range': [0, 600000]}, 'c.d': {'$range': [0, 600000]}}";
    assert_true(projection_compile(&arena, json_doc(&arena, spec),
                                   &(struct projection_options){.kind = PROJECTION_STAGE}, &projection, &err));
    assert_false(projection_apply(projection, json_doc(&arena, "{'_id': 1}"), NULL, &out, &err));
    assert_int_equal(err.code, ERR_BSONObjectTooLarge);
    assert_int_equal(out.len, 0);
    buf_deinit(&out);
    arena_deinit(&arena);
}

static void projection_positional_keeps_the_matched_element(void **state)
{
    struct arena arena;
    struct filter *filter;
    struct projection *projection;
    struct filter_match match;
    struct err err = {0};
    struct buf out = BUF_INIT;
    bool matched;
    (void)state;
    arena_init(&arena);
    struct bdoc doc = json_doc(&arena, "{'_id': 1, 'a': [1, 2, 3]}");
    assert_true(filter_compile(&arena, json_doc(&arena, "{'a': 2}"), NULL, &filter, &err));
    assert_true(projection_compile(&arena, json_doc(&arena, "{'a.$': 1}"),
                                   &(struct projection_options){.kind = PROJECTION_FIND, .filter = filter}, &projection,
                                   &err));
    assert_true(projection_needs_match(projection));
    assert_true(filter_eval(filter, doc, &match, &matched, &err));
    assert_true(projection_apply(projection, doc, &match, &out, &err));
    json_assert_same(&arena, (struct bdoc){out.data, (uint32_t)out.len}, "{'_id': 1, 'a': [2]}", "positional");
    buf_deinit(&out);
    arena_deinit(&arena);
}

static void collect(void *arg, const char *path)
{
    char *text = arg;
    strcat(text, path);
    strcat(text, ";");
}

static void projection_inclusions_are_told_for_covered_queries(void **state)
{
    struct arena arena;
    struct projection *projection;
    struct err err = {0};
    char text[64] = "";
    (void)state;
    arena_init(&arena);
    assert_true(projection_compile(&arena, json_doc(&arena, "{'a': 1, 'b.c': 1, '_id': 0}"),
                                   &(struct projection_options){.kind = PROJECTION_FIND}, &projection, &err));
    assert_true(projection_inclusions(projection, collect, text));
    assert_string_equal(text, "a;b.c;");
    assert_true(projection_compile(&arena, json_doc(&arena, "{'a': 0}"),
                                   &(struct projection_options){.kind = PROJECTION_FIND}, &projection, &err));
    assert_false(projection_inclusions(projection, collect, text));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(projection_find_includes_and_excludes),
        cmocka_unit_test(projection_stage_computes_and_adds),
        cmocka_unit_test(projection_malformed_fails_with_code),
        cmocka_unit_test(projection_of_many_large_values_fails_with_10334),
        cmocka_unit_test(projection_positional_keeps_the_matched_element),
        cmocka_unit_test(projection_inclusions_are_told_for_covered_queries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
