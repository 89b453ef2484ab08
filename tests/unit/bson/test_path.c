#include "bson/path.h"

#include "bson/extjson.h"
#include "tests/unit/cmocka_all.h"

static void parse(const char *json, bson_t *out)
{
    struct err err;
    if (!extjson_parse(json, strlen(json), out, &err)) {
        print_error("%s: %s\n", json, err.msg);
        fail();
    }
}

/* Hits as text: "value@array_index", missing is "-". */
static bool print_hit(void *arg, const struct path_hit *hit)
{
    struct buf *text = arg;
    if (text->len > 0)
        buf_append(text, " ", 1);
    if (hit->val.type == BT_EOO)
        buf_append(text, "-", 1);
    else
        extjson_print_value(text, &hit->val, EXTJSON_RELAXED);
    char index[16];
    if (hit->array_index >= 0)
        buf_append(text, index, (size_t)snprintf(index, sizeof index, "@%d", (int)hit->array_index));
    return true;
}

static void check(const char *dotted, const char *json, enum path_leaf leaf, const char *expected)
{
    bson_t doc;
    struct path path;
    struct err err;
    struct buf text = BUF_INIT;
    parse(json, &doc);
    assert_true(path_init(&path, dotted, strlen(dotted), &err));
    assert_true(path_each(&path, bdoc_of(&doc), leaf, print_hit, &text));
    buf_append_u8(&text, 0);
    assert_string_equal(text.data, expected);
    buf_deinit(&text);
    path_deinit(&path);
    bson_destroy(&doc);
}

static void path_without_arrays_gives_one_hit(void **state)
{
    (void)state;
    check("a", "{\"x\":4,\"a\":5}", PATH_LEAF_ELEMENTS_AND_ARRAY, "5");
    check("a.b", "{\"a\":{\"b\":5}}", PATH_LEAF_ELEMENTS_AND_ARRAY, "5");
    check("a.b", "{\"a\":4}", PATH_LEAF_ELEMENTS_AND_ARRAY, "-");
    check("a.b", "{}", PATH_LEAF_ELEMENTS_AND_ARRAY, "-");
    check("a..b", "{\"a\":{\"\":{\"b\":1}}}", PATH_LEAF_ELEMENTS_AND_ARRAY, "1");
}

static void path_leaf_array_is_expanded_as_asked(void **state)
{
    (void)state;
    check("a", "{\"a\":[5,6]}", PATH_LEAF_ELEMENTS_AND_ARRAY, "5@0 6@1 [5,6]");
    check("a", "{\"a\":[5,6]}", PATH_LEAF_ELEMENTS, "5@0 6@1");
    check("a", "{\"a\":[5,6]}", PATH_LEAF_ARRAY, "[5,6]");
    check("a", "{\"a\":[]}", PATH_LEAF_ELEMENTS_AND_ARRAY, "[]");
    check("a", "{\"a\":[[1]]}", PATH_LEAF_ELEMENTS_AND_ARRAY, "[1]@0 [[1]]");
}

static void path_array_on_the_way_expands_its_documents(void **state)
{
    (void)state;
    check("a.b", "{\"a\":[{\"b\":5},3,{},{\"b\":[9,11]},{\"b\":7}]}", PATH_LEAF_ELEMENTS_AND_ARRAY,
          "5@0 -@2 9@3 11@3 [9,11]@3 7@4");
    check("a.b", "{\"a\":[{\"b\":5},3,{},{\"b\":[9,11]},{\"b\":7}]}", PATH_LEAF_ARRAY, "5@0 -@2 [9,11]@3 7@4");
    check("a.b", "{\"a\":[4]}", PATH_LEAF_ELEMENTS_AND_ARRAY, "");
    check("a.b", "{\"a\":{\"b\":[]}}", PATH_LEAF_ELEMENTS_AND_ARRAY, "[]");
    check("a.b.x", "{\"a\":[{\"b\":[]},{\"b\":[]}]}", PATH_LEAF_ELEMENTS_AND_ARRAY, "");
    check("a.b", "{\"a\":[[{\"b\":1}]]}", PATH_LEAF_ELEMENTS_AND_ARRAY, "");
}

static void path_number_selects_the_array_position(void **state)
{
    (void)state;
    check("a.1", "{\"a\":[5,7,3]}", PATH_LEAF_ELEMENTS_AND_ARRAY, "7");
    check("a.1", "{\"a\":[5,[2,4],3]}", PATH_LEAF_ELEMENTS_AND_ARRAY, "[2,4]");
    check("a.1", "{\"a\":[5,{\"1\":4},3]}", PATH_LEAF_ELEMENTS_AND_ARRAY, "4@1 {\"1\":4}");
    check("a.1", "{\"a\":[5,[2,4],3]}", PATH_LEAF_ELEMENTS, "2@0 4@1"); /* distinct */
    check("a.1.b", "{\"a\":[5,{\"b\":4},3]}", PATH_LEAF_ELEMENTS_AND_ARRAY, "-@1 4");
    check("a.1.b", "{\"a\":[5,[{\"b\":4}],3]}", PATH_LEAF_ELEMENTS_AND_ARRAY, "4@0");
    check("a.01", "{\"a\":[5,7]}", PATH_LEAF_ELEMENTS_AND_ARRAY, "");
    check("a.1", "{\"a\":{\"1\":2}}", PATH_LEAF_ELEMENTS_AND_ARRAY, "2");
    check("a.0.b", "{\"a\":[{\"b\":[2,3]},{\"b\":[4,5]}]}", PATH_LEAF_ELEMENTS_AND_ARRAY, "-@0 2@0 3@1 [2,3] -@1");
}

static bool stop_at_first(void *arg, const struct path_hit *hit)
{
    (void)hit;
    ++*(int *)arg;
    return false;
}

static void path_each_stops_when_told(void **state)
{
    (void)state;
    bson_t doc;
    struct path path;
    struct err err;
    int hits = 0;
    parse("{\"a\":[1,2,3]}", &doc);
    assert_true(path_init(&path, "a", 1, &err));
    assert_false(path_each(&path, bdoc_of(&doc), PATH_LEAF_ELEMENTS, stop_at_first, &hits));
    assert_int_equal(hits, 1);
    path_deinit(&path);
    bson_destroy(&doc);
}

static void path_get_goes_through_documents_only(void **state)
{
    (void)state;
    bson_t doc;
    struct bval val;
    parse("{\"a\":{\"b\":{\"c\":1},\"d\":[{\"e\":2}]}}", &doc);
    assert_true(path_get_str(bdoc_of(&doc), "a.b.c", &val));
    assert_int_equal(bval_i32(&val), 1);
    assert_true(path_get_str(bdoc_of(&doc), "a.d", &val));
    assert_int_equal(val.type, BT_ARRAY);
    assert_false(path_get_str(bdoc_of(&doc), "a.d.e", &val));
    assert_int_equal(val.type, BT_EOO);
    struct path path;
    struct err err;
    assert_true(path_init(&path, "a.d.0", 5, &err));
    assert_false(path_get(&path, bdoc_of(&doc), &val));
    path_deinit(&path);
    bson_destroy(&doc);
}

static void path_prefix_ends_at_a_component(void **state)
{
    (void)state;
    struct path a;
    struct path ab;
    struct path abc;
    struct err err;
    assert_true(path_init(&a, "a.b", 3, &err));
    assert_true(path_init(&ab, "a.bc", 4, &err));
    assert_true(path_init(&abc, "a.b.c", 5, &err));
    assert_true(path_is_prefix(&a, &a));
    assert_true(path_is_prefix(&a, &abc));
    assert_false(path_is_prefix(&a, &ab));
    assert_false(path_is_prefix(&abc, &a));
    path_deinit(&a);
    path_deinit(&ab);
    path_deinit(&abc);
}

static void path_with_too_many_components_is_refused(void **state)
{
    (void)state;
    char text[2 * PATH_MAX_PARTS + 2];
    for (int i = 0; i <= 2 * PATH_MAX_PARTS; i++)
        text[i] = i % 2 == 0 ? 'a' : '.';
    struct path path;
    struct err err;
    assert_true(path_init(&path, text, 2 * PATH_MAX_PARTS - 1, &err));
    path_deinit(&path);
    assert_false(path_init(&path, text, 2 * PATH_MAX_PARTS + 1, &err));
    assert_int_equal(err.code, ERR_Overflow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_without_arrays_gives_one_hit),
        cmocka_unit_test(path_leaf_array_is_expanded_as_asked),
        cmocka_unit_test(path_array_on_the_way_expands_its_documents),
        cmocka_unit_test(path_number_selects_the_array_position),
        cmocka_unit_test(path_each_stops_when_told),
        cmocka_unit_test(path_get_goes_through_documents_only),
        cmocka_unit_test(path_prefix_ends_at_a_component),
        cmocka_unit_test(path_with_too_many_components_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
