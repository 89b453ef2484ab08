#include "config/options.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_COUNT_MAX = 64 };

struct parse {
    const struct option *options;
    size_t count;
    bool given[OPTION_COUNT_MAX]; /* set on the command line: the file doesn't touch it */
    char *config_file;
};

static void print_help(const struct options_usage *usage, const struct option *options, size_t count)
{
    printf("%s: %s\n\nusage: %s [options]\n\n", usage->program, usage->summary, usage->program);
    for (size_t i = 0; i < count; i++) {
        char head[64];
        bool takes_value = options[i].type != OPTION_FLAG;
        snprintf(head, sizeof head, "--%s%s%s", options[i].name, takes_value ? " " : "",
                 takes_value ? options[i].value : "");
        printf("  %-30s %s\n", head, options[i].help);
    }
    printf("  %-30s %s\n", "--config FILE", "read options from a file of `name: value` lines");
    printf("  %-30s %s\n", "--version", "print the version and exit");
    printf("  %-30s %s\n", "--help", "print this and exit");
}

static const struct option *find_option(const struct parse *parse, const char *name, size_t len, size_t *index)
{
    for (size_t i = 0; i < parse->count; i++) {
        if (strlen(parse->options[i].name) == len && memcmp(parse->options[i].name, name, len) == 0) {
            *index = i;
            return &parse->options[i];
        }
    }
    return NULL;
}

static bool set_int(const struct option *option, const char *text, struct err *err)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < option->min || value > option->max)
        return err_set(err, ERR_BadValue, "option %s: '%s' is not a number from %" PRId64 " to %" PRId64, option->name,
                       text, option->min, option->max);
    int64_t *destination = option->destination;
    *destination = value;
    return true;
}

static bool set_flag(const struct option *option, const char *text, struct err *err)
{
    bool *destination = option->destination;
    *destination = strcmp(text, "true") == 0;
    if (*destination || strcmp(text, "false") == 0)
        return true;
    return err_set(err, ERR_BadValue, "option %s: '%s' is neither true nor false", option->name, text);
}

static bool set_value(const struct option *option, const char *text, struct err *err)
{
    if (option->type == OPTION_INT)
        return set_int(option, text, err);
    if (option->type == OPTION_FLAG)
        return set_flag(option, text, err);
    if (*text == '\0')
        return err_set(err, ERR_BadValue, "option %s: the value is empty", option->name);
    char **destination = option->destination;
    mem_free(*destination);
    *destination = mem_copy_str(text);
    return true;
}

/* One argument of the command line; `next` is the one behind it or NULL. *used_next tells that it was the value. */
static bool parse_argument(struct parse *parse, const char *argument, const char *next, bool *used_next,
                           struct err *err)
{
    *used_next = false;
    if (strncmp(argument, "--", 2) != 0)
        return err_set(err, ERR_BadValue, "unexpected argument '%s'; see --help", argument);
    const char *name = argument + 2;
    const char *equals = strchr(name, '=');
    size_t len = equals != NULL ? (size_t)(equals - name) : strlen(name);
    size_t index = 0;
    const struct option *option = find_option(parse, name, len, &index);
    bool is_config = len == 6 && memcmp(name, "config", 6) == 0;
    if (option == NULL && !is_config)
        return err_set(err, ERR_BadValue, "unknown option '--%.*s'; see --help", (int)len, name);
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (option != NULL && option->type == OPTION_FLAG) {
        parse->given[index] = true;
        return set_value(option, value != NULL ? value : "true", err);
    }
    if (value == NULL) {
        if (next == NULL)
            return err_set(err, ERR_BadValue, "option --%s needs a value", name);
        value = next;
        *used_next = true;
    }
    if (option == NULL) {
        mem_free(parse->config_file);
        parse->config_file = mem_copy_str(value);
        return true;
    }
    parse->given[index] = true;
    return set_value(option, value, err);
}

static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t len = strlen(text);
    while (len > 0 && isspace((unsigned char)text[len - 1]))
        text[--len] = '\0';
    return text;
}

static bool parse_file_line(struct parse *parse, char *line, struct err *err)
{
    line = trim(line);
    if (*line == '\0' || *line == '#')
        return true;
    char *colon = strchr(line, ':');
    if (colon == NULL)
        return err_set(err, ERR_FailedToParse, "expected `name: value`, found '%.60s'", line);
    *colon = '\0';
    char *name = trim(line);
    char *value = trim(colon + 1);
    size_t len = strlen(value);
    if (len >= 2 && (*value == '"' || *value == '\'') && value[len - 1] == *value) {
        value[len - 1] = '\0';
        value++;
    }
    size_t index;
    const struct option *option = find_option(parse, name, strlen(name), &index);
    if (option == NULL)
        return err_set(err, ERR_BadValue, "unknown option '%s'", name);
    return parse->given[index] || set_value(option, value, err);
}

static bool parse_file(struct parse *parse, struct err *err)
{
    struct buf text = BUF_INIT;
    bool ok = file_read(parse->config_file, OPTIONS_FILE_MAX_BYTES, &text, err);
    buf_append_u8(&text, '\0');
    char *line = (char *)text.data;
    for (int number = 1; ok && line != NULL; number++) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        ok = parse_file_line(parse, line, err) || err_prefix(err, "%s, line %d", parse->config_file, number);
        line = end != NULL ? end + 1 : NULL;
    }
    buf_deinit(&text);
    return ok;
}

enum options_result options_parse(const struct options_usage *usage, const struct option *options, size_t count,
                                  int argc, char **argv, struct err *err)
{
    struct parse parse = {.options = options, .count = count};
    enum options_result result = OPTIONS_OK;
    if (count > OPTION_COUNT_MAX) {
        err_set(err, ERR_InternalError, "more than %d options", OPTION_COUNT_MAX);
        return OPTIONS_FAILED;
    }
    for (int i = 1; i < argc && result == OPTIONS_OK; i++) {
        bool used_next = false;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(usage, options, count);
            result = OPTIONS_EXIT;
        } else if (strcmp(argv[i], "--version") == 0) {
            printf("%s %s\n", usage->program, SHERD_VERSION);
            result = OPTIONS_EXIT;
        } else if (!parse_argument(&parse, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used_next, err)) {
            result = OPTIONS_FAILED;
        }
        i += used_next;
    }
    if (result == OPTIONS_OK && parse.config_file != NULL && !parse_file(&parse, err))
        result = OPTIONS_FAILED;
    mem_free(parse.config_file);
    return result;
}

void options_deinit(const struct option *options, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (options[i].type != OPTION_STR)
            continue;
        char **destination = options[i].destination;
        mem_free(*destination);
        *destination = NULL;
    }
}

/* Where the port's colon stands, or NULL. A bare IPv6 address (more than one colon, no brackets) has no port. */
static const char *find_port_colon(const char *text)
{
    if (*text == '[') {
        const char *close = strchr(text, ']');
        return close != NULL && close[1] == ':' ? close + 1 : NULL;
    }
    const char *colon = strchr(text, ':');
    return colon != NULL && strchr(colon + 1, ':') == NULL ? colon : NULL;
}

bool options_parse_address(const char *text, int default_port, char host[256], int *port, struct err *err)
{
    const char *colon = find_port_colon(text);
    size_t len = colon != NULL ? (size_t)(colon - text) : strlen(text);
    const char *start = text;
    if (*text == '[' && len >= 2 && text[len - 1] == ']') {
        start++;
        len -= 2;
    }
    if (len == 0 || len > 255 || memchr(start, '[', len) != NULL)
        return err_set(err, ERR_BadValue, "'%s' is not an address of the form host:port", text);
    *port = default_port;
    if (colon != NULL) {
        char *end;
        long value = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || *end != '\0' || value < 1 || value > 65535)
            return err_set(err, ERR_BadValue, "'%s' has no port from 1 to 65535", text);
        *port = (int)value;
    }
    memcpy(host, start, len);
    host[len] = '\0';
    return true;
}
