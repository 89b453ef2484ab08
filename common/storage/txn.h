/* Inside storage only. */
#ifndef SHERD_STORAGE_TXN_H
#define SHERD_STORAGE_TXN_H

#include "storage/env.h"

/* Frees a pooled read transaction or the idle write transaction. Accepts NULL. */
void txn_free(struct store_txn *txn);

#endif
