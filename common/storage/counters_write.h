/* Inside storage only: what a write transaction adds to its counters. Held in memory and written at commit. */
#ifndef SHERD_STORAGE_COUNTERS_WRITE_H
#define SHERD_STORAGE_COUNTERS_WRITE_H

#include "storage/counters.h"
#include "storage/env.h"

/* The totals of a collection or an index, as the transaction has them; valid until the next call. Change them and set
 * `dirty`. */
struct counter_slot *counters_slot(struct store_txn *txn, uint32_t id);

#endif
