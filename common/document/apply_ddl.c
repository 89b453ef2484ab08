/* Collections and databases: DOCUMENT_KIND_CREATE, _DROP, _DROP_DATABASE, _ERASE_STEP. */
#include "document/apply_internal.h"
#include "document/ddl.h"
#include "document/view_records.h"
#include "document/views.h"
#include "document/wakeups.h"
#include "storage/index_build.h"

#include <string.h>

enum {
    ERASE_KEYS_MAX = 100000, /* in one log entry, whatever the entry asks for */
};

bool document_apply_create(struct document_apply *apply, const char *ns, const uint8_t uuid[16], struct bdoc options,
                           struct err *err)
{
    const struct collection *coll = catalog_find(apply->txn, ns, strlen(ns));
    if (coll != NULL && memcmp(coll->uuid, uuid, UUID_BYTES) == 0)
        return true;
    return catalog_create(apply->txn, ns, strlen(ns), uuid, options.data == NULL ? bdoc_empty() : options, err);
}

bool document_apply_drop(struct document_apply *apply, const char *ns, struct err *err)
{
    const struct collection *coll = catalog_find(apply->txn, ns, strlen(ns));
    if (coll == NULL)
        return err_set(err, ERR_NamespaceNotFound, "ns not found");
    catalog_drop(apply->txn, coll);
    return true;
}

static bool create_indexes(struct document_apply *apply, const char *ns, struct bdoc specs, struct err *err)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, specs);
    while (biter_next(&iter, &elem)) {
        bool exists;
        /* Made with the collection. */
        if (bdoc_has(bval_doc(&elem.val), "clustered"))
            continue;
        const struct collection *coll = catalog_find(apply->txn, ns, strlen(ns));
        if (!index_build_now(apply->txn, coll, bval_doc(&elem.val), &exists, err))
            return false;
    }
    return true;
}

/* Already there: fine with the same uuid, or (when any will do) with the same options. */
static bool check_existing(const struct collection *coll, const struct create_header *header, struct err *err)
{
    if (memcmp(coll->uuid, header->uuid, UUID_BYTES) == 0)
        return true;
    if (header->exact_uuid)
        return err_set(err, ERR_CollectionUUIDMismatch, "Collection %s exists with another uuid", header->ns);
    struct bdoc options = header->options.data == NULL ? bdoc_empty() : header->options;
    return bdoc_same(coll->options, options) ||
           err_set(err, ERR_NamespaceExists, "namespace %s already exists, but with different options", header->ns);
}

/* The definition was checked by the leader; the graph of views may have changed since. */
static bool check_view(struct document_apply *apply, const struct create_header *header, bool *is_view, struct err *err)
{
    struct bval view_on;
    *is_view =
        header->options.data != NULL && bdoc_find(header->options, "viewOn", &view_on) && view_on.type == BT_STRING;
    return !*is_view || views_check_graph(apply->txn, header->ns, header->options, err);
}

static bool create_new(struct document_apply *apply, const struct create_header *header, struct err *err)
{
    bool is_view;
    return check_view(apply, header, &is_view, err) &&
           document_apply_create(apply, header->ns, header->uuid, header->options, err) &&
           (!is_view || view_records_put(apply, header->ns, header->uuid, header->options, err));
}

bool apply_create(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err)
{
    struct create_header header;
    struct apply_target target;
    create_header_decode(reader, &header);
    if (reader->failed)
        return apply_damaged(err);
    /* A creation with a given uuid is the cluster's own business: it comes before the namespace has an owner. */
    if (!header.exact_uuid) {
        if (!apply_target_open(&target, apply, header.ns, header.version, NULL, err))
            return false;
        apply_target_close(&target);
    }
    const struct collection *coll = catalog_find(apply->txn, header.ns, strlen(header.ns));
    bool ok = coll != NULL ? check_existing(coll, &header, err) : create_new(apply, &header, err);
    if (ok && header.indexes.data != NULL && (coll == NULL || header.exact_uuid))
        ok = create_indexes(apply, header.ns, header.indexes, err);
    if (!ok && coll == NULL && catalog_find(apply->txn, header.ns, strlen(header.ns)) != NULL)
        catalog_drop(apply->txn, catalog_find(apply->txn, header.ns, strlen(header.ns)));
    buf_append_u8(result, coll == NULL);
    return ok;
}

void apply_tell_dropped(struct document_apply *apply, const char *ns)
{
    const struct document_ownership *ownership = document_engine_ownership(apply->engine);
    if (ownership != NULL && ownership->dropped != NULL)
        ownership->dropped(ownership->arg, apply, ns);
}

void apply_drop_one(struct document_apply *apply, const struct collection *coll)
{
    if (coll == NULL)
        return;
    if (coll->is_view)
        view_records_remove(apply, coll->ns);
    document_wakeups_note(document_engine_wakeups(apply->engine), coll->id);
    catalog_drop(apply->txn, coll);
}

bool apply_drop(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err)
{
    struct apply_target target;
    const char *ns = codec_read_str(reader);
    struct bdoc version = codec_read_doc(reader);
    if (reader->failed)
        return apply_damaged(err);
    if (!apply_target_open(&target, apply, ns, version, NULL, err))
        return false;
    uint32_t indexes = target.coll == NULL || target.coll->is_view ? 0 : target.coll->index_count;
    apply_drop_one(apply, target.coll);
    apply_target_close(&target);
    apply_tell_dropped(apply, ns);
    buf_append_le32(result, indexes);
    return true;
}

bool apply_drop_database(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err)
{
    const char *db = codec_read_str(reader);
    if (reader->failed)
        return apply_damaged(err);
    const struct collection *coll;
    size_t position = 0;
    uint32_t dropped = 0;
    while ((coll = catalog_next(apply->txn, db, strlen(db), &position)) != NULL) {
        document_wakeups_note(document_engine_wakeups(apply->engine), coll->id);
        catalog_drop(apply->txn, coll);
        position = 0;
        dropped++;
    }
    apply_tell_dropped(apply, db);
    buf_append_le32(result, dropped);
    return true;
}

bool apply_erase_step(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err)
{
    uint32_t max_keys = codec_read_u32(reader);
    if (reader->failed || max_keys > ERASE_KEYS_MAX)
        return apply_damaged(err);
    buf_append_u8(result, catalog_erase_step(apply->txn, max_keys));
    return true;
}
