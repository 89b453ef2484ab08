/* Indexes: DOCUMENT_KIND_CREATE_INDEXES, _BUILD_STEP, _BUILD_END, _DROP_INDEXES. */
#include "document/apply_internal.h"
#include "document/ddl.h"
#include "storage/counters.h"
#include "storage/index_build.h"

#include <string.h>

enum {
    ERR_AMBIGUOUS_KEY_PATTERN = 181,
    ERR_INDEX_BUILD_ABORTED = 276,
    ERR_DROP_CLUSTERED = 5979800,
    ERR_CANNOT_DROP_SHARD_KEY_INDEX = 303,
    BUILD_STEP_RECORDS_MAX = 100000, /* in one log entry, whatever the entry asks for */
};

/* Finds the collection again: each change of the catalog makes a new snapshot. */
static const struct collection *again(struct document_apply *apply, const char *ns)
{
    return catalog_find(apply->txn, ns, strlen(ns));
}

/* `seen` holds the new specifications before this one. */
static bool check_new(const struct apply_target *target, struct bdoc normal, bson_t *seen, struct err *err)
{
    struct bval key;
    struct bval unique;
    struct bval prepared;
    struct biter iter;
    struct belem elem;
    bdoc_find(normal, "key", &key);
    bdoc_find(normal, "unique", &unique);
    bdoc_find(normal, "prepareUnique", &prepared);
    if (target->view != NULL && !target->ownership->may_create_index(
                                    target->view, bval_doc(&key), bval_truthy(&unique) || bval_truthy(&prepared), err))
        return false;
    biter_init(&iter, bdoc_of(seen));
    while (biter_next(&iter, &elem)) {
        if (bdoc_same(bval_doc(&elem.val), normal))
            return err_set(err, ERR_IndexAlreadyExists, "the command has the same index twice");
    }
    struct bval val = bval_from_doc(normal);
    bval_append(seen, "", 0, &val);
    return true;
}

static bool check_spec(const struct apply_target *target, struct bdoc spec, bson_t *seen, struct err *err)
{
    bson_t normal = BSON_INITIALIZER;
    bool ok = catalog_normalise_spec(target->apply->txn, target->coll, spec, &normal, err);
    if (ok) {
        enum index_compare compared = collection_compare_index(target->coll, bdoc_of(&normal), NULL, err);
        ok = compared == INDEX_EXISTS || (compared == INDEX_IS_NEW && check_new(target, bdoc_of(&normal), seen, err));
    }
    bson_destroy(&normal);
    return ok;
}

/* What was made by the command so far, to be taken back when a later specification fails. */
struct made {
    uint32_t ids[CATALOG_INDEXES_MAX];
    bool building[CATALOG_INDEXES_MAX];
    uint32_t count;
    uint32_t unready[CATALOG_INDEXES_MAX]; /* there before, but still being built: the caller waits for those, too */
    uint32_t unready_count;
};

static void take_back(struct document_apply *apply, const char *ns, const struct made *made)
{
    for (uint32_t i = 0; i < made->count; i++) {
        const struct collection *coll = again(apply, ns);
        const struct index_def *index = collection_find_index_id(coll, made->ids[i]);
        struct err ignored;
        if (index != NULL && !catalog_drop_index(apply->txn, coll, index, &ignored))
            continue;
    }
}

static void note_unready(const struct collection *coll, uint32_t id, struct made *made)
{
    const struct index_def *index = collection_find_index_id(coll, id);
    for (uint32_t i = 0; i < made->unready_count; i++) {
        if (made->unready[i] == id)
            return;
    }
    if (index != NULL && index->state == INDEX_BUILDING && made->unready_count < CATALOG_INDEXES_MAX)
        made->unready[made->unready_count++] = id;
}

static bool make_one(struct document_apply *apply, const char *ns, struct bdoc spec, struct made *made, struct err *err)
{
    const struct collection *coll = again(apply, ns);
    struct counter counter;
    bool exists = false;
    uint32_t id = 0;
    counter_collection(apply->txn, coll, &counter);
    bool now = counter.docs <= INDEX_BUILD_NOW_DOCS;
    if (now && !index_build_now(apply->txn, coll, spec, &exists, err))
        return false;
    if (!now && !catalog_create_index(apply->txn, coll, spec, &id, &exists, err))
        return false;
    if (exists && !now)
        note_unready(coll, id, made);
    if (exists || made->count == CATALOG_INDEXES_MAX)
        return true;
    coll = again(apply, ns);
    made->ids[made->count] = now ? coll->indexes[coll->index_count - 1]->id : id;
    made->building[made->count++] = !now;
    return true;
}

static void group_builds(struct document_apply *apply, const char *ns, const struct made *made)
{
    uint32_t ids[CATALOG_INDEXES_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < made->count; i++) {
        if (made->building[i])
            ids[count++] = made->ids[i];
    }
    catalog_group_builds(apply->txn, again(apply, ns), ids, count);
}

static bool make_all(struct document_apply *apply, const char *ns, struct bdoc specs, struct made *made,
                     struct err *err)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, specs);
    while (biter_next(&iter, &elem)) {
        if (!make_one(apply, ns, bval_doc(&elem.val), made, err)) {
            take_back(apply, ns, made);
            return false;
        }
    }
    group_builds(apply, ns, made);
    return true;
}

static bool check_all(const struct apply_target *target, struct bdoc specs, struct err *err)
{
    bson_t seen = BSON_INITIALIZER;
    bool ok = true;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, specs);
    while (ok && biter_next(&iter, &elem)) {
        ok = elem.val.type == BT_DOCUMENT || apply_damaged(err);
        ok = ok && check_spec(target, bval_doc(&elem.val), &seen, err);
    }
    bson_destroy(&seen);
    return ok;
}

static void write_result(struct buf *result, const struct made *made, bool created, uint32_t before, uint32_t after)
{
    uint32_t building = made->unready_count;
    for (uint32_t i = 0; i < made->count; i++)
        building += made->building[i];
    buf_append_u8(result, created);
    buf_append_le32(result, before);
    buf_append_le32(result, after);
    buf_append_le32(result, building);
    for (uint32_t i = 0; i < made->count; i++) {
        if (made->building[i])
            buf_append_le32(result, made->ids[i]);
    }
    for (uint32_t i = 0; i < made->unready_count; i++)
        buf_append_le32(result, made->unready[i]);
}

bool apply_create_indexes(struct document_apply *apply, struct codec_reader *reader, struct buf *result,
                          struct err *err)
{
    struct create_indexes_header header;
    struct apply_target target;
    struct made made = {0};
    create_indexes_header_decode(reader, &header);
    if (reader->failed || header.specs.data == NULL)
        return apply_damaged(err);
    bool existed = again(apply, header.ns) != NULL;
    if (!apply_target_open(&target, apply, header.ns, header.version, header.create_uuid, err))
        return false;
    uint32_t before = target.coll->index_count;
    bool ok = apply_target_check_writable(&target, err) && check_all(&target, header.specs, err) &&
              make_all(apply, header.ns, header.specs, &made, err);
    apply_target_close(&target);
    if (!ok && !existed)
        catalog_drop(apply->txn, again(apply, header.ns));
    if (ok)
        write_result(result, &made, !existed, before, again(apply, header.ns)->index_count);
    return ok;
}

static const struct index_def *find_building(struct document_apply *apply, const uint8_t *uuid, uint32_t index_id,
                                             const struct collection **coll)
{
    *coll = catalog_find_uuid(apply->txn, uuid);
    const struct index_def *index = *coll == NULL ? NULL : collection_find_index_id(*coll, index_id);
    return index != NULL && index->state == INDEX_BUILDING ? index : NULL;
}

bool apply_build_step(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err)
{
    const uint8_t *uuid = codec_read_bytes(reader, UUID_BYTES);
    uint32_t index_id = codec_read_u32(reader);
    uint32_t max_records = codec_read_u32(reader);
    if (reader->failed || max_records > BUILD_STEP_RECORDS_MAX)
        return apply_damaged(err);
    const struct collection *coll;
    const struct index_def *index = find_building(apply, uuid, index_id, &coll);
    if (index == NULL)
        return err_set(err, ERR_INDEX_BUILD_ABORTED, "the index or its collection was dropped while it was built");
    buf_append_u8(result, index_build_step(apply->txn, coll, index, max_records));
    return true;
}

/* Those of the list that are still being built go. */
static void drop_building(struct document_apply *apply, const uint8_t *uuid, const uint32_t *ids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct collection *coll = catalog_find_uuid(apply->txn, uuid);
        const struct index_def *index = coll == NULL ? NULL : collection_find_index_id(coll, ids[i]);
        struct err ignored;
        if (index != NULL && index->state != INDEX_READY && !catalog_drop_index(apply->txn, coll, index, &ignored))
            continue;
    }
}

/* All indexes of one createIndexes end together: when one can't be, nothing is left of any. Those that were built by
 * somebody else before are no longer under construction. */
bool apply_build_end(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err)
{
    uint32_t ids[CATALOG_INDEXES_MAX];
    const uint8_t *uuid = codec_read_bytes(reader, UUID_BYTES);
    bool killed = codec_read_u8(reader) != 0;
    uint32_t count = codec_read_u32(reader);
    (void)result;
    if (reader->failed || count > CATALOG_INDEXES_MAX)
        return apply_damaged(err);
    for (uint32_t i = 0; i < count; i++)
        ids[i] = codec_read_u32(reader);
    if (reader->failed)
        return apply_damaged(err);
    if (killed) {
        drop_building(apply, uuid, ids, count);
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct collection *coll;
        const struct index_def *index = find_building(apply, uuid, ids[i], &coll);
        bool ok = index != NULL ||
                  err_set(err, ERR_INDEX_BUILD_ABORTED, "the index or its collection was dropped while it was built");
        if (!ok || !index_build_check(apply->txn, coll, index, err)) {
            drop_building(apply, uuid, ids, count);
            return false;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct collection *coll;
        const struct index_def *index = find_building(apply, uuid, ids[i], &coll);
        struct err ignored;
        if (index != NULL && !index_build_finish(apply->txn, coll, index, &ignored))
            continue; /* it was checked a moment ago */
    }
    return true;
}

/* Whether ranges of the shard key can be read by it: it has every document, in the order of bytes. */
static bool serves_shard_key(const struct apply_target *target, const struct index_def *index)
{
    return index->state == INDEX_READY && index->partial.data == NULL && !index->sparse && index->order == NULL &&
           target->ownership->serves_key(target->view, index->key_pattern);
}

static bool check_shard_key_index(const struct apply_target *target, const struct index_def *index, struct err *err)
{
    if (target->view == NULL || !serves_shard_key(target, index))
        return true;
    const struct collection *coll = again(target->apply, target->coll->ns);
    for (uint32_t i = 0; i < coll->index_count; i++) {
        if (coll->indexes[i]->id != index->id && serves_shard_key(target, coll->indexes[i]))
            return true;
    }
    return err_set(err, ERR_CANNOT_DROP_SHARD_KEY_INDEX,
                   "Cannot drop the only compatible index for this collection's shard key");
}

static bool check_not_id(const struct index_def *index, struct err *err)
{
    if (!index->is_id)
        return true;
    if (bdoc_has(index->spec, "clustered"))
        return err_set(err, ERR_DROP_CLUSTERED, "It is illegal to drop the clusteredIndex");
    return err_set(err, ERR_InvalidOptions, "cannot drop _id index");
}

static bool drop_one(struct apply_target *target, const struct index_def *index, struct err *err)
{
    if (!check_not_id(index, err))
        return false;
    if (!check_shard_key_index(target, index, err))
        return false;
    return catalog_drop_index(target->apply->txn, again(target->apply, target->coll->ns), index, err);
}

static bool drop_named(struct apply_target *target, const struct bval *which, struct err *err)
{
    const struct collection *coll = again(target->apply, target->coll->ns);
    const struct index_def *index = NULL;
    uint32_t len;
    if (which->type == BT_STRING) {
        index = collection_find_index(coll, bval_str(which, &len));
        if (index == NULL)
            return err_set(err, ERR_IndexNotFound, "index not found with name [%s]", bval_str(which, &len));
    } else if (which->type == BT_DOCUMENT) {
        if (collection_count_index_key(coll, bval_doc(which)) > 1)
            return err_set(err, ERR_AMBIGUOUS_KEY_PATTERN,
                           "several indexes have that key. Please drop the index by name");
        index = collection_find_index_key(coll, bval_doc(which));
        if (index == NULL)
            return err_set(err, ERR_IndexNotFound, "can't find index with that key");
    } else {
        return err_set(err, ERR_TypeMismatch, "dropIndexes.index must be a name, a key pattern or a list of names");
    }
    return drop_one(target, index, err);
}

/* "*": all but the _id index and, on a sharded collection, the last one for the shard key. */
static bool drop_all(struct apply_target *target, struct err *err)
{
    const struct collection *coll = again(target->apply, target->coll->ns);
    for (uint32_t i = coll->index_count; i-- > 1;) {
        const struct index_def *index = coll->indexes[i];
        struct err kept;
        if (check_shard_key_index(target, index, &kept) && !drop_one(target, index, err))
            return false;
    }
    return true;
}

static bool drop_list(struct apply_target *target, struct bdoc names, struct err *err)
{
    struct biter iter;
    struct belem elem;
    const struct collection *coll = again(target->apply, target->coll->ns);
    /* All names are known before the first index goes. */
    biter_init(&iter, names);
    while (biter_next(&iter, &elem)) {
        uint32_t len;
        if (elem.val.type != BT_STRING)
            return err_set(err, ERR_TypeMismatch, "dropIndexes.index must be a list of names");
        const struct index_def *index = collection_find_index(coll, bval_str(&elem.val, &len));
        if (index == NULL)
            return err_set(err, ERR_IndexNotFound, "index not found with name [%s]", bval_str(&elem.val, &len));
        if (!check_not_id(index, err))
            return false;
    }
    biter_init(&iter, names);
    while (biter_next(&iter, &elem)) {
        if (!drop_named(target, &elem.val, err))
            return false;
    }
    return true;
}

bool apply_drop_indexes(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err)
{
    struct apply_target target;
    struct bval which;
    const char *ns = codec_read_str(reader);
    struct bdoc version = codec_read_doc(reader);
    struct bdoc wrapped = codec_read_doc(reader);
    if (reader->failed || wrapped.data == NULL || !bdoc_find(wrapped, "index", &which))
        return apply_damaged(err);
    if (!apply_target_open(&target, apply, ns, version, NULL, err))
        return false;
    bool ok = target.coll != NULL ? apply_target_check_writable(&target, err)
                                  : err_set(err, ERR_NamespaceNotFound, "ns not found %s", ns);
    if (ok) {
        buf_append_le32(result, target.coll->index_count);
        if (bval_is_str(&which, "*"))
            ok = drop_all(&target, err);
        else if (which.type == BT_ARRAY)
            ok = drop_list(&target, bval_doc(&which), err);
        else
            ok = drop_named(&target, &which, err);
    }
    apply_target_close(&target);
    return ok;
}
