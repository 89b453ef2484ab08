#include "query/sort.h"

#include "base/random.h"
#include "bson/keyenc.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

#include <stdlib.h>
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

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return (*x > *y) - (*x < *y);
}

/* Top-k gives the same as a whole sort cut off, ties in order of arrival. */
static void sorter_with_limit_keeps_the_first_k_stably(void **state)
{
    struct prng prng = {42};
    (void)state;
    for (int round = 0; round < 50; round++) {
        uint64_t count = prng_below(&prng, 300) + 1;
        uint64_t limit = prng_below(&prng, 40) + 1;
        uint64_t *wanted = calloc(count, sizeof *wanted);
        struct sorter *sorter = sorter_new(limit, SORT_MEMORY_LIMIT_BYTES);
        struct err err;
        assert_non_null(wanted);
        for (uint64_t i = 0; i < count; i++) {
            struct buf key = BUF_INIT;
            uint64_t number = prng_below(&prng, 50);
            wanted[i] = number << 32 | i;
            buf_append_be64(&key, number);
            assert_true(sorter_add(sorter, key.data, key.len, (struct bdoc){0}, i, &err));
            buf_deinit(&key);
        }
        qsort(wanted, count, sizeof *wanted, compare_numbers);
        sorter_finish(sorter);
        struct sort_item item;
        for (uint64_t i = 0; i < limit && i < count; i++) {
            assert_true(sorter_next(sorter, &item));
            assert_int_equal(item.tag, wanted[i] & UINT32_MAX);
        }
        assert_false(sorter_next(sorter, &item));
        sorter_free(sorter);
        free(wanted);
    }
}

static void sorter_beyond_its_memory_fails_with_292(void **state)
{
    struct err err = {0};
    struct sorter *sorter = sorter_new(0, 10000);
    char key[100] = {0};
    int added = 0;
    (void)state;
    while (added < 1000 && sorter_add(sorter, key, sizeof key, (struct bdoc){0}, 0, &err))
        added++;
    assert_in_range(added, 10, 100);
    assert_int_equal(err.code, 292);
    sorter_free(sorter);
}

static void sorter_hands_documents_back(void **state)
{
    struct arena arena;
    struct err err;
    struct sort_item item;
    (void)state;
    arena_init(&arena);
    struct sorter *sorter = sorter_new(0, SORT_MEMORY_LIMIT_BYTES);
    assert_true(sorter_add(sorter, "b", 1, json_doc(&arena, "{'x': 2}"), 2, &err));
    assert_true(sorter_add(sorter, "a", 1, json_doc(&arena, "{'x': 1}"), 1, &err));
    sorter_finish(sorter);
    assert_true(sorter_next(sorter, &item));
    json_assert_same(&arena, item.doc, "{'x': 1}", "first");
    assert_true(sorter_next(sorter, &item));
    assert_memory_equal(item.key, "b", 1);
    assert_false(sorter_next(sorter, &item));
    sorter_free(sorter);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sort_key_orders_as_a_server_does),
        cmocka_unit_test(sort_malformed_fails_with_code),
        cmocka_unit_test(sort_of_parallel_arrays_is_refused),
        cmocka_unit_test(sorter_with_limit_keeps_the_first_k_stably),
        cmocka_unit_test(sorter_beyond_its_memory_fails_with_292),
        cmocka_unit_test(sorter_hands_documents_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
