/* DOCUMENT_KIND_RENAME: from, $sherdVersion of from, to, whether the target is dropped (u8). Records and indexes stay
 * where they are: they hang on the collection's number, so another database costs nothing either. Result: empty. */
#include "document/apply_internal.h"

#include <string.h>

static bool check_source(const struct apply_target *from, const char *ns, struct err *err)
{
    if (from->coll == NULL)
        return err_set(err, ERR_NamespaceNotFound, "Source collection %s does not exist", ns);
    if (from->coll->is_view)
        return err_set(err, ERR_CommandNotSupportedOnView, "cannot rename view: %s", ns);
    if (from->coll->many_ids)
        return err_set(err, ERR_IllegalOperation, "Cannot rename a time-series collection %s", ns);
    return from->view == NULL ||
           err_set(err, ERR_IllegalOperation, "renaming a sharded collection is not supported: %s", ns);
}

static bool check_target(const struct apply_target *to, const char *ns, bool drop_target, struct err *err)
{
    if (to->view != NULL)
        return err_set(err, ERR_IllegalOperation, "the target of a rename can't be a sharded collection: %s", ns);
    if (to->coll != NULL && to->coll->is_view)
        return err_set(err, ERR_NamespaceExists, "a view already exists with that name: %s", ns);
    return to->coll == NULL || drop_target || err_set(err, ERR_NamespaceExists, "target namespace exists");
}

static bool rename_to(struct apply_target *from, struct apply_target *to, const char *ns, struct err *err)
{
    struct document_apply *apply = from->apply;
    if (!catalog_check_ns(ns, strlen(ns), err))
        return false;
    if (to->coll != NULL) {
        apply_drop_one(apply, to->coll);
        apply_tell_dropped(apply, ns);
    }
    /* Names are checked, the target is gone: nothing is left that could refuse. */
    return catalog_rename(apply->txn, from->coll, ns, strlen(ns), err);
}

bool apply_rename(struct document_apply *apply, struct codec_reader *reader, struct buf *result, struct err *err)
{
    struct apply_target from = {0};
    struct apply_target to = {0};
    const char *from_ns = codec_read_str(reader);
    struct bdoc version = codec_read_doc(reader);
    const char *to_ns = codec_read_str(reader);
    bool drop_target = codec_read_u8(reader) != 0;
    (void)result;
    if (reader->failed)
        return apply_damaged(err);
    if (!apply_target_open(&from, apply, from_ns, version, NULL, err))
        return false;
    bool ok = check_source(&from, from_ns, err) && apply_target_open(&to, apply, to_ns, (struct bdoc){0}, NULL, err) &&
              check_target(&to, to_ns, drop_target, err) && rename_to(&from, &to, to_ns, err);
    apply_target_close(&to);
    apply_target_close(&from);
    return ok;
}
