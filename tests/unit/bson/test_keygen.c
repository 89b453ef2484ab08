#include "bson/keygen.h"

#include "bson/extjson.h"
#include "bson/keyenc.h"
#include "tests/unit/cmocka_all.h"

static void parse(const char *json, bson_t *out)
{
    struct err err;
    if (!extjson_parse(json, strlen(json), out, &err)) {
        print_error("%s: %s\n", json, err.msg);
        fail();
    }
}

/* Tuples as text: "(1,-) (2,-)"; missing is "-". */
static bool print_tuple(void *arg, const struct keygen_tuple *tuple)
{
    struct buf *text = arg;
    buf_append(text, text->len > 0 ? " (" : "(", text->len > 0 ? 2 : 1);
    for (uint32_t i = 0; i < tuple->count; i++) {
        if (i > 0)
            buf_append(text, ",", 1);
        if (tuple->values[i].type == BT_EOO)
            buf_append(text, "-", 1);
        else
            extjson_print_value(text, &tuple->values[i], EXTJSON_RELAXED);
    }
    buf_append(text, ")", 1);
    return true;
}

static int generate(const char *pattern_json, const char *json, struct buf *text)
{
    bson_t pattern;
    bson_t doc;
    struct keygen gen;
    struct err err = {0};
    parse(pattern_json, &pattern);
    parse(json, &doc);
    assert_true(keygen_init(&gen, bdoc_of(&pattern), NULL, &err));
    bool ok = keygen_each(&gen, bdoc_of(&doc), print_tuple, text, &err);
    buf_append_u8(text, 0);
    keygen_deinit(&gen);
    bson_destroy(&pattern);
    bson_destroy(&doc);
    return ok ? 0 : err.code;
}

static void check(const char *pattern, const char *json, const char *expected)
{
    struct buf text = BUF_INIT;
    assert_int_equal(generate(pattern, json, &text), 0);
    assert_string_equal(text.data, expected);
    buf_deinit(&text);
}

static void check_error(const char *pattern, const char *json, int code)
{
    struct buf text = BUF_INIT;
    assert_int_equal(generate(pattern, json, &text), code);
    buf_deinit(&text);
}

static void keys_without_arrays_are_one_tuple(void **state)
{
    (void)state;
    check("{\"a\":1}", "{\"a\":5}", "(5)");
    check("{\"a\":1,\"b.c\":-1}", "{\"b\":{\"c\":2},\"a\":5}", "(5,2)");
    check("{\"a\":1,\"b.c\":1}", "{\"b\":3}", "(-,-)");
}

static void keys_of_an_array_are_its_elements(void **state)
{
    (void)state;
    check("{\"a\":1}", "{\"a\":[1,2]}", "(1) (2)");
    check("{\"a\":1}", "{\"a\":[[1,2],3]}", "([1,2]) (3)");
    check("{\"a\":1}", "{\"a\":[]}", "({\"$undefined\":true})");
    check("{\"a.b\":1}", "{\"a\":[]}", "(-)");
    check("{\"a.b\":1}", "{\"a\":[{\"b\":1},{\"b\":[2,3]},{},4]}", "(1) (2) (3) (-) (-)");
    check("{\"a.b\":1}", "{\"a\":[[{\"b\":1}]]}", "(-)");
}

static void keys_of_fields_below_one_array_go_in_step(void **state)
{
    (void)state;
    check("{\"a.b\":1,\"a.c\":1,\"d\":1}", "{\"a\":[{\"b\":1,\"c\":2},{\"b\":3}],\"d\":9}", "(1,2,9) (3,-,9)");
    check("{\"a\":1,\"a.b\":1}", "{\"a\":[{\"b\":1},2]}", "({\"b\":1},1) (2,-)");
}

static void keys_of_parallel_arrays_are_refused(void **state)
{
    (void)state;
    check_error("{\"a\":1,\"b\":1}", "{\"a\":[1],\"b\":[2]}", 171);
    check_error("{\"a.b\":1,\"a.c\":1}", "{\"a\":[{\"b\":[1],\"c\":[2]}]}", 171);
}

static void keys_by_position_select_one_element(void **state)
{
    (void)state;
    check("{\"a.0\":1}", "{\"a\":[7,8]}", "(7) (7)");
    check("{\"a.1.b\":1}", "{\"a\":[1,{\"b\":5}]}", "(5) (5)");
    check_error("{\"a.0\":1}", "{\"a\":[{\"0\":1}]}", 16746);
}

struct collected {
    struct buf bytes; /* of all keys */
    int count;
};

static bool collect(void *arg, const uint8_t *key, size_t len)
{
    struct collected *collected = arg;
    buf_append(&collected->bytes, key, len);
    collected->count++;
    return true;
}

static void encoded_keys_are_sorted_and_distinct(void **state)
{
    (void)state;
    bson_t pattern;
    bson_t doc;
    struct keygen gen;
    struct err err;
    struct collected collected = {0};
    bool multikey;
    parse("{\"a\":-1}", &pattern);
    parse("{\"a\":[1,3,2,1,{\"$numberDouble\":\"3.0\"}]}", &doc);
    assert_true(keygen_init(&gen, bdoc_of(&pattern), NULL, &err));
    assert_true(keygen_each_encoded(&gen, bdoc_of(&doc), collect, &collected, &multikey, &err));
    assert_true(multikey);
    assert_int_equal(collected.count, 3);
    struct buf expected = BUF_INIT;
    for (int64_t number = 3; number >= 1; number--)
        keyenc_append_i64(&expected, number, true);
    assert_int_equal(expected.len, collected.bytes.len);
    assert_memory_equal(expected.data, collected.bytes.data, expected.len);
    buf_deinit(&expected);
    buf_deinit(&collected.bytes);
    keygen_deinit(&gen);
    bson_destroy(&pattern);
    bson_destroy(&doc);
}

static void pattern_without_fields_or_with_too_many_is_refused(void **state)
{
    (void)state;
    struct keygen gen;
    struct err err;
    assert_false(keygen_init(&gen, bdoc_empty(), NULL, &err));
    assert_int_equal(err.code, ERR_CannotCreateIndex);
    bson_t pattern = BSON_INITIALIZER;
    for (int i = 0; i <= KEYGEN_MAX_FIELDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        bson_append_int32(&pattern, name, -1, 1);
    }
    assert_false(keygen_init(&gen, bdoc_of(&pattern), NULL, &err));
    assert_int_equal(err.code, ERR_CannotCreateIndex);
    bson_destroy(&pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_without_arrays_are_one_tuple),
        cmocka_unit_test(keys_of_an_array_are_its_elements),
        cmocka_unit_test(keys_of_fields_below_one_array_go_in_step),
        cmocka_unit_test(keys_of_parallel_arrays_are_refused),
        cmocka_unit_test(keys_by_position_select_one_element),
        cmocka_unit_test(encoded_keys_are_sorted_and_distinct),
        cmocka_unit_test(pattern_without_fields_or_with_too_many_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
