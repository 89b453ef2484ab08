/* Building an index on documents that are there already. All in write transactions of the apply thread, driven by log
 * entries:
 *
 *   catalog_create_index -> BUILDING --(index_build_step ... until no more)--> index_build_finish -> READY | FAILED
 *
 * From the first moment writes maintain the index. A step derives the keys of the next records after the stored
 * position. A write or a step that finds a unique key taken notes it; index_build_finish looks at the notes again. */
#ifndef SHERD_STORAGE_INDEX_BUILD_H
#define SHERD_STORAGE_INDEX_BUILD_H

#include "storage/catalog.h"

enum {
    INDEX_BUILD_NOW_DOCS = 1000, /* up to so many documents index_build_now is right */
};

/* The next `max_records` records. True when more are left. The index must be BUILDING. Keys that can't be derived
 * (parallel arrays
 * ...) are noted, too. */
bool index_build_step(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                      uint32_t max_records);
/* What index_build_finish would say; changes nothing. */
bool index_build_check(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                       struct err *err) ERR_WARN_UNUSED;
/* Makes it READY and returns true, or FAILED (with the reason: 11000 ...) and returns false. */
bool index_build_finish(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                        struct err *err) ERR_WARN_UNUSED;
/* Create, all steps and finish in one transaction, for small collections. On an error the index is gone again and the
 * transaction goes on. *exists as in catalog_create_index. */
bool index_build_now(struct store_txn *txn, const struct collection *coll, struct bdoc spec, bool *exists,
                     struct err *err) ERR_WARN_UNUSED;
/* Records that a build has behind it, for progress; any transaction. */
uint64_t index_build_done_records(struct store_txn *txn, const struct index_def *index);

#endif
