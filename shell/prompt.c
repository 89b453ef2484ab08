#include "shell/prompt.h"

#include "base/mem.h"
#include "shell/interrupt.h"

#include <histedit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HISTORY_MAX = 2000, TERMINAL_COLUMNS = 80, COMPLETIONS_SHOWN_MAX = 200 };

struct prompt {
    struct engine *engine;
    EditLine *edit;
    History *history;
    char *history_path;   /* NULL: no home directory */
    struct buf statement; /* lines so far, ended by a NUL that is not counted */
    char text[128];       /* what the prompt shows */
};

static struct prompt *prompt_of(EditLine *edit)
{
    struct prompt *prompt;
    el_get(edit, EL_CLIENTDATA, &prompt);
    return prompt;
}

static char *prompt_text(EditLine *edit)
{
    return prompt_of(edit)->text;
}

static void refresh_text(struct prompt *prompt)
{
    struct buf text = BUF_INIT;
    if (prompt->statement.len > 0 || !engine_call(prompt->engine, "prompt", "", &text)) {
        snprintf(prompt->text, sizeof prompt->text, "... ");
    } else {
        snprintf(prompt->text, sizeof prompt->text, "%.*s", (int)text.len, (const char *)text.data);
    }
    buf_deinit(&text);
}

/* --- statements
 * ---------------------------------------------------------------------------------------------------------- */

static void add_line(struct prompt *prompt, const char *line, size_t len)
{
    buf_append(&prompt->statement, line, len);
    *buf_reserve(&prompt->statement, 1) = 0;
}

/* Runs the statement if it is complete; false when it failed. */
static bool run_statement(struct prompt *prompt)
{
    const char *text = (const char *)prompt->statement.data;
    if (engine_is_incomplete(prompt->engine, text))
        return true;
    struct buf out = BUF_INIT;
    struct engine_source source = {.text = text, .name = "(shell)", .mode = ENGINE_INTERACTIVE};
    bool ok = engine_run(prompt->engine, &source, &out);
    fflush(stdout);
    if (out.len > 0)
        fprintf(ok ? stdout : stderr, "%.*s\n", (int)out.len, (const char *)out.data);
    fflush(stdout);
    buf_deinit(&out);
    buf_clear(&prompt->statement);
    return ok;
}

/* --- completion
 * ----------------------------------------------------------------------------------------------------------- */

static size_t common_prefix(const char *a, const char *b, size_t len)
{
    size_t n = 0;
    while (n < len && a[n] != 0 && a[n] == b[n] && b[n] != '\n')
        n++;
    return n;
}

static void list_completions(EditLine *edit, const char *names)
{
    FILE *out;
    el_get(edit, EL_GETFP, 1, &out);
    fputc('\n', out);
    int column = 0;
    int shown = 0;
    while (*names != 0 && shown++ < COMPLETIONS_SHOWN_MAX) {
        int len = (int)strcspn(names, "\n");
        if (column > 0 && column + len + 2 > TERMINAL_COLUMNS) {
            fputc('\n', out);
            column = 0;
        }
        fprintf(out, "%.*s  ", len, names);
        column += len + 2;
        names += len + (names[len] == '\n');
    }
    fputs(*names != 0 ? "...\n" : "\n", out);
}

/* Length of the word before the cursor that completion replaces. */
static size_t word_length(const char *line, size_t len)
{
    size_t n = 0;
    while (n < len &&
           (strchr("_$.", line[len - n - 1]) != NULL || (line[len - n - 1] >= '0' && line[len - n - 1] <= '9') ||
            ((line[len - n - 1] | 0x20) >= 'a' && (line[len - n - 1] | 0x20) <= 'z')))
        n++;
    return n;
}

static unsigned char complete(EditLine *edit, int key)
{
    (void)key;
    struct prompt *prompt = prompt_of(edit);
    const LineInfo *info = el_line(edit);
    size_t len = (size_t)(info->cursor - info->buffer);
    char *line = mem_copy_strn(info->buffer, len);
    size_t word_len = word_length(line, len);
    struct buf names = BUF_INIT;
    unsigned char result = CC_ERROR;
    if (engine_call(prompt->engine, "complete", line, &names) && names.len > 0) {
        buf_append_u8(&names, 0);
        const char *first = (const char *)names.data;
        size_t same = strcspn(first, "\n");
        for (const char *at = first + same; *at == '\n'; at += strcspn(at, "\n"))
            same = common_prefix(first, ++at, same);
        if (same > word_len) {
            char *rest = mem_copy_strn(first + word_len, same - word_len);
            el_insertstr(edit, rest);
            mem_free(rest);
            result = CC_REFRESH;
        } else if (strchr(first, '\n') != NULL) {
            list_completions(edit, first);
            result = CC_REDISPLAY;
        }
    }
    buf_deinit(&names);
    mem_free(line);
    return result;
}

/* --- the terminal
 * ---------------------------------------------------------------------------------------------------------- */

static void open_history(struct prompt *prompt)
{
    HistEvent event;
    const char *home = getenv("HOME");
    prompt->history = history_init();
    history(prompt->history, &event, H_SETSIZE, HISTORY_MAX);
    history(prompt->history, &event, H_SETUNIQUE, 1);
    if (home != NULL) {
        prompt->history_path = mem_printf("%s/.sherd_history", home);
        history(prompt->history, &event, H_LOAD, prompt->history_path);
    }
}

static void open_terminal(struct prompt *prompt)
{
    open_history(prompt);
    prompt->edit = el_init("sherd", stdin, stdout, stderr);
    el_set(prompt->edit, EL_CLIENTDATA, prompt);
    el_set(prompt->edit, EL_PROMPT, prompt_text);
    el_set(prompt->edit, EL_EDITOR, "emacs");
    el_set(prompt->edit, EL_SIGNAL, 0);
    el_set(prompt->edit, EL_HIST, history, prompt->history);
    el_set(prompt->edit, EL_ADDFN, "sherd-complete", "completes a name", complete);
    el_set(prompt->edit, EL_BIND, "^I", "sherd-complete", NULL);
    el_set(prompt->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(prompt->edit, NULL);
}

static void close_terminal(struct prompt *prompt)
{
    HistEvent event;
    if (prompt->history_path != NULL)
        history(prompt->history, &event, H_SAVE, prompt->history_path);
    mem_free(prompt->history_path);
    history_end(prompt->history);
    el_end(prompt->edit);
}

static void remember(struct prompt *prompt, const char *text)
{
    HistEvent event;
    if (strspn(text, " \t\n") != strlen(text))
        history(prompt->history, &event, H_ENTER, text);
}

/* One line; false at the end of input (^D). Ctrl-C throws the pending statement away. */
static bool read_line(struct prompt *prompt)
{
    int len;
    interrupt_clear();
    refresh_text(prompt);
    const char *line = el_gets(prompt->edit, &len);
    if (interrupt_pending()) {
        interrupt_clear();
        buf_clear(&prompt->statement);
        el_reset(prompt->edit);
        putchar('\n');
        return true;
    }
    if (line == NULL || len <= 0)
        return false;
    add_line(prompt, line, (size_t)len);
    return true;
}

static void run_terminal(struct prompt *prompt)
{
    int ignored;
    open_terminal(prompt);
    while (!engine_has_quit(prompt->engine, &ignored) && read_line(prompt)) {
        if (prompt->statement.len == 0)
            continue;
        char *text = mem_copy_strn((const char *)prompt->statement.data, prompt->statement.len);
        (void)run_statement(prompt);
        if (prompt->statement.len == 0)
            remember(prompt, text);
        mem_free(text);
    }
    close_terminal(prompt);
}

/* Statements from a pipe or file; what has failed ends it. */
static bool run_input(struct prompt *prompt)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    bool ok = true;
    int ignored;
    while (ok && !engine_has_quit(prompt->engine, &ignored) && (len = getline(&line, &size, stdin)) > 0) {
        add_line(prompt, line, (size_t)len);
        ok = run_statement(prompt);
    }
    free(line);
    if (ok && prompt->statement.len > 0) {
        fprintf(stderr, "sherd: the input ends inside a statement\n");
        ok = false;
    }
    return ok;
}

int prompt_run(struct engine *engine, bool quiet)
{
    struct prompt prompt = {.engine = engine};
    int exit_code = 0;
    bool ok = true;
    if (isatty(STDIN_FILENO)) {
        struct buf ignored = BUF_INIT;
        (void)engine_call(engine, "setInteractive", "", &ignored);
        buf_deinit(&ignored);
        if (!quiet)
            puts("Type `help` for help.");
        run_terminal(&prompt);
    } else {
        ok = run_input(&prompt);
    }
    buf_deinit(&prompt.statement);
    return engine_has_quit(engine, &exit_code) ? exit_code : ok ? 0 : 1;
}
