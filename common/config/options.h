/* Start-up options of the daemons: `--name value`, `--name=value`, and the same names as `name: value` lines of a
 * config file given with --config. The command line wins over the file, the file over the defaults. --help and
 * --version are understood by every daemon. Called once, by main, before any thread exists. */
#ifndef SHERD_CONFIG_OPTIONS_H
#define SHERD_CONFIG_OPTIONS_H

#include "base/err.h"

#include <stddef.h>

enum option_type {
    OPTION_STR,  /* destination: char *, heap, NULL when not given */
    OPTION_INT,  /* destination: int64_t, within min..max */
    OPTION_FLAG, /* destination: bool; takes no value on the command line, true or false in the file */
};

struct option {
    const char *name; /* without the dashes */
    enum option_type type;
    void *destination; /* holds the default before options_parse */
    int64_t min, max;  /* OPTION_INT only */
    const char *value; /* how --help calls the value: "DIR" */
    const char *help;  /* one sentence */
};

struct options_usage {
    const char *program;
    const char *summary; /* what the program is, one or two lines */
};

enum options_result {
    OPTIONS_OK,
    OPTIONS_EXIT,   /* --help or --version was answered on stdout */
    OPTIONS_FAILED, /* `err` says what and where */
};

enum {
    OPTIONS_FILE_MAX_BYTES = 1 << 20,
};

enum options_result options_parse(const struct options_usage *usage, const struct option *options, size_t count,
                                  int argc, char **argv, struct err *err);
/* Frees the strings that the options point at. */
void options_deinit(const struct option *options, size_t count);

/* Splits "host:port", "[v6]:port" or "host" (port becomes default_port). The host goes to `host` (256 bytes at most
 * with its NUL, brackets taken off). ERR_BadValue when it is empty, too long or the port is not 1..65535. */
bool options_parse_address(const char *text, int default_port, char host[256], int *port,
                           struct err *err) ERR_WARN_UNUSED;

#endif
