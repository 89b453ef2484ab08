/* Applying document log commands, and the plain writes that appliers of other kinds build on. Runs on the apply thread
 * inside its write transaction, the same way on every member: the outcome depends on nothing but the command and the
 * store. */
#ifndef SHERD_DOCUMENT_APPLY_H
#define SHERD_DOCUMENT_APPLY_H

#include "base/arena.h"
#include "document/engine.h"

struct collection;

/* What an applier works with; lives for one log command. */
struct document_apply {
    struct document_engine *engine;
    struct store_txn *txn; /* the open write transaction, shared with the commands before and after */
    struct arena *arena;   /* emptied after the command */
    uint64_t index;        /* of the log entry */
};

/* Whether this program can apply commands of that kind. */
bool document_kind_is_known(uint8_t kind);
/* Applies a command of a kind below DOCUMENT_KIND_LIMIT; `payload` is what follows the kind byte. True: executed, its
 * answer appended to `result`. False: refused, nothing was changed. Errors are part of the outcome and equal on all
 * members. */
bool document_apply_command(struct document_apply *apply, uint8_t kind, const uint8_t *payload, size_t len,
                            struct buf *result, struct err *err) ERR_WARN_UNUSED;

/* Creates `ns` ("db.collection") with the given 16-byte uuid and options document (data == NULL: none) and its _id
 * index. Already there with the same uuid: fine. */
bool document_apply_create(struct document_apply *apply, const char *ns, const uint8_t uuid[16], struct bdoc options,
                           struct err *err) ERR_WARN_UNUSED;
bool document_apply_drop(struct document_apply *apply, const char *ns, struct err *err) ERR_WARN_UNUSED;

/* Whole documents by _id, in a collection that exists (ERR_NamespaceNotFound otherwise). No ownership check: for a
 * node's own internal collections and for the config service's commit. */

/* True and *doc (in the arena) when it is there; false otherwise: a missing collection has no documents. */
bool document_apply_get(struct document_apply *apply, const char *ns, const struct bval *id, struct bdoc *doc);
/* Inserts, or replaces the document of the same _id. All unique keys are checked before the first change. */
bool document_apply_put(struct document_apply *apply, const char *ns, struct bdoc doc, struct err *err) ERR_WARN_UNUSED;
/* Inserts; 11000 when the _id or another unique key is there. */
bool document_apply_insert(struct document_apply *apply, const char *ns, struct bdoc doc,
                           struct err *err) ERR_WARN_UNUSED;
/* True also when there was none. */
bool document_apply_delete(struct document_apply *apply, const char *ns, const struct bval *id,
                           struct err *err) ERR_WARN_UNUSED;

/* The same reads in any transaction; *doc is copied into `arena`. */
bool document_get(struct store_txn *txn, const char *ns, const struct bval *id, struct arena *arena, struct bdoc *doc);
/* Calls `visit` for every document of `ns` that matches `filter` (data == NULL: all), in _id order, until it returns
 * false. */
bool document_scan(struct store_txn *txn, const char *ns, struct bdoc filter, bool (*visit)(void *arg, struct bdoc doc),
                   void *arg, struct err *err) ERR_WARN_UNUSED;

#endif
