#include "bson/value.h"
#include "tests/unit/bson/random_value.h"
#include "tests/unit/cmocka_all.h"

/* Documents of the BSON specification's corpus (bson-corpus/tests/...), one or two of each file. */
static const struct {
    const char *name;
    const char *hex;
    bool valid;
} corpus[] = {
#include "tests/unit/bson/corpus_sample.inc"
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

static void validate_agrees_with_the_specifications_corpus(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof corpus / sizeof *corpus; i++) {
        size_t size = strlen(corpus[i].hex) / 2;
        uint8_t *bytes = test_malloc(size + 1); /* of exact size, so that the sanitizer sees a read past the end */
        uint8_t *exact = test_malloc(size == 0 ? 1 : size);
        uint32_t len = unhex(corpus[i].hex, bytes);
        memcpy(exact, bytes, len);
        struct err err;
        if (bdoc_validate(exact, len, BDOC_MAX_DEPTH, &err) != corpus[i].valid) {
            print_error("%s\n", corpus[i].name);
            fail();
        }
        test_free(bytes);
        test_free(exact);
    }
}

/* Every element goes through bval_append, at the top level and into a document under construction. */
static void append_copies_every_type_byte_for_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof corpus / sizeof *corpus; i++) {
        if (!corpus[i].valid)
            continue;
        uint8_t bytes[4096];
        struct bdoc doc = {.data = bytes, .len = unhex(corpus[i].hex, bytes)};
        bson_t outer = BSON_INITIALIZER;
        bson_t inner;
        bson_append_document_begin(&outer, "inner", -1, &inner);
        bson_t plain = BSON_INITIALIZER;
        struct biter iter;
        struct belem elem;
        biter_init(&iter, doc);
        while (biter_next(&iter, &elem)) {
            bval_append(&plain, elem.key, (int)elem.key_len, &elem.val);
            bval_append(&inner, elem.key, (int)elem.key_len, &elem.val);
        }
        bson_append_document_end(&outer, &inner);
        assert_true(bdoc_same(bdoc_of(&plain), doc));
        struct bval copy;
        assert_true(bdoc_find(bdoc_of(&outer), "inner", &copy));
        assert_true(bdoc_same(bval_doc(&copy), doc));
        bson_destroy(&plain);
        bson_destroy(&outer);
    }
}

static void append_copies_random_values_byte_for_byte(void **state)
{
    (void)state;
    struct prng prng = {3};
    for (int i = 0; i < 5000; i++) {
        bson_t *doc = random_value_new(&prng, 2);
        struct bval val = random_value_of(doc);
        bson_t copy = BSON_INITIALIZER;
        bval_append(&copy, "v", 1, &val);
        assert_true(bdoc_same(bdoc_of(&copy), bdoc_of(doc)));
        struct err err;
        assert_true(bdoc_validate(bdoc_of(&copy).data, copy.len, BDOC_MAX_DEPTH, &err));
        bson_destroy(&copy);
        bson_destroy(doc);
    }
}

/* libbson would sort and filter the options. */
static void append_regex_keeps_its_options_as_they_are(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {13, 0, 0, 0, 0x0b, 'r', 0, 'a', 0, 'x', 'i', 0, 0};
    struct bdoc doc = {.data = bytes, .len = sizeof bytes};
    struct bval val;
    assert_true(bdoc_find(doc, "r", &val));
    bson_t copy = BSON_INITIALIZER;
    bval_append(&copy, "r", 1, &val);
    assert_true(bdoc_same(bdoc_of(&copy), doc));
    bson_destroy(&copy);
}

static void validate_too_deep_gives_overflow(void **state)
{
    (void)state;
    bson_t *doc = bson_new();
    for (int i = 0; i < 5; i++) {
        bson_t *outer = bson_new();
        bson_append_document(outer, "d", -1, doc);
        bson_destroy(doc);
        doc = outer;
    }
    struct err err;
    assert_true(bdoc_validate(bson_get_data(doc), doc->len, 5, &err));
    assert_false(bdoc_validate(bson_get_data(doc), doc->len, 4, &err));
    assert_int_equal(err.code, ERR_Overflow);
    bson_destroy(doc);
}

static void to_i64_takes_whole_numbers_of_any_type_only(void **state)
{
    (void)state;
    bson_decimal128_t decimal;
    bson_decimal128_from_string("12E+1", &decimal);
    bson_t *doc = BCON_NEW("i", BCON_INT32(-3), "l", BCON_INT64(INT64_MAX), "d", BCON_DOUBLE(7.0), "f",
                           BCON_DOUBLE(7.5), "s", "7", "big", BCON_DOUBLE(0x1p63), "c", BCON_DECIMAL128(&decimal));
    static const struct {
        const char *key;
        bool whole;
        int64_t value;
    } cases[] = {{"i", true, -3}, {"l", true, INT64_MAX}, {"d", true, 7},   {"f", false, 0},
                 {"s", false, 0}, {"big", false, 0},      {"c", true, 120}, {"none", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bval val;
        bdoc_find(bdoc_of(doc), cases[i].key, &val);
        int64_t out = 0;
        assert_int_equal(bval_to_i64(&val, &out), cases[i].whole);
        assert_int_equal(out, cases[i].value);
    }
    bson_destroy(doc);
}

static void find_in_no_document_finds_nothing(void **state)
{
    (void)state;
    struct biter iter;
    struct belem elem;
    struct bval val;
    biter_init(&iter, (struct bdoc){0});
    assert_false(biter_next(&iter, &elem));
    assert_false(bdoc_find((struct bdoc){0}, "a", &val));
    assert_int_equal(val.type, BT_EOO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_agrees_with_the_specifications_corpus),
        cmocka_unit_test(append_copies_every_type_byte_for_byte),
        cmocka_unit_test(append_copies_random_values_byte_for_byte),
        cmocka_unit_test(append_regex_keeps_its_options_as_they_are),
        cmocka_unit_test(validate_too_deep_gives_overflow),
        cmocka_unit_test(find_in_no_document_finds_nothing),
        cmocka_unit_test(to_i64_takes_whole_numbers_of_any_type_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
