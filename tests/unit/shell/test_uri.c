#include "shell/uri.h"
#include "tests/unit/cmocka_all.h"

static struct uri parse(const char *text)
{
    struct uri uri;
    struct err err;
    if (!uri_parse(text, &uri, &err)) {
        print_error("%s: %s\n", text, err.msg);
        fail();
    }
    return uri;
}

static void uri_with_everything_is_taken_apart(void **state)
{
    (void)state;
    struct uri uri = parse("mongodb://a:1000,b,[::1]:3000/shop?connectTimeoutMS=250&directConnection=true");
    assert_int_equal(uri.host_count, 3);
    assert_string_equal(uri.hosts[0].name, "a");
    assert_string_equal(uri.hosts[0].port, "1000");
    assert_string_equal(uri.hosts[1].name, "b");
    assert_string_equal(uri.hosts[1].port, "27017");
    assert_string_equal(uri.hosts[2].name, "::1");
    assert_string_equal(uri.hosts[2].port, "3000");
    assert_string_equal(uri.database, "shop");
    assert_int_equal(uri.connect_timeout_ms, 250);
}

static void uri_without_scheme_or_database_has_defaults(void **state)
{
    (void)state;
    struct uri uri = parse("localhost:27200");
    assert_string_equal(uri.hosts[0].port, "27200");
    assert_string_equal(uri.database, "test");
    uri = parse("mongodb://h/");
    assert_string_equal(uri.database, "test");
    uri = parse("mongodb://h?appName=x");
    assert_string_equal(uri.database, "test");
}

static void uri_malformed_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"mongodb://",
                                      "mongodb://h:0",
                                      "mongodb://h:70000",
                                      "mongodb://h:x",
                                      "mongodb://h,,i",
                                      "mongodb://[::1",
                                      "http://h",
                                      "mongodb://h/a.b",
                                      "mongodb://h/?tls",
                                      "mongodb://h/a b",
                                      "mongodb://h/?connectTimeoutMS=x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct uri uri;
        struct err err;
        if (uri_parse(bad[i], &uri, &err))
            print_error("%s\n", bad[i]);
        assert_false(uri_parse(bad[i], &uri, &err));
        assert_int_equal(err.code, ERR_FailedToParse);
    }
}

static void uri_that_asks_for_more_than_there_is_says_so(void **state)
{
    (void)state;
    static const char *const more[] = {"mongodb+srv://h/", "mongodb://u:p@h/", "mongodb://h/?tls=true",
                                       "mongodb://h/?ssl=true"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        struct uri uri;
        struct err err;
        assert_false(uri_parse(more[i], &uri, &err));
        assert_int_equal(err.code, ERR_NotImplemented);
    }
}

static void uri_is_told_from_a_script_name(void **state)
{
    (void)state;
    assert_true(uri_is_uri("mongodb://h"));
    assert_true(uri_is_uri("localhost:27017"));
    assert_true(uri_is_uri("localhost:27017/test"));
    assert_false(uri_is_uri("script.js"));
    assert_false(uri_is_uri("import"));
    assert_false(uri_is_uri("dir:name/script.js"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uri_with_everything_is_taken_apart),
        cmocka_unit_test(uri_without_scheme_or_database_has_defaults),
        cmocka_unit_test(uri_malformed_is_refused),
        cmocka_unit_test(uri_that_asks_for_more_than_there_is_says_so),
        cmocka_unit_test(uri_is_told_from_a_script_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
