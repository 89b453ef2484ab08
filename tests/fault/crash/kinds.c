#include "kinds.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

enum {
    PATIENCE_MS = 30000, /* for one question */
    PAUSE_MS = 250,
};

/* `reply` is the caller's in any case. */
static bool ask(mongoc_client_t *client, const bson_t *command, bson_t *reply)
{
    bson_error_t error = {0};
    int64_t deadline = deadline_after_ms(PATIENCE_MS);
    while (!mongoc_client_command_simple(client, "crash", command, NULL, reply, &error)) {
        if (deadline_passed(deadline)) {
            char *text = bson_as_relaxed_extended_json(command, NULL);
            fprintf(stderr, "checker: %s: %s\n", text, error.message);
            bson_free(text);
            return false;
        }
        bson_destroy(reply);
        clock_sleep_ms(PAUSE_MS);
    }
    return true;
}

static int64_t number(const bson_t *doc, const char *path)
{
    bson_iter_t iter;
    bson_iter_t found;
    return bson_iter_init(&iter, doc) && bson_iter_find_descendant(&iter, path, &found) ? bson_iter_as_int64(&found)
                                                                                        : -1;
}

static bool wrong(const char *name, const bson_t *reply, const char *what)
{
    char *text = bson_as_relaxed_extended_json(reply, NULL);
    fprintf(stderr, "checker: %s %s: %s\n", name, what, text);
    bson_free(text);
    return false;
}

/* Indexes and counters fit the documents. */
static bool is_whole(mongoc_client_t *client, const char *name)
{
    bson_t reply;
    bson_iter_t iter;
    bson_t command = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&command, "validate", name);
    BSON_APPEND_BOOL(&command, "full", true);
    bool ok = ask(client, &command, &reply);
    if (ok && !(bson_iter_init_find(&iter, &reply, "valid") && bson_iter_as_bool(&iter)))
        ok = wrong(name, &reply, "is not whole");
    bson_destroy(&reply);
    bson_destroy(&command);
    return ok;
}

/* No document is there that the validator refuses. */
static bool is_valid(mongoc_client_t *client, const char *name, const bson_t *options)
{
    bson_iter_t iter;
    bson_t reply;
    bson_t query;
    bson_t list;
    bson_t command = BSON_INITIALIZER;
    if (!bson_iter_init_find(&iter, options, "validator"))
        return true;
    BSON_APPEND_UTF8(&command, "count", name);
    BSON_APPEND_DOCUMENT_BEGIN(&command, "query", &query);
    BSON_APPEND_ARRAY_BEGIN(&query, "$nor", &list);
    bson_append_value(&list, "0", 1, bson_iter_value(&iter));
    bson_append_array_end(&query, &list);
    bson_append_document_end(&command, &query);
    bool ok = ask(client, &command, &reply);
    if (ok && number(&reply, "n") != 0)
        ok = wrong(name, &reply, "holds documents that its validator refuses");
    bson_destroy(&reply);
    bson_destroy(&command);
    return ok;
}

static bool is_within_caps(mongoc_client_t *client, const char *name, const bson_t *options)
{
    bson_t reply;
    bson_t command = BSON_INITIALIZER;
    int64_t size = number(options, "size");
    int64_t max = number(options, "max");
    if (number(options, "capped") <= 0)
        return true;
    BSON_APPEND_UTF8(&command, "collStats", name);
    bool ok = ask(client, &command, &reply);
    if (ok && ((max > 0 && number(&reply, "count") > max) || number(&reply, "size") > size))
        ok = wrong(name, &reply, "is larger than its options allow");
    bson_destroy(&reply);
    bson_destroy(&command);
    return ok;
}

static bool collection_holds(mongoc_client_t *client, const bson_t *listed)
{
    bson_iter_t iter;
    bson_t options;
    const uint8_t *data;
    uint32_t len;
    const char *name = bson_iter_init_find(&iter, listed, "name") ? bson_iter_utf8(&iter, NULL) : NULL;
    bool is_view = bson_iter_init_find(&iter, listed, "type") && strcmp(bson_iter_utf8(&iter, NULL), "view") == 0;
    if (name == NULL || is_view || !bson_iter_init_find(&iter, listed, "options"))
        return name != NULL;
    bson_iter_document(&iter, &len, &data);
    if (!bson_init_static(&options, data, len))
        return false;
    bool ok = is_whole(client, name);
    ok &= is_valid(client, name, &options);
    return is_within_caps(client, name, &options) && ok;
}

bool kinds_hold(mongoc_client_t *client)
{
    const bson_t *listed;
    bson_error_t error = {0};
    bool ok = true;
    mongoc_database_t *database = mongoc_client_get_database(client, "crash");
    mongoc_cursor_t *cursor = mongoc_database_find_collections_with_opts(database, NULL);
    while (mongoc_cursor_next(cursor, &listed))
        ok &= collection_holds(client, listed);
    if (mongoc_cursor_error(cursor, &error)) {
        fprintf(stderr, "checker: the collections can't be listed: %s\n", error.message);
        ok = false;
    }
    mongoc_cursor_destroy(cursor);
    mongoc_database_destroy(database);
    return ok;
}
