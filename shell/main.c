/* The shell `sherd`: scripts, --eval, the prompt, import and export. */
#include "base/mem.h"
#include "shell/engine.h"
#include "shell/interrupt.h"
#include "shell/options.h"
#include "shell/prompt.h"
#include "shell/transfer.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

static int complain(const char *what)
{
    fflush(stdout);
    fprintf(stderr, "sherd: %s\n", what);
    return EXIT_FAILED;
}

/* Runs one source and prints its value or error; false when it failed. */
static bool run_source(struct engine *engine, const struct engine_source *source, bool json)
{
    struct buf text = BUF_INIT;
    bool ok = engine_run(engine, source, &text);
    fflush(stdout);
    FILE *to = ok || json ? stdout : stderr;
    if (text.len > 0)
        fprintf(to, "%.*s\n", (int)text.len, (const char *)text.data);
    fflush(to);
    buf_deinit(&text);
    return ok;
}

static bool read_file(const char *path, struct buf *out)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t n;
    while ((n = fread(buf_reserve(out, 65536), 1, 65535, file)) > 0)
        out->len += n;
    *buf_reserve(out, 1) = 0;
    bool ok = ferror(file) == 0;
    return fclose(file) == 0 && ok;
}

static bool run_file(struct engine *engine, const char *path, bool json)
{
    struct buf text = BUF_INIT;
    bool ok = read_file(path, &text);
    if (ok) {
        struct engine_source source = {.text = (const char *)text.data, .name = path, .mode = ENGINE_SCRIPT};
        ok = run_source(engine, &source, json);
    } else {
        fprintf(stderr, "sherd: %s: %s\n", path, strerror(errno));
    }
    buf_deinit(&text);
    return ok;
}

/* --eval texts, then files; stops at the first that fails. */
static bool run_scripts(struct engine *engine, const struct options *options, int *exit_code)
{
    bool json = options->json != NULL;
    for (size_t i = 0; i < options->eval_count; i++) {
        struct engine_source source = {.text = options->evals[i], .name = "--eval", .mode = ENGINE_EVAL};
        if (!run_source(engine, &source, json))
            return false;
        if (engine_has_quit(engine, exit_code))
            return true;
    }
    for (size_t i = 0; i < options->file_count; i++) {
        if (!run_file(engine, options->files[i], json))
            return false;
        if (engine_has_quit(engine, exit_code))
            return true;
    }
    return true;
}

static void call(struct engine *engine, const char *function, const char *argument)
{
    struct buf ignored = BUF_INIT;
    (void)engine_call(engine, function, argument, &ignored);
    buf_deinit(&ignored);
}

/* process.argv, as JSON. */
static void set_arguments(struct engine *engine, const struct options *options)
{
    struct buf text = BUF_INIT;
    buf_append_u8(&text, '[');
    for (int i = 0; i < options->argument_count; i++) {
        buf_append(&text, i > 0 ? ",\"" : "\"", i > 0 ? 2 : 1);
        for (const char *at = options->arguments[i]; *at != 0; at++) {
            if (*at == '"' || *at == '\\')
                buf_append_u8(&text, '\\');
            if ((unsigned char)*at >= 0x20)
                buf_append_u8(&text, (uint8_t)*at);
        }
        buf_append_u8(&text, '"');
    }
    buf_append(&text, "]", 2);
    call(engine, "setArguments", (const char *)text.data);
    buf_deinit(&text);
}

static int run_shell(struct connection *conn, const struct options *options)
{
    struct err err;
    struct engine *engine = engine_new(conn, options->uri.database, &err);
    if (engine == NULL)
        return complain(err.msg);
    int exit_code = 0;
    if (options->json != NULL)
        call(engine, "setJson", options->json);
    set_arguments(engine, options);
    bool has_scripts = options->eval_count > 0 || options->file_count > 0;
    if (!run_scripts(engine, options, &exit_code))
        exit_code = EXIT_FAILED;
    else if (!engine_has_quit(engine, &exit_code) && (!has_scripts || options->shell))
        exit_code = prompt_run(engine, options->quiet);
    engine_free(engine);
    return exit_code;
}

static int run(const struct options *options)
{
    struct err err;
    struct connection *conn = NULL;
    int exit_code;
    if (!options->no_database) {
        conn = connection_new(&options->uri);
        if (!connection_ensure(conn, &err)) {
            connection_free(conn);
            return complain(err.msg);
        }
    }
    bool greets = !options->quiet && options->action == OPTIONS_RUN;
    if (greets && conn != NULL)
        fprintf(stderr, "sherd %s, connected to %s\n", SHERD_VERSION, connection_address(conn));
    if (options->action == OPTIONS_IMPORT)
        exit_code = transfer_import(conn, options);
    else if (options->action == OPTIONS_EXPORT)
        exit_code = transfer_export(conn, options);
    else
        exit_code = run_shell(conn, options);
    connection_free(conn);
    return exit_code;
}

int main(int argc, char **argv)
{
    struct options options;
    struct err err;
    setlocale(LC_CTYPE, "");
    interrupt_install();
    if (!options_read(argc, argv, &options, &err)) {
        complain(err.msg);
        return EXIT_USAGE;
    }
    if (options.action == OPTIONS_HELP) {
        fputs(options_help, stdout);
        return 0;
    }
    if (options.action == OPTIONS_VERSION) {
        printf("sherd %s\n", SHERD_VERSION);
        return 0;
    }
    int exit_code = run(&options);
    return fflush(stdout) == 0 ? exit_code : EXIT_FAILED;
}
