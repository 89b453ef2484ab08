#include "document/apply.h"

#include "document/apply_internal.h"
#include "document/capped.h"
#include "document/views.h"
#include "document/wakeups.h"
#include "plan/scan.h"
#include "query/filter.h"

#include <string.h>

bool apply_damaged(struct err *err)
{
    return err_set(err, ERR_InternalError, "a log command can't be read");
}

static bool (*const appliers[])(struct document_apply *, struct codec_reader *, struct buf *, struct err *) = {
    [DOCUMENT_KIND_INSERT] = apply_insert,
    [DOCUMENT_KIND_UPDATE] = apply_update,
    [DOCUMENT_KIND_CREATE] = apply_create,
    [DOCUMENT_KIND_DROP] = apply_drop,
    [DOCUMENT_KIND_DROP_DATABASE] = apply_drop_database,
    [DOCUMENT_KIND_CREATE_INDEXES] = apply_create_indexes,
    [DOCUMENT_KIND_BUILD_STEP] = apply_build_step,
    [DOCUMENT_KIND_BUILD_END] = apply_build_end,
    [DOCUMENT_KIND_DROP_INDEXES] = apply_drop_indexes,
    [DOCUMENT_KIND_COLL_MOD] = apply_coll_mod,
    [DOCUMENT_KIND_ERASE_STEP] = apply_erase_step,
    [DOCUMENT_KIND_RENAME] = apply_rename,
    [DOCUMENT_KIND_CONVERT_TO_CAPPED] = apply_convert_to_capped,
    [DOCUMENT_KIND_SET_PARAMETER] = apply_set_parameter,
};

bool document_kind_is_known(uint8_t kind)
{
    return kind < sizeof appliers / sizeof appliers[0] && appliers[kind] != NULL;
}

bool document_apply_command(struct document_apply *apply, uint8_t kind, const uint8_t *payload, size_t len,
                            struct buf *result, struct err *err)
{
    if (!document_kind_is_known(kind))
        return apply_damaged(err);
    struct codec_reader reader;
    codec_reader_init(&reader, payload, len);
    return appliers[kind](apply, &reader, result, err);
}

bool apply_target_open(struct apply_target *target, struct document_apply *apply, const char *ns, struct bdoc version,
                       const uint8_t *create_uuid, struct err *err)
{
    static const struct collection_traits none = {.expire_after = -1};
    *target =
        (struct apply_target){.apply = apply, .ownership = document_engine_ownership(apply->engine), .traits = &none};
    const struct document_ownership *ownership = target->ownership;
    struct document_access access = {.ns = ns, .version = version, .write = true};
    if (ownership != NULL && !ownership->open(ownership->arg, apply->txn, &access, &target->view, err))
        return false;
    target->coll = catalog_find(apply->txn, ns, strlen(ns));
    if (target->coll == NULL && create_uuid != NULL) {
        if (!document_apply_create(apply, ns, create_uuid, (struct bdoc){0}, err)) {
            apply_target_close(target);
            return false;
        }
        target->coll = catalog_find(apply->txn, ns, strlen(ns));
    }
    if (target->coll != NULL)
        target->traits = collection_traits(target->coll);
    return true;
}

bool apply_target_check_tested(const struct apply_target *target, uint64_t tested, bool only_deletes, struct err *err)
{
    const struct validator *validator = &target->traits->validator;
    return only_deletes || !validator_needs_leader(validator) || tested == VALIDATOR_BYPASSED ||
           tested == validator->version || err_set(err, ERR_WriteConflict, "the collection's validator has changed");
}

bool apply_target_check_writable(const struct apply_target *target, struct err *err)
{
    return target->traits->kind != COLLECTION_VIEW || views_refuse_write(target->coll, err);
}

void apply_target_close(struct apply_target *target)
{
    if (target->view != NULL)
        target->ownership->close(target->ownership->arg, target->view);
    buf_deinit(&target->range);
    buf_deinit(&target->old_range);
    *target = (struct apply_target){0};
}

bool apply_target_visible(const struct apply_target *target, struct bdoc doc)
{
    return target->view == NULL || target->ownership->all_visible(target->view) ||
           target->ownership->visible(target->view, doc);
}

static bool conflicts(void *arg, struct bdoc other)
{
    return apply_target_visible(arg, other);
}

static struct record_range range_of(const struct apply_target *target, struct bdoc doc, struct buf *scratch)
{
    buf_clear(scratch);
    target->ownership->range_of(target->view, doc, scratch);
    return (struct record_range){.key = scratch->len == 0 ? NULL : scratch->data, .key_len = scratch->len};
}

/* Checks ownership and names the ranges; `before` or `after` may be absent. */
static bool prepare(struct apply_target *target, struct bdoc before, struct bdoc after, struct record_write *write,
                    struct err *err)
{
    if (target->view == NULL)
        return true;
    if (!target->ownership->may_write(target->view, before, after, err))
        return false;
    *write = (struct record_write){.conflicts = conflicts, .conflicts_arg = target};
    if (before.data != NULL)
        write->old_range = range_of(target, before, &target->old_range);
    write->range = after.data != NULL ? range_of(target, after, &target->range) : write->old_range;
    return true;
}

/* What the collection's kind asks of a document. */
static bool check_kind(const struct apply_target *target, struct bdoc doc, struct err *err)
{
    struct bval time;
    const char *field = target->traits->time_field;
    return field == NULL || (bdoc_find(doc, field, &time) && time.type == BT_DATE) ||
           err_set(err, ERR_BadValue, "'%s' must be present and contain a valid BSON UTC datetime value", field);
}

bool apply_target_insert(struct apply_target *target, struct bdoc doc, struct err *err)
{
    struct record_write write = {0};
    struct store_txn *txn = target->apply->txn;
    if (!check_kind(target, doc, err) || !capped_check_document(target->traits, doc, err) ||
        !prepare(target, (struct bdoc){0}, doc, &write, err) ||
        !record_insert(txn, target->coll, doc, &write, NULL, err))
        return false;
    if (target->traits->capped) {
        capped_trim(txn, target->coll, target->traits);
        document_wakeups_note(document_engine_wakeups(target->apply->engine), target->coll->id);
    }
    return true;
}

bool apply_target_replace(struct apply_target *target, uint64_t record_id, struct bdoc before, struct bdoc after,
                          struct err *err)
{
    struct record_write write = {0};
    return check_kind(target, after, err) && prepare(target, before, after, &write, err) &&
           record_replace(target->apply->txn, target->coll, record_id, after, &write, err);
}

bool apply_target_erase(struct apply_target *target, uint64_t record_id, struct bdoc before, struct err *err)
{
    struct record_write write = {0};
    if (!prepare(target, before, (struct bdoc){0}, &write, err))
        return false;
    record_erase(target->apply->txn, target->coll, record_id, &write);
    return true;
}

/* ---- plain writes for appliers of other kinds ---- */

static bool find_coll(struct document_apply *apply, const char *ns, const struct collection **out, struct err *err)
{
    *out = catalog_find(apply->txn, ns, strlen(ns));
    return *out != NULL || err_set(err, ERR_NamespaceNotFound, "ns does not exist: %s", ns);
}

bool document_get(struct store_txn *txn, const char *ns, const struct bval *id, struct arena *arena, struct bdoc *doc)
{
    const struct collection *coll = catalog_find(txn, ns, strlen(ns));
    struct buf scratch = BUF_INIT;
    struct bdoc found;
    uint64_t record_id;
    *doc = (struct bdoc){0};
    if (coll != NULL && record_get_by_id(txn, coll, id, &scratch, &record_id, &found))
        *doc = (struct bdoc){.data = arena_copy(arena, found.data, found.len), .len = found.len};
    buf_deinit(&scratch);
    return doc->data != NULL;
}

bool document_apply_get(struct document_apply *apply, const char *ns, const struct bval *id, struct bdoc *doc)
{
    return document_get(apply->txn, ns, id, apply->arena, doc);
}

bool document_apply_insert(struct document_apply *apply, const char *ns, struct bdoc doc, struct err *err)
{
    const struct collection *coll;
    return find_coll(apply, ns, &coll, err) && record_insert(apply->txn, coll, doc, NULL, NULL, err);
}

bool document_apply_put(struct document_apply *apply, const char *ns, struct bdoc doc, struct err *err)
{
    const struct collection *coll;
    struct bval id;
    uint64_t record_id;
    if (!find_coll(apply, ns, &coll, err))
        return false;
    if (!bdoc_find(doc, "_id", &id))
        return err_set(err, ERR_InvalidIdField, "the document has no _id");
    if (record_find_id(apply->txn, coll, &id, &record_id))
        return record_replace(apply->txn, coll, record_id, doc, NULL, err);
    return record_insert(apply->txn, coll, doc, NULL, NULL, err);
}

bool document_apply_delete(struct document_apply *apply, const char *ns, const struct bval *id, struct err *err)
{
    const struct collection *coll;
    uint64_t record_id;
    if (!find_coll(apply, ns, &coll, err))
        return false;
    if (record_find_id(apply->txn, coll, id, &record_id))
        record_erase(apply->txn, coll, record_id, NULL);
    return true;
}

bool document_scan(struct store_txn *txn, const char *ns, struct bdoc filter, bool (*visit)(void *arg, struct bdoc doc),
                   void *arg, struct err *err)
{
    const struct collection *coll = catalog_find(txn, ns, strlen(ns));
    struct filter *compiled = NULL;
    struct arena arena;
    struct scan scan = {0};
    bool ok = true;
    if (coll == NULL)
        return true;
    arena_init(&arena);
    ok = filter_compile(&arena, filter.data == NULL ? bdoc_empty() : filter, NULL, &compiled, err);
    if (!ok)
        goto out;
    struct plan_request request = {.filter = compiled};
    bson_t by_id = BSON_INITIALIZER;
    BSON_APPEND_INT32(&by_id, "_id", 1);
    struct plan *plan;
    ok = sort_spec_compile(&arena, bdoc_of(&by_id), NULL, (struct sort_spec **)(void *)&request.sort, err) &&
         plan_make(&arena, coll, &request, &plan, err);
    struct scan_options options = {.txn = txn, .coll = coll, .need_doc = true};
    bool found = ok;
    if (ok) {
        options.plan = plan;
        ok = scan_open(&scan, &options, err);
    }
    while (ok && found) {
        ok = scan_next(&scan, &found, err);
        if (ok && found)
            found = visit(arg, scan.doc);
    }
    bson_destroy(&by_id);
out:
    scan_close(&scan);
    filter_release(compiled);
    arena_deinit(&arena);
    return ok;
}
