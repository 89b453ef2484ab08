#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/eval.h"

static void text_searches_and_replaces(void **state)
{
    static const struct eval_case cases[] = {
        {"{'$indexOfCP': ['üxü', 'ü', 1]}", "{}", "{'v': 2}"},
        {"{'$indexOfBytes': ['üxü', 'x']}", "{}", "{'v': 2}"},
        {"{'$split': ['a-b-', '-']}", "{}", "{'v': ['a', 'b', '']}"},
        {"{'$replaceOne': {'input': 'aXbX', 'find': 'X', 'replacement': '-'}}", "{}", "{'v': 'a-bX'}"},
        {"{'$replaceAll': {'input': 'aXbX', 'find': 'X', 'replacement': '-'}}", "{}", "{'v': 'a-b-'}"},
        {"{'$replaceOne': {'input': 'ab', 'find': '', 'replacement': '-'}}", "{}", "{'v': '-ab'}"},
        {"{'$replaceAll': {'input': 'aü', 'find': '', 'replacement': '-'}}", "{}", "{'v': '-a-ü-'}"},
        {"{'$replaceAll': {'input': null, 'find': 'x', 'replacement': 'y'}}", "{}", "{'v': null}"},
        {"{'$trim': {'input': '  x '}}", "{}", "{'v': 'x'}"},
        {"{'$ltrim': {'input': 'xyz', 'chars': 'yx'}}", "{}", "{'v': 'z'}"},
        {"{'$substrCP': ['üxy', 1, 5]}", "{}", "{'v': 'xy'}"},
        {"{'$strLenCP': 'üx'}", "{}", "{'v': 2}"},
        {"{'$toUpper': 'aü'}", "{}", "{'v': 'Aü'}"},
        {"{'$strcasecmp': ['aB', 'Ab']}", "{}", "{'v': 0}"},
    };
    (void)state;
    EVAL_CHECK(cases);
}

static void text_regular_expressions(void **state)
{
    static const struct eval_case cases[] = {
        {"{'$regexMatch': {'input': 'Hello', 'regex': 'hel', 'options': 'i'}}", "{}", "{'v': true}"},
        {"{'$regexMatch': {'input': null, 'regex': 'x'}}", "{}", "{'v': false}"},
        {"{'$regexFind': {'input': 'üab', 'regex': '(a)(z)?'}}", "{}",
         "{'v': {'match': 'a', 'idx': 1, 'captures': ['a', null]}}"},
        {"{'$regexFind': {'input': 'x', 'regex': 'y'}}", "{}", "{'v': null}"},
        {"{'$regexFindAll': {'input': 'a1ü22', 'regex': '[0-9]+'}}", "{}",
         "{'v': [{'match': '1', 'idx': 1, 'captures': []}, {'match': '22', 'idx': 3, 'captures': []}]}"},
        {"{'$regexFindAll': {'input': 'ab', 'regex': ''}}", "{}",
         "{'v': [{'match': '', 'idx': 0, 'captures': []}, {'match': '', 'idx': 1, 'captures': []}]}"},
        {"{'$regexFindAll': {'input': null, 'regex': 'x'}}", "{}", "{'v': []}"},
        {"{'$regexMatch': {'input': '$t', 'regex': '$r'}}", "{'t': 'abc', 'r': '^a'}", "{'v': true}"},
        {"{'$regexMatch': {'input': 'ABC', 'regex': {'$regularExpression': {'pattern': 'b', 'options': 'i'}}}}", "{}",
         "{'v': true}"},
    };
    (void)state;
    EVAL_CHECK(cases);
}

static void text_conversions(void **state)
{
    static const struct eval_case cases[] = {
        {"{'$toString': 1000000.0}", "{}", "{'v': '1000000'}"},
        {"{'$toString': 0.1}", "{}", "{'v': '0.1'}"},
        {"{'$toString': 1e300}", "{}", "{'v': '1e+300'}"},
        {"{'$toString': {'$date': {'$numberLong': '0'}}}", "{}", "{'v': '1970-01-01T00:00:00.000Z'}"},
        {"{'$toInt': '-7'}", "{}", "{'v': -7}"},
        {"{'$toLong': 7.9}", "{}", "{'v': {'$numberLong': '7'}}"},
        {"{'$toDouble': '2.5'}", "{}", "{'v': 2.5}"},
        {"{'$toDecimal': '1.50'}", "{}", "{'v': {'$numberDecimal': '1.50'}}"},
        {"{'$toBool': 'false'}", "{}", "{'v': true}"},
        {"{'$toDate': '1970-01-01T00:00:01Z'}", "{}", "{'v': {'$date': {'$numberLong': '1000'}}}"},
        {"{'$convert': {'input': 'x', 'to': 'int', 'onError': 'bad'}}", "{}", "{'v': 'bad'}"},
        {"{'$convert': {'input': null, 'to': 'int', 'onNull': 'nil'}}", "{}", "{'v': 'nil'}"},
        {"{'$convert': {'input': 'ff', 'to': 'int', 'base': 16}}", "{}", "{'v': 255}"},
        {"{'$convert': {'input': 10, 'to': 'string', 'base': 2}}", "{}", "{'v': '1010'}"},
        {"{'$convert': {'input': 'aGk=', 'to': 'binData', 'format': 'base64'}}", "{}",
         "{'v': {'$binary': {'base64': 'aGk=', 'subType': '00'}}}"},
        {"{'$convert': {'input': {'$binary': {'base64': 'aGk=', 'subType': '00'}}, 'to': 'string', 'format': 'hex'}}",
         "{}", "{'v': '6869'}"},
        {"{'$convert': {'input': {'$binary': {'base64': '+/8=', 'subType': '00'}}, 'to': 'string', 'format': "
         "'base64url'}}",
         "{}", "{'v': '-_8'}"},
        {"{'$toUUID': '00112233-4455-6677-8899-aabbccddeeff'}", "{}",
         "{'v': {'$binary': {'base64': 'ABEiM0RVZneImaq7zN3u/w==', 'subType': '04'}}}"},
        {"{'$convert': {'input': {'$binary': {'base64': 'AQA=', 'subType': '00'}}, 'to': 'int'}}", "{}", "{'v': 1}"},
        {"{'$convert': {'input': {'$binary': {'base64': '/w==', 'subType': '00'}}, 'to': 'int'}}", "{}", "{'v': -1}"},
        {"{'$convert': {'input': 1, 'to': 'binData', 'byteOrder': 'big'}}", "{}",
         "{'v': {'$binary': {'base64': 'AAAAAQ==', 'subType': '00'}}}"},
    };
    (void)state;
    EVAL_CHECK(cases);
}

static void text_malformed_fails_with_code(void **state)
{
    static const struct eval_failure cases[] = {
        {"{'$concat': [1]}", 16702},
        {"{'$indexOfCP': [1, 'x']}", 40093},
        {"{'$indexOfBytes': ['x', 1]}", 40092},
        {"{'$indexOfBytes': ['x', 'x', -1]}", 40097},
        {"{'$indexOfBytes': ['x', 'x', 'y']}", 40096},
        {"{'$split': [1, 'x']}", 40085},
        {"{'$split': ['x', 1]}", 40086},
        {"{'$split': ['x', '']}", 40087},
        {"{'$strLenBytes': 1}", 34473},
        {"{'$strLenCP': 1}", 34471},
        {"{'$substrCP': ['x', 'y', 1]}", 34450},
        {"{'$substrCP': ['x', 1.5, 1]}", 34451},
        {"{'$substrCP': ['x', 1, 'y']}", 34452},
        {"{'$substrCP': ['x', -1, 1]}", 34455},
        {"{'$substrCP': ['x', 1, -1]}", 34454},
        {"{'$substrBytes': ['ü', 1, 1]}", 28656},
        {"{'$substrBytes': ['ü', 0, 1]}", 28657},
        {"{'$trim': 'x'}", 50696},
        {"{'$trim': {'x': 1}}", 50694},
        {"{'$trim': {'chars': 'x'}}", 50695},
        {"{'$trim': {'input': 1}}", 50699},
        {"{'$trim': {'input': 'x', 'chars': 1}}", 50700},
        {"{'$replaceOne': 1}", 51751},
        {"{'$replaceOne': {'input': 'x', 'find': 'y'}}", 51747},
        {"{'$replaceOne': {'input': 1, 'find': 'y', 'replacement': 'z'}}", 51746},
        {"{'$replaceOne': {'input': null, 'find': 1, 'replacement': 'z'}}", 51745},
        {"{'$regexMatch': 1}", 51103},
        {"{'$regexMatch': {'x': 1}}", 31024},
        {"{'$regexMatch': {'regex': 'x'}}", 31022},
        {"{'$regexMatch': {'input': 'x'}}", 31023},
        {"{'$regexMatch': {'input': 1, 'regex': 'x'}}", 51104},
        {"{'$regexMatch': {'input': 'x', 'regex': 1}}", 51105},
        {"{'$regexMatch': {'input': 'x', 'regex': 'x', 'options': 1}}", 51106},
        {"{'$regexMatch': {'input': 'x', 'regex': {'$regularExpression': {'pattern': 'x', 'options': 'i'}}, "
         "'options': 'm'}}",
         51107},
        {"{'$regexMatch': {'input': 'x', 'regex': 'x', 'options': 'q'}}", 51108},
        {"{'$regexMatch': {'input': 'x', 'regex': 'x\\u0000'}}", 51109},
        {"{'$regexMatch': {'input': 'x', 'regex': '('}}", 51111},
        {"{'$regexFind': {'input': 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac', 'regex': '^(a|aa)+$'}}",
         51156},
        {"{'$toInt': 'x'}", 241},
        {"{'$toInt': ' 1'}", 241},
        {"{'$toInt': {'$numberLong': '99999999999'}}", 241},
        {"{'$toDate': 5}", 241},
        {"{'$convert': {'input': 1}}", 9},
        {"{'$convert': {'input': 1, 'to': 'nothing'}}", 2},
        {"{'$convert': {'input': 'x', 'to': 'binData'}}", 4341115},
        {"{'$convert': {'input': 'x', 'to': 'binData', 'format': 'rot13'}}", 4341125},
        {"{'$convert': {'input': 'x', 'to': 'binData', 'format': 'hex'}}", 241},
        {"{'$toUUID': 'x'}", 241},
    };
    (void)state;
    EVAL_CHECK_FAILURES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_searches_and_replaces),
        cmocka_unit_test(text_regular_expressions),
        cmocka_unit_test(text_conversions),
        cmocka_unit_test(text_malformed_fails_with_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
