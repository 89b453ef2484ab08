#include "tests/unit/command/command_env.h"

#include "command/namespace.h"

static void ns_database_names_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool good;
    } cases[] = {
        {"test", true},
        {"a", true},
        {"123456789012345678901234567890123456789012345678901234567890123", true},
        {"1234567890123456789012345678901234567890123456789012345678901234", false},
        {"", false},
        {"a.b", false},
        {"a b", false},
        {"a/b", false},
        {"a\\b", false},
        {"a$b", false},
        {"a\"b", false},
        {"\xc3\xa4", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = {0};
        assert_int_equal(ns_check_db(cases[i].name, &err), cases[i].good);
        assert_int_equal(err.code, cases[i].good ? 0 : ERR_InvalidNamespace);
    }
}

static void ns_parse_splits_at_the_first_dot(void **state)
{
    (void)state;
    struct ns ns;
    struct err err;
    assert_true(ns_parse(&ns, "db.coll.with.dots", &err));
    assert_string_equal(ns.db, "db");
    assert_string_equal(ns.coll, "coll.with.dots");
    assert_string_equal(ns.full, "db.coll.with.dots");
    static const char *const bad[] = {"", "db", ".coll", "db.", "db..coll", "db.a$b", "d b.coll"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(ns_parse(&ns, bad[i], &err));
        assert_int_equal(err.code, ERR_InvalidNamespace);
    }
}

static void ns_full_name_has_at_most_255_bytes(void **state)
{
    (void)state;
    struct ns ns;
    struct err err;
    char coll[260];
    memset(coll, 'c', sizeof coll);
    coll[252] = '\0'; /* "db." and 252 */
    assert_true(ns_make(&ns, "db", coll, &err));
    assert_int_equal(strlen(ns.full), 255);
    coll[252] = 'c';
    coll[253] = '\0';
    assert_false(ns_make(&ns, "db", coll, &err));
}

static void ns_system_collections_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *ns;
        bool system;
    } cases[] = {{"test.a", false}, {"test.system.views", true}, {"config.a", true},
                 {"local.a", true}, {"admin.a", true},           {"test.systems", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ns ns;
        struct err err;
        assert_true(ns_parse(&ns, cases[i].ns, &err));
        assert_int_equal(ns_is_system(&ns), cases[i].system);
    }
}

static void ns_system_collections_are_not_written_to(void **state)
{
    (void)state;
    static const struct {
        const char *ns;
        bool allowed;
    } cases[] = {{"test.a", true},          {"test.system.views", false}, {"test.system.js", true},
                 {"config.settings", true}, {"test.systems", true},       {"test.a.system.x", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ns ns;
        struct err err = {0};
        assert_true(ns_parse(&ns, cases[i].ns, &err));
        assert_int_equal(ns_check_write(&ns, &err), cases[i].allowed);
        assert_int_equal(err.code, cases[i].allowed ? 0 : ERR_InvalidNamespace);
    }
}

static void ns_of_a_command_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int32_t code;       /* of command_ns; 0: good */
        int32_t code_or_db; /* of command_ns_or_db */
    } cases[] = {
        {"{\"find\": \"c\", \"$db\": \"d\"}", 0, 0},
        {"{\"find\": 1, \"$db\": \"d\"}", ERR_InvalidNamespace, 0},
        {"{\"find\": 1.0, \"$db\": \"d\"}", ERR_InvalidNamespace, 0},
        {"{\"find\": 2, \"$db\": \"d\"}", ERR_InvalidNamespace, ERR_FailedToParse},
        {"{\"find\": \"\", \"$db\": \"d\"}", ERR_InvalidNamespace, ERR_InvalidNamespace},
        {"{\"find\": \"$cmd\", \"$db\": \"d\"}", ERR_InvalidNamespace, ERR_InvalidNamespace},
        {"{\"find\": [], \"$db\": \"d\"}", ERR_InvalidNamespace, ERR_InvalidNamespace},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct command_ctx *ctx = ctx_of(cases[i].body, NULL, NULL, 0);
        struct err err = {0};
        struct ns ns;
        assert_true(command_parse(ctx, &err));
        assert_int_equal(command_ns(ctx, &ns, &err) ? 0 : err.code, cases[i].code);
        assert_int_equal(command_ns_or_db(ctx, &ns, &err) ? 0 : err.code, cases[i].code_or_db);
        if (cases[i].code != 0 && cases[i].code_or_db == 0) {
            assert_string_equal(ns.full, "d");
            assert_string_equal(ns.coll, "");
        }
        command_ctx_free(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ns_database_names_are_checked),
        cmocka_unit_test(ns_parse_splits_at_the_first_dot),
        cmocka_unit_test(ns_full_name_has_at_most_255_bytes),
        cmocka_unit_test(ns_system_collections_are_known),
        cmocka_unit_test(ns_system_collections_are_not_written_to),
        cmocka_unit_test(ns_of_a_command_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
