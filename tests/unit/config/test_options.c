#include "config/options.h"

#include "base/mem.h"
#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    char *dbpath;
    int64_t port;
    bool init;
} values;

static const struct option options[] = {
    {.name = "dbpath", .type = OPTION_STR, .destination = &values.dbpath, .value = "DIR", .help = "Data folder."},
    {.name = "port",
     .type = OPTION_INT,
     .destination = &values.port,
     .min = 1,
     .max = 65535,
     .value = "P",
     .help = "Port."},
    {.name = "init", .type = OPTION_FLAG, .destination = &values.init, .help = "Prepare."},
};
static const struct options_usage usage = {.program = "testd", .summary = "A test."};
static struct err err;

static int reset(void **state)
{
    (void)state;
    options_deinit(options, 3);
    values.port = 27018;
    values.init = false;
    err.msg[0] = '\0';
    return 0;
}

static enum options_result parse(int argc, char **argv)
{
    return options_parse(&usage, options, 3, argc, argv, &err);
}

static void options_parse_both_spellings_sets_values(void **state)
{
    (void)state;
    char *argv[] = {"testd", "--dbpath", "/d", "--port=99", "--init"};
    assert_int_equal(parse(5, argv), OPTIONS_OK);
    assert_string_equal(values.dbpath, "/d");
    assert_int_equal(values.port, 99);
    assert_true(values.init);
}

static void options_parse_without_arguments_keeps_defaults(void **state)
{
    (void)state;
    char *argv[] = {"testd"};
    assert_int_equal(parse(1, argv), OPTIONS_OK);
    assert_null(values.dbpath);
    assert_int_equal(values.port, 27018);
}

static void expect_failure(char *argument, const char *in_message)
{
    char *argv[] = {"testd", argument};
    assert_int_equal(parse(2, argv), OPTIONS_FAILED);
    assert_non_null(strstr(err.msg, in_message));
}

static void options_parse_bad_arguments_name_the_culprit(void **state)
{
    (void)state;
    expect_failure("--nonsense=1", "nonsense");
    expect_failure("--port=0", "port");
    expect_failure("--port=65536", "port");
    expect_failure("--port=12x", "12x");
    expect_failure("--port=99999999999999999999", "port");
    expect_failure("--dbpath", "needs a value");
    expect_failure("--dbpath=", "empty");
    expect_failure("--init=maybe", "maybe");
    expect_failure("stray", "stray");
    expect_failure("--config=/nonexistent/sherd.conf", "/nonexistent/sherd.conf");
}

static char *write_file(const char *text)
{
    static char path[] = "/tmp/sherd-options-XXXXXX";
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

static void options_parse_file_fills_what_the_command_line_left(void **state)
{
    (void)state;
    char *path = write_file("# comment\n\ndbpath: \"/from file\"\n port : 5 \ninit: true\n");
    char *argv[] = {"testd", "--port", "7", "--config", path};
    assert_int_equal(parse(5, argv), OPTIONS_OK);
    assert_string_equal(values.dbpath, "/from file");
    assert_int_equal(values.port, 7);
    assert_true(values.init);
    unlink(path);
}

static void options_parse_bad_file_names_file_and_line(void **state)
{
    (void)state;
    char *path = write_file("port: 5\nnonsense: 1\n");
    char *argv[] = {"testd", "--config", path};
    assert_int_equal(parse(3, argv), OPTIONS_FAILED);
    assert_non_null(strstr(err.msg, "line 2"));
    assert_non_null(strstr(err.msg, path));
    unlink(path);
}

static void expect_address(const char *text, const char *want_host, int want_port)
{
    char host[256];
    int port;
    assert_true(options_parse_address(text, 27017, host, &port, &err));
    assert_string_equal(host, want_host);
    assert_int_equal(port, want_port);
}

static void options_parse_address_takes_names_and_both_ip_versions(void **state)
{
    (void)state;
    expect_address("localhost", "localhost", 27017);
    expect_address("db1.example:99", "db1.example", 99);
    expect_address("[::1]:99", "::1", 99);
    expect_address("[::1]", "::1", 27017);
    expect_address("::1", "::1", 27017);
}

static void options_parse_address_refuses_nonsense(void **state)
{
    (void)state;
    const char *const bad[] = {"", ":1", "h:", "h:0", "h:65536", "h:1x", "[::1", "[]:3"};
    char host[256];
    int port;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(options_parse_address(bad[i], 27017, host, &port, &err));
    char too_long[300];
    memset(too_long, 'a', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    assert_false(options_parse_address(too_long, 27017, host, &port, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(options_parse_both_spellings_sets_values, reset),
        cmocka_unit_test_setup(options_parse_without_arguments_keeps_defaults, reset),
        cmocka_unit_test_setup(options_parse_bad_arguments_name_the_culprit, reset),
        cmocka_unit_test_setup(options_parse_file_fills_what_the_command_line_left, reset),
        cmocka_unit_test_setup(options_parse_bad_file_names_file_and_line, reset),
        cmocka_unit_test(options_parse_address_takes_names_and_both_ip_versions),
        cmocka_unit_test(options_parse_address_refuses_nonsense),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    reset(NULL);
    return failed;
}
