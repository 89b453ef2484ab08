#include "tests/unit/command/command_env.h"

#include "command/modify_fields.h"
#include "command/write_fields.h"

struct refused {
    const char *statement;
    int32_t code; /* 0: accepted */
};

static void update_statements_are_checked_field_by_field(void **state)
{
    static const struct refused cases[] = {
        {"{'q': {}, 'u': {}}", 0},
        {"{'q': {}, 'u': []}", 0},
        {"{'q': {}, 'u': {}, 'multi': null, 'hint': {}, 'sort': {'a': 1}, 'c': {'x': 1}}", 0},
        {"{}", 40414},
        {"{'u': {}}", 40414},
        {"{'q': {}}", 40414},
        {"{'q': null, 'u': {}}", 40414},
        {"{'q': 5, 'u': {}}", 14},
        {"{'q': [], 'u': {}}", 14},
        {"{'q': {}, 'u': 5}", 9},
        {"{'q': {}, 'u': null}", 9},
        {"{'q': {}, 'u': [5]}", 14},
        {"{'q': {}, 'u': {}, 'multi': 'x'}", 14},
        {"{'q': {}, 'u': {}, 'multi': 1}", 14},
        {"{'q': {}, 'u': {}, 'upsert': 1}", 14},
        {"{'q': {}, 'u': {}, 'arrayFilters': 5}", 14},
        {"{'q': {}, 'u': {}, 'arrayFilters': {}}", 14},
        {"{'q': {}, 'u': {}, 'arrayFilters': [5]}", 14},
        {"{'q': {}, 'u': {}, 'collation': 5}", 14},
        {"{'q': {}, 'u': {}, 'hint': 5}", 9},
        {"{'q': {}, 'u': {}, 'sort': 1}", 14},
        {"{'q': {}, 'u': {}, 'c': 1}", 14},
        {"{'q': {}, 'u': {}, 'nope': 1}", 40415},
        {"{'q': {}, 'u': {}, 'q': {}}", 40413},
        {"{'q': {}, 'u': {}, 'multi': true, 'sort': {'a': 1}}", 9},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bson_t *doc = json_single(cases[i].statement);
        struct write_fields fields;
        struct err err = {0};
        bool ok = write_fields_read_update(bdoc_of(doc), &fields, &err);
        if (ok != (cases[i].code == 0) || (!ok && err.code != cases[i].code))
            fail_msg("%s: %d %s", cases[i].statement, err.code, err.msg);
        bson_destroy(doc);
    }
}

static void delete_statements_are_checked_field_by_field(void **state)
{
    static const struct refused cases[] = {
        {"{'q': {}, 'limit': 0}", 0},
        {"{'q': {}, 'limit': 1.0}", 0},
        {"{'q': {}}", 40414},
        {"{'limit': 1}", 40414},
        {"{}", 40414},
        {"{'q': {}, 'limit': 2}", 9},
        {"{'q': {}, 'limit': -1}", 9},
        {"{'q': {}, 'limit': 'x'}", 9},
        {"{'q': 5, 'limit': 1}", 14},
        {"{'q': {}, 'limit': 1, 'collation': 5}", 14},
        {"{'q': {}, 'limit': 1, 'hint': true}", 9},
        {"{'q': {}, 'limit': 1, 'u': {}}", 40415},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bson_t *doc = json_single(cases[i].statement);
        struct write_fields fields;
        struct err err = {0};
        bool ok = write_fields_read_delete(bdoc_of(doc), &fields, &err);
        if (ok != (cases[i].code == 0) || (!ok && err.code != cases[i].code))
            fail_msg("%s: %d %s", cases[i].statement, err.code, err.msg);
        bson_destroy(doc);
    }
}

static void delete_limit_tells_one_from_many(void **state)
{
    struct write_fields fields;
    struct err err = {0};
    (void)state;
    bson_t *one = json_single("{'q': {}, 'limit': 1}");
    bson_t *many = json_single("{'q': {}, 'limit': 0}");
    assert_true(write_fields_read_delete(bdoc_of(one), &fields, &err));
    assert_false(fields.multi);
    assert_true(write_fields_read_delete(bdoc_of(many), &fields, &err));
    assert_true(fields.multi);
    bson_destroy(one);
    bson_destroy(many);
}

static void find_and_modify_options_that_exclude_each_other_are_refused(void **state)
{
    static const struct refused cases[] = {
        {"{'findAndModify': 'c', 'update': {}}", 0},
        {"{'findAndModify': 'c', 'remove': 1, 'sort': {'a': 1}, '$db': 'x', 'lsid': {}}", 0},
        {"{'findAndModify': 'c'}", 9},
        {"{'findAndModify': 'c', 'query': {}}", 9},
        {"{'findAndModify': 'c', 'update': {}, 'remove': true}", 9},
        {"{'findAndModify': 'c', 'remove': true, 'new': true}", 9},
        {"{'findAndModify': 'c', 'remove': true, 'upsert': true}", 9},
        {"{'findAndModify': 'c', 'remove': true, 'arrayFilters': []}", 9},
        {"{'findAndModify': 'c', 'update': [], 'arrayFilters': []}", 9},
        {"{'findAndModify': 'c', 'update': 5}", 9},
        {"{'findAndModify': 'c', 'update': {}, 'query': 5}", 14},
        {"{'findAndModify': 'c', 'update': {}, 'remove': 'x'}", 14},
        {"{'findAndModify': 'c', 'update': {}, 'arrayFilters': 5}", 14},
        {"{'findAndModify': 'c', 'update': {}, 'collation': 5}", 14},
        {"{'findAndModify': 'c', 'update': {}, 'nope': 1}", 40415},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bson_t *doc = json_single(cases[i].statement);
        struct modify_fields fields;
        struct err err = {0};
        bool ok = modify_fields_read(bdoc_of(doc), &fields, &err);
        if (ok != (cases[i].code == 0) || (!ok && err.code != cases[i].code))
            fail_msg("%s: %d %s", cases[i].statement, err.code, err.msg);
        bson_destroy(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(update_statements_are_checked_field_by_field),
        cmocka_unit_test(delete_statements_are_checked_field_by_field),
        cmocka_unit_test(delete_limit_tells_one_from_many),
        cmocka_unit_test(find_and_modify_options_that_exclude_each_other_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
