/* Inside storage only: changes of one collection's stored form. */
#ifndef SHERD_STORAGE_CATALOG_WRITE_H
#define SHERD_STORAGE_CATALOG_WRITE_H

#include "storage/catalog.h"

/* Marks an index multikey, if it isn't in the transaction's version. */
void catalog_set_multikey(struct store_txn *txn, uint32_t collection_id, uint32_t index_id);
void catalog_set_index_state(struct store_txn *txn, uint32_t collection_id, uint32_t index_id, enum index_state state);

#endif
