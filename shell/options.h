/* The command line of the shell. */
#ifndef SHERD_SHELL_OPTIONS_H
#define SHERD_SHELL_OPTIONS_H

#include "base/err.h"
#include "shell/uri.h"

enum { OPTIONS_MAX_ITEMS = 64 };

enum options_action { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_IMPORT, OPTIONS_EXPORT };

struct options_transfer {   /* of import and export */
    const char *database;   /* NULL: the URI's */
    const char *collection; /* required */
    const char *file;       /* NULL or "-": standard input or output */
    const char *query;      /* export: extended JSON, NULL for all */
    bool drop;              /* import: drop the collection first */
    bool ordered;           /* import: documents in their order, nothing after one that is refused */
    bool unordered;         /* import: the default, accepted */
    bool canonical;         /* export: every type survives */
};

struct options {
    enum options_action action;
    const char *uri_text; /* as given, or the default */
    struct uri uri;
    bool quiet;
    bool no_database; /* --nodb */
    bool shell;       /* --shell: a prompt after the scripts */
    const char *json; /* NULL, "canonical" or "relaxed" */
    size_t eval_count;
    const char *evals[OPTIONS_MAX_ITEMS];
    size_t file_count;
    const char *files[OPTIONS_MAX_ITEMS];
    int argument_count; /* what follows "--", for process.argv */
    char **arguments;
    struct options_transfer transfer;
};

/* The strings are the command line's. ERR_FailedToParse with a message for the user. */
bool options_read(int argc, char **argv, struct options *out, struct err *err) ERR_WARN_UNUSED;
extern const char options_help[];

#endif
