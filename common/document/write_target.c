#include "document/write_target.h"

#include "document/request_order.h"
#include "storage/store.h"

#include <string.h>

/* The collection that has the uuid is told when it is in the same database. */
static bool mismatch(struct store_txn *txn, const struct ns *ns, const uint8_t *uuid, struct err *err)
{
    const struct collection *actual = catalog_find_uuid(txn, uuid);
    bson_t details = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&details, "db", ns->db);
    BSON_APPEND_BINARY(&details, "collectionUUID", BSON_SUBTYPE_UUID, uuid, UUID_BYTES);
    BSON_APPEND_UTF8(&details, "expectedCollection", ns->coll);
    bool same_db =
        actual != NULL && actual->db_len == strlen(ns->db) && memcmp(actual->ns, ns->db, actual->db_len) == 0;
    if (same_db)
        BSON_APPEND_UTF8(&details, "actualCollection", actual->name);
    else
        BSON_APPEND_NULL(&details, "actualCollection");
    err_set(err, ERR_CollectionUUIDMismatch, "Collection UUID does not match that specified");
    if (err != NULL)
        err_set_details(err, bson_get_data(&details), details.len);
    bson_destroy(&details);
    return false;
}

static bool refuse_view(const struct ns *ns, struct err *err)
{
    return err_set(err, ERR_CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns->full);
}

bool write_target_look(struct document_engine *engine, const struct ns *ns, const uint8_t *uuid, struct arena *arena,
                       const struct bval_order **order, struct err *err)
{
    struct store_txn *txn;
    *order = NULL;
    if (!store_read_begin(document_engine_store(engine), &txn, err))
        return false;
    const struct collection *coll = catalog_find(txn, ns->full, strlen(ns->full));
    bool ok =
        uuid == NULL || (coll != NULL && memcmp(coll->uuid, uuid, UUID_BYTES) == 0) || mismatch(txn, ns, uuid, err);
    if (ok && coll != NULL)
        ok = (!coll->is_view || refuse_view(ns, err)) && request_order_of((struct bdoc){0}, coll, arena, order, err);
    store_read_end(txn);
    return ok;
}
