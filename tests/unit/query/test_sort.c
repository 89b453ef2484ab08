#include "query/sort.h"

#include "bson/keyenc.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

#include <string.h>

/* Sign of the order of two documents under a sort. */
static int order(const char *spec, const char *a, const char *b)
{
    struct arena arena;
    struct sort_spec *sort;
    struct err err = {0};
    struct buf x = BUF_INIT;
    struct buf y = BUF_INIT;
    arena_init(&arena);
    if (!sort_spec_compile(&arena, json_doc(&arena, spec), NULL, &sort, &err) ||
        !sort_key_append(sort, json_doc(&arena, a), &x, &err) || !sort_key_append(sort, json_doc(&arena, b), &y, &err))
        fail_msg("%s: %d %s", spec, err.code, err.msg);
    int result = keyenc_compare(x.data, x.len, y.data, y.len);
    buf_deinit(&x);
    buf_deinit(&y);
    arena_deinit(&arena);
    return (result > 0) - (result < 0);
}

static void sort_key_orders_as_a_server_does(void **state)
{
    (void)state;
    assert_int_equal(order("{'a': 1}", "{'a': 1}", "{'a': 2}"), -1);
    assert_int_equal(order("{'a': -1}", "{'a': 1}", "{'a': 2}"), 1);
    assert_int_equal(order("{'a': 1}", "{}", "{'a': null}"), 0);
    assert_int_equal(order("{'a': 1}", "{'a': []}", "{'a': null}"), -1);
    assert_int_equal(order("{'a': 1}", "{'a': [5, 1]}", "{'a': 2}"), -1);
    assert_int_equal(order("{'a': -1}", "{'a': [5, 1]}", "{'a': 2}"), -1);
    assert_int_equal(order("{'a': 1, 'b': -1}", "{'a': 1, 'b': 1}", "{'a': 1, 'b': 2}"), 1);
    assert_int_equal(order("{'a.b': 1}", "{'a': [{'b': 3}, {'b': 1}]}", "{'a': {'b': 2}}"), -1);
    assert_int_equal(order("{'a': 1}", "{'a': 'x'}", "{'a': 99}"), 1);
}

static void sort_malformed_fails_with_code(void **state)
{
    static const struct {
        const char *spec;
        int code;
    } cases[] = {{"{'a': 2}", 15975},    {"{'a': 'x'}", 15974}, {"{'a': {'$meta': 'textScore'}}", 31138},
                 {"{'a..b': 1}", 15998}, {"{'': 1}", 40352},    {"{'$a': 1}", 16410}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena;
        struct sort_spec *sort;
        struct err err = {0};
        arena_init(&arena);
        assert_false(sort_spec_compile(&arena, json_doc(&arena, cases[i].spec), NULL, &sort, &err));
        assert_int_equal(err.code, cases[i].code);
        arena_deinit(&arena);
    }
}

static void sort_of_parallel_arrays_is_refused(void **state)
{
    struct arena arena;
    struct sort_spec *sort;
    struct err err = {0};
    struct buf key = BUF_INIT;
    (void)state;
    arena_init(&arena);
    assert_true(sort_spec_compile(&arena, json_doc(&arena, "{'a': 1, 'b': 1}"), NULL, &sort, &err));
    assert_false(sort_key_append(sort, json_doc(&arena, "{'a': [1], 'b': [2]}"), &key, &err));
    assert_int_equal(err.code, 2);
    assert_int_equal(key.len, 0);
    buf_deinit(&key);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sort_key_orders_as_a_server_does),
        cmocka_unit_test(sort_malformed_fails_with_code),
        cmocka_unit_test(sort_of_parallel_arrays_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
