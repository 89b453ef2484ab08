/* collMod's `index`: {name | keyPattern, hidden?, expireAfterSeconds?, unique?, prepareUnique?}. collMod itself calls
 * both halves. */
#ifndef SHERD_DOCUMENT_COLL_MOD_INDEX_H
#define SHERD_DOCUMENT_COLL_MOD_INDEX_H

#include "storage/catalog.h"

/* The leader's look before it proposes, and apply's before it changes: fields, types, the index itself. Errors:
 * ERR_InvalidOptions, ERR_IndexNotFound, ERR_TypeMismatch, 40415 for an unknown field ... */
bool coll_mod_index_check(const struct collection *coll, struct bdoc request, struct err *err) ERR_WARN_UNUSED;
/* Checks again and changes the index; appends expireAfterSeconds_old, _new, hidden_old, _new, prepareUnique_old, _new,
 * unique_new to `reply`, as far as they were asked for. `unique` fails with 359 CannotConvertIndexToUnique and the
 * violations as details while there are duplicates. Apply thread. */
bool coll_mod_index_apply(struct store_txn *txn, const struct collection *coll, struct bdoc request, bson_t *reply,
                          struct err *err) ERR_WARN_UNUSED;

#endif
