#include "shell/transfer.h"

#include "base/mem.h"
#include "bson/extjson.h"
#include "shell/interrupt.h"
#include "shell/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    BATCH_MAX_DOCUMENTS = 1000,
    BATCH_MAX_BYTES = 8 * 1024 * 1024,
    EXPORT_BATCH_SIZE = 1000,
    ERRORS_SHOWN_MAX = 10,
};

/* A command's reply that says ok: 0, as an error. */
static bool reply_ok(struct bdoc reply, struct err *err)
{
    struct bval ok;
    struct bval code;
    struct bval message;
    int64_t number = ERR_UnknownError;
    if (bdoc_find(reply, "ok", &ok) && bval_truthy(&ok))
        return true;
    if (bdoc_find(reply, "code", &code))
        (void)bval_to_i64(&code, &number);
    uint32_t len = 0;
    const char *text = "the command failed";
    if (bdoc_find(reply, "errmsg", &message) && message.type == BT_STRING)
        text = bval_str(&message, &len);
    return err_set(err, (int32_t)number, "%s", text);
}

static bool run(struct connection *conn, const char *database, struct bdoc command,
                const struct connection_sequence *sequence, struct bdoc *reply, struct err *err)
{
    return connection_run(conn, database, command, sequence, reply, err) && reply_ok(*reply, err);
}

static const char *database_of(const struct options *options)
{
    return options->transfer.database != NULL ? options->transfer.database : options->uri.database;
}

static FILE *open_file(const char *path, const char *mode, FILE *fallback)
{
    bool standard = path == NULL || strcmp(path, "-") == 0;
    FILE *file = standard ? fallback : fopen(path, mode);
    if (file == NULL)
        fprintf(stderr, "sherd: %s: %s\n", path, strerror(errno));
    return file;
}

/* --- import
 * ------------------------------------------------------------------------------------------------------------------ */

struct import {
    struct connection *conn;
    const struct options *options;
    FILE *file;
    uint64_t line; /* number of the line that was read last */
    uint64_t bytes_read;
    uint64_t imported;
    uint64_t refused;
    struct buf documents; /* the batch, documents end to end */
    uint64_t *lines;      /* line number of each document of the batch */
    size_t count;         /* documents of the batch */
    struct progress progress;
    struct err err;
};

static void report_line(struct import *import, uint64_t line, const char *what)
{
    import->refused++;
    if (import->refused <= ERRORS_SHOWN_MAX)
        fprintf(stderr, "%ssherd: line %" PRIu64 ": %s\n", import->progress.terminal ? "\r\033[K" : "", line, what);
}

static void report_write_errors(struct import *import, struct bdoc reply)
{
    struct bval errors;
    if (!bdoc_find(reply, "writeErrors", &errors) || errors.type != BT_ARRAY)
        return;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, bval_doc(&errors));
    while (biter_next(&iter, &elem)) {
        struct bval index_val;
        struct bval message;
        int64_t index = -1;
        uint32_t len;
        if (elem.val.type != BT_DOCUMENT)
            continue;
        if (bdoc_find(bval_doc(&elem.val), "index", &index_val))
            (void)bval_to_i64(&index_val, &index);
        bool has_text = bdoc_find(bval_doc(&elem.val), "errmsg", &message) && message.type == BT_STRING;
        uint64_t line = index >= 0 && (size_t)index < import->count ? import->lines[index] : 0;
        report_line(import, line, has_text ? bval_str(&message, &len) : "refused");
    }
}

/* Sends the batch; false ends the import. */
static bool send_batch(struct import *import)
{
    const struct options_transfer *transfer = &import->options->transfer;
    if (import->count == 0)
        return true;
    bson_t command = BSON_INITIALIZER;
    bson_append_utf8(&command, "insert", -1, transfer->collection, -1);
    bson_append_bool(&command, "ordered", -1, transfer->ordered);
    struct connection_sequence sequence = {
        .name = "documents", .data = import->documents.data, .len = import->documents.len};
    struct bdoc reply;
    bool ok = run(import->conn, database_of(import->options), bdoc_of(&command), &sequence, &reply, &import->err);
    bson_destroy(&command);
    if (!ok) {
        fprintf(stderr, "sherd: lines %" PRIu64 " to %" PRIu64 ": %s\n", import->lines[0],
                import->lines[import->count - 1], import->err.msg);
        import->refused++;
        return false;
    }
    struct bval n;
    int64_t inserted = 0;
    if (bdoc_find(reply, "n", &n))
        (void)bval_to_i64(&n, &inserted);
    import->imported += (uint64_t)inserted;
    uint64_t refused_before = import->refused;
    report_write_errors(import, reply);
    import->count = 0;
    buf_clear(&import->documents);
    progress_update(&import->progress, import->imported, import->bytes_read);
    return !transfer->ordered || import->refused == refused_before;
}

/* Takes a line into the batch; false ends the import. */
static bool take_line(struct import *import, const char *line, size_t len)
{
    bson_t doc;
    while (len > 0 && strchr(" \t\r\n", line[len - 1]) != NULL)
        len--;
    if (len == 0)
        return true;
    if (!extjson_parse(line, len, &doc, &import->err)) {
        bool sent = send_batch(import); /* what came before the bad line is kept */
        report_line(import, import->line, import->err.msg);
        return sent && !import->options->transfer.ordered;
    }
    bool full = import->count == BATCH_MAX_DOCUMENTS ||
                (import->count > 0 && import->documents.len + doc.len > BATCH_MAX_BYTES);
    bool ok = !full || send_batch(import);
    if (ok) {
        import->lines[import->count++] = import->line;
        buf_append(&import->documents, bson_get_data(&doc), doc.len);
    }
    bson_destroy(&doc);
    return ok;
}

static bool read_lines(struct import *import)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    bool ok = true;
    while (ok && !interrupt_pending() && (len = getline(&line, &size, import->file)) > 0) {
        import->line++;
        import->bytes_read += (uint64_t)len;
        ok = take_line(import, line, (size_t)len);
    }
    if (ok && !interrupt_pending() && ferror(import->file)) {
        fprintf(stderr, "sherd: reading line %" PRIu64 ": %s\n", import->line + 1, strerror(errno));
        ok = false;
    }
    free(line);
    return ok && send_batch(import);
}

static bool drop_collection(struct import *import)
{
    bson_t command = BSON_INITIALIZER;
    struct bdoc reply;
    bson_append_utf8(&command, "drop", -1, import->options->transfer.collection, -1);
    bool ok = run(import->conn, database_of(import->options), bdoc_of(&command), NULL, &reply, &import->err);
    bson_destroy(&command);
    if (ok || import->err.code == ERR_NamespaceNotFound)
        return true;
    fprintf(stderr, "sherd: drop: %s\n", import->err.msg);
    return false;
}

static uint64_t file_size(FILE *file)
{
    struct stat info;
    return fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
}

int transfer_import(struct connection *conn, const struct options *options)
{
    struct import import = {.conn = conn, .options = options};
    import.file = open_file(options->transfer.file, "re", stdin);
    if (import.file == NULL)
        return 1;
    import.lines = mem_alloc_array(BATCH_MAX_DOCUMENTS, sizeof *import.lines);
    progress_begin(&import.progress, "imported", file_size(import.file));
    bool ok = !options->transfer.drop || drop_collection(&import);
    if (ok) {
        ok = read_lines(&import);
        progress_update(&import.progress, import.imported, import.bytes_read);
        progress_end(&import.progress);
    }
    if (import.refused > ERRORS_SHOWN_MAX)
        fprintf(stderr, "sherd: %" PRIu64 " more errors\n", import.refused - ERRORS_SHOWN_MAX);
    if (interrupt_pending())
        fprintf(stderr, "sherd: interrupted after line %" PRIu64 "\n", import.line);
    bool complete = ok && import.refused == 0 && !interrupt_pending();
    mem_free(import.lines);
    buf_deinit(&import.documents);
    if (import.file != stdin)
        fclose(import.file);
    return complete ? 0 : 1;
}

/* --- export
 * ------------------------------------------------------------------------------------------------------------------ */

struct export
{
    struct connection *conn;
    const struct options *options;
    FILE *file;
    uint64_t exported;
    int64_t cursor_id;
    struct buf line;
    struct progress progress;
    struct err err;
};

static uint64_t count_documents(struct export *export)
{
    bson_t command = BSON_INITIALIZER;
    struct bdoc reply;
    struct bval n;
    int64_t count = 0;
    bson_append_utf8(&command, "count", -1, export->options->transfer.collection, -1);
    if (run(export->conn, database_of(export->options), bdoc_of(&command), NULL, &reply, &export->err) &&
        bdoc_find(reply, "n", &n))
        (void)bval_to_i64(&n, &count);
    bson_destroy(&command);
    return count > 0 ? (uint64_t)count : 0;
}

/* Writes the documents of a cursor reply and takes its id. */
static bool write_batch(struct export *export, struct bdoc reply, const char *field)
{
    struct bval cursor;
    struct bval id;
    struct bval batch;
    if (!bdoc_find(reply, "cursor", &cursor) || cursor.type != BT_DOCUMENT ||
        !bdoc_find(bval_doc(&cursor), "id", &id) || !bval_to_i64(&id, &export->cursor_id) ||
        !bdoc_find(bval_doc(&cursor), field, &batch) || batch.type != BT_ARRAY)
        return err_set(&export->err, ERR_ProtocolError, "the reply has no cursor");
    enum extjson_mode mode = export->options->transfer.canonical ? EXTJSON_CANONICAL : EXTJSON_RELAXED;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, bval_doc(&batch));
    while (biter_next(&iter, &elem)) {
        buf_clear(&export->line);
        extjson_print_value(&export->line, &elem.val, mode);
        buf_append_u8(&export->line, '\n');
        if (fwrite(export->line.data, 1, export->line.len, export->file) != export->line.len)
            return err_set_errno(&export->err, ERR_OperationFailed, errno, "writing");
        export->exported++;
    }
    progress_update(&export->progress, export->exported, export->exported);
    return true;
}

static bool open_cursor(struct export *export)
{
    const struct options_transfer *transfer = &export->options->transfer;
    bson_t command = BSON_INITIALIZER;
    bson_append_utf8(&command, "find", -1, transfer->collection, -1);
    bool ok = true;
    if (transfer->query != NULL) {
        bson_t filter;
        ok = extjson_parse(transfer->query, strlen(transfer->query), &filter, &export->err);
        if (ok) {
            bson_append_document(&command, "filter", -1, &filter);
            bson_destroy(&filter);
        } else {
            err_prefix(&export->err, "--query");
        }
    }
    bson_append_int32(&command, "batchSize", -1, EXPORT_BATCH_SIZE);
    struct bdoc reply;
    ok = ok && run(export->conn, database_of(export->options), bdoc_of(&command), NULL, &reply, &export->err) &&
         write_batch(export, reply, "firstBatch");
    bson_destroy(&command);
    return ok;
}

static bool read_on(struct export *export)
{
    bson_t command = BSON_INITIALIZER;
    struct bdoc reply;
    bson_append_int64(&command, "getMore", -1, export->cursor_id);
    bson_append_utf8(&command, "collection", -1, export->options->transfer.collection, -1);
    bson_append_int32(&command, "batchSize", -1, EXPORT_BATCH_SIZE);
    bool ok = run(export->conn, database_of(export->options), bdoc_of(&command), NULL, &reply, &export->err) &&
              write_batch(export, reply, "nextBatch");
    bson_destroy(&command);
    return ok;
}

int transfer_export(struct connection *conn, const struct options *options)
{
    struct export export = {.conn = conn, .options = options};
    export.file = open_file(options->transfer.file, "we", stdout);
    if (export.file == NULL)
        return 1;
    progress_begin(&export.progress, "exported", options->transfer.query == NULL ? count_documents(&export) : 0);
    bool ok = open_cursor(&export);
    while (ok && export.cursor_id != 0)
        ok = read_on(&export);
    bool closed = export.file == stdout ? fflush(stdout) == 0 : fclose(export.file) == 0;
    if (ok && !closed)
        ok = err_set_errno(&export.err, ERR_OperationFailed, errno, "writing");
    progress_end(&export.progress);
    if (!ok)
        fprintf(stderr, "sherd: %s\n", export.err.msg);
    buf_deinit(&export.line);
    return ok ? 0 : 1;
}
