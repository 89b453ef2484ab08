/* DOCUMENT_KIND_COLL_MOD: namespace, $sherdVersion, changes (coll_mod.h). Result: a document for the reply. */
#include "document/apply_internal.h"
#include "document/capped.h"
#include "document/coll_mod.h"
#include "document/coll_mod_index.h"
#include "document/view_records.h"
#include "document/views.h"
#include "document/wakeups.h"

#include <string.h>

static bool set_options(struct document_apply *apply, const struct collection *coll, struct bdoc changes,
                        struct err *err)
{
    bson_t options = BSON_INITIALIZER;
    bool same;
    bool ok = coll_mod_options(coll, changes, &options, &same, err) &&
              (same || views_check_graph(apply->txn, coll->ns, bdoc_of(&options), err));
    if (ok && !same && coll->is_view)
        ok = view_records_put(apply, coll->ns, coll->uuid, bdoc_of(&options), err);
    if (ok && !same) {
        catalog_set_options(apply->txn, coll, bdoc_of(&options));
        coll = catalog_find_id(apply->txn, coll->id);
        capped_trim(apply->txn, coll, collection_traits(coll));
        document_wakeups_note(document_engine_wakeups(apply->engine), coll->id);
    }
    bson_destroy(&options);
    return ok;
}

/* What the conversion would find, without its effect. */
static bool try_index(struct document_apply *apply, const struct collection *coll, struct bdoc request, struct err *err)
{
    bson_t reply = BSON_INITIALIZER;
    bool ok = coll_mod_index_apply(apply->txn, coll, request, &reply, err);
    for (uint32_t i = 0; ok && i < coll->index_count; i++) {
        const struct collection *now = catalog_find_id(apply->txn, coll->id);
        const struct index_def *index = collection_find_index_id(now, coll->indexes[i]->id);
        if (index != NULL && !bdoc_same(index->spec, coll->indexes[i]->spec))
            catalog_set_index_spec(apply->txn, now, index, coll->indexes[i]->spec);
    }
    bson_destroy(&reply);
    return ok;
}

static const struct index_def *named_index(const struct collection *coll, struct bdoc request)
{
    struct bval val;
    uint32_t len;
    if (bdoc_find(request, "name", &val) && val.type == BT_STRING)
        return collection_find_index(coll, bval_str(&val, &len));
    if (bdoc_find(request, "keyPattern", &val) && val.type == BT_DOCUMENT)
        return collection_find_index_key(coll, bval_doc(&val));
    return NULL;
}

/* A shard sees its own documents only: uniqueness holds where the shard key is in front. */
static bool check_unique(const struct apply_target *target, struct bdoc request, struct err *err)
{
    struct bval unique;
    struct bval prepare;
    bdoc_find(request, "unique", &unique);
    bdoc_find(request, "prepareUnique", &prepare);
    const struct index_def *index = named_index(target->coll, request);
    bool asked = bval_truthy(&unique) || bval_truthy(&prepare);
    return target->view == NULL || !asked || index == NULL ||
           target->ownership->may_create_index(target->view, index->key_pattern, true, err);
}

/* The index first: it alone may still be refused. */
static bool change(struct apply_target *target, struct bdoc changes, bson_t *reply, struct err *err)
{
    struct document_apply *apply = target->apply;
    struct bval index;
    struct bval dry_run;
    if (!coll_mod_check(target->coll, changes, err))
        return false;
    bool has_index = bdoc_find(changes, "index", &index);
    if (has_index && !check_unique(target, bval_doc(&index), err))
        return false;
    if (bdoc_find(changes, "dryRun", &dry_run))
        return !has_index || try_index(apply, target->coll, bval_doc(&index), err);
    if (has_index && !coll_mod_index_apply(apply->txn, target->coll, bval_doc(&index), reply, err))
        return false;
    return set_options(apply, catalog_find_id(apply->txn, target->coll->id), changes, err);
}

bool apply_coll_mod(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err)
{
    struct apply_target target;
    bson_t reply = BSON_INITIALIZER;
    const char *ns = codec_read_str(reader);
    struct bdoc version = codec_read_doc(reader);
    struct bdoc changes = codec_read_doc(reader);
    if (reader->failed || changes.data == NULL)
        return apply_damaged(err);
    if (!apply_target_open(&target, apply, ns, version, NULL, err))
        return false;
    bool ok = target.coll != NULL ? change(&target, changes, &reply, err)
                                  : err_set(err, ERR_NamespaceNotFound, "ns does not exist: %s", ns);
    apply_target_close(&target);
    if (ok)
        codec_write_doc(result, bdoc_of(&reply));
    bson_destroy(&reply);
    return ok;
}
