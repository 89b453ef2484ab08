#include "tests/unit/command/command_env.h"

#include "command/field_spec.h"

#include <stddef.h>

struct all_kinds {
    struct bval any;
    struct bdoc doc, array, docs;
    const char *text;
    bool strict, flag, many;
    int64_t number, index;
    const uint8_t *uuid;
    struct bval hint, update;
};

#define AT(member) offsetof(struct all_kinds, member)
static const struct field_spec list[] = {
    {"any", FIELD_ANY, AT(any), false},       {"doc", FIELD_DOC, AT(doc), false},
    {"array", FIELD_ARRAY, AT(array), false}, {"docs", FIELD_DOC_ARRAY, AT(docs), false},
    {"text", FIELD_STR, AT(text), false},     {"strict", FIELD_BOOL, AT(strict), false},
    {"flag", FIELD_FLAG, AT(flag), false},    {"number", FIELD_INT, AT(number), false},
    {"index", FIELD_INDEX, AT(index), false}, {"uuid", FIELD_UUID, AT(uuid), false},
    {"hint", FIELD_HINT, AT(hint), false},    {"update", FIELD_UPDATE, AT(update), false},
    {"limit", FIELD_LIMIT, AT(many), false},  {"ignored", FIELD_IGNORED, 0, false},
};
static const struct field_specs specs = {list, sizeof list / sizeof list[0], false};

static struct all_kinds read_good(const char *text, bson_t **doc)
{
    struct all_kinds out = {.number = -77};
    struct err err = {0};
    *doc = json_single(text);
    if (!fields_read(bdoc_of(*doc), "x", &specs, &out, &err))
        fail_msg("%s: %d %s", text, err.code, err.msg);
    return out;
}

static void fields_read_fills_each_kind_of_member(void **state)
{
    bson_t *doc;
    uint32_t len;
    (void)state;
    struct all_kinds got =
        read_good("{'any': null, 'doc': {'a': 1}, 'array': [1], 'docs': [{}], 'text': 'hey', 'strict': true,"
                  " 'flag': 2, 'number': 2.9, 'index': 3, 'hint': 'a_1', 'update': [], 'limit': 0,"
                  " 'ignored': {'z': 1}}",
                  &doc);
    assert_int_equal(got.any.type, BT_NULL);
    assert_int_equal(bdoc_count(got.doc), 1);
    assert_int_equal(bdoc_count(got.array), 1);
    assert_string_equal(got.text, "hey");
    assert_true(got.strict && got.flag && got.many);
    assert_int_equal(got.number, 2);
    assert_int_equal(got.index, 3);
    assert_string_equal(bval_str(&got.hint, &len), "a_1");
    assert_int_equal(got.update.type, BT_ARRAY);
    bson_destroy(doc);
}

static void fields_read_takes_null_for_missing(void **state)
{
    bson_t *doc;
    (void)state;
    struct all_kinds got = read_good("{'doc': null, 'text': null, 'number': null, 'hint': {}}", &doc);
    assert_null(got.doc.data);
    assert_null(got.text);
    assert_int_equal(got.number, -77);
    assert_int_equal(got.hint.type, BT_EOO);
    bson_destroy(doc);
}

static void fields_read_cuts_numbers_to_64_bits(void **state)
{
    static const struct {
        const char *text;
        int64_t want;
    } cases[] = {
        {"{'number': 1e300}", INT64_MAX},
        {"{'number': -1e300}", INT64_MIN},
        {"{'number': -1.5}", -1},
        {"{'number': {'$numberDouble': 'NaN'}}", 0},
        {"{'number': {'$numberDecimal': '12'}}", 12},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bson_t *doc;
        struct all_kinds got = read_good(cases[i].text, &doc);
        assert_int_equal(got.number, cases[i].want);
        bson_destroy(doc);
    }
}

static void fields_read_refuses_with_the_right_codes(void **state)
{
    static const struct {
        const char *text;
        int32_t code;
    } cases[] = {
        {"{'doc': 1}", 14},
        {"{'array': {}}", 14},
        {"{'docs': [1]}", 14},
        {"{'text': 1}", 14},
        {"{'strict': 1}", 14},
        {"{'flag': 'x'}", 14},
        {"{'number': 'x'}", 14},
        {"{'number': true}", 14},
        {"{'index': -1}", 2},
        {"{'uuid': 'x'}", 14},
        {"{'hint': 1}", 9},
        {"{'update': 1}", 9},
        {"{'limit': 2}", 9},
        {"{'nope': 1}", 40415},
        {"{'doc': {}, 'doc': {}}", 40413},
        {"{'text': 'a\\u0000b'}", 2},
        {"{'uuid': {'$binary': {'base64': 'AA==', 'subType': '00'}}}", 14},
        {"{'uuid': {'$binary': {'base64': 'AA==', 'subType': '04'}}}", 207},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct all_kinds out = {.number = 0};
        struct err err = {0};
        bson_t *doc = json_single(cases[i].text);
        if (fields_read(bdoc_of(doc), "x", &specs, &out, &err) || err.code != cases[i].code)
            fail_msg("%s: %d %s", cases[i].text, err.code, err.msg);
        bson_destroy(doc);
    }
}

static void fields_read_of_a_command_allows_generic_arguments(void **state)
{
    static const struct field_specs command = {list, sizeof list / sizeof list[0], true};
    struct all_kinds out = {.number = 0};
    struct err err = {0};
    (void)state;
    bson_t *doc =
        json_single("{'doc': 'the name of the command', 'flag': true, '$db': 'x', 'lsid': 1, 'maxTimeMS': 5}");
    assert_true(fields_read(bdoc_of(doc), "doc", &command, &out, &err));
    assert_true(out.flag);
    bson_destroy(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_read_fills_each_kind_of_member),
        cmocka_unit_test(fields_read_takes_null_for_missing),
        cmocka_unit_test(fields_read_cuts_numbers_to_64_bits),
        cmocka_unit_test(fields_read_refuses_with_the_right_codes),
        cmocka_unit_test(fields_read_of_a_command_allows_generic_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
