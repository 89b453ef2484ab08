#include "expr/writer.h"
#include "query/filter.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

#include <string.h>

static void filter_malformed_fails_with_code(void **state)
{
    static const struct {
        const char *filter;
        int code;
    } cases[] = {
        {"{'$foo': 1}", 2},
        {"{'a': {'$foo': 1}}", 2},
        {"{'a': {'$gt': 1, 'b': 2}}", 2},
        {"{'$and': []}", 2},
        {"{'$or': 5}", 2},
        {"{'$nor': [1]}", 2},
        {"{'a': {'$in': 1}}", 2},
        {"{'a': {'$in': [{'$gt': 1}]}}", 2},
        {"{'a': {'$not': 5}}", 2},
        {"{'a': {'$not': {}}}", 2},
        {"{'a': {'$mod': [0, 1]}}", 2},
        {"{'a': {'$mod': [1]}}", 2},
        {"{'a': {'$type': 'nope'}}", 2},
        {"{'a': {'$type': {}}}", 14},
        {"{'a': {'$size': -1}}", 2},
        {"{'a': {'$elemMatch': 5}}", 2},
        {"{'a': {'$all': 5}}", 2},
        {"{'a': {'$options': 'i'}}", 2},
        {"{'a': {'$regex': '('}}", 51091},
        {"{'a': {'$regex': 'x', '$options': 'q'}}", 51108},
        {"{'a': {'$bitsAllSet': -1}}", 9},
        {"{'$expr': {'$nope': 1}}", 168},
        {"{'$where': 'x'}", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena;
        struct filter *filter;
        struct err err = {0};
        arena_init(&arena);
        if (filter_compile(&arena, json_doc(&arena, cases[i].filter), NULL, &filter, &err))
            fail_msg("%s compiles", cases[i].filter);
        if (err.code != cases[i].code)
            fail_msg("%s: %d instead of %d (%s)", cases[i].filter, err.code, cases[i].code, err.msg);
        arena_deinit(&arena);
    }
}

static void filter_unknown_operator_is_named(void **state)
{
    struct arena arena;
    struct filter *filter;
    struct err err = {0};
    (void)state;
    arena_init(&arena);
    assert_false(filter_compile(&arena, json_doc(&arena, "{'a': {'$foo': 1}}"), NULL, &filter, &err));
    assert_string_equal(err.msg, "unknown operator: $foo");
    arena_deinit(&arena);
}

static void filter_too_deep_is_refused(void **state)
{
    struct arena arena;
    struct filter *filter;
    struct err err = {0};
    struct buf buf = BUF_INIT;
    (void)state;
    arena_init(&arena);
    struct bdoc query = json_doc(&arena, "{'a': 1}");
    for (int i = 0; i < FILTER_MAX_DEPTH + 5; i++) {
        struct bval inner = bval_from_doc(query);
        size_t start = write_begin(&buf);
        size_t list = write_begin_field(&buf, "$and", 4, BT_ARRAY);
        write_item(&buf, 0, &inner);
        write_end(&buf, list);
        write_end(&buf, start);
        struct bval outer = make_doc(&arena, &buf, BT_DOCUMENT);
        query = bval_doc(&outer);
    }
    assert_false(filter_compile(&arena, query, NULL, &filter, &err));
    assert_int_equal(err.code, 2);
    arena_deinit(&arena);
}

struct found {
    char text[256];
};

static bool note(void *arg, const char *path, const struct bval *value, struct err *err)
{
    struct found *found = arg;
    size_t len = strlen(found->text);
    (void)value;
    (void)err;
    snprintf(found->text + len, sizeof found->text - len, "%s;", path);
    return true;
}

static void filter_facts_are_read_off(void **state)
{
    struct arena arena;
    struct filter *filter;
    struct bval val;
    struct err err;
    struct found found = {0};
    struct filter_equality_visitor visitor = {note, &found};
    (void)state;
    arena_init(&arena);
    assert_true(filter_compile(&arena, json_doc(&arena, "{'b': 1, '$and': [{'a.x': {'$in': [3]}}, {'c': {'$gt': 1}}]}"),
                               NULL, &filter, &err));
    assert_true(filter_equality(filter, "a.x", &val));
    assert_int_equal(bval_i32(&val), 3);
    assert_false(filter_equality(filter, "c", &val));
    assert_true(filter_is_deterministic(filter));
    assert_true(filter_mentions(filter, "a.y"));
    assert_false(filter_mentions(filter, "z"));
    assert_true(filter_each_equality(filter, &visitor, &err));
    assert_string_equal(found.text, "b;a.x;");
    assert_true(filter_compile(&arena, json_doc(&arena, "{'a': {'$regex': 'x'}}"), NULL, &filter, &err));
    assert_false(filter_is_deterministic(filter));
    assert_true(filter_compile(&arena, json_doc(&arena, "{'a': {'$in': []}, 'b': 1}"), NULL, &filter, &err));
    assert_true(filter_is_never(filter));
    assert_true(filter_compile(&arena, bdoc_empty(), NULL, &filter, &err));
    assert_true(filter_is_empty(filter));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filter_malformed_fails_with_code),
        cmocka_unit_test(filter_unknown_operator_is_named),
        cmocka_unit_test(filter_too_deep_is_refused),
        cmocka_unit_test(filter_facts_are_read_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
