/* Which collation a request has: its own, or the collection's default. Commands and statements ask before they compile
 * a filter, a sort or a pipeline. On a worker. */
#ifndef SHERD_DOCUMENT_REQUEST_ORDER_H
#define SHERD_DOCUMENT_REQUEST_ORDER_H

#include "base/arena.h"
#include "collation/collation.h"
#include "storage/catalog.h"

/* The order for strings (NULL: by bytes) of `request`, a command's body or a statement with an optional `collation`
 * document; an empty one counts as none. `coll` NULL: there is no collection, so no default. The collation lives as
 * long as the arena's memory. Errors: 14, and what collation_open says. */
bool request_order(struct bdoc request, const struct collection *coll, struct arena *arena,
                   const struct bval_order **out, struct err *err) ERR_WARN_UNUSED;
/* The same with the document at hand; data NULL: none was given. */
bool request_order_of(struct bdoc collation, const struct collection *coll, struct arena *arena,
                      const struct bval_order **out, struct err *err) ERR_WARN_UNUSED;
/* Checks the document alone, before anything is opened. */
bool request_order_check(struct bdoc request, struct err *err) ERR_WARN_UNUSED;

#endif
