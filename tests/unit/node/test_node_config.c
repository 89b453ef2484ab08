#include "tests/unit/cmocka_all.h"

#include "base/file.h"
#include "node/node_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/sherd-node-XXXXXX");
    return mkdtemp(dir) == NULL;
}

static int remove_dir(void **state)
{
    char line[128];
    (void)state;
    snprintf(line, sizeof line, "rm -rf %s", dir);
    return system(line);
}

/* `arguments` are separated by blanks. */
static enum options_result parse(struct node_config *config, const char *arguments, struct err *err)
{
    static char text[512];
    char *argv[32] = {(char[]){"shardd"}};
    int argc = 1;
    snprintf(text, sizeof text, "%s", arguments);
    for (char *one = strtok(text, " "); one != NULL; one = strtok(NULL, " "))
        argv[argc++] = one;
    return node_config_parse(config, "shardd", "test", argc, argv, err);
}

static void node_config_refuses_what_does_not_go_together(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",          "--dbpath d --set x", "--dbpath d --faults a:1:kill", "--dbpath d --port 0", "--dbpath d --port x",
        "--nonsense"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct node_config config;
        struct err err;
        assert_int_equal(parse(&config, bad[i], &err), OPTIONS_FAILED);
        node_config_deinit(&config);
    }
}

static void node_config_members_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *arguments;
        bool ok;
    } cases[] = {
        {"--dbpath d --init --set s --id 2 --members 1@a:1000,2@b:1001,3@c:1002", true},
        {"--dbpath d --init --port 5000", true},
        {"--dbpath d --init --id 4 --members 1@a:1000,2@b:1001", false},
        {"--dbpath d --init --members 1@a:1000,1@b:1001", false},
        {"--dbpath d --init --members a:1000", false},
        {"--dbpath d --init --members 1@a:99999", false},
        {"--dbpath d --init --members 1@", false},
        {"--dbpath d --init --members 1@a:1000,4294967297@b:1001,3@c:1002", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct node_config config;
        struct err err;
        assert_int_equal(parse(&config, cases[i].arguments, &err), OPTIONS_OK);
        assert_int_equal(node_config_from_options(&config, 27018, &err), cases[i].ok);
        node_config_deinit(&config);
    }
}

static void node_config_survives_saving(void **state)
{
    (void)state;
    struct node_config config;
    struct node_config loaded = {.dbpath = dir};
    struct err err;
    char arguments[200];
    snprintf(arguments, sizeof arguments, "--dbpath %s --init --set s1 --id 2 --members 1@a:1000,2@b:1001:3000", dir);
    assert_int_equal(parse(&config, arguments, &err), OPTIONS_OK);
    assert_true(node_config_from_options(&config, 27018, &err));
    assert_false(node_config_exists(&config));
    assert_false(node_config_load(&loaded, "shardd", &err));
    assert_int_equal(err.code, ERR_NotYetInitialized);
    assert_true(node_config_save(&config, "shardd", &err));
    assert_true(node_config_exists(&config));
    if (!node_config_load(&loaded, "shardd", &err))
        fail_msg("%s", err.msg);
    assert_string_equal(loaded.set_name, "s1");
    assert_int_equal(loaded.member_id, 2);
    assert_int_equal(loaded.member_count, 2);
    assert_string_equal(loaded.own_address, "b:1001:3000");
    node_config_deinit(&config);
}

static void node_config_refuses_foreign_files(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int code;
    } cases[] = {
        {"{\"formatVersion\": 99}", ERR_UnsupportedFormat},
        {"{\"formatVersion\": 0, \"role\": \"shardd\"}", ERR_FailedToParse},
        {"{\"formatVersion\": -1}", ERR_FailedToParse},
        {"{\"formatVersion\": 1, \"role\": \"configd\"}", ERR_BadValue},
        {"{\"formatVersion\": 1, \"role\": \"shardd\", \"set\": \"s\", \"id\": 1, \"members\": []}", ERR_FailedToParse},
        {"{nonsense", ERR_FailedToParse},
        {"", ERR_FailedToParse},
    };
    char path[128];
    snprintf(path, sizeof path, "%s/node.json", dir);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct node_config config = {.dbpath = dir};
        struct err err;
        assert_true(file_replace(path, cases[i].json, strlen(cases[i].json), &err));
        assert_false(node_config_load(&config, "shardd", &err));
        assert_int_equal(err.code, cases[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_config_refuses_what_does_not_go_together),
        cmocka_unit_test(node_config_members_are_checked),
        cmocka_unit_test_setup_teardown(node_config_survives_saving, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(node_config_refuses_foreign_files, make_dir, remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
