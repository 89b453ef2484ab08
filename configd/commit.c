#include "configd/commit.h"

#include "base/check.h"
#include "base/log.h"
#include "cluster/fields.h"
#include "configd/names.h"
#include "configd/writes.h"
#include "storage/records.h"

#include <string.h>

struct id_list {
    struct arena *arena;
    struct bval *ids;
    size_t count;
    size_t cap;
};

static bool add_id(void *arg, struct bdoc doc)
{
    struct id_list *list = arg;
    struct bval id;
    if (list->count == list->cap) {
        size_t cap = list->cap == 0 ? 64 : list->cap * 2;
        struct bval *grown = arena_alloc(list->arena, cap * sizeof *grown);
        if (list->count > 0) {
            memcpy(grown, list->ids, list->count * sizeof *grown);
        }
        list->ids = grown;
        list->cap = cap;
    }
    if (bdoc_find(doc, "_id", &id)) {
        id.data = arena_copy(list->arena, id.data, id.len);
        list->ids[list->count++] = id;
    }
    return true;
}

/* The checks have been made: a write that fails now is a mistake of ours, and half a commit must not stay. */
static void must(bool ok, const struct err *err)
{
    if (!ok) {
        log_error("CONFIG", 7001, "A checked metadata write failed", LOG_I64("code", err->code),
                  LOG_STR("error", err->msg));
    }
    CHECK(ok);
}

static void erase_chunks(struct document_apply *apply, const struct metadata_view *view, const uint8_t *uuid)
{
    struct id_list list = {.arena = apply->arena};
    struct err err;
    view_each_chunk(view, uuid, 0, add_id, &list);
    for (size_t i = 0; i < list.count; i++) {
        must(document_apply_delete(apply, NS_CHUNKS, &list.ids[i], &err), &err);
    }
}

/* What goes first, then what comes: a chunk may take a lower bound or a version that another gives up in the same
 * commit. */
static void carry_out(struct document_apply *apply, const struct metadata_view *view,
                      const struct metadata_writes *writes)
{
    struct err err;
    for (size_t i = 0; i < writes->count; i++) {
        const struct metadata_write *write = &writes->items[i];
        if (write->kind == WRITE_ERASE_CHUNKS) {
            erase_chunks(apply, view, write->uuid);
        } else if (write->kind == WRITE_ERASE || strcmp(write->ns, NS_CHUNKS) == 0) {
            must(document_apply_delete(apply, write->ns, &write->id, &err), &err);
        }
    }
    for (size_t i = 0; i < writes->count; i++) {
        const struct metadata_write *write = &writes->items[i];
        if (write->kind == WRITE_PUT) {
            must(document_apply_put(apply, write->ns, write->doc, &err), &err);
        }
    }
}

/* Everything that storage could refuse later. */
static bool check_storable(const struct metadata_writes *writes, struct store_txn *txn, struct err *err)
{
    for (size_t i = 0; i < writes->count; i++) {
        const struct metadata_write *write = &writes->items[i];
        if (write->kind == WRITE_ERASE_CHUNKS) {
            continue;
        }
        if (catalog_find(txn, write->ns, strlen(write->ns)) == NULL) {
            return err_set(err, ERR_NotYetInitialized, "%s doesn't exist yet", write->ns);
        }
        if (write->kind == WRITE_PUT && !record_check_document(write->doc, err)) {
            return false;
        }
    }
    return true;
}

bool commit_apply(void *plugin, struct document_apply *apply, const uint8_t *payload, size_t len, struct buf *result,
                  struct err *err)
{
    (void)plugin;
    (void)result;
    struct metadata_view view = {.txn = apply->txn, .arena = apply->arena};
    struct metadata_writes writes;
    struct bdoc array;
    if (!bdoc_validate(payload, len, BDOC_MAX_WIRE_DEPTH, err)) {
        return false;
    }
    struct bdoc command = {.data = payload, .len = (uint32_t)len};
    bool guarded = bdoc_has(command, "sequence");
    int64_t sequence = 0;
    if (guarded && !field_i64(command, "sequence", &sequence, err)) {
        return false;
    }
    if (guarded && sequence != view_sequence(&view)) {
        return err_set(err, ERR_ConflictingOperationInProgress, "the cluster's metadata changed meanwhile");
    }
    if (!field_array(command, "writes", &array, err) || !writes_parse(array, apply->arena, &writes, err) ||
        !check_storable(&writes, apply->txn, err) || !writes_check_chunks(&writes, &view, err)) {
        return false;
    }
    carry_out(apply, &view, &writes);
    if (guarded) {
        view_set_sequence(&view, sequence + 1);
    }
    return true;
}
