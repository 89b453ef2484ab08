#include "query/explain_failure.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

#include <string.h>

struct explain_case {
    const char *filter;
    const char *doc;
    const char *want;
};

static void check_all(const struct explain_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena;
        struct filter *filter;
        struct err err = {0};
        struct buf out = BUF_INIT;
        arena_init(&arena);
        if (!filter_compile(&arena, json_doc(&arena, cases[i].filter), NULL, &filter, &err))
            fail_msg("%s: %d %s", cases[i].filter, err.code, err.msg);
        struct bdoc doc = json_doc(&arena, cases[i].doc);
        assert_false(filter_matches(filter, doc));
        filter_explain_failure(filter, doc, 100000, &out);
        json_assert_same(&arena, (struct bdoc){out.data, (uint32_t)out.len}, cases[i].want, cases[i].filter);
        buf_deinit(&out);
        arena_deinit(&arena);
    }
}

static void explain_operators_and_trees(void **state)
{
    static const struct explain_case cases[] = {
        {"{'a': 1}", "{'a': 2}",
         "{'operatorName': '$eq', 'specifiedAs': {'a': 1}, 'reason': 'comparison failed', 'consideredValue': 2}"},
        {"{'a': {'$gt': 1}}", "{}",
         "{'operatorName': '$gt', 'specifiedAs': {'a': {'$gt': 1}}, 'reason': 'field was missing'}"},
        {"{'a': {'$in': [1, 2]}}", "{'a': [5, 6]}",
         "{'operatorName': '$in', 'specifiedAs': {'a': {'$in': [1, 2]}}, 'reason': 'no matching value found in array',"
         " 'consideredValues': [5, 6, [5, 6]]}"},
        {"{'a': {'$type': 'int'}}", "{'a': 'x'}",
         "{'operatorName': '$type', 'specifiedAs': {'a': {'$type': 'int'}}, 'reason': 'type did not match', "
         "'consideredValue': 'x', 'consideredType': 'string'}"},
        {"{'a': {'$exists': true}}", "{}",
         "{'operatorName': '$exists', 'specifiedAs': {'a': {'$exists': true}}, 'reason': 'path does not exist'}"},
        {"{'a': 1, 'b': 2}", "{'a': 1, 'b': 3}",
         "{'operatorName': '$and', 'clausesNotSatisfied': [{'index': 1, 'details': {'operatorName': '$eq', "
         "'specifiedAs': {'b': 2}, 'reason': 'comparison failed', 'consideredValue': 3}}]}"},
        {"{'$or': [{'a': 1}, {'b': 2}]}", "{'a': 5}",
         "{'operatorName': '$or', 'clausesNotSatisfied': [{'index': 0, 'details': {'operatorName': '$eq', "
         "'specifiedAs': {'a': 1}, 'reason': 'comparison failed', 'consideredValue': 5}}, {'index': 1, 'details': "
         "{'operatorName': '$eq', 'specifiedAs': {'b': 2}, 'reason': 'field was missing'}}]}"},
        {"{'$nor': [{'a': 1}]}", "{'a': 1}",
         "{'operatorName': '$nor', 'clausesSatisfied': [{'index': 0, 'details': {'operatorName': '$eq', 'specifiedAs': "
         "{'a': 1}, 'reason': 'comparison succeeded', 'consideredValue': 1}}]}"},
        {"{'a': {'$not': {'$lt': 5}}}", "{'a': 1}",
         "{'operatorName': '$not', 'details': {'operatorName': '$lt', 'specifiedAs': {'a': {'$lt': 5}}, 'reason': "
         "'comparison succeeded', 'consideredValue': 1}}"},
        {"{'$expr': {'$gt': ['$a', 5]}}", "{'a': 1}",
         "{'operatorName': '$expr', 'specifiedAs': {'$expr': {'$gt': ['$a', 5]}}, 'reason': 'expression did not match',"
         " 'expressionResult': false}"},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void explain_schema_rules(void **state)
{
    static const struct explain_case cases[] = {
        {"{'$jsonSchema': {'title': 'T', 'required': ['a', 'b']}}", "{'a': 1}",
         "{'operatorName': '$jsonSchema', 'title': 'T', 'schemaRulesNotSatisfied': [{'operatorName': 'required', "
         "'specifiedAs': {'required': ['a', 'b']}, 'missingProperties': ['b']}]}"},
        {"{'$jsonSchema': {'properties': {'a': {'minimum': 5, 'description': 'D'}}}}", "{'a': 1}",
         "{'operatorName': '$jsonSchema', 'schemaRulesNotSatisfied': [{'operatorName': 'properties', "
         "'propertiesNotSatisfied': [{'propertyName': 'a', 'description': 'D', 'details': [{'operatorName': 'minimum', "
         "'specifiedAs': {'minimum': 5}, 'reason': 'comparison failed', 'consideredValue': 1}]}]}]}"},
        {"{'$jsonSchema': {'properties': {'a': {'bsonType': 'string'}}}}", "{'a': 1}",
         "{'operatorName': '$jsonSchema', 'schemaRulesNotSatisfied': [{'operatorName': 'properties', "
         "'propertiesNotSatisfied': [{'propertyName': 'a', 'details': [{'operatorName': 'bsonType', 'specifiedAs': "
         "{'bsonType': 'string'}, 'reason': 'type did not match', 'consideredValue': 1, 'consideredType': "
         "'int'}]}]}]}"},
        {"{'$jsonSchema': {'additionalProperties': false, 'properties': {'a': {}}}}", "{'a': 1, 'x': 2}",
         "{'operatorName': '$jsonSchema', 'schemaRulesNotSatisfied': [{'operatorName': 'additionalProperties', "
         "'specifiedAs': {'additionalProperties': false}, 'additionalProperties': ['x']}]}"},
        {"{'$jsonSchema': {'anyOf': [{'required': ['a']}, {'required': ['b']}]}}", "{}",
         "{'operatorName': '$jsonSchema', 'schemaRulesNotSatisfied': [{'operatorName': 'anyOf', 'schemasNotSatisfied': "
         "[{'index': 0, 'details': [{'operatorName': 'required', 'specifiedAs': {'required': ['a']}, "
         "'missingProperties': ['a']}]}, {'index': 1, 'details': [{'operatorName': 'required', 'specifiedAs': "
         "{'required': ['b']}, 'missingProperties': ['b']}]}]}]}"},
        {"{'$jsonSchema': {'dependencies': {'a': ['b']}}}", "{'a': 1}",
         "{'operatorName': '$jsonSchema', 'schemaRulesNotSatisfied': [{'operatorName': 'dependencies', "
         "'failingDependencies': [{'conditionalProperty': 'a', 'missingProperties': ['b']}]}]}"},
    };
    (void)state;
    check_all(cases, sizeof cases / sizeof *cases);
}

static void explain_too_long_is_cut(void **state)
{
    struct arena arena;
    struct filter *filter;
    struct err err;
    struct buf out = BUF_INIT;
    (void)state;
    arena_init(&arena);
    assert_true(filter_compile(&arena, json_doc(&arena, "{'a': 1}"), NULL, &filter, &err));
    filter_explain_failure(filter, json_doc(&arena, "{'a': 'a text that is longer than the limit'}"), 40, &out);
    json_assert_same(&arena, (struct bdoc){out.data, (uint32_t)out.len},
                     "{'operatorName': '$eq', 'reason': 'the explanation is too long to be shown'}", "cut");
    buf_deinit(&out);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explain_operators_and_trees),
        cmocka_unit_test(explain_schema_rules),
        cmocka_unit_test(explain_too_long_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
