#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/eval.h"

static void math_roundings(void **state)
{
    static const struct eval_case cases[] = {
        {"{'$abs': {'$literal': {'$numberLong': '-5'}}}", "{}", "{'v': {'$numberLong': '5'}}"},
        {"{'$ceil': 1.2}", "{}", "{'v': 2.0}"},
        {"{'$floor': {'$numberDecimal': '-1.5'}}", "{}", "{'v': {'$numberDecimal': '-2'}}"},
        {"{'$round': [1234.5678, 2]}", "{}", "{'v': 1234.57}"},
        {"{'$round': [15, -1]}", "{}", "{'v': 20}"},
        {"{'$trunc': [-1234.5678, 2]}", "{}", "{'v': -1234.56}"},
        {"{'$sqrt': 16}", "{}", "{'v': 4.0}"},
        {"{'$sqrt': {'$numberDecimal': '2'}}", "{}",
         "{'v': {'$numberDecimal': '1.414213562373095048801688724209698'}}"},
        {"{'$exp': 0}", "{}", "{'v': 1.0}"},
        {"{'$exp': {'$numberDecimal': '1'}}", "{}", "{'v': {'$numberDecimal': '2.718281828459045235360287471352662'}}"},
        {"{'$ln': {'$numberDecimal': '10'}}", "{}", "{'v': {'$numberDecimal': '2.302585092994045684017991454684364'}}"},
        {"{'$log10': {'$numberDecimal': '1000'}}", "{}", "{'v': {'$numberDecimal': '3'}}"},
        {"{'$log': [8, 2]}", "{}", "{'v': 3.0}"},
        {"{'$pow': [{'$numberDecimal': '2'}, 10]}", "{}", "{'v': {'$numberDecimal': '1024'}}"},
        {"{'$pow': [2, -1]}", "{}", "{'v': 0.5}"},
        {"{'$pow': [3, 39]}", "{}", "{'v': {'$numberLong': '4052555153018976267'}}"},
        {"{'$sqrt': '$none'}", "{}", "{'v': null}"},
    };
    (void)state;
    EVAL_CHECK(cases);
}

static void math_trigonometry(void **state)
{
    static const struct eval_case cases[] = {
        {"{'$sin': 0}", "{}", "{'v': 0.0}"},
        {"{'$cos': {'$numberDecimal': '0'}}", "{}", "{'v': {'$numberDecimal': '1'}}"},
        {"{'$acosh': 1}", "{}", "{'v': 0.0}"},
        {"{'$atan2': [0, 1]}", "{}", "{'v': 0.0}"},
        {"{'$atan': null}", "{}", "{'v': null}"},
        {"{'$degreesToRadians': 180}", "{}", "{'v': 3.141592653589793}"},
        {"{'$radiansToDegrees': {'$numberDecimal': '0'}}", "{}", "{'v': {'$numberDecimal': '0E-32'}}"},
        {"{'$tanh': 0}", "{}", "{'v': 0.0}"},
    };
    (void)state;
    EVAL_CHECK(cases);
}

static void math_bits_and_sizes(void **state)
{
    static const struct eval_case cases[] = {
        {"{'$bitAnd': [12, 10]}", "{}", "{'v': 8}"},
        {"{'$bitOr': [12, {'$numberLong': '3'}]}", "{}", "{'v': {'$numberLong': '15'}}"},
        {"{'$bitXor': [12, 10]}", "{}", "{'v': 6}"},
        {"{'$bitNot': 0}", "{}", "{'v': -1}"},
        {"{'$bitAnd': []}", "{}", "{'v': -1}"},
        {"{'$bitAnd': [1, null]}", "{}", "{'v': null}"},
        {"{'$binarySize': 'üx'}", "{}", "{'v': 3}"},
        {"{'$bsonSize': '$$ROOT'}", "{'a': 1}", "{'v': 12}"},
        {"{'$tsSecond': '$t'}", "{'t': {'$timestamp': {'t': 5, 'i': 7}}}", "{'v': {'$numberLong': '5'}}"},
        {"{'$tsIncrement': '$t'}", "{'t': {'$timestamp': {'t': 5, 'i': 7}}}", "{'v': {'$numberLong': '7'}}"},
    };
    (void)state;
    EVAL_CHECK(cases);
}

static void math_sums(void **state)
{
    static const struct eval_case cases[] = {
        {"{'$add': [{'$numberDecimal': '1'}, 2.5]}", "{}", "{'v': {'$numberDecimal': '3.5'}}"},
        {"{'$sum': ['$a', 'x', 2]}", "{'a': 1}", "{'v': 3}"},
        {"{'$avg': [1, 2]}", "{}", "{'v': 1.5}"},
        {"{'$min': [3, null, 1]}", "{}", "{'v': 1}"},
        {"{'$stdDevPop': [1, 3]}", "{}", "{'v': 1.0}"},
        {"{'$stdDevSamp': [1]}", "{}", "{'v': null}"},
        {"{'$median': {'input': [3, 1, 2, 'x'], 'method': 'approximate'}}", "{}", "{'v': 2.0}"},
        {"{'$percentile': {'input': [1, 2, 3, 4], 'p': [0.25, 1], 'method': 'approximate'}}", "{}",
         "{'v': [1.0, 4.0]}"},
        {"{'$median': {'input': [], 'method': 'approximate'}}", "{}", "{'v': null}"},
    };
    (void)state;
    EVAL_CHECK(cases);
}

static void math_malformed_fails_with_code(void **state)
{
    static const struct eval_failure cases[] = {
        {"{'$abs': '$s'}", 28765},
        {"{'$abs': {'$numberLong': '-9223372036854775808'}}", 28680},
        {"{'$sqrt': -1}", 28714},
        {"{'$ln': 0}", 28766},
        {"{'$log10': -1}", 28761},
        {"{'$log': ['$s', 2]}", 28756},
        {"{'$log': [1, '$s']}", 28757},
        {"{'$log': [0, 2]}", 28758},
        {"{'$log': [1, 1]}", 28759},
        {"{'$pow': ['$s', 2]}", 28762},
        {"{'$pow': [2, '$s']}", 28763},
        {"{'$pow': [0, -1]}", 28764},
        {"{'$mod': [1, 0]}", 16610},
        {"{'$mod': ['$s', 1]}", 16611},
        {"{'$divide': ['$s', 1]}", 14},
        {"{'$subtract': ['$s', 1]}", 14},
        {"{'$multiply': ['$s', 1]}", 14},
        {"{'$round': [1, 101]}", 51083},
        {"{'$round': [1, 1.5]}", 51082},
        {"{'$asin': 2}", 50989},
        {"{'$acosh': 0}", 50989},
        {"{'$sin': {'$numberDouble': 'Infinity'}}", 50989},
        {"{'$atan2': ['$s', 1]}", 51044},
        {"{'$atan2': [1, '$s']}", 51045},
        {"{'$bitAnd': [1.5]}", 14},
        {"{'$bitNot': '$s'}", 28765},
        {"{'$binarySize': 1}", 51276},
        {"{'$bsonSize': 1}", 31393},
        {"{'$tsSecond': 1}", 5687301},
        {"{'$tsIncrement': 1}", 5687302},
        {"{'$percentile': 1}", 7429703},
        {"{'$percentile': {'input': 1, 'p': [2], 'method': 'approximate'}}", 7750303},
        {"{'$percentile': {'input': 1, 'p': [], 'method': 'approximate'}}", 7750301},
        {"{'$median': {'input': 1, 'method': 'exact'}}", 2},
        {"{'$median': {'input': 1}}", 40414},
    };
    (void)state;
    EVAL_CHECK_FAILURES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(math_roundings),
        cmocka_unit_test(math_trigonometry),
        cmocka_unit_test(math_bits_and_sizes),
        cmocka_unit_test(math_sums),
        cmocka_unit_test(math_malformed_fails_with_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
