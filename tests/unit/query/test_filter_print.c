#include "query/filter_print.h"

#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

static void check(const char *query, const char *wanted)
{
    struct arena arena;
    struct filter *filter;
    struct err err = {0};
    bson_t out = BSON_INITIALIZER;
    arena_init(&arena);
    if (!filter_compile(&arena, json_doc(&arena, query), NULL, &filter, &err))
        fail_msg("%s: %d %s", query, err.code, err.msg);
    filter_append_parsed(filter, &out);
    json_assert_same(&arena, bdoc_of(&out), wanted, query);
    bson_destroy(&out);
    arena_deinit(&arena);
}

static void filter_print_gives_the_normal_form(void **state)
{
    (void)state;
    check("{}", "{}");
    check("{'a': 1}", "{'a': {'$eq': 1}}");
    check("{'a': 1, 'b.c': {'$gt': 2, '$lte': 5}}",
          "{'$and': [{'a': {'$eq': 1}}, {'b.c': {'$gt': 2}}, {'b.c': {'$lte': 5}}]}");
    check("{'$or': [{'a': {'$in': [2, 1]}}, {'b': {'$exists': true}}]}",
          "{'$or': [{'a': {'$in': [1, 2]}}, {'b': {'$exists': true}}]}");
    check("{'a': {'$ne': 3}}", "{'a': {'$not': {'$eq': 3}}}");
    check("{'a': {'$not': {'$gt': 3, '$lt': 9}}}", "{'a': {'$not': {'$gt': 3, '$lt': 9}}}");
    check("{'a': {'$elemMatch': {'$gt': 3}}}", "{'a': {'$elemMatch': {'$gt': 3}}}");
    check("{'a': {'$elemMatch': {'x': 3}}}", "{'a': {'$elemMatch': {'x': {'$eq': 3}}}}");
    check("{'a': {'$regex': '^x', '$options': 'i'}}", "{'a': {'$regex': '^x', '$options': 'i'}}");
    check("{'a': {'$type': 'string'}}", "{'a': {'$type': [2]}}");
    check("{'a': {'$mod': [4, 1]}}", "{'a': {'$mod': [{'$numberLong': '4'}, {'$numberLong': '1'}]}}");
    check("{'a': {'$bitsAllSet': [0, 3]}}", "{'a': {'$bitsAllSet': [0, 3]}}");
    check("{'a': {'$size': 2}}", "{'a': {'$size': 2}}");
    check("{'$expr': {'$gt': ['$a', 1]}}", "{'$expr': {'$gt': ['$a', 1]}}");
    check("{'$nor': [{'a': 1}]}", "{'$nor': [{'a': {'$eq': 1}}]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filter_print_gives_the_normal_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
