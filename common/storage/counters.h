/* Exact counters, changed in the write's own transaction: equal on replicas, durable with the data. Per collection, per
 * index, and per range of a collection as its owner names them (an encoded bound, an id: any bytes). */
#ifndef SHERD_STORAGE_COUNTERS_H
#define SHERD_STORAGE_COUNTERS_H

#include "storage/catalog.h"

struct counter {
    int64_t docs;  /* documents, or entries of an index */
    int64_t bytes; /* of BSON, or of keys */
};

/* All zero when never written. Any transaction. */
void counter_collection(struct store_txn *txn, const struct collection *coll, struct counter *out);
void counter_index(struct store_txn *txn, const struct index_def *index, struct counter *out);
/* False (and zeros) when the range has none. A key beyond 400 bytes is kept as its first bytes and a hash. */
bool counter_range(struct store_txn *txn, const struct collection *coll, const void *key, size_t key_len,
                   struct counter *out);

/* Apply thread. record_* maintain ranges by themselves; these are for splits, moves and range deletion. */
void counter_range_set(struct store_txn *txn, const struct collection *coll, const void *key, size_t key_len,
                       const struct counter *value);
void counter_range_add(struct store_txn *txn, const struct collection *coll, const void *key, size_t key_len,
                       const struct counter *delta);
void counter_range_delete(struct store_txn *txn, const struct collection *coll, const void *key, size_t key_len);

#endif
