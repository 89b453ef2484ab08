#include "journal.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/file.h"
#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { JOURNAL_FILE_MAX_BYTES = 512 * 1024 * 1024, LINE_MAX_BYTES = 128 };

static const char *const kind_names[] = {"insert", "set", "inc", "delete", "counter", "shard", "drop"};
static const char *const outcome_names[] = {"ok", "none", "unknown", "missing"};

enum {
    KIND_COUNT = sizeof kind_names / sizeof kind_names[0],
    OUTCOME_COUNT = sizeof outcome_names / sizeof outcome_names[0],
};

int journal_open(const char *path, struct err *err)
{
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0) {
        err_set_errno(err, ERR_OperationFailed, errno, "%s", path);
    }
    return file;
}

static void write_line(int file, const char *line, int len)
{
    /* A journal that can't be written proves nothing. */
    CHECK(len > 0 && len < LINE_MAX_BYTES && write(file, line, (size_t)len) == len);
}

void journal_begin(int file, enum op_kind kind, const char *id, int64_t value)
{
    char line[LINE_MAX_BYTES];
    write_line(file, line, snprintf(line, sizeof line, "+ %s %s %lld\n", kind_names[kind], id, (long long)value));
}

void journal_end(int file, enum op_outcome outcome)
{
    char line[LINE_MAX_BYTES];
    write_line(file, line, snprintf(line, sizeof line, "= %s\n", outcome_names[outcome]));
}

static bool find_name(const char *name, const char *const *names, int count, int *out)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

struct reader {
    void (*visit)(void *arg, const struct journal_entry *entry);
    void *arg;
    struct journal_entry entry;
    bool pending; /* `entry` was begun */
};

static void finish(struct reader *reader, enum op_outcome outcome)
{
    if (reader->pending) {
        reader->entry.outcome = outcome;
        reader->visit(reader->arg, &reader->entry);
        reader->pending = false;
    }
}

static bool read_line(struct reader *reader, const char *line)
{
    char name[16];
    char id[JOURNAL_ID_MAX + 1];
    long long value;
    int index;
    if (sscanf(line, "+ %15s %63s %lld", name, id, &value) == 3 && find_name(name, kind_names, KIND_COUNT, &index)) {
        finish(reader, OUTCOME_UNKNOWN);
        reader->entry = (struct journal_entry){.kind = (enum op_kind)index, .value = value};
        memcpy(reader->entry.id, id, sizeof id);
        reader->pending = true;
        return true;
    }
    if (sscanf(line, "= %15s", name) == 1 && reader->pending && find_name(name, outcome_names, OUTCOME_COUNT, &index)) {
        finish(reader, (enum op_outcome)index);
        return true;
    }
    return false;
}

bool journal_parse(const char *text, void (*visit)(void *arg, const struct journal_entry *entry), void *arg,
                   struct err *err)
{
    struct reader reader = {.visit = visit, .arg = arg};
    for (const char *line = text; *line != '\0';) {
        const char *end = strchr(line, '\n');
        char copy[LINE_MAX_BYTES];
        if (end == NULL) {
            break; /* cut short: the writer was killed */
        }
        if (end - line >= LINE_MAX_BYTES) {
            return err_set(err, ERR_FailedToParse, "a line of the journal is too long");
        }
        memcpy(copy, line, (size_t)(end - line));
        copy[end - line] = '\0';
        if (!read_line(&reader, copy)) {
            return err_set(err, ERR_FailedToParse, "not a line of a journal: %s", copy);
        }
        line = end + 1;
    }
    finish(&reader, OUTCOME_UNKNOWN);
    return true;
}

bool journal_read(const char *path, void (*visit)(void *arg, const struct journal_entry *entry), void *arg,
                  struct err *err)
{
    struct buf text = BUF_INIT;
    if (!file_read(path, JOURNAL_FILE_MAX_BYTES, &text, err)) {
        return false;
    }
    buf_append_u8(&text, 0);
    bool ok = journal_parse((const char *)text.data, visit, arg, err);
    buf_deinit(&text);
    return ok || err_prefix(err, "%s", path);
}

void journal_pad(const char *id, char out[PAD_BYTES + 1])
{
    uint64_t hash = hash_bytes(id, strlen(id));
    for (size_t i = 0; i < PAD_BYTES; i++) {
        out[i] = (char)('a' + (hash >> (i % 60)) % 26);
    }
    out[PAD_BYTES] = '\0';
}
