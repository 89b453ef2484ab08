#include "replication/address.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

static void address_three_parts_parsed(void **state)
{
    struct address address;
    struct err err;
    (void)state;
    assert_true(address_parse("db1.example:27018:31000", &address, &err));
    assert_string_equal(address.host, "db1.example");
    assert_int_equal(address.port, 27018);
    assert_int_equal(address.raft_port, 31000);
}

static void address_without_raft_port_adds_thousand(void **state)
{
    struct address address;
    char text[64];
    (void)state;
    assert_true(address_parse("127.0.0.1:27018", &address, NULL));
    assert_int_equal(address.raft_port, 28018);
    assert_true(address_format(&address, text, sizeof text));
    assert_string_equal(text, "127.0.0.1:27018:28018");
    assert_true(address_format_client(&address, text, sizeof text));
    assert_string_equal(text, "127.0.0.1:27018");
}

static void address_ipv6_keeps_brackets(void **state)
{
    struct address address;
    char text[64];
    (void)state;
    assert_true(address_parse("[fe80::1]:1:2", &address, NULL));
    assert_string_equal(address.host, "fe80::1");
    assert_true(address_format(&address, text, sizeof text));
    assert_string_equal(text, "[fe80::1]:1:2");
    assert_false(address_format(&address, text, 5));
}

static void address_malformed_refused(void **state)
{
    static const char *const bad[] = {
        "",      ":1",   "host",          "host:",      "host:0",     "host:65536", "host:1:",     "host:1:x",
        "[::1]", "[::1", "host:99999999", "host:1:2:3", "host:65000", "h:-1",       "::1:27018:1",
    };
    struct address address;
    struct err err;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(address_parse(bad[i], &address, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(address_three_parts_parsed),
        cmocka_unit_test(address_without_raft_port_adds_thousand),
        cmocka_unit_test(address_ipv6_keeps_brackets),
        cmocka_unit_test(address_malformed_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
