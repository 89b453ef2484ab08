/* Inside storage only: a document as one or more values of the records database.
 *
 *   be32 collection id, be64 record id             -> the document, or its first RECORD_PIECE_BYTES
 *   be32 collection id, be64 record id, be16 n     -> piece n = 1, 2, ... of a longer one
 *
 * The document's own length (its first 4 bytes) says whether pieces follow. */
#ifndef SHERD_STORAGE_PIECES_H
#define SHERD_STORAGE_PIECES_H

#include "storage/env.h"

enum {
    RECORD_KEY_BYTES = 12,
    RECORD_PIECE_KEY_BYTES = 14,
};

static inline void record_key(uint8_t out[RECORD_KEY_BYTES], uint32_t collection_id, uint64_t record_id)
{
    store_be32(out, collection_id);
    store_be64(out + 4, record_id);
}

/* How many values a document of that length has. */
uint32_t pieces_count(uint32_t len);
/* Puts a document together from its first value; `scratch` is used only when there are pieces. */
void pieces_read(struct store_txn *txn, uint32_t collection_id, uint64_t record_id, const MDB_val *first,
                 struct buf *scratch, struct bdoc *doc);
/* Writes a document in place of one of `old_len` bytes (0: none); pieces that don't change are not written. */
void pieces_write(struct store_txn *txn, uint32_t collection_id, uint64_t record_id, struct bdoc doc, uint32_t old_len);
void pieces_erase(struct store_txn *txn, uint32_t collection_id, uint64_t record_id, uint32_t old_len);

#endif
