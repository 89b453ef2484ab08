/* Filters and sorts with an order for strings; ASCII letters of either case are equal in the one used here. */
#include "bson/keyenc.h"
#include "query/filter.h"
#include "query/sort.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

#include <ctype.h>
#include <string.h>

static int compare_ignoring_case(const void *arg, const char *a, uint32_t a_len, const char *b, uint32_t b_len)
{
    (void)arg;
    int sign = strncasecmp(a, b, a_len < b_len ? a_len : b_len);
    return sign != 0 ? sign : (a_len > b_len) - (a_len < b_len);
}

static void append_lower_case(const void *arg, const char *text, uint32_t len, struct buf *to)
{
    (void)arg;
    for (uint32_t i = 0; i < len; i++)
        buf_append_u8(to, (uint8_t)tolower((uint8_t)text[i]));
}

static const struct bval_order ignoring_case = {
    .compare_strings = compare_ignoring_case, .append_key = append_lower_case, .name = "ignoring case"};

static const struct expr_env env = {.order = &ignoring_case};

static struct filter *compile(struct arena *arena, const char *query, const struct expr_env *with)
{
    struct filter *filter;
    struct err err = {0};
    if (!filter_compile(arena, json_doc(arena, query), with, &filter, &err))
        fail_msg("%s: %d %s", query, err.code, err.msg);
    return filter;
}

static void filter_compares_strings_in_its_order(void **state)
{
    static const struct {
        const char *query;
        const char *doc;
        bool simple;
        bool ordered;
    } cases[] = {
        {"{'a': 'X'}", "{'a': 'x'}", false, true},
        {"{'a': 'X'}", "{'a': ['y', 'x']}", false, true},
        {"{'a': 'X'}", "{'a': 'X'}", true, true},
        {"{'a': {'$ne': 'X'}}", "{'a': 'x'}", true, false},
        {"{'a': {'$gt': 'B'}}", "{'a': 'b'}", true, false},
        {"{'a': {'$gte': 'b'}}", "{'a': 'B'}", false, true},
        {"{'a': {'$lt': 'b'}}", "{'a': 'B'}", true, false},
        {"{'a': {'$lte': 'B'}}", "{'a': 'b'}", false, true},
        {"{'a': {'$in': [1, 'Q', 'B', 'b']}}", "{'a': 'q'}", false, true},
        {"{'a': {'$nin': ['Q']}}", "{'a': 'q'}", true, false},
        {"{'a': {'$all': ['B', 'C']}}", "{'a': ['b', 'c']}", false, true},
        {"{'a': {'$elemMatch': {'$gte': 'b', '$lt': 'C'}}}", "{'a': ['B']}", false, true},
        {"{'a': {'$not': {'$eq': 'b'}}}", "{'a': 'B'}", true, false},
        {"{'a': ['B']}", "{'a': ['b']}", false, true},
        {"{'a': {'k': 'B'}}", "{'a': {'k': 'b'}}", false, true},
        {"{'a': {'k': 'B'}}", "{'a': {'K': 'b'}}", false, false}, /* names compare by bytes */
        {"{'a': {'$gt': {'k': 'B'}}}", "{'a': {'k': 'c'}}", true, true},
        {"{'a': {'$regex': '^B'}}", "{'a': 'b'}", false, false},
        {"{'$or': [{'a': 'B'}, {'b': 1}]}", "{'a': 'b'}", false, true},
        {"{'$expr': {'$eq': ['$a', 'B']}}", "{'a': 'b'}", false, true},
        {"{'a': 5}", "{'a': 5.0}", true, true},
        {"{'a': null}", "{}", true, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena;
        arena_init(&arena);
        struct bdoc doc = json_doc(&arena, cases[i].doc);
        if (filter_matches(compile(&arena, cases[i].query, NULL), doc) != cases[i].simple)
            fail_msg("%s on %s, by bytes", cases[i].query, cases[i].doc);
        if (filter_matches(compile(&arena, cases[i].query, &env), doc) != cases[i].ordered)
            fail_msg("%s on %s, ordered", cases[i].query, cases[i].doc);
        arena_deinit(&arena);
    }
}

/* Every replica gives the same answer unless the order has to decide something. */
static void filter_with_an_order_is_deterministic_without_strings(void **state)
{
    static const struct {
        const char *query;
        bool deterministic;
    } cases[] = {{"{'a': 5, 'b': null}", true},
                 {"{'a': {'$in': [1, {'k': 2}]}}", true},
                 {"{'a': 'x'}", false},
                 {"{'a': {'$in': [1, {'k': 'x'}]}}", false},
                 {"{'a': {'$elemMatch': {'b': 'x'}}}", false},
                 {"{'a': [[['x']]]}", false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena;
        arena_init(&arena);
        assert_true(filter_is_deterministic(compile(&arena, cases[i].query, NULL)));
        assert_int_equal(filter_is_deterministic(compile(&arena, cases[i].query, &env)), cases[i].deterministic);
        arena_deinit(&arena);
    }
}

static void filter_equality_is_none_for_a_string_in_an_order(void **state)
{
    (void)state;
    struct arena arena;
    struct bval val;
    arena_init(&arena);
    assert_true(filter_equality(compile(&arena, "{'_id': 'x'}", NULL), "_id", &val));
    assert_false(filter_equality(compile(&arena, "{'_id': 'x'}", &env), "_id", &val));
    assert_true(filter_equality(compile(&arena, "{'_id': 7}", &env), "_id", &val));
    arena_deinit(&arena);
}

static int order_of(const char *spec, const char *a, const char *b)
{
    struct arena arena;
    struct sort_spec *sort;
    struct err err = {0};
    struct buf x = BUF_INIT;
    struct buf y = BUF_INIT;
    arena_init(&arena);
    if (!sort_spec_compile(&arena, json_doc(&arena, spec), &ignoring_case, &sort, &err) ||
        !sort_key_append(sort, json_doc(&arena, a), &x, &err) || !sort_key_append(sort, json_doc(&arena, b), &y, &err))
        fail_msg("%s: %d %s", spec, err.code, err.msg);
    int result = keyenc_compare(x.data, x.len, y.data, y.len);
    buf_deinit(&x);
    buf_deinit(&y);
    arena_deinit(&arena);
    return (result > 0) - (result < 0);
}

static void sort_key_follows_the_order(void **state)
{
    (void)state;
    assert_int_equal(order_of("{'a': 1}", "{'a': 'b'}", "{'a': 'B'}"), 0);
    assert_int_equal(order_of("{'a': 1}", "{'a': 'b'}", "{'a': 'C'}"), -1);
    assert_int_equal(order_of("{'a': -1}", "{'a': 'b'}", "{'a': 'C'}"), 1);
    assert_int_equal(order_of("{'a': 1, 'n': 1}", "{'a': 'b', 'n': 2}", "{'a': 'B', 'n': 1}"), 1);
    assert_int_equal(order_of("{'a': 1}", "{'a': ['x', 'B']}", "{'a': 'a'}"), 1); /* the least element counts */
    assert_int_equal(order_of("{'a': 1}", "{'a': ['x', 'A']}", "{'a': 'a'}"), 0);
    assert_int_equal(order_of("{'a': -1}", "{'a': ['a', 'X']}", "{'a': 'x'}"), 0);
    assert_int_equal(order_of("{'a': 1}", "{'a': {'k': 'B'}}", "{'a': {'k': 'b'}}"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filter_compares_strings_in_its_order),
        cmocka_unit_test(filter_with_an_order_is_deterministic_without_strings),
        cmocka_unit_test(filter_equality_is_none_for_a_string_in_an_order),
        cmocka_unit_test(sort_key_follows_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
