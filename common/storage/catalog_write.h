/* Inside storage only: changes of one collection's stored form. */
#ifndef SHERD_STORAGE_CATALOG_WRITE_H
#define SHERD_STORAGE_CATALOG_WRITE_H

#include "storage/catalog.h"

/* Marks an index multikey, with the places of arrays on its paths (as index_field.multikey, one for each field), if the
 * transaction's version doesn't know them. */
void catalog_set_multikey(struct store_txn *txn, uint32_t collection_id, uint32_t index_id, const uint64_t *paths);
void catalog_set_index_state(struct store_txn *txn, uint32_t collection_id, uint32_t index_id, enum index_state state);

#endif
