#include "bson/extjson.h"
#include "tests/unit/bson/random_value.h"
#include "tests/unit/cmocka_all.h"

#include <stdio.h>

static const struct {
    const char *name;
    const char *hex;
    const char *canonical;
    const char *relaxed;
} sample[] = {
#include "tests/unit/bson/extjson_sample.inc"
};

static const struct {
    const char *name;
    const char *json;
} bad_sample[] = {
#include "tests/unit/bson/extjson_bad_sample.inc"
};

static uint32_t unhex(const char *hex, uint8_t *out)
{
    uint32_t len = 0;
    for (; *hex != 0; hex += 2) {
        unsigned byte;
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        out[len++] = (uint8_t)byte;
    }
    return len;
}

static char *print(struct bdoc doc, enum extjson_mode mode, struct buf *text)
{
    buf_clear(text);
    extjson_print(text, doc, mode);
    buf_append_u8(text, 0);
    return (char *)text->data;
}

static void print_canonical_agrees_with_the_specifications_corpus(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        uint8_t bytes[1024];
        struct bdoc doc = {.data = bytes, .len = unhex(sample[i].hex, bytes)};
        if (strcmp(print(doc, EXTJSON_CANONICAL, &text), sample[i].canonical) != 0)
            print_error("%s\n", sample[i].name);
        assert_string_equal(text.data, sample[i].canonical);
    }
    buf_deinit(&text);
}

static void print_relaxed_agrees_with_the_specifications_corpus(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        uint8_t bytes[1024];
        struct bdoc doc = {.data = bytes, .len = unhex(sample[i].hex, bytes)};
        if (*sample[i].relaxed == 0)
            continue;
        if (strcmp(print(doc, EXTJSON_RELAXED, &text), sample[i].relaxed) != 0)
            print_error("%s\n", sample[i].name);
        assert_string_equal(text.data, sample[i].relaxed);
    }
    buf_deinit(&text);
}

static void parse_canonical_gives_the_corpus_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        uint8_t bytes[1024];
        struct bdoc doc = {.data = bytes, .len = unhex(sample[i].hex, bytes)};
        bson_t out;
        struct err err;
        if (!extjson_parse(sample[i].canonical, strlen(sample[i].canonical), &out, &err)) {
            print_error("%s: %s\n", sample[i].name, err.msg);
            fail();
        }
        if (!bdoc_same(bdoc_of(&out), doc))
            print_error("%s\n", sample[i].name);
        assert_true(bdoc_same(bdoc_of(&out), doc));
        bson_destroy(&out);
    }
}

static void parse_malformed_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_sample / sizeof *bad_sample; i++) {
        bson_t out;
        struct err err;
        if (extjson_parse(bad_sample[i].json, strlen(bad_sample[i].json), &out, &err)) {
            print_error("%s: %s\n", bad_sample[i].name, bad_sample[i].json);
            fail();
        }
        assert_in_range(err.code, ERR_FailedToParse, ERR_InvalidBSON);
    }
}

static void parse_error_names_the_byte(void **state)
{
    (void)state;
    static const char json[] = "{\"a\": 1, \"b\": tru}";
    bson_t out;
    struct err err;
    assert_false(extjson_parse(json, sizeof json - 1, &out, &err));
    assert_int_equal(err.code, ERR_FailedToParse);
    assert_non_null(strstr(err.msg, "byte 14"));
}

static void parse_plain_numbers_take_the_smallest_type(void **state)
{
    (void)state;
    static const char json[] = "{\"i\":2147483647,\"l\":2147483648,\"d\":1.0,\"big\":9223372036854775808,\"e\":1e2}";
    bson_t out;
    struct err err;
    assert_true(extjson_parse(json, sizeof json - 1, &out, &err));
    static const struct {
        const char *key;
        uint8_t type;
    } expected[] = {{"i", BT_INT32}, {"l", BT_INT64}, {"d", BT_DOUBLE}, {"big", BT_DOUBLE}, {"e", BT_DOUBLE}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct bval val;
        assert_true(bdoc_find(bdoc_of(&out), expected[i].key, &val));
        assert_int_equal(val.type, expected[i].type);
    }
    bson_destroy(&out);
}

static void parse_query_operators_stay_documents(void **state)
{
    (void)state;
    static const char json[] =
        "{\"a\":{\"$gt\":1},\"b\":{\"$regex\":\"x\",\"$options\":\"i\"},\"c\":{\"$type\":\"string\"}}";
    bson_t out;
    struct err err;
    struct buf text = BUF_INIT;
    assert_true(extjson_parse(json, sizeof json - 1, &out, &err));
    assert_string_equal(print(bdoc_of(&out), EXTJSON_RELAXED, &text), json);
    bson_destroy(&out);
    buf_deinit(&text);
}

static void parse_too_deep_is_refused(void **state)
{
    (void)state;
    char json[4096];
    size_t len = 0;
    for (int i = 0; i < 300; i++)
        len += (size_t)snprintf(json + len, sizeof json - len, "{\"a\":");
    bson_t out;
    struct err err;
    assert_false(extjson_parse(json, len, &out, &err));
    assert_int_equal(err.code, ERR_FailedToParse);
}

static void canonical_round_trip_keeps_random_documents(void **state)
{
    (void)state;
    struct prng prng = {17};
    struct buf text = BUF_INIT;
    for (int i = 0; i < 3000; i++) {
        bson_t *doc = random_value_new(&prng, 3);
        print(bdoc_of(doc), EXTJSON_CANONICAL, &text);
        bson_t out;
        struct err err;
        if (!extjson_parse((const char *)text.data, text.len - 1, &out, &err)) {
            print_error("%s: %s\n", text.data, err.msg);
            fail();
        }
        struct buf again = BUF_INIT;
        print(bdoc_of(&out), EXTJSON_CANONICAL, &again);
        assert_string_equal(text.data, again.data);
        buf_deinit(&again);
        bson_destroy(&out);
        bson_destroy(doc);
    }
    buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(print_canonical_agrees_with_the_specifications_corpus),
        cmocka_unit_test(print_relaxed_agrees_with_the_specifications_corpus),
        cmocka_unit_test(parse_canonical_gives_the_corpus_bytes),
        cmocka_unit_test(parse_malformed_is_refused),
        cmocka_unit_test(parse_error_names_the_byte),
        cmocka_unit_test(parse_plain_numbers_take_the_smallest_type),
        cmocka_unit_test(parse_query_operators_stay_documents),
        cmocka_unit_test(parse_too_deep_is_refused),
        cmocka_unit_test(canonical_round_trip_keeps_random_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
