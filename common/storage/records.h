/* Documents of a collection by record id, with every index entry and counter maintained in the same transaction.
 *
 * Reading: any thread, within its transaction. Writing: the apply thread. A write first derives all keys and checks
 * everything that can be refused; only then it puts, and from there nothing can fail but fatally. So after an error the
 * transaction is as it was before the call and may go on. */
#ifndef SHERD_STORAGE_RECORDS_H
#define SHERD_STORAGE_RECORDS_H

#include "storage/catalog.h"

enum {
    RECORD_PIECE_BYTES =
        16 * 4096 - 16, /* a longer document is kept in pieces: a run of 16 LMDB pages without its header */
    RECORD_ID_FIRST = 1,
};

/* ---- reading ---- */

/* Borrowed from the transaction: *doc is valid until it ends (in a write transaction: until its next change), or, for a
 * document in pieces, as long as `scratch` (the caller's, BUF_INIT at first, reusable) is not changed. False: no such
 * record. */
bool record_get(struct store_txn *txn, const struct collection *coll, uint64_t record_id, struct buf *scratch,
                struct bdoc *doc);
/* The record with that _id, the oldest one if a foreign document (record_write.conflicts) has it too: then a cursor
 * over the _id index shows all. False: none. */
bool record_find_id(struct store_txn *txn, const struct collection *coll, const struct bval *id, uint64_t *record_id);
/* Both in one. */
bool record_get_by_id(struct store_txn *txn, const struct collection *coll, const struct bval *id, struct buf *scratch,
                      uint64_t *record_id, struct bdoc *doc);

/* ---- writing ---- */

/* Names a range whose counters a document belongs to; key NULL: only the collection's counters change. */
struct record_range {
    const void *key;
    size_t key_len;
};

struct record_write {
    struct record_range range;     /* of the new document (insert, replace) or of the erased one */
    struct record_range old_range; /* replace: of the document before */
    /* A document that holds the same unique key: true when it counts as a conflict (it is owned here). NULL: always. */
    bool (*conflicts)(void *arg, struct bdoc other);
    void *conflicts_arg;
};

/* Limits of a document that will be stored: ERR_BSONObjectTooLarge beyond 16 MiB, ERR_Overflow beyond 100 levels,
 * ERR_InvalidIdField for an _id that is missing, an array, a regular expression or undefined. Pure; the writes below
 * call it. */
bool record_check_document(struct bdoc doc, struct err *err) ERR_WARN_UNUSED;

/* `write` may be NULL. *record_id (may be NULL) is the new record's. Errors: those of record_check_document,
 * ERR_DuplicateKey with details {keyPattern, keyValue}, 171 CannotIndexParallelArrays, 16766 (array in a hashed index),
 * 16746 (ambiguous field name in an array), 201 (too many index keys). */
bool record_insert(struct store_txn *txn, const struct collection *coll, struct bdoc doc,
                   const struct record_write *write, uint64_t *record_id, struct err *err) ERR_WARN_UNUSED;
/* The record keeps its id. The document's _id must be equal to the old one (ERR_ImmutableField). The record must exist.
 * `doc` may not lie in LMDB's memory (a view from record_get of the same transaction): copy it first. */
bool record_replace(struct store_txn *txn, const struct collection *coll, uint64_t record_id, struct bdoc doc,
                    const struct record_write *write, struct err *err) ERR_WARN_UNUSED;
/* False when there is no such record. */
bool record_erase(struct store_txn *txn, const struct collection *coll, uint64_t record_id,
                  const struct record_write *write);

#endif
