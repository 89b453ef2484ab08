#include "shell/options.h"

#include <stdio.h>
#include <string.h>

const char options_help[] =
    "Usage: sherd [URI] [OPTIONS] [FILE.js ...] [-- ARGUMENTS]\n"
    "       sherd [URI] import --collection C [--db D] [--drop] [--ordered] [FILE]\n"
    "       sherd [URI] export --collection C [--db D] [--query JSON] [--canonical] [--out FILE]\n"
    "\n"
    "URI is mongodb://host:port[,host:port...][/database]; by default mongodb://127.0.0.1:27017/test.\n"
    "Without files and --eval there is a prompt.\n"
    "\n"
    "  --eval JS         runs JS and prints its value; may be repeated, comes before files\n"
    "  --file FILE, -f   runs a script\n"
    "  --quiet           no greeting\n"
    "  --json[=MODE]     values as extended JSON, canonical (default) or relaxed\n"
    "  --shell           a prompt after --eval or files\n"
    "  --nodb            without a server\n"
    "  --host H --port P instead of a URI\n"
    "  --version, --help\n"
    "\n"
    "import reads one JSON document a line (from standard input without FILE), export writes them.\n"
    "A refused line is reported with its number; with --ordered it ends the import.\n"
    "The exit code is 1 when a script throws or a document is refused.\n";

struct parser {
    int argc;
    char **argv;
    int at;
    struct options *out;
    const char *host;
    const char *port;
    bool uri_seen;
    struct err *err;
};

/* --name value or --name=value: *value is set, and the cursor moves. */
static bool takes_value(struct parser *parser, const char *name, const char **value, bool *failed)
{
    const char *argument = parser->argv[parser->at];
    size_t len = strlen(name);
    if (strncmp(argument, name, len) != 0 || (argument[len] != 0 && argument[len] != '='))
        return false;
    if (argument[len] == '=') {
        *value = argument + len + 1;
        return true;
    }
    if (parser->at + 1 >= parser->argc) {
        *failed = true;
        err_set(parser->err, ERR_FailedToParse, "%s needs a value", name);
        return true;
    }
    *value = parser->argv[++parser->at];
    return true;
}

static bool take_flag(const char *argument, const char *name, bool *flag)
{
    if (strcmp(argument, name) != 0)
        return false;
    *flag = true;
    return true;
}

static bool add(struct parser *parser, const char **list, size_t *count, const char *item)
{
    if (*count == OPTIONS_MAX_ITEMS)
        return err_set(parser->err, ERR_FailedToParse, "more than %d scripts", OPTIONS_MAX_ITEMS);
    list[(*count)++] = item;
    return true;
}

static bool read_plain(struct parser *parser, const char *argument)
{
    struct options *out = parser->out;
    bool first = !parser->uri_seen && out->file_count == 0 && out->action == OPTIONS_RUN;
    if (first && uri_is_uri(argument)) {
        parser->uri_seen = true;
        out->uri_text = argument;
        return true;
    }
    bool command_possible = out->action == OPTIONS_RUN && out->file_count == 0;
    if (command_possible && strcmp(argument, "import") == 0) {
        out->action = OPTIONS_IMPORT;
        return true;
    }
    if (command_possible && strcmp(argument, "export") == 0) {
        out->action = OPTIONS_EXPORT;
        return true;
    }
    if (out->action == OPTIONS_IMPORT || out->action == OPTIONS_EXPORT) {
        if (out->transfer.file != NULL)
            return err_set(parser->err, ERR_FailedToParse, "one file is enough: '%s'", argument);
        out->transfer.file = argument;
        return true;
    }
    return add(parser, out->files, &out->file_count, argument);
}

static bool read_transfer_option(struct parser *parser, bool *known)
{
    struct options_transfer *transfer = &parser->out->transfer;
    const char *argument = parser->argv[parser->at];
    bool failed = false;
    *known = true;
    if (takes_value(parser, "--db", &transfer->database, &failed) ||
        takes_value(parser, "-d", &transfer->database, &failed) ||
        takes_value(parser, "--collection", &transfer->collection, &failed) ||
        takes_value(parser, "-c", &transfer->collection, &failed) ||
        takes_value(parser, "--query", &transfer->query, &failed) ||
        takes_value(parser, "--out", &transfer->file, &failed))
        return !failed;
    *known = take_flag(argument, "--drop", &transfer->drop) ||
             take_flag(argument, "--unordered", &transfer->unordered) ||
             take_flag(argument, "--ordered", &transfer->ordered) ||
             take_flag(argument, "--canonical", &transfer->canonical);
    return true;
}

static bool read_json(struct parser *parser, const char *mode)
{
    if (strcmp(mode, "canonical") != 0 && strcmp(mode, "relaxed") != 0)
        return err_set(parser->err, ERR_FailedToParse, "--json takes canonical or relaxed, not '%s'", mode);
    parser->out->json = mode;
    return true;
}

static bool read_option(struct parser *parser)
{
    struct options *out = parser->out;
    const char *argument = parser->argv[parser->at];
    const char *value = NULL;
    bool failed = false;
    bool known = false;
    if (takes_value(parser, "--eval", &value, &failed))
        return !failed && add(parser, out->evals, &out->eval_count, value);
    if (takes_value(parser, "--file", &value, &failed) || takes_value(parser, "-f", &value, &failed))
        return !failed && add(parser, out->files, &out->file_count, value);
    if (takes_value(parser, "--host", &parser->host, &failed) || takes_value(parser, "--port", &parser->port, &failed))
        return !failed;
    if (strcmp(argument, "--json") == 0 || strncmp(argument, "--json=", 7) == 0)
        return read_json(parser, argument[6] == '=' ? argument + 7 : "canonical");
    if (take_flag(argument, "--quiet", &out->quiet) || take_flag(argument, "--nodb", &out->no_database) ||
        take_flag(argument, "--shell", &out->shell))
        return true;
    if (out->action == OPTIONS_IMPORT || out->action == OPTIONS_EXPORT) {
        if (!read_transfer_option(parser, &known))
            return false;
    }
    if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0 || strcmp(argument, "--version") == 0) {
        out->action = strcmp(argument, "--version") == 0 ? OPTIONS_VERSION : OPTIONS_HELP;
        known = true;
    }
    return known || err_set(parser->err, ERR_FailedToParse, "unknown option %s; see --help", argument);
}

static bool build_uri(struct parser *parser)
{
    struct options *out = parser->out;
    static char text[URI_MAX_TEXT + 32];
    if (parser->host != NULL || parser->port != NULL) {
        if (parser->uri_seen)
            return err_set(parser->err, ERR_FailedToParse, "--host and --port go without a URI");
        int len = snprintf(text, sizeof text, "%s%s%s", parser->host != NULL ? parser->host : "127.0.0.1",
                           parser->port != NULL ? ":" : "", parser->port != NULL ? parser->port : "");
        if (len < 0 || (size_t)len >= sizeof text)
            return err_set(parser->err, ERR_FailedToParse, "--host or --port is too long");
        out->uri_text = text;
    }
    return uri_parse(out->uri_text, &out->uri, parser->err);
}

bool options_read(int argc, char **argv, struct options *out, struct err *err)
{
    *out = (struct options){.uri_text = "mongodb://127.0.0.1:27017/test"};
    struct parser parser = {.argc = argc, .argv = argv, .out = out, .err = err};
    for (parser.at = 1; parser.at < argc; parser.at++) {
        const char *argument = argv[parser.at];
        if (strcmp(argument, "--") == 0) {
            out->argument_count = argc - parser.at - 1;
            out->arguments = argv + parser.at + 1;
            break;
        }
        bool is_option = argument[0] == '-' && argument[1] != 0;
        if (is_option ? !read_option(&parser) : !read_plain(&parser, argument))
            return false;
    }
    bool is_transfer = out->action == OPTIONS_IMPORT || out->action == OPTIONS_EXPORT;
    if (is_transfer && out->transfer.collection == NULL)
        return err_set(err, ERR_FailedToParse, "--collection is missing");
    if (out->action == OPTIONS_HELP || out->action == OPTIONS_VERSION)
        return true;
    return build_uri(&parser);
}
