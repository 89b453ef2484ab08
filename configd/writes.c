#include "configd/writes.h"

#include "cluster/fields.h"
#include "configd/names.h"

#include <string.h>

/* Documents that routing depends on must be readable for everybody, whatever the sender's version. */
static bool check_document(const struct metadata_write *write, struct err *err)
{
    struct shard_entry shard;
    struct database_entry database;
    struct collection_entry collection;
    bool ok = true;
    if (strcmp(write->ns, NS_SHARDS) == 0) {
        ok = shard_entry_parse(write->doc, &shard, err);
    } else if (strcmp(write->ns, NS_DATABASES) == 0) {
        ok = database_entry_parse(write->doc, &database, err);
    } else if (strcmp(write->ns, NS_COLLECTIONS) == 0) {
        ok = collection_entry_parse(write->doc, &collection, err);
        if (ok) {
            collection_entry_deinit(&collection);
        }
    }
    return ok;
}

static const char *ns_of(struct bdoc doc, const char *field)
{
    struct bval val;
    uint32_t len;
    return bdoc_find(doc, field, &val) && val.type == BT_STRING ? bval_str(&val, &len) : NULL;
}

static bool parse_write(struct bdoc doc, struct metadata_write *out, struct err *err)
{
    if ((out->ns = ns_of(doc, "put")) != NULL) {
        out->kind = WRITE_PUT;
        return field_doc(doc, "doc", &out->doc, err) &&
               (bdoc_find(out->doc, "_id", &out->id) || err_set(err, ERR_NoSuchKey, "a document without _id")) &&
               check_document(out, err);
    }
    if ((out->ns = ns_of(doc, "erase")) != NULL) {
        out->kind = WRITE_ERASE;
        return bdoc_find(doc, "id", &out->id) || err_set(err, ERR_NoSuchKey, "an erase without id");
    }
    out->kind = WRITE_ERASE_CHUNKS;
    return field_uuid(doc, "eraseChunks", out->uuid, err);
}

bool writes_parse(struct bdoc array, struct arena *arena, struct metadata_writes *out, struct err *err)
{
    out->items = arena_alloc(arena, (bdoc_count(array) + 1) * sizeof *out->items);
    out->count = 0;
    struct biter iter;
    struct belem elem;
    for (biter_init(&iter, array); biter_next(&iter, &elem);) {
        if (elem.val.type != BT_DOCUMENT) {
            return err_set(err, ERR_TypeMismatch, "a write must be a document");
        }
        if (!parse_write(bval_doc(&elem.val), &out->items[out->count++], err)) {
            return false;
        }
    }
    return true;
}
