#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"
#include "update/update.h"

#include <string.h>

static const bson_oid_t oid = {.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
#define OID "{'$oid': '000000000000000000000001'}"

struct upsert_case {
    const char *filter;
    const char *update;
    const char *want;
    int code;
};

static void upsert_takes_equalities_then_the_update(void **state)
{
    static const struct upsert_case cases[] = {
        {"{'b': 2, 'a': 1}", "{'$set': {'c': 3}}", "{'_id': " OID ", 'a': 1, 'b': 2, 'c': 3}", 0},
        {"{'_id': 5, 'x': {'$gt': 1}}", "{'$inc': {'n': 1}}", "{'_id': 5, 'n': 1}", 0},
        {"{'a.b': 1, 'a.c': 2}", "{'$setOnInsert': {'z': 1}}", "{'_id': " OID ", 'a': {'b': 1, 'c': 2}, 'z': 1}", 0},
        {"{'$and': [{'a': 1}, {'b': {'$eq': 2}}]}", "{'$set': {}}", "{'_id': " OID ", 'a': 1, 'b': 2}", 0},
        {"{'a': {'$in': [7]}}", "{'$set': {'b': 1}}", "{'_id': " OID ", 'a': 7, 'b': 1}", 0},
        {"{'_id': 3, 'a': 1}", "{'b': 1}", "{'_id': 3, 'b': 1}", 0},
        {"{}", "{'b': 1, '_id': 9}", "{'_id': 9, 'b': 1}", 0},
        {"{}", "{'$set': {'b': 1, '_id': 9}}", "{'_id': 9, 'b': 1}", 0},
        {"{'a': {'$all': [1, 2]}}", "{'$set': {'b': 1}}", NULL, 54},
        {"{'a': 1, 'a.b': 2}", "{'$set': {'b': 1}}", NULL, 54},
        {"{'_id': 1}", "{'$set': {'_id': 2}}", NULL, 66},
        {"{'a': 1}", "{'$push': {'a': 2}}", NULL, 2},
        {"{'_id': 1}", "{'$set': {'$b': 1}}", "{'_id': 1, '$b': 1}", 0},
        {"{'_id': 1}", "{'a': 1, '$b': 1}", "{'_id': 1, 'a': 1, '$b': 1}", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena;
        struct filter *filter;
        struct update *update;
        struct err err = {0};
        struct buf out = BUF_INIT;
        struct update_options options = {.upsert = true};
        arena_init(&arena);
        struct bval source = json_val(&arena, cases[i].update);
        assert_true(filter_compile(&arena, json_doc(&arena, cases[i].filter), NULL, &filter, &err));
        assert_true(update_compile(&arena, &source, &options, &update, &err));
        bool ok = update_build_upsert(update, filter, &oid, &out, &err);
        if (ok != (cases[i].code == 0) || (!ok && err.code != cases[i].code))
            fail_msg("%s %s: %d %s", cases[i].filter, cases[i].update, err.code, err.msg);
        if (ok)
            json_assert_same(&arena, (struct bdoc){out.data, (uint32_t)out.len}, cases[i].want, cases[i].update);
        buf_deinit(&out);
        arena_deinit(&arena);
    }
}

static void insert_puts_the_id_first_or_makes_one(void **state)
{
    struct arena arena;
    struct err err = {0};
    struct buf out = BUF_INIT;
    (void)state;
    arena_init(&arena);
    assert_true(update_prepare_insert(json_doc(&arena, "{'a': 1, '_id': 2}"), &oid, &out, &err));
    json_assert_same(&arena, (struct bdoc){out.data, (uint32_t)out.len}, "{'_id': 2, 'a': 1}", "id last");
    buf_clear(&out);
    assert_true(update_prepare_insert(json_doc(&arena, "{'a': 1}"), &oid, &out, &err));
    json_assert_same(&arena, (struct bdoc){out.data, (uint32_t)out.len}, "{'_id': " OID ", 'a': 1}", "no id");
    buf_clear(&out);
    assert_false(update_prepare_insert(json_doc(&arena, "{'_id': [1]}"), &oid, &out, &err));
    assert_int_equal(err.code, ERR_InvalidIdField);
    assert_int_equal(out.len, 0);
    assert_false(update_prepare_insert(json_doc(&arena, "{'_id': {'$a': 1}}"), &oid, &out, &err));
    assert_int_equal(err.code, 52);
    buf_deinit(&out);
    arena_deinit(&arena);
}

static void update_kinds_are_told_apart(void **state)
{
    struct arena arena;
    struct update *update;
    struct err err = {0};
    struct update_options multi = {.multi = true};
    struct update_options single = {.multi = false};
    (void)state;
    arena_init(&arena);
    struct bval replacement = json_val(&arena, "{'a': 1}");
    assert_true(update_compile(&arena, &replacement, &single, &update, &err));
    assert_int_equal(update_kind(update), UPDATE_REPLACEMENT);
    assert_false(update_compile(&arena, &replacement, &multi, &update, &err));
    assert_int_equal(err.code, 9);
    struct bval operators = json_val(&arena, "{'$pull': {'a': {'$regex': 'x'}}}");
    assert_true(update_compile(&arena, &operators, &multi, &update, &err));
    assert_int_equal(update_kind(update), UPDATE_OPERATORS);
    assert_false(update_is_deterministic(update));
    struct bval pipeline = json_val(&arena, "[{'$set': {'a': 1}}]");
    assert_true(update_compile(&arena, &pipeline, &multi, &update, &err));
    assert_int_equal(update_kind(update), UPDATE_PIPELINE);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(upsert_takes_equalities_then_the_update),
        cmocka_unit_test(insert_puts_the_id_first_or_makes_one),
        cmocka_unit_test(update_kinds_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
