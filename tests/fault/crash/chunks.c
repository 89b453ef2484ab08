#include "chunks.h"

#include "base/mem.h"
#include "cluster/chunk.h"

#include <stdio.h>

enum { CHUNKS_MAX = 1 << 20 };

static bool fail(const char *ns, const struct err *err)
{
    fprintf(stderr, "checker: the chunks of %s: %s\n", ns, err->msg);
    return false;
}

/* The chunks of one collection, with a reference each. */
struct chunk_rows {
    struct chunk **chunks;
    size_t count;
};

static bool read_chunks(mongoc_client_t *client, const struct collection_entry *entry, struct chunk_rows *out,
                        struct err *err)
{
    bson_t filter = BSON_INITIALIZER;
    bson_error_t error = {0};
    const bson_t *doc;
    bool ok = true;
    bson_append_binary(&filter, "uuid", -1, BSON_SUBTYPE_UUID, entry->uuid, sizeof entry->uuid);
    mongoc_collection_t *collection = mongoc_client_get_collection(client, "config", "chunks");
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(collection, &filter, NULL, NULL);
    out->chunks = mem_alloc(sizeof *out->chunks);
    while (ok && out->count < CHUNKS_MAX && mongoc_cursor_next(cursor, &doc)) {
        out->chunks = mem_realloc(out->chunks, (out->count + 1) * sizeof *out->chunks);
        ok = chunk_parse(entry->key, &entry->epoch, bdoc_of(doc), &out->chunks[out->count], err);
        out->count += ok;
    }
    if (ok && mongoc_cursor_error(cursor, &error)) {
        ok = err_set(err, ERR_OperationFailed, "%s", error.message);
    }
    mongoc_cursor_destroy(cursor);
    mongoc_collection_destroy(collection);
    bson_destroy(&filter);
    return ok;
}

static bool collection_covered(mongoc_client_t *client, const bson_t *doc)
{
    struct collection_entry entry;
    struct chunk_rows rows = {0};
    struct err err;
    if (!collection_entry_parse(bdoc_of(doc), &entry, &err)) {
        return fail("a collection", &err);
    }
    bool ok = read_chunks(client, &entry, &rows, &err);
    if (ok) {
        chunks_sort(rows.chunks, rows.count);
        ok = chunks_check_cover(entry.key, rows.chunks, rows.count, &err);
    }
    if (!ok) {
        fail(entry.ns, &err);
    }
    for (size_t i = 0; i < rows.count; i++) {
        chunk_unref(rows.chunks[i]);
    }
    mem_free(rows.chunks);
    collection_entry_deinit(&entry);
    return ok;
}

bool chunks_cover_all(mongoc_client_t *client)
{
    bson_t all = BSON_INITIALIZER;
    bson_error_t error = {0};
    const bson_t *doc;
    bool ok = true;
    mongoc_collection_t *collections = mongoc_client_get_collection(client, "config", "collections");
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(collections, &all, NULL, NULL);
    while (mongoc_cursor_next(cursor, &doc)) {
        ok &= collection_covered(client, doc);
    }
    if (mongoc_cursor_error(cursor, &error)) {
        fprintf(stderr, "checker: config.collections can't be read: %s\n", error.message);
        ok = false;
    }
    mongoc_cursor_destroy(cursor);
    mongoc_collection_destroy(collections);
    bson_destroy(&all);
    return ok;
}
