#include "tests/unit/cmocka_all.h"

#include "collation/collation.h"
#include "tests/unit/expr/json.h"
#include "update/update.h"

/* In English, letters of both cases alike. */
static const struct bval_order *alike(struct arena *arena)
{
    struct collation *collation;
    struct err err;
    assert_true(collation_open(json_doc(arena, "{'locale': 'en', 'strength': 2}"), &collation, &err));
    collation_keep(collation, arena);
    const struct bval_order *order = collation_order(collation);
    collation_unref(collation);
    return order;
}

struct collated_case {
    const char *update;
    const char *doc;
    const char *want;
    const char *array_filters; /* NULL: none */
    bool for_the_leader;       /* the collation decides something */
};

static void check(const struct collated_case *c)
{
    struct arena arena;
    struct update *update;
    struct err err = {0};
    struct buf out = BUF_INIT;
    struct update_result result;
    arena_init(&arena);
    struct expr_env env = {.order = alike(&arena)};
    struct update_options options = {.env = &env};
    struct bval source = json_val(&arena, c->update);
    if (c->array_filters != NULL) {
        struct bval list = json_val(&arena, c->array_filters);
        options.array_filters = bval_doc(&list);
    }
    if (!update_compile(&arena, &source, &options, &update, &err) ||
        !update_apply(update, json_doc(&arena, c->doc), NULL, &out, &result, &err))
        fail_msg("%s: %d %s", c->update, err.code, err.msg);
    json_assert_same(&arena, (struct bdoc){out.data, (uint32_t)out.len}, c->want, c->update);
    if (update_is_deterministic(update) == c->for_the_leader)
        fail_msg("%s: deterministic is wrong", c->update);
    update_release(update);
    buf_deinit(&out);
    arena_deinit(&arena);
}

static void update_operators_compare_by_the_collation(void **state)
{
    static const struct collated_case cases[] = {
        {"{'$min': {'a': 'B'}}", "{'a': 'a'}", "{'a': 'a'}", NULL, true},
        {"{'$max': {'a': 'B'}}", "{'a': 'a'}", "{'a': 'B'}", NULL, true},
        {"{'$addToSet': {'a': 'X'}}", "{'a': ['x']}", "{'a': ['x']}", NULL, true},
        {"{'$pull': {'a': 'X'}}", "{'a': ['x', 'y']}", "{'a': ['y']}", NULL, true},
        {"{'$pullAll': {'a': ['X']}}", "{'a': ['x', 'y']}", "{'a': ['y']}", NULL, true},
        {"{'$pull': {'a': {'b': 'X'}}}", "{'a': [{'b': 'x'}, {'b': 'y'}]}", "{'a': [{'b': 'y'}]}", NULL, true},
        {"{'$push': {'a': {'$each': [], '$sort': 1}}}", "{'a': ['b', 'A', 'c']}", "{'a': ['A', 'b', 'c']}", NULL, true},
        {"{'$push': {'a': {'$each': [], '$sort': {'k': -1}}}}", "{'a': [{'k': 'A'}, {'k': 'b'}]}",
         "{'a': [{'k': 'b'}, {'k': 'A'}]}", NULL, true},
        {"{'$set': {'a.$[e]': 1}}", "{'a': ['x', 'y']}", "{'a': [1, 'y']}", "[{'e': 'X'}]", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

static void update_without_strings_needs_no_leader(void **state)
{
    static const struct collated_case cases[] = {
        {"{'$set': {'a': 'B'}}", "{'a': 'b'}", "{'a': 'B'}", NULL, false},
        {"{'$inc': {'a': 1}, '$min': {'b': 3}}", "{'a': 1, 'b': 4}", "{'a': 2, 'b': 3}", NULL, false},
        {"{'$pull': {'a': {'$gt': 1}}}", "{'a': [1, 2]}", "{'a': [1]}", NULL, false},
        {"{'$push': {'a': 'x'}}", "{'a': ['X']}", "{'a': ['X', 'x']}", NULL, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(update_operators_compare_by_the_collation),
        cmocka_unit_test(update_without_strings_needs_no_leader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
