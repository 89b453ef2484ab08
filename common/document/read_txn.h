/* What a read command opens first: a read transaction, the collection in it and the ownership that it sees. On a
 * worker; closed before the request ends. */
#ifndef SHERD_DOCUMENT_READ_TXN_H
#define SHERD_DOCUMENT_READ_TXN_H

#include "command/context.h"
#include "command/namespace.h"
#include "document/engine.h"
#include "storage/catalog.h"

struct read_txn {
    struct document_engine *engine;
    struct store_txn *txn;
    const struct collection *coll; /* NULL: there is none of that name */
    struct document_view *view;    /* NULL: everything is visible and nothing is counted by range */
    bool check_visible;            /* documents must be tested with the view */
};

/* `version` is the request's $sherdVersion (data NULL: none). ERR_StaleConfig and its like when the request can't be
 * served here. The caller ends with read_txn_close. */
bool read_txn_open(struct read_txn *read, struct document_engine *engine, const char *ns, struct bdoc version,
                   struct err *err) ERR_WARN_UNUSED;
/* The same for commands that describe collections or write: `coll` may be a view. The one above refuses a view: readers
 * get 169 with what it stands for. */
bool read_txn_open_any(struct read_txn *read, struct document_engine *engine, const char *ns, struct bdoc version,
                       struct err *err) ERR_WARN_UNUSED;
/* Accepts a zeroed struct. */
void read_txn_close(struct read_txn *read);
/* The view to filter with: NULL when no document has to be tested. */
const struct document_view *read_txn_filter_view(const struct read_txn *read);

/* The $sherdVersion document of a request; no data when there is none. ERR_TypeMismatch. */
bool request_version(const struct command_ctx *ctx, struct bdoc *out, struct err *err) ERR_WARN_UNUSED;
/* One pass over a command's fields: bit i of *present is set when known[i] (ended by NULL, at most 64) is there.
 * Refuses others as fields_check_known does. Spares a hot command the look-ups of options that are not given. */
bool request_fields(struct bdoc body, const char *const *known, uint64_t *present, struct err *err) ERR_WARN_UNUSED;
/* Refuses what reads and writes don't support yet: a collation other than {locale: "simple"} (238). */
bool request_check_collation(struct bdoc doc, struct err *err) ERR_WARN_UNUSED;

#endif
