/* Reads everything back through a router and holds it against the journals: no acknowledged write may be lost, none
 * invented, every counter within its bounds. A program of its own that shares nothing with the load but the journal's
 * format. Exit status 0: nothing wrong; 1: violations, each named; 2: it could not find out. --dump FILE judges a file
 * of lines "ID VALUE [PAD]" instead of a cluster; --pad ID prints the PAD that belongs to a document. */
#include "chunks.h"
#include "history.h"
#include "kinds.h"

#include "base/clock.h"
#include "base/mem.h"
#include "config/options.h"

#include <mongoc/mongoc.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATIENCE_MS = 120000, /* for a cluster that has just been started */
    POINT_READS = 500,    /* documents that are read by _id as well */
};

/* ---- journals ---- */

static bool read_journals(const char *dir, struct history *history, struct err *err)
{
    struct dirent **names;
    int count = scandir(dir, &names, NULL, alphasort);
    if (count < 0) {
        return err_set(err, ERR_OperationFailed, "%s can't be read", dir);
    }
    bool ok = true;
    for (int i = 0; i < count; i++) {
        size_t len = strlen(names[i]->d_name);
        if (ok && len > 8 && strcmp(names[i]->d_name + len - 8, ".journal") == 0) {
            char *path = mem_printf("%s/%s", dir, names[i]->d_name);
            ok = journal_read(path, history_add, history, err);
            mem_free(path);
        }
        free(names[i]);
    }
    free(names);
    return ok;
}

/* ---- the cluster ---- */

struct seen_document {
    const char *id;
    int64_t value;
    const char *pad; /* NULL: none */
};

static bool parse_document(const bson_t *doc, struct seen_document *out)
{
    bson_iter_t iter;
    *out = (struct seen_document){0};
    if (!bson_iter_init(&iter, doc)) {
        return false;
    }
    while (bson_iter_next(&iter)) {
        const char *key = bson_iter_key(&iter);
        if (strcmp(key, "_id") == 0 && BSON_ITER_HOLDS_UTF8(&iter)) {
            out->id = bson_iter_utf8(&iter, NULL);
        } else if (strcmp(key, "v") == 0 && BSON_ITER_HOLDS_INT64(&iter)) {
            out->value = bson_iter_int64(&iter);
        } else if (strcmp(key, "pad") == 0 && BSON_ITER_HOLDS_UTF8(&iter)) {
            out->pad = bson_iter_utf8(&iter, NULL);
        } else {
            return false;
        }
    }
    return out->id != NULL;
}

/* Reads a whole collection into `rows`, one copy a document. */
static bool read_collection(mongoc_client_t *client, const char *name, bson_t ***rows, size_t *count,
                            bson_error_t *error)
{
    bson_t all = BSON_INITIALIZER;
    const bson_t *doc;
    size_t cap = 0;
    mongoc_collection_t *collection = mongoc_client_get_collection(client, "crash", name);
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(collection, &all, NULL, NULL);
    *rows = NULL;
    *count = 0;
    while (mongoc_cursor_next(cursor, &doc)) {
        if (*count == cap) {
            cap = cap == 0 ? 1024 : cap * 2;
            *rows = mem_realloc(*rows, cap * sizeof **rows);
        }
        (*rows)[(*count)++] = bson_copy(doc);
    }
    bool ok = !mongoc_cursor_error(cursor, error);
    mongoc_cursor_destroy(cursor);
    mongoc_collection_destroy(collection);
    bson_destroy(&all);
    return ok;
}

static void free_rows(bson_t **rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bson_destroy(rows[i]);
    }
    mem_free(rows);
}

/* A read that failed half way counts for nothing: it is made again as a whole. */
static bool observe_collection(mongoc_client_t *client, const char *name, struct history *history, int64_t deadline,
                               size_t *count)
{
    bson_error_t error = {0};
    bson_t **rows;
    while (!read_collection(client, name, &rows, count, &error)) {
        free_rows(rows, *count);
        if (deadline_passed(deadline)) {
            fprintf(stderr, "checker: crash.%s can't be read: %s\n", name, error.message);
            return false;
        }
        clock_sleep_ms(250);
    }
    bool ok = true;
    for (size_t i = 0; i < *count && ok; i++) {
        struct seen_document document;
        ok = parse_document(rows[i], &document);
        if (ok) {
            history_observe(history, document.id, document.value, document.pad);
        } else {
            fprintf(stderr, "checker: a document of crash.%s has another shape than any that was written\n", name);
        }
    }
    free_rows(rows, *count);
    return ok;
}

/* ---- second opinions: a count, and reads by _id ---- */

static bool count_agrees(mongoc_client_t *client, size_t expected)
{
    bson_t all = BSON_INITIALIZER;
    bson_error_t error = {0};
    mongoc_collection_t *collection = mongoc_client_get_collection(client, "crash", "documents");
    int64_t count = mongoc_collection_count_documents(collection, &all, NULL, NULL, NULL, &error);
    mongoc_collection_destroy(collection);
    bson_destroy(&all);
    if (count != (int64_t)expected) {
        fprintf(stderr, "checker: countDocuments says %lld (%s), a read of everything gave %zu\n", (long long)count,
                error.message, expected);
    }
    return count == (int64_t)expected;
}

static bool point_read_fits(mongoc_collection_t *collection, const struct history *history, const char *id)
{
    bson_t filter = BSON_INITIALIZER;
    bson_error_t error = {0};
    const bson_t *doc;
    struct seen_document document = {0};
    bson_append_utf8(&filter, "_id", -1, id, -1);
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(collection, &filter, NULL, NULL);
    bool found = mongoc_cursor_next(cursor, &doc) && parse_document(doc, &document);
    bool fits = !mongoc_cursor_error(cursor, &error) && history_allows(history, id, found, document.value);
    if (!fits) {
        fprintf(stderr, "checker: a read of %s by _id gave %s %lld %s\n", id, found ? "the value" : "nothing",
                (long long)document.value, error.message);
    }
    mongoc_cursor_destroy(cursor);
    bson_destroy(&filter);
    return fits;
}

static bool point_reads_fit(mongoc_client_t *client, const struct history *history)
{
    const void *position = NULL;
    const char *id;
    bool ok = true;
    mongoc_collection_t *collection = mongoc_client_get_collection(client, "crash", "documents");
    for (int i = 0; i < POINT_READS && (id = history_next_expected(history, &position)) != NULL; i++) {
        ok &= point_read_fits(collection, history, id);
    }
    mongoc_collection_destroy(collection);
    return ok;
}

/* ---- the collections that came and went ---- */

/* Names of the form x-...: those of the load's DDL workers. */
static bool is_ddl_name(const char *name)
{
    return name != NULL && name[0] == 'x' && name[1] == '-';
}

static bool observe_sharded(mongoc_client_t *client, struct history *history)
{
    bson_t all = BSON_INITIALIZER;
    bson_error_t error = {0};
    const bson_t *doc;
    mongoc_collection_t *collections = mongoc_client_get_collection(client, "config", "collections");
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(collections, &all, NULL, NULL);
    while (mongoc_cursor_next(cursor, &doc)) {
        bson_iter_t iter;
        const char *ns = bson_iter_init_find(&iter, doc, "_id") ? bson_iter_utf8(&iter, NULL) : NULL;
        if (ns != NULL && strncmp(ns, "crash.", 6) == 0 && is_ddl_name(ns + 6)) {
            history_observe_collection(history, ns + 6);
        }
    }
    bool ok = !mongoc_cursor_error(cursor, &error);
    if (!ok) {
        fprintf(stderr, "checker: config.collections can't be read: %s\n", error.message);
    }
    mongoc_cursor_destroy(cursor);
    mongoc_collection_destroy(collections);
    bson_destroy(&all);
    return ok;
}

/* Every collection that exists at all, sharded or left over: its documents are held against the journals, too. */
static bool observe_ddl_documents(mongoc_client_t *client, struct history *history, int64_t deadline)
{
    bson_error_t error = {0};
    mongoc_database_t *database = mongoc_client_get_database(client, "crash");
    char **names = mongoc_database_get_collection_names_with_opts(database, NULL, &error);
    bool ok = names != NULL;
    if (!ok) {
        fprintf(stderr, "checker: the collections can't be listed: %s\n", error.message);
    }
    for (size_t i = 0; ok && names[i] != NULL; i++) {
        size_t count;
        if (is_ddl_name(names[i])) {
            ok = observe_collection(client, names[i], history, deadline, &count);
        }
    }
    bson_strfreev(names);
    mongoc_database_destroy(database);
    return ok;
}

/* ---- everything ---- */

static int observe_cluster(const char *uri, struct history *history)
{
    int64_t deadline = deadline_after_ms(PATIENCE_MS);
    size_t documents;
    size_t counters;
    mongoc_init();
    mongoc_client_t *client = mongoc_client_new(uri);
    if (client == NULL) {
        fprintf(stderr, "checker: not a connection string: %s\n", uri);
        return 2;
    }
    int status = 2;
    if (observe_collection(client, "documents", history, deadline, &documents) &&
        observe_collection(client, "counters", history, deadline, &counters) && observe_sharded(client, history) &&
        observe_ddl_documents(client, history, deadline)) {
        bool fits = count_agrees(client, documents);
        fits &= point_reads_fit(client, history);
        fits &= chunks_cover_all(client);
        fits &= kinds_hold(client);
        status = fits ? 0 : 1;
    }
    mongoc_client_destroy(client);
    mongoc_cleanup();
    return status;
}

/* ---- a dump ---- */

static int observe_dump(const char *path, struct history *history)
{
    char line[1024];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fprintf(stderr, "checker: %s can't be read\n", path);
        return 2;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        char id[JOURNAL_ID_MAX + 1];
        char pad[PAD_BYTES + 1];
        long long value;
        int fields = sscanf(line, "%63s %lld %300s", id, &value, pad);
        if (fields >= 2) {
            history_observe(history, id, value, fields == 3 ? pad : NULL);
        }
    }
    fclose(file);
    return 0;
}

/* ---- the verdict ---- */

static void explain(void *arg, enum violation what, const char *text)
{
    (void)arg;
    printf("checker: %s: %s\n", violation_name(what), text);
}

static int judge(struct history *history)
{
    struct history_report report;
    history_finish(history, explain, NULL, &report);
    printf("checker: %lld operations acknowledged, %lld unknown; %zu documents must be there, %zu may be, %zu are; "
           "%zu sharded collections came and stayed; %zu counters, together uncertain by %lld;",
           (long long)report.acked, (long long)report.unknown, report.expected, report.uncertain, report.observed,
           report.collections, report.counters, (long long)report.slack);
    for (enum violation what = 0; what < VIOLATION_COUNT; what++) {
        printf(" %s %zu", violation_name(what), report.violations[what]);
    }
    printf("\n");
    return history_report_clean(&report) ? 0 : 1;
}

struct checker_options {
    char *uri;
    char *journal;
    char *dump;
    char *pad;
};

static int check(const struct checker_options *options)
{
    struct err err;
    struct history *history = history_new();
    int status = 2;
    if (!read_journals(options->journal, history, &err)) {
        fprintf(stderr, "checker: %s\n", err.msg);
    } else if (options->dump != NULL) {
        status = observe_dump(options->dump, history);
    } else {
        status = observe_cluster(options->uri, history);
    }
    if (status != 2) {
        int verdict = judge(history);
        status = status != 0 ? status : verdict;
    }
    history_free(history);
    return status;
}

int main(int argc, char **argv)
{
    struct checker_options given = {0};
    const struct option options[] = {
        {"uri", OPTION_STR, &given.uri, 0, 0, "URI", "connection string of a router"},
        {"journal", OPTION_STR, &given.journal, 0, 0, "DIR", "folder of the journals"},
        {"dump", OPTION_STR, &given.dump, 0, 0, "FILE", "judge this file instead of a cluster"},
        {"pad", OPTION_STR, &given.pad, 0, 0, "ID", "print a document's text and exit"},
    };
    const struct options_usage usage = {"checker", "judge of the crash test"};
    struct err err = {0};
    int status = 2;
    switch (options_parse(&usage, options, sizeof options / sizeof options[0], argc, argv, &err)) {
    case OPTIONS_EXIT:
        return 0;
    case OPTIONS_FAILED:
        fprintf(stderr, "checker: %s\n", err.msg);
        return 2;
    case OPTIONS_OK:
        break;
    }
    if (given.pad != NULL) {
        char pad[PAD_BYTES + 1];
        journal_pad(given.pad, pad);
        printf("%s\n", pad);
        status = 0;
    } else if (given.journal == NULL || (given.uri == NULL) == (given.dump == NULL)) {
        fprintf(stderr, "checker: --journal and one of --uri and --dump are required\n");
    } else {
        status = check(&given);
    }
    options_deinit(options, sizeof options / sizeof options[0]);
    return status;
}
