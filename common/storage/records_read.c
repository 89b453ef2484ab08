#include "storage/records.h"

#include "bson/keyenc.h"
#include "storage/entries.h"
#include "storage/pieces.h"

bool record_get(struct store_txn *txn, const struct collection *coll, uint64_t record_id, struct buf *scratch,
                struct bdoc *doc)
{
    uint8_t key[RECORD_KEY_BYTES];
    MDB_val value;
    record_key(key, coll->id, record_id);
    if (!env_get(txn, STORE_DB_RECORDS, key, sizeof key, &value))
        return false;
    pieces_read(txn, coll->id, record_id, &value, scratch, doc);
    return true;
}

bool record_find_id(struct store_txn *txn, const struct collection *coll, const struct bval *id, uint64_t *record_id)
{
    const struct index_def *index = coll->indexes[0];
    buf_clear(&txn->scratch);
    keyenc_append(&txn->scratch, id, index->fields[0].descending);
    MDB_cursor *cursor = txn->write != NULL ? env_probe_cursor(txn, index->id) : env_cursor_take(txn, STORE_DB_ENTRIES);
    bool found = entry_next_with_key(cursor, index->id, txn->scratch.data, (uint32_t)txn->scratch.len, 0, record_id);
    if (txn->write == NULL)
        env_cursor_give(txn, STORE_DB_ENTRIES, cursor);
    return found;
}

bool record_get_by_id(struct store_txn *txn, const struct collection *coll, const struct bval *id, struct buf *scratch,
                      uint64_t *record_id, struct bdoc *doc)
{
    return record_find_id(txn, coll, id, record_id) && record_get(txn, coll, *record_id, scratch, doc);
}
