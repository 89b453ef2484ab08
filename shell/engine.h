/* The JavaScript engine with the shell's library loaded. What goes in and comes out is text: no type of the engine's
 * own is seen outside engine.c, convert.c and natives.c, so that another engine can take its place. One thread. */
#ifndef SHERD_SHELL_ENGINE_H
#define SHERD_SHELL_ENGINE_H

#include "base/buf.h"
#include "base/err.h"
#include "shell/connection.h"

struct engine;

enum engine_mode {
    ENGINE_SCRIPT,      /* a file: only what it prints itself */
    ENGINE_EVAL,        /* --eval: the value is formatted too; `show dbs` and the like are understood */
    ENGINE_INTERACTIVE, /* the prompt: as ENGINE_EVAL, and `let x` may be repeated */
};

struct engine_source {
    const char *text;
    const char *name; /* for error messages */
    enum engine_mode mode;
};

/* Refuses (ERR_BadValue) when the address-space limit is below what the engine reserves: it would abort. `conn` is
 * borrowed for the engine's life; NULL: a shell without a server. */
struct engine *engine_new(struct connection *conn, const char *database, struct err *err);
void engine_free(struct engine *engine);

/* Runs a script. True: *text is the formatted value, empty when there is nothing to show. False: *text is the message
 * for the user. Microtasks and timers have run. Both end in no newline. */
bool engine_run(struct engine *engine, const struct engine_source *source, struct buf *text);
/* True when `source` is the beginning of a statement that goes on on the next line. */
bool engine_is_incomplete(struct engine *engine, const char *source);
/* Calls a function of the library's `__shell` with one string and gives its result as text. False: *text is the error.
 */
bool engine_call(struct engine *engine, const char *function, const char *argument, struct buf *text);
/* True once a script has called quit() or exit(). */
bool engine_has_quit(const struct engine *engine, int *exit_code);

#endif
