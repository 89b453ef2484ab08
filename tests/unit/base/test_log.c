#include "base/log.h"

#include "tests/unit/cmocka_all.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* What `write` puts on stderr, as a string. */
static const char *captured(void (*write_lines)(void))
{
    static char text[4096];
    int pipe_ends[2];
    int saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(pipe_ends), 0);
    dup2(pipe_ends[1], STDERR_FILENO);
    write_lines();
    dup2(saved, STDERR_FILENO);
    close(pipe_ends[1]);
    ssize_t len = read(pipe_ends[0], text, sizeof text - 1);
    text[len > 0 ? len : 0] = '\0';
    close(pipe_ends[0]);
    close(saved);
    return text;
}

static void write_all_types(void)
{
    log_warn("TEST", 42, "Something", LOG_STR("name", "a\"b\\c\n"), LOG_I64("count", -7), LOG_F64("ratio", 0.5),
             LOG_BOOL("yes", true), LOG_STR("none", NULL));
}

static void log_line_is_json_with_typed_attributes(void **state)
{
    (void)state;
    const char *line = captured(write_all_types);
    assert_non_null(strstr(line, "\"s\":\"W\",\"c\":\"TEST\",\"id\":42,"));
    assert_non_null(strstr(line, "\"msg\":\"Something\",\"attr\":{\"name\":\"a\\\"b\\\\c\\u000a\",\"count\":-7,"
                                 "\"ratio\":0.5,\"yes\":true,\"none\":null}}\n"));
}

static void write_at_each_level(void)
{
    log_debug("TEST", 1, "d", LOG_NO_ATTRS);
    log_info("TEST", 2, "i", LOG_NO_ATTRS);
    log_error("TEST", 3, "e", LOG_NO_ATTRS);
}

static void log_below_the_level_is_dropped(void **state)
{
    (void)state;
    const char *lines = captured(write_at_each_level);
    assert_null(strstr(lines, "\"id\":1"));
    assert_non_null(strstr(lines, "\"id\":2"));
    log_set_level(LOG_LEVEL_ERROR);
    lines = captured(write_at_each_level);
    assert_null(strstr(lines, "\"id\":2"));
    assert_non_null(strstr(lines, "\"id\":3"));
    assert_int_equal(log_level_parse("debug"), LOG_LEVEL_DEBUG);
    assert_int_equal(log_level_parse("loud"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_line_is_json_with_typed_attributes),
        cmocka_unit_test(log_below_the_level_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
