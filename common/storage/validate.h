/* Walks a collection and its indexes both ways: every document is well formed, has exactly its entries in every index,
 * every entry has its document; counters equal what was found. A long read: it holds its transaction until the end. */
#ifndef SHERD_STORAGE_VALIDATE_H
#define SHERD_STORAGE_VALIDATE_H

#include "storage/catalog.h"

enum {
    VALIDATE_ERRORS_MAX = 100, /* kept; more are only counted */
};

/* Fills `out` (initialised by the caller) with {ns, uuid, nrecords, nIndexes, keysPerIndex: {name: n},
 * nInvalidDocuments, valid, errors: [...], warnings: [...]}; returns `valid`. */
bool collection_validate(struct store_txn *txn, const struct collection *coll, bson_t *out);

#endif
