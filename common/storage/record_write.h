/* Inside storage only: what index builds share with writes of documents. */
#ifndef SHERD_STORAGE_RECORD_WRITE_H
#define SHERD_STORAGE_RECORD_WRITE_H

#include "storage/env.h"

/* Puts the entries of one record, with the index's counters and its multikey flag. */
void record_put_keys(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                     const struct index_keys *keys, uint64_t record_id);

#endif
