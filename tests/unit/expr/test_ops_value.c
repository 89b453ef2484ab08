/* Arrays, documents, sets, variables. */
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/eval.h"

static void value_arrays(void **state)
{
    static const struct eval_case cases[] = {
        {"{'$sortArray': {'input': [3, 1, 2], 'sortBy': -1}}", "{}", "{'v': [3, 2, 1]}"},
        {"{'$sortArray': {'input': '$a', 'sortBy': {'x.y': 1, 'z': -1}}}",
         "{'a': [{'x': {'y': 2}}, {'x': {'y': 1}, 'z': 1}, {'x': {'y': 1}, 'z': 2}, 5]}",
         "{'v': [5, {'x': {'y': 1}, 'z': 2}, {'x': {'y': 1}, 'z': 1}, {'x': {'y': 2}}]}"},
        {"{'$sortArray': {'input': null, 'sortBy': 1}}", "{}", "{'v': null}"},
        {"{'$firstN': {'n': 2, 'input': [1, 2, 3]}}", "{}", "{'v': [1, 2]}"},
        {"{'$lastN': {'n': 2, 'input': [1, null, 3]}}", "{}", "{'v': [null, 3]}"},
        {"{'$minN': {'n': 2, 'input': [3, null, 1, 2]}}", "{}", "{'v': [1, 2]}"},
        {"{'$maxN': {'n': 5, 'input': [3, null, 1]}}", "{}", "{'v': [3, 1]}"},
        {"{'$filter': {'input': [1, 2, 3, 4], 'cond': {'$gt': ['$$this', 1]}, 'limit': 2}}", "{}", "{'v': [2, 3]}"},
        {"{'$map': {'input': [1, 2], 'as': 'x', 'in': {'$multiply': ['$$x', 2]}}}", "{}", "{'v': [2, 4]}"},
        {"{'$reduce': {'input': ['a', 'b'], 'initialValue': '', 'in': {'$concat': ['$$value', '$$this']}}}", "{}",
         "{'v': 'ab'}"},
        {"{'$zip': {'inputs': [[1, 2], [3]], 'useLongestLength': true, 'defaults': [0, 9]}}", "{}",
         "{'v': [[1, 3], [2, 9]]}"},
        {"{'$range': [5, 0, -2]}", "{}", "{'v': [5, 3, 1]}"},
        {"{'$indexOfArray': [[1, 2, 1], 1, 1]}", "{}", "{'v': 2}"},
        {"{'$setIntersection': [['a'], '$b', '$c']}", "{'b': [1], 'c': null}", "{'v': null}"},
        {"{'$setUnion': [[2, 1], [2]]}", "{}", "{'v': [1, 2]}"},
    };
    (void)state;
    EVAL_CHECK(cases);
}

static void value_documents(void **state)
{
    static const struct eval_case cases[] = {
        {"{'$getField': 'a.b'}", "{'a.b': 5}", "{'v': 5}"},
        {"{'$getField': {'field': {'$literal': '$x'}, 'input': '$d'}}", "{'d': {'$x': 1}}", "{'v': 1}"},
        {"{'$getField': {'$concat': ['a', '.b']}}", "{'a.b': 5}", "{'v': 5}"},
        {"{'$getField': 'none'}", "{'a': 1}", "{}"},
        {"{'$setField': {'field': 'a.b', 'input': '$$ROOT', 'value': 1}}", "{'x': 2}", "{'v': {'x': 2, 'a.b': 1}}"},
        {"{'$unsetField': {'field': 'x', 'input': '$$ROOT'}}", "{'x': 2, 'y': 3}", "{'v': {'y': 3}}"},
        {"{'$mergeObjects': ['$a', null, {'x': 2, 'y': 3}]}", "{'a': {'x': 1, 'z': 0}}",
         "{'v': {'x': 2, 'z': 0, 'y': 3}}"},
        {"{'$objectToArray': '$a'}", "{'a': {'x': 1}}", "{'v': [{'k': 'x', 'v': 1}]}"},
        {"{'$arrayToObject': {'$literal': [['a', 1], ['b', 2], ['a', 3]]}}", "{}", "{'v': {'a': 3, 'b': 2}}"},
        {"{'$type': '$none'}", "{}", "{'v': 'missing'}"},
        {"{'$isNumber': {'$numberDecimal': '1'}}", "{}", "{'v': true}"},
        {"{'$let': {'vars': {'x': 2, 'CURRENT': '$a'}, 'in': {'$add': ['$b', '$$x']}}}", "{'a': {'b': 1}}", "{'v': 3}"},
        {"{'$switch': {'branches': [{'case': false, 'then': 1}], 'default': 2}}", "{}", "{'v': 2}"},
        {"{'$meta': 'recordId'}", "{}", "{}"},
    };
    (void)state;
    EVAL_CHECK(cases);
}

/* More fields than are looked through one by one. */
static void value_merge_of_many_fields_keeps_order(void **state)
{
    static const struct eval_case cases[] = {
        {"{'$map': {'input': {'$objectToArray': {'$mergeObjects': [{'$arrayToObject': {'$map': {'input': {'$range': "
         "[0, "
         "40]}, 'in': [{'$toString': '$$this'}, '$$this']}}}, {'3': 'x', '39': 'y'}]}}, 'in': '$$this.v'}}",
         "{}",
         "{'v': [0, 1, 2, 'x', 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, "
         "27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 'y']}"},
    };
    (void)state;
    EVAL_CHECK(cases);
}

static void value_malformed_fails_with_code(void **state)
{
    static const struct eval_failure cases[] = {
        {"{'$sortArray': 1}", 2942500},
        {"{'$sortArray': {'x': 1}}", 2942501},
        {"{'$sortArray': {'sortBy': 1}}", 2942502},
        {"{'$sortArray': {'input': []}}", 2942503},
        {"{'$sortArray': {'input': 1, 'sortBy': 1}}", 2942504},
        {"{'$sortArray': {'input': [], 'sortBy': {'a': 2}}}", 15975},
        {"{'$sortArray': {'input': [], 'sortBy': 2}}", 2},
        {"{'$sortArray': {'input': [], 'sortBy': {}}}", 15976},
        {"{'$firstN': 1}", 5787801},
        {"{'$firstN': {'n': 1}}", 5787907},
        {"{'$firstN': {'input': []}}", 5787906},
        {"{'$firstN': {'n': 'x', 'input': []}}", 5787902},
        {"{'$firstN': {'n': 1.5, 'input': []}}", 5787903},
        {"{'$firstN': {'n': 0, 'input': []}}", 5787908},
        {"{'$firstN': {'n': 1, 'input': 5}}", 5788200},
        {"{'$minN': {'n': 1, 'x': 5}}", 5787901},
        {"{'$filter': 1}", 28646},
        {"{'$filter': {'input': []}}", 28650},
        {"{'$filter': {'input': 1, 'cond': 1}}", 28651},
        {"{'$filter': {'input': [], 'cond': 1, 'limit': 0}}", 327392},
        {"{'$filter': {'input': [], 'cond': 1, 'limit': 'x'}}", 327391},
        {"{'$map': {'input': 1, 'in': 1}}", 16883},
        {"{'$map': {'in': 1}}", 16880},
        {"{'$reduce': 1}", 40075},
        {"{'$reduce': {'input': []}}", 40079},
        {"{'$reduce': {'input': 1, 'initialValue': 1, 'in': 1}}", 40080},
        {"{'$zip': 1}", 34460},
        {"{'$zip': {'inputs': 1}}", 34461},
        {"{'$zip': {'inputs': [[1]], 'defaults': 1}}", 34462},
        {"{'$zip': {'inputs': [[1]], 'defaults': [1]}}", 34466},
        {"{'$zip': {'inputs': [1]}}", 34468},
        {"{'$slice': [[1], 'x']}", 28725},
        {"{'$slice': [[1], 1.5]}", 28726},
        {"{'$slice': [[1], 1, 0]}", 28729},
        {"{'$range': ['x', 1]}", 34443},
        {"{'$range': [0, 1, 0]}", 34449},
        {"{'$setEquals': [[1]]}", 17045},
        {"{'$ifNull': [1]}", 1257300},
        {"{'$cond': {'if': 1, 'then': 1}}", 17082},
        {"{'$cond': {'if': 1, 'then': 1, 'else': 1, 'x': 1}}", 17083},
        {"{'$cond': [1, 2]}", 16020},
        {"{'$getField': 5}", 5654602},
        {"{'$getField': {'field': 'a'}}", 3041703},
        {"{'$getField': {'field': 'a', 'input': 1, 'x': 1}}", 3041701},
        {"{'$getField': '$a'}", 3041704},
        {"{'$setField': {'field': '$a', 'input': {}, 'value': 1}}", 4161108},
        {"{'$setField': {'field': 'a', 'input': {}}}", 4161102},
        {"{'$unsetField': 1}", 4161100},
        {"{'$meta': 1}", 17307},
        {"{'$meta': 'nothing'}", 17308},
        {"{'$meta': 'textScore'}", 40218},
        {"{'$function': {'body': 'x', 'args': [], 'lang': 'js'}}", 31264},
        {"{'$rank': {}}", 168},
        {"'$$USER_ROLES'", 51144},
        {"'$$CLUSTER_TIME'", 51144},
        {"{'$rand': 1}", 3040501},
    };
    (void)state;
    EVAL_CHECK_FAILURES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(value_arrays),
        cmocka_unit_test(value_documents),
        cmocka_unit_test(value_merge_of_many_fields_keeps_order),
        cmocka_unit_test(value_malformed_fails_with_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
