#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"
#include "update/update.h"

#include <string.h>

struct apply_case {
    const char *update;
    const char *doc;
    const char *want;          /* NULL: unchanged, not modified */
    int code;                  /* not 0: refused with this */
    const char *filter;        /* gives the position for `$`; NULL: none */
    const char *array_filters; /* NULL: none */
};

static const struct expr_env env = {.now_ms = 1700000000000};

static bool apply(struct arena *arena, const struct apply_case *c, struct buf *out, struct update_result *result,
                  struct err *err)
{
    struct update *update;
    struct filter *filter;
    struct filter_match match = {.array_index = -1};
    bool matched;
    struct update_options options = {.env = &env};
    struct bval source = json_val(arena, c->update);
    if (c->array_filters != NULL) {
        struct bval list = json_val(arena, c->array_filters);
        options.array_filters = bval_doc(&list);
    }
    struct bdoc doc = json_doc(arena, c->doc);
    if (!update_compile(arena, &source, &options, &update, err))
        return false;
    if (c->filter != NULL && (!filter_compile(arena, json_doc(arena, c->filter), NULL, &filter, err) ||
                              !filter_eval(filter, doc, &match, &matched, err)))
        return false;
    return update_apply(update, doc, &match, out, result, err);
}

static void check_one(const struct apply_case *c)
{
    struct arena arena;
    struct err err = {0};
    struct buf out = BUF_INIT;
    struct update_result result;
    arena_init(&arena);
    bool ok = apply(&arena, c, &out, &result, &err);
    if (ok != (c->code == 0) || (!ok && err.code != c->code))
        fail_msg("%s on %s: %s %d %s", c->update, c->doc, ok ? "succeeds" : "fails with", err.code, err.msg);
    if (!ok)
        assert_int_equal(out.len, 0);
    if (ok) {
        struct bdoc got = {out.data, (uint32_t)out.len};
        json_assert_same(&arena, got, c->want != NULL ? c->want : c->doc, c->update);
        if (result.modified != (c->want != NULL))
            fail_msg("%s on %s: modified is %d", c->update, c->doc, result.modified);
    }
    buf_deinit(&out);
    arena_deinit(&arena);
}

static void check_all(const struct apply_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_one(&cases[i]);
}

static void update_set_and_unset_follow_paths(void **state)
{
    static const struct apply_case cases[] = {
        {"{'$set': {'b': 1, 'a': 2}}", "{'_id': 1}", "{'_id': 1, 'a': 2, 'b': 1}", 0, NULL, NULL},
        {"{'$set': {'a.b.c': 1}}", "{'a': {'x': 0}}", "{'a': {'x': 0, 'b': {'c': 1}}}", 0, NULL, NULL},
        {"{'$set': {'a': 1}}", "{'a': 1}", NULL, 0, NULL, NULL},
        {"{'$set': {'a': 1.0}}", "{'a': 1}", "{'a': 1.0}", 0, NULL, NULL},
        {"{'$set': {'a.2': 9}}", "{'a': [1]}", "{'a': [1, null, 9]}", 0, NULL, NULL},
        {"{'$set': {'a.0.x': 9}}", "{'a': [{'x': 1, 'y': 2}]}", "{'a': [{'x': 9, 'y': 2}]}", 0, NULL, NULL},
        {"{'$set': {'a.b': 1}}", "{'a': 5}", NULL, 28, NULL, NULL},
        {"{'$set': {'a.b': 1}}", "{'a': [1]}", NULL, 28, NULL, NULL},
        {"{'$unset': {'a': 1, 'c': 1}}", "{'a': 1, 'b': 2}", "{'b': 2}", 0, NULL, NULL},
        {"{'$unset': {'a.0': 1}}", "{'a': [1, 2]}", "{'a': [null, 2]}", 0, NULL, NULL},
        {"{'$unset': {'a.b': 1}}", "{'a': 5}", NULL, 0, NULL, NULL},
        {"{'$set': {}}", "{'a': 5}", NULL, 0, NULL, NULL},
        {"{'$set': {'_id': 2}}", "{'_id': 1}", NULL, 66, NULL, NULL},
        {"{'$unset': {'_id': 1}}", "{'_id': 1}", NULL, 66, NULL, NULL},
        {"{'$setOnInsert': {'a': 2}}", "{'a': 1}", NULL, 0, NULL, NULL},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void update_arithmetic_promotes_and_refuses_overflow(void **state)
{
    static const struct apply_case cases[] = {
        {"{'$inc': {'a': 1}}", "{'a': 2147483647}", "{'a': {'$numberLong': '2147483648'}}", 0, NULL, NULL},
        {"{'$inc': {'a': 1}}", "{'a': {'$numberLong': '9223372036854775807'}}", NULL, 2, NULL, NULL},
        {"{'$inc': {'a': 1.5}}", "{'a': 1}", "{'a': 2.5}", 0, NULL, NULL},
        {"{'$inc': {'a': 1}}", "{}", "{'a': 1}", 0, NULL, NULL},
        {"{'$inc': {'a': 1}}", "{'a': 'x'}", NULL, 14, NULL, NULL},
        {"{'$inc': {'a': 'x'}}", "{'a': 1}", NULL, 14, NULL, NULL},
        {"{'$inc': {'a': 0}}", "{'a': 1}", NULL, 0, NULL, NULL},
        {"{'$mul': {'a': 3}}", "{'a': 2}", "{'a': 6}", 0, NULL, NULL},
        {"{'$mul': {'a': 3.0}}", "{}", "{'a': 0.0}", 0, NULL, NULL},
        {"{'$min': {'a': 3}}", "{'a': 5}", "{'a': 3}", 0, NULL, NULL},
        {"{'$min': {'a': 7}}", "{'a': 5}", NULL, 0, NULL, NULL},
        {"{'$max': {'a': 'x'}}", "{'a': 5}", "{'a': 'x'}", 0, NULL, NULL},
        {"{'$bit': {'a': {'or': 4, 'and': 6}}}", "{'a': 3}", "{'a': 6}", 0, NULL, NULL},
        {"{'$bit': {'a': {'xor': 1}}}", "{'a': 1.5}", NULL, 2, NULL, NULL},
        {"{'$currentDate': {'a': true}}", "{}", "{'a': {'$date': {'$numberLong': '1700000000000'}}}", 0, NULL, NULL},
        {"{'$currentDate': {'a': {'$type': 'timestamp'}}}", "{}", "{'a': {'$timestamp': {'t': 1700000000, 'i': 1}}}", 0,
         NULL, NULL},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void update_array_operators(void **state)
{
    static const struct apply_case cases[] = {
        {"{'$push': {'a': 1}}", "{}", "{'a': [1]}", 0, NULL, NULL},
        {"{'$push': {'a': {'$each': [3, 1], '$position': 0, '$sort': 1, '$slice': 2}}}", "{'a': [2]}", "{'a': [1, 2]}",
         0, NULL, NULL},
        {"{'$push': {'a': {'$each': [], '$slice': -1}}}", "{'a': [1, 2]}", "{'a': [2]}", 0, NULL, NULL},
        {"{'$push': {'a': {'$each': [{'x': 1}], '$sort': {'x': -1}}}}", "{'a': [{'x': 0}, {'x': 2}]}",
         "{'a': [{'x': 2}, {'x': 1}, {'x': 0}]}", 0, NULL, NULL},
        {"{'$push': {'a': 1}}", "{'a': 5}", NULL, 2, NULL, NULL},
        {"{'$push': {'a': {'$each': [1], '$nope': 1}}}", "{}", NULL, 2, NULL, NULL},
        {"{'$addToSet': {'a': {'$each': [1, 2, 2]}}}", "{'a': [1.0]}", "{'a': [1.0, 2]}", 0, NULL, NULL},
        {"{'$addToSet': {'a': 1}}", "{'a': [1]}", NULL, 0, NULL, NULL},
        {"{'$pull': {'a': {'$gt': 1}}}", "{'a': [1, 2, 3]}", "{'a': [1]}", 0, NULL, NULL},
        {"{'$pull': {'a': {'x': 1}}}", "{'a': [{'x': 1, 'y': 2}, {'x': 2}, 5]}", "{'a': [{'x': 2}, 5]}", 0, NULL, NULL},
        {"{'$pull': {'a': 2}}", "{'a': [1, 2, [2]]}", "{'a': [1, [2]]}", 0, NULL, NULL},
        {"{'$pullAll': {'a': [1, 3]}}", "{'a': [1, 2, 3, 1]}", "{'a': [2]}", 0, NULL, NULL},
        {"{'$pop': {'a': 1}}", "{'a': [1, 2]}", "{'a': [1]}", 0, NULL, NULL},
        {"{'$pop': {'a': -1}}", "{'a': [1, 2]}", "{'a': [2]}", 0, NULL, NULL},
        {"{'$pop': {'a': 1}}", "{'a': 5}", NULL, 14, NULL, NULL},
        {"{'$pop': {'a': 2}}", "{'a': [1]}", NULL, 9, NULL, NULL},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void update_rename_moves_a_value(void **state)
{
    static const struct apply_case cases[] = {
        {"{'$rename': {'a': 'b'}}", "{'a': 1, 'c': 2}", "{'c': 2, 'b': 1}", 0, NULL, NULL},
        {"{'$rename': {'a': 'x.y'}}", "{'a': 1}", "{'x': {'y': 1}}", 0, NULL, NULL},
        {"{'$rename': {'a': 'b'}}", "{'a': 1, 'b': 2}", "{'b': 1}", 0, NULL, NULL},
        {"{'$rename': {'a': 'b'}}", "{'c': 1}", NULL, 0, NULL, NULL},
        {"{'$rename': {'a': 'a'}}", "{'a': 1}", NULL, 2, NULL, NULL},
        {"{'$rename': {'a': 5}}", "{'a': 1}", NULL, 2, NULL, NULL},
        {"{'$rename': {'a.0': 'b'}}", "{'a': [1]}", NULL, 2, NULL, NULL},
        {"{'$rename': {'_id': 'b'}}", "{'_id': 1}", NULL, 66, NULL, NULL},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void update_conflicts_and_bad_paths_are_refused(void **state)
{
    static const struct apply_case cases[] = {
        {"{'$set': {'a': 1}, '$inc': {'a': 1}}", "{}", NULL, 40, NULL, NULL},
        {"{'$set': {'a': 1, 'a.b': 1}}", "{}", NULL, 40, NULL, NULL},
        {"{'$foo': {'a': 1}}", "{}", NULL, 9, NULL, NULL},
        {"{'$set': 5}", "{}", NULL, 9, NULL, NULL},
        {"{'$set': {'a': 1}, 'b': 1}", "{}", NULL, 9, NULL, NULL},
        {"{'a': 1, '$set': {'b': 1}}", "{}", NULL, 52, NULL, NULL},
        {"{'$set': {'': 1}}", "{}", NULL, 56, NULL, NULL},
        {"{'$set': {'a..b': 1}}", "{}", NULL, 56, NULL, NULL},
        {"{'$set': {'$a': 1}}", "{}", NULL, 52, NULL, NULL},
        {"{'$set': {'a.$': 1}}", "{'a': [1]}", NULL, 2, NULL, NULL},
        {"{'$set': {'a.$[x]': 1}}", "{'a': [1]}", NULL, 2, NULL, NULL},
        {"{'$set': {'a.$[]': 1}}", "{'a': 5}", NULL, 2, NULL, NULL},
        {"{'$set': {'_id': [1]}}", "{}", NULL, 53, NULL, NULL},
        {"{'$set': {'z': 1, 'a.b': 1}, '$push': {'b': 1}}", "{'z': 0, 'b': 5, 'a': 5}", NULL, 28, NULL, NULL},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void update_dollar_names_are_for_inner_fields_only(void **state)
{
    static const struct apply_case cases[] = {
        {"{'$set': {'a.$b': 1}}", "{'a': {}}", "{'a': {'$b': 1}}", 0, NULL, NULL},
        {"{'$unset': {'$a': 1}}", "{'$a': 1, 'b': 2}", "{'b': 2}", 0, NULL, NULL},
        {"{'$inc': {'$a': 1}}", "{'b': 2}", NULL, 52, NULL, NULL},
        {"{'$rename': {'b': 'c.d'}}", "{'$a': 1, 'b': 2}", "{'$a': 1, 'c': {'d': 2}}", 0, NULL, NULL},
        {"{'b': 1, '$a': 1}", "{'b': 1}", NULL, 52, NULL, NULL},
        {"{'$setOnInsert': {'$a': 1}}", "{'b': 1}", NULL, 0, NULL, NULL},
        {"{'$set': {'$[]': 1}}", "{}", NULL, 2, NULL, NULL},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void append_text(struct buf *to, const char *text)
{
    buf_append(to, text, strlen(text));
}

/* Arrays long enough that look-ups go by a table. */
static void update_sets_of_many_values_are_like_those_of_few(void **state)
{
    enum { COUNT = 300 };
    struct arena arena;
    struct buf text = BUF_INIT;
    struct apply_case add;
    struct apply_case pull;
    (void)state;
    arena_init(&arena);
    for (int i = 0; i < COUNT; i++)
        append_text(&text, arena_printf(&arena, "%s%d.0, %d", i > 0 ? ", " : "", i, i));
    const char *twice = arena_copy_str(&arena, (const char *)text.data, text.len);
    buf_clear(&text);
    for (int i = 0; i < COUNT; i++)
        append_text(&text, arena_printf(&arena, "%s%d.0", i > 0 ? ", " : "", i));
    const char *once = arena_copy_str(&arena, (const char *)text.data, text.len);
    add = (struct apply_case){.update = arena_printf(&arena, "{'$addToSet': {'a': {'$each': [%s]}}}", twice),
                              .doc = "{'a': ['x']}",
                              .want = arena_printf(&arena, "{'a': ['x', %s]}", once)};
    pull = (struct apply_case){.update = arena_printf(&arena, "{'$pullAll': {'a': [%s]}}", once),
                               .doc = arena_printf(&arena, "{'a': [%s, 'y', %s]}", twice, twice),
                               .want = "{'a': ['y']}"};
    check_one(&add);
    check_one(&pull);
    buf_deinit(&text);
    arena_deinit(&arena);
}

static void update_positional_operators(void **state)
{
    static const struct apply_case cases[] = {
        {"{'$set': {'a.$.x': 9}}", "{'a': [{'x': 1}, {'x': 2}]}", "{'a': [{'x': 1}, {'x': 9}]}", 0, "{'a.x': 2}", NULL},
        {"{'$inc': {'a.$[].x': 1}}", "{'a': [{'x': 1}, {}]}", "{'a': [{'x': 2}, {'x': 1}]}", 0, NULL, NULL},
        {"{'$set': {'a.$[e].x': 9}}", "{'a': [{'x': 1}, {'x': 2}]}", "{'a': [{'x': 1}, {'x': 9}]}", 0, NULL,
         "[{'e.x': {'$gte': 2}}]"},
        {"{'$set': {'a': 9}}", "{}", NULL, 9, NULL, "[{'e': 1}]"},
        {"{'$set': {'a.$[e].$[f]': 0}}", "{'a': [[1, 2], [3]]}", "{'a': [[0, 2], [3]]}", 0, NULL,
         "[{'e.0': 1}, {'f': 1}]"},
        {"{'$set': {'a.$[e]': 0, 'a.$[f]': 1}}", "{'a': [1]}", NULL, 40, NULL, "[{'e': 1}, {'f': 1}]"},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void update_replacement_keeps_the_id_in_front(void **state)
{
    static const struct apply_case cases[] = {
        {"{'b': 1}", "{'_id': 7, 'a': 1}", "{'_id': 7, 'b': 1}", 0, NULL, NULL},
        {"{'b': 1, '_id': 7}", "{'_id': 7, 'a': 1}", "{'_id': 7, 'b': 1}", 0, NULL, NULL},
        {"{'_id': 8}", "{'_id': 7}", NULL, 66, NULL, NULL},
        {"{'_id': 7, 'a': 1}", "{'_id': 7, 'a': 1}", NULL, 0, NULL, NULL},
        /* A document that was not stored by us. */
        {"{'a': 1, '_id': 7}", "{'a': 1, '_id': 7}", "{'_id': 7, 'a': 1}", 0, NULL, NULL},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void update_pipeline_computes_from_the_document(void **state)
{
    static const struct apply_case cases[] = {
        {"[{'$set': {'b': {'$add': ['$a', 1]}}}, {'$unset': 'a'}]", "{'_id': 1, 'a': 1}", "{'_id': 1, 'b': 2}", 0, NULL,
         NULL},
        {"[{'$replaceWith': {'x': '$a'}}]", "{'_id': 1, 'a': 1}", "{'_id': 1, 'x': 1}", 0, NULL, NULL},
        {"[{'$set': {'_id': 5}}]", "{'_id': 1}", NULL, 66, NULL, NULL},
        {"[{'$match': {}}]", "{'_id': 1}", NULL, 72, NULL, NULL},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void update_result_over_16_mib_is_refused(void **state)
{
    struct arena arena;
    struct update *update;
    struct update_result result;
    struct err err = {0};
    struct buf out = BUF_INIT;
    struct update_options options = {.env = NULL};
    bson_t big = BSON_INITIALIZER;
    (void)state;
    arena_init(&arena);
    char *text = arena_alloc(&arena, 16 * 1024 * 1024);
    memset(text, 'x', 16 * 1024 * 1024 - 1);
    bson_t set;
    BSON_APPEND_DOCUMENT_BEGIN(&big, "$set", &set);
    BSON_APPEND_UTF8(&set, "a", text);
    bson_append_document_end(&big, &set);
    struct bval source = bval_from_doc(bdoc_of(&big));
    assert_true(update_compile(&arena, &source, &options, &update, &err));
    assert_false(update_apply(update, json_doc(&arena, "{'_id': 1, 'b': 2}"), NULL, &out, &result, &err));
    assert_int_equal(err.code, 17419);
    buf_deinit(&out);
    bson_destroy(&big);
    arena_deinit(&arena);
}

static void update_touches_tells_which_paths_may_change(void **state)
{
    struct arena arena;
    struct update *update;
    struct err err;
    struct update_options options = {.env = NULL};
    (void)state;
    arena_init(&arena);
    struct bval source = json_val(&arena, "{'$set': {'a.b': 1, 'c.$[].d': 1}}");
    assert_true(update_compile(&arena, &source, &options, &update, &err));
    assert_true(update_touches(update, "a"));
    assert_true(update_touches(update, "a.b.c"));
    assert_false(update_touches(update, "a.c"));
    assert_true(update_touches(update, "c.d"));
    assert_false(update_touches(update, "c.e"));
    assert_false(update_touches(update, "z"));
    arena_deinit(&arena);
}

/* An element that nobody could look at is neither kept nor changed on that ground. */
static void update_whose_predicate_fails_changes_nothing(void **state)
{
#define TEXTS "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab', 'a'"
#define SLOW  "{'$regex': '^(a|a?)+$'}"
    static const struct apply_case cases[] = {
        {.update = "{'$pull': {'a': " SLOW "}}", .doc = "{'a': [" TEXTS "]}", .code = 51156},
        {.update = "{'$pull': {'a': {'x': " SLOW "}}}",
         .doc = "{'a': [{'x': [" TEXTS "]}, {'x': 'a'}]}",
         .code = 51156},
        {.update = "{'$set': {'a.$[e]': 1}}",
         .doc = "{'a': [" TEXTS "]}",
         .code = 51156,
         .array_filters = "[{'e': " SLOW "}]"},
        {.update = "{'$pull': {'a': " SLOW "}}", .doc = "{'a': ['aab', 'aa']}", .want = "{'a': ['aab']}"},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(update_set_and_unset_follow_paths),
        cmocka_unit_test(update_arithmetic_promotes_and_refuses_overflow),
        cmocka_unit_test(update_array_operators),
        cmocka_unit_test(update_rename_moves_a_value),
        cmocka_unit_test(update_conflicts_and_bad_paths_are_refused),
        cmocka_unit_test(update_dollar_names_are_for_inner_fields_only),
        cmocka_unit_test(update_sets_of_many_values_are_like_those_of_few),
        cmocka_unit_test(update_positional_operators),
        cmocka_unit_test(update_replacement_keeps_the_id_in_front),
        cmocka_unit_test(update_pipeline_computes_from_the_document),
        cmocka_unit_test(update_result_over_16_mib_is_refused),
        cmocka_unit_test(update_whose_predicate_fails_changes_nothing),
        cmocka_unit_test(update_touches_tells_which_paths_may_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
