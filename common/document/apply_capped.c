/* DOCUMENT_KIND_CONVERT_TO_CAPPED: namespace, $sherdVersion, size in bytes (u64). The records stay: their ids are in
 * insertion order already. Result: u8, whether documents are left that have to go; then the same command again. */
#include "document/apply_internal.h"
#include "document/capped.h"
#include "document/wakeups.h"

#include <string.h>

static bool check(const struct apply_target *target, const char *ns, struct err *err)
{
    if (target->coll == NULL)
        return err_set(err, ERR_NamespaceNotFound, "source collection %s does not exist", ns);
    if (!apply_target_check_writable(target, err))
        return false;
    if (target->view != NULL)
        return err_set(err, ERR_IllegalOperation, "cannot convert a sharded collection to capped: %s", ns);
    if (target->traits->kind != COLLECTION_PLAIN || target->traits->clustered)
        return err_set(err, ERR_IllegalOperation, "cannot convert a clustered or time-series collection to capped: %s",
                       ns);
    return true;
}

static void set_capped(struct document_apply *apply, const struct collection *coll, int64_t bytes)
{
    bson_t options = BSON_INITIALIZER;
    struct biter iter;
    struct belem elem;
    BSON_APPEND_BOOL(&options, "capped", true);
    if (bytes <= INT32_MAX)
        BSON_APPEND_INT32(&options, "size", (int32_t)bytes);
    else
        BSON_APPEND_INT64(&options, "size", bytes);
    biter_init(&iter, coll->options);
    while (biter_next(&iter, &elem)) {
        if (strcmp(elem.key, "capped") != 0 && strcmp(elem.key, "size") != 0 && strcmp(elem.key, "max") != 0)
            bval_append(&options, elem.key, (int)elem.key_len, &elem.val);
    }
    catalog_set_options(apply->txn, coll, bdoc_of(&options));
    bson_destroy(&options);
}

/* As MongoDB does: only the _id index stays. */
static void drop_indexes(struct document_apply *apply, uint32_t collection_id)
{
    const struct collection *coll = catalog_find_id(apply->txn, collection_id);
    for (uint32_t i = coll->index_count; i-- > 1;) {
        struct err ignored;
        bool dropped = catalog_drop_index(apply->txn, coll, coll->indexes[i], &ignored);
        (void)dropped; /* only the _id index can't be */
    }
}

static bool convert(struct apply_target *target, int64_t bytes, struct buf *result)
{
    struct document_apply *apply = target->apply;
    uint32_t id = target->coll->id;
    if (!target->traits->capped || target->traits->capped_bytes != bytes) {
        set_capped(apply, target->coll, bytes);
        drop_indexes(apply, id);
    }
    const struct collection *coll = catalog_find_id(apply->txn, id);
    buf_append_u8(result, capped_trim(apply->txn, coll, collection_traits(coll)));
    document_wakeups_note(document_engine_wakeups(apply->engine), id);
    return true;
}

bool apply_convert_to_capped(struct document_apply *apply, struct codec_reader *reader, struct buf *result,
                             struct err *err)
{
    struct apply_target target;
    const char *ns = codec_read_str(reader);
    struct bdoc version = codec_read_doc(reader);
    uint64_t bytes = codec_read_u64(reader);
    if (reader->failed || bytes == 0 || bytes > INT64_MAX)
        return apply_damaged(err);
    if (!apply_target_open(&target, apply, ns, version, NULL, err))
        return false;
    bool ok = check(&target, ns, err) && convert(&target, (int64_t)bytes, result);
    apply_target_close(&target);
    return ok;
}
