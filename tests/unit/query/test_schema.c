#include "query/filter.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

/* {$jsonSchema: schema} on a document. */
struct schema_case {
    const char *schema;
    const char *doc;
    bool want;
};

static struct filter *compile(struct arena *arena, const char *schema)
{
    struct filter *filter;
    struct err err = {0};
    struct bdoc query = json_doc(arena, arena_printf(arena, "{'$jsonSchema': %s}", schema));
    if (!filter_compile(arena, query, NULL, &filter, &err))
        fail_msg("%s: %d %s", schema, err.code, err.msg);
    return filter;
}

static void check_all(const struct schema_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena;
        arena_init(&arena);
        struct filter *filter = compile(&arena, cases[i].schema);
        if (filter_matches(filter, json_doc(&arena, cases[i].doc)) != cases[i].want)
            fail_msg("%s on %s should be %s", cases[i].schema, cases[i].doc, cases[i].want ? "true" : "false");
        arena_deinit(&arena);
    }
}

static void schema_types_and_numbers(void **state)
{
    static const struct schema_case cases[] = {
        {"{}", "{'a': 1}", true},
        {"{'type': 'object'}", "{}", true},
        {"{'bsonType': 'array'}", "{}", false},
        {"{'properties': {'a': {'bsonType': 'int'}}}", "{'a': 1}", true},
        {"{'properties': {'a': {'bsonType': 'int'}}}", "{'a': 1.5}", false},
        {"{'properties': {'a': {'bsonType': 'int'}}}", "{}", true},
        {"{'properties': {'a': {'bsonType': ['int', 'null']}}}", "{'a': null}", true},
        {"{'properties': {'a': {'type': 'number'}}}", "{'a': {'$numberDecimal': '1'}}", true},
        {"{'properties': {'a': {'bsonType': 'number'}}}", "{'a': 'x'}", false},
        {"{'properties': {'a': {'minimum': 3}}}", "{'a': 3}", true},
        {"{'properties': {'a': {'minimum': 3, 'exclusiveMinimum': true}}}", "{'a': 3.0}", false},
        {"{'properties': {'a': {'minimum': 3}}}", "{'a': 'text'}", true},
        {"{'properties': {'a': {'maximum': 3}}}", "{'a': 4}", false},
        {"{'properties': {'a': {'maximum': 3}}}", "{'a': {'$numberDouble': 'NaN'}}", false},
        {"{'properties': {'a': {'multipleOf': 0.1}}}", "{'a': 0.3}", true},
        {"{'properties': {'a': {'multipleOf': 2}}}", "{'a': 5}", false},
        {"{'properties': {'a': {'enum': [1, {'x': 1, 'y': 2}]}}}", "{'a': {'y': 2, 'x': 1.0}}", true},
        {"{'properties': {'a': {'enum': [1, 'b']}}}", "{'a': 'c'}", false},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void schema_strings_and_arrays(void **state)
{
    static const struct schema_case cases[] = {
        {"{'properties': {'a': {'minLength': 2}}}", "{'a': 'ü'}", false},
        {"{'properties': {'a': {'maxLength': 2}}}", "{'a': 'üé'}", true},
        {"{'properties': {'a': {'pattern': '^b'}}}", "{'a': 'ab'}", false},
        {"{'properties': {'a': {'pattern': 'b'}}}", "{'a': 'abc'}", true},
        {"{'properties': {'a': {'minItems': 1, 'maxItems': 2}}}", "{'a': []}", false},
        {"{'properties': {'a': {'minItems': 1, 'maxItems': 2}}}", "{'a': [1, 2]}", true},
        {"{'properties': {'a': {'uniqueItems': true}}}", "{'a': [1, 2, 1.0]}", false},
        {"{'properties': {'a': {'uniqueItems': true}}}", "{'a': [{'x': 1, 'y': 2}, {'y': 2, 'x': 1}]}", false},
        {"{'properties': {'a': {'uniqueItems': true}}}", "{'a': [1, 2, 3, 4, 5, 6, 7, 8, 9, {'a': 1}, {'a': 1}]}",
         false},
        {"{'properties': {'a': {'uniqueItems': true}}}", "{'a': [1, 2, 3, 4, 5, 6, 7, 8, 9, [1], [2]]}", true},
        {"{'properties': {'a': {'items': {'bsonType': 'int'}}}}", "{'a': [1, 'x']}", false},
        {"{'properties': {'a': {'items': [{'bsonType': 'int'}]}}}", "{'a': [1, 'x']}", true},
        {"{'properties': {'a': {'items': [{'bsonType': 'int'}], 'additionalItems': false}}}", "{'a': [1, 'x']}", false},
        {"{'properties': {'a': {'items': [{}], 'additionalItems': {'bsonType': 'int'}}}}", "{'a': ['x', 1]}", true},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void schema_objects_and_trees(void **state)
{
    static const struct schema_case cases[] = {
        {"{'required': ['a', 'b']}", "{'a': 1}", false},
        {"{'required': ['a']}", "{'a': null}", true},
        {"{'minProperties': 2}", "{'a': 1}", false},
        {"{'maxProperties': 1}", "{'a': 1}", true},
        {"{'properties': {'a': {}}, 'additionalProperties': false}", "{'a': 1}", true},
        {"{'properties': {'a': {}}, 'additionalProperties': false}", "{'a': 1, 'b': 1}", false},
        {"{'properties': {'a': {}}, 'additionalProperties': {'bsonType': 'int'}}", "{'b': 'x'}", false},
        {"{'patternProperties': {'^x': {'bsonType': 'int'}}, 'additionalProperties': false}", "{'x1': 1}", true},
        {"{'patternProperties': {'^x': {'bsonType': 'int'}}}", "{'x1': 'a'}", false},
        {"{'dependencies': {'a': ['b']}}", "{'a': 1}", false},
        {"{'dependencies': {'a': ['b']}}", "{'c': 1}", true},
        {"{'dependencies': {'a': {'required': ['b']}}}", "{'a': 1, 'b': 1}", true},
        {"{'allOf': [{'required': ['a']}, {'required': ['b']}]}", "{'a': 1}", false},
        {"{'anyOf': [{'required': ['a']}, {'required': ['b']}]}", "{'a': 1}", true},
        {"{'oneOf': [{'required': ['a']}, {'required': ['b']}]}", "{'a': 1, 'b': 1}", false},
        {"{'not': {'required': ['a']}}", "{'b': 1}", true},
        {"{'title': 't', 'description': 'd'}", "{}", true},
        /* A keyword that stands twice: the last one counts. */
        {"{'oneOf': [{'required': ['a']}, {'required': ['b']}], 'oneOf': [{'required': ['c']}]}", "{'c': 1}", true},
        {"{'properties': {'a': {}, 'b': {}}, 'properties': {'c': {'bsonType': 'int'}}}", "{'c': 'x'}", false},
        {"{'required': ['a', 'b'], 'required': ['c']}", "{'c': 1}", true},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void schema_malformed_fails_with_code(void **state)
{
    static const struct {
        const char *query;
        int code;
    } cases[] = {
        {"{'$jsonSchema': 1}", 14},
        {"{'$jsonSchema': {'foo': 1}}", 9},
        {"{'$jsonSchema': {'$ref': 'x'}}", 9},
        {"{'$jsonSchema': {'encrypt': {}}}", 9},
        {"{'$jsonSchema': {'type': 1}}", 14},
        {"{'$jsonSchema': {'type': 'integer'}}", 2},
        {"{'$jsonSchema': {'bsonType': 'nothing'}}", 2},
        {"{'$jsonSchema': {'bsonType': []}}", 9},
        {"{'$jsonSchema': {'type': 'object', 'bsonType': 'object'}}", 9},
        {"{'$jsonSchema': {'minimum': 'x'}}", 14},
        {"{'$jsonSchema': {'exclusiveMinimum': true}}", 9},
        {"{'$jsonSchema': {'multipleOf': 0}}", 9},
        {"{'$jsonSchema': {'minLength': -1}}", 9},
        {"{'$jsonSchema': {'minLength': 1.5}}", 9},
        {"{'$jsonSchema': {'pattern': '('}}", 2},
        {"{'$jsonSchema': {'required': []}}", 9},
        {"{'$jsonSchema': {'required': ['a', 'a']}}", 9},
        {"{'$jsonSchema': {'required': [1]}}", 14},
        {"{'$jsonSchema': {'enum': []}}", 9},
        {"{'$jsonSchema': {'enum': [1, 1.0]}}", 9},
        {"{'$jsonSchema': {'allOf': []}}", 2},
        {"{'$jsonSchema': {'allOf': [1]}}", 14},
        {"{'$jsonSchema': {'properties': {'a': 1}}}", 14},
        {"{'$jsonSchema': {'items': 1}}", 14},
        {"{'$jsonSchema': {'additionalProperties': 1}}", 14},
        {"{'$jsonSchema': {'title': 1}}", 14},
        {"{'$sampleRate': 'x'}", 2},
        {"{'$sampleRate': 2}", 2},
        {"{'$alwaysTrue': 'x'}", 9},
        {"{'$alwaysFalse': 0}", 9},
        {"{'$where': 'true'}", 2},
        {"{'$text': {'$search': 'x'}}", 27},
        {"{'a': {'$near': [0, 0]}}", 291},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena;
        struct filter *filter;
        struct err err = {0};
        arena_init(&arena);
        assert_false(filter_compile(&arena, json_doc(&arena, cases[i].query), NULL, &filter, &err));
        if (err.code != cases[i].code)
            fail_msg("%s: %d instead of %d (%s)", cases[i].query, err.code, cases[i].code, err.msg);
        arena_deinit(&arena);
    }
}

static void sample_rate_takes_about_its_share(void **state)
{
    struct arena arena;
    struct filter *filter;
    struct err err;
    int taken = 0;
    (void)state;
    arena_init(&arena);
    assert_true(filter_compile(&arena, json_doc(&arena, "{'$sampleRate': 0.25}"), NULL, &filter, &err));
    assert_false(filter_is_deterministic(filter));
    for (int i = 0; i < 4000; i++) {
        struct bdoc doc = json_doc(&arena, arena_printf(&arena, "{'a': %d}", i));
        bool matched = filter_matches(filter, doc);
        assert_int_equal(matched, filter_matches(filter, doc));
        taken += matched ? 1 : 0;
    }
    assert_in_range(taken, 850, 1150);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schema_types_and_numbers),          cmocka_unit_test(schema_strings_and_arrays),
        cmocka_unit_test(schema_objects_and_trees),          cmocka_unit_test(schema_malformed_fails_with_code),
        cmocka_unit_test(sample_rate_takes_about_its_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
