#include "configd/routing.h"

#include "cluster/fields.h"
#include "cluster/version.h"
#include "configd/names.h"

#include <string.h>

struct chunk_writer {
    bson_t *array;
    uint32_t count;
    bool too_large;
};

static bool write_chunk(void *arg, struct bdoc doc)
{
    struct chunk_writer *writer = arg;
    char text[16];
    const char *name;
    bson_uint32_to_string(writer->count++, &name, text, sizeof text);
    append_bdoc(writer->array, name, doc);
    writer->too_large = writer->array->len > ROUTING_REPLY_MAX_BYTES;
    return !writer->too_large;
}

static bool append_collection(const struct metadata_view *view, const struct collection_entry *entry, uint64_t since,
                              bson_t *reply, struct err *err)
{
    bson_t inner;
    struct chunk_version version;
    if (!view_collection_version(view, entry, &version)) {
        return err_set(err, ERR_InternalError, "%s has no chunk", entry->ns);
    }
    bson_append_document_begin(reply, "collection", -1, &inner);
    collection_entry_append(&inner, entry);
    bson_append_document_end(reply, &inner);
    bson_append_array_begin(reply, "chunks", -1, &inner);
    struct chunk_writer writer = {.array = &inner};
    view_each_chunk(view, entry->uuid, since, write_chunk, &writer);
    bson_append_array_end(reply, &inner);
    chunk_version_append(reply, "version", &version);
    if (writer.too_large) {
        return err_set(err, ERR_BSONObjectTooLarge, "%s has too many chunks for one routing table", entry->ns);
    }
    return true;
}

/* 0 (everything) unless the caller's version is of this epoch. */
static bool parse_since(struct bdoc request, const struct collection_entry *entry, uint64_t *since, struct err *err)
{
    struct chunk_version known;
    *since = 0;
    if (!bdoc_has(request, "epoch")) {
        return true;
    }
    if (!chunk_version_parse(request, &known, err)) {
        return false;
    }
    if (bson_oid_equal(&known.epoch, &entry->epoch)) {
        *since = chunk_version_to_timestamp(&known);
    }
    return true;
}

static void append_database(const struct metadata_view *view, const char *db, bson_t *reply)
{
    struct database_entry database;
    if (!view_database(view, db, &database)) {
        bson_append_null(reply, "database", -1);
        return;
    }
    bson_t inner;
    bson_append_document_begin(reply, "database", -1, &inner);
    database_entry_append(&inner, &database);
    bson_append_document_end(reply, &inner);
}

bool routing_answer(const struct metadata_view *view, struct bdoc request, bson_t *reply, struct err *err)
{
    char ns[CLUSTER_NS_MAX + 1];
    char db[CLUSTER_DB_NAME_MAX + 1];
    const char *collection = NULL;
    struct collection_entry entry;
    uint64_t since;
    if (!field_str(request, "_configsvrGetRouting", ns, sizeof ns, err)) {
        return false;
    }
    if (strchr(ns, '.') == NULL) {
        if (!db_name_check(ns, strlen(ns), err)) {
            return false;
        }
        memcpy(db, ns, strlen(ns) + 1);
    } else if (!ns_check(ns, strlen(ns), err) || !ns_split(ns, strlen(ns), db, &collection)) {
        return false;
    }
    append_database(view, db, reply);
    if (collection == NULL || !view_collection(view, ns, &entry)) {
        bson_append_null(reply, "collection", -1);
        return true;
    }
    bool ok = parse_since(request, &entry, &since, err) && append_collection(view, &entry, since, reply, err);
    collection_entry_deinit(&entry);
    return ok;
}
