/* Which documents a node may show and change. A shard plugs its ownership of ranges in here; the config service plugs
 * nothing in (NULL): everything is its own. Reads call on workers inside their read transaction; writes call on the
 * apply thread inside the write transaction, so both see ownership and data of one log position. */
#ifndef SHERD_DOCUMENT_OWNERSHIP_H
#define SHERD_DOCUMENT_OWNERSHIP_H

#include "base/buf.h"
#include "base/err.h"
#include "bson/value.h"

#include <stdbool.h>

struct document_apply;
struct store_txn;
/* The owner's immutable, reference-counted snapshot for one namespace; opaque here. */
struct document_view;

/* What a request wants to do. */
struct document_access {
    const char *ns;
    struct bdoc version; /* its $sherdVersion; data NULL: not bound to one */
    bool write;
};

struct document_ownership {
    void *arg;
    /* Checks a request against the ownership of its namespace as `txn` sees it. *view is NULL when every document of
     * the collection is owned and no counters by range are kept; else the caller closes it. ERR_StaleConfig or
     * ERR_StaleDbVersion when the request can't be served. Doesn't block. */
    bool (*open)(void *arg, struct store_txn *txn, const struct document_access *access, struct document_view **view,
                 struct err *err);
    void (*close)(void *arg, struct document_view *view);
    /* Another reference, for a cursor. */
    struct document_view *(*ref)(struct document_view *view);
    /* True when no document of the collection lies outside the owned ranges, so `visible` need not be asked. */
    bool (*all_visible)(const struct document_view *view);
    bool (*visible)(const struct document_view *view, struct bdoc doc);
    /* A document is about to be stored (or erased, for `after` without data). `before` has no data for an insert.
     * Errors: 13388 (not ours), 61 or 2 for a key that can't be (an array in it), 66 and 31025-like codes for a key
     * change that leaves the shard. */
    bool (*may_write)(const struct document_view *view, struct bdoc before, struct bdoc after, struct err *err);
    /* Appends the name of the owned range that counts `doc`; appends nothing when it is outside every range. */
    void (*range_of)(const struct document_view *view, struct bdoc doc, struct buf *range);
    /* False: an index of that specification can't be (67: unique without the shard key in front). */
    bool (*may_create_index)(const struct document_view *view, struct bdoc key_pattern, bool unique, struct err *err);
    /* True when an index with that key pattern serves the shard key; the last one of these can't be dropped. */
    bool (*serves_key)(const struct document_view *view, struct bdoc key_pattern);
    /* Apply thread: a collection ("db.coll") or a database ("db") was dropped in this transaction; forget it. */
    void (*dropped)(void *arg, struct document_apply *apply, const char *ns);
};

#endif
