/* Capped collections: the oldest documents make room, in the transaction of the insert that needs it. Insertion order
 * is the order of record ids. Apply thread. */
#ifndef SHERD_DOCUMENT_CAPPED_H
#define SHERD_DOCUMENT_CAPPED_H

#include "document/traits.h"

enum {
    CAPPED_TRIM_DOCS = 1000, /* erased at most at once: after a cap was lowered, the rest goes with the next inserts */
};

/* ERR_BadValue for a document that alone is larger than the collection may be. */
bool capped_check_document(const struct collection_traits *traits, struct bdoc doc, struct err *err) ERR_WARN_UNUSED;
/* Erases the oldest documents until both caps hold, CAPPED_TRIM_DOCS at most; true when more have to go. */
bool capped_trim(struct store_txn *txn, const struct collection *coll, const struct collection_traits *traits);

#endif
