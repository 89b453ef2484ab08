#include "shell/options.h"
#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <string.h>

enum { ARGUMENTS_MAX = 16 };

/* The line split at spaces; `storage` keeps the words. */
static bool read_options(const char *line, char storage[512], struct options *out, struct err *err)
{
    char *argv[ARGUMENTS_MAX];
    int argc = 0;
    snprintf(storage, 512, "sherd %s", line);
    for (char *word = strtok(storage, " "); word != NULL && argc < ARGUMENTS_MAX; word = strtok(NULL, " "))
        argv[argc++] = word;
    return options_read(argc, argv, out, err);
}

static void options_uri_eval_and_files_are_told_apart(void **state)
{
    (void)state;
    char storage[512];
    struct options options;
    struct err err;
    assert_true(read_options("mongodb://h:1/d --quiet --eval 1+1 --eval=2 a.js -f b.js --json=relaxed", storage,
                             &options, &err));
    assert_int_equal(options.action, OPTIONS_RUN);
    assert_string_equal(options.uri.database, "d");
    assert_true(options.quiet);
    assert_int_equal(options.eval_count, 2);
    assert_string_equal(options.evals[0], "1+1");
    assert_string_equal(options.evals[1], "2");
    assert_int_equal(options.file_count, 2);
    assert_string_equal(options.files[1], "b.js");
    assert_string_equal(options.json, "relaxed");
}

static void options_after_two_dashes_belong_to_the_script(void **state)
{
    (void)state;
    char storage[512];
    struct options options;
    struct err err;
    char *argv[] = {storage, (char[]){"a.js"}, (char[]){"--"}, (char[]){"--quiet"}, (char[]){"x"}};
    snprintf(storage, sizeof storage, "sherd");
    assert_true(options_read(5, argv, &options, &err));
    assert_false(options.quiet);
    assert_int_equal(options.argument_count, 2);
    assert_string_equal(options.arguments[0], "--quiet");
    assert_string_equal(options.uri.hosts[0].name, "127.0.0.1");
}

static void options_import_and_export_take_their_own(void **state)
{
    (void)state;
    char storage[512];
    struct options options;
    struct err err;
    assert_true(
        read_options("mongodb://h import --db D --collection C --drop --ordered in.jsonl", storage, &options, &err));
    assert_int_equal(options.action, OPTIONS_IMPORT);
    assert_string_equal(options.transfer.database, "D");
    assert_string_equal(options.transfer.collection, "C");
    assert_string_equal(options.transfer.file, "in.jsonl");
    assert_true(options.transfer.drop && options.transfer.ordered);
    assert_true(read_options("export -c C --query {} --canonical --out f", storage, &options, &err));
    assert_int_equal(options.action, OPTIONS_EXPORT);
    assert_string_equal(options.transfer.query, "{}");
    assert_true(options.transfer.canonical);
}

static void options_host_and_port_stand_for_a_uri(void **state)
{
    (void)state;
    char storage[512];
    struct options options;
    struct err err;
    assert_true(read_options("--host h --port 5", storage, &options, &err));
    assert_string_equal(options.uri.hosts[0].name, "h");
    assert_string_equal(options.uri.hosts[0].port, "5");
    assert_false(read_options("mongodb://h --port 5", storage, &options, &err));
}

static void options_malformed_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"--nonsense", "--eval",          "--json=xml",    "import",  "import -c C a b",
                                      "--drop",     "mongodb://u:p@h", "--port 123456", "--port x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char storage[512];
        struct options options;
        struct err err;
        assert_false(read_options(bad[i], storage, &options, &err));
        assert_true(strlen(err.msg) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_uri_eval_and_files_are_told_apart),
        cmocka_unit_test(options_after_two_dashes_belong_to_the_script),
        cmocka_unit_test(options_import_and_export_take_their_own),
        cmocka_unit_test(options_host_and_port_stand_for_a_uri),
        cmocka_unit_test(options_malformed_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
