#include "storage/cursor.h"
#include "storage/pieces.h"

void record_cursor_open(struct record_cursor *cursor, struct store_txn *txn, const struct collection *coll,
                        bool backward)
{
    *cursor = (struct record_cursor){.txn = txn, .collection_id = coll->id, .backward = backward};
    cursor->mdb = env_cursor_take(txn, STORE_DB_RECORDS);
}

void record_cursor_close(struct record_cursor *cursor)
{
    if (cursor->mdb != NULL)
        env_cursor_give(cursor->txn, STORE_DB_RECORDS, cursor->mdb);
    cursor->mdb = NULL;
    buf_deinit(&cursor->scratch);
}

void record_cursor_seek_after(struct record_cursor *cursor, uint64_t record_id)
{
    cursor->after_id = record_id;
    cursor->started = false;
}

/* Stands the cursor on the first key at or beyond its place, going up; going down, on the last key below it. */
static bool start(struct record_cursor *cursor, MDB_val *key, MDB_val *value)
{
    uint8_t from[RECORD_KEY_BYTES];
    if (!cursor->backward) {
        record_key(from, cursor->collection_id, cursor->after_id + 1);
        *key = (MDB_val){sizeof from, from};
        return env_cursor_get(cursor->mdb, key, value, MDB_SET_RANGE);
    }
    if (cursor->after_id != 0)
        record_key(from, cursor->collection_id, cursor->after_id);
    else
        record_key(from, cursor->collection_id + 1, 0);
    *key = (MDB_val){sizeof from, from};
    if (!env_cursor_get(cursor->mdb, key, value, MDB_SET_RANGE))
        return env_cursor_get(cursor->mdb, key, value, MDB_LAST);
    return env_cursor_get(cursor->mdb, key, value, MDB_PREV);
}

bool record_cursor_next(struct record_cursor *cursor, uint64_t *record_id, struct bdoc *doc)
{
    MDB_val key;
    MDB_val value;
    bool more = cursor->started ? env_cursor_get(cursor->mdb, &key, &value, cursor->backward ? MDB_PREV : MDB_NEXT)
                                : start(cursor, &key, &value);
    while (more && key.mv_size != RECORD_KEY_BYTES) /* a piece */
        more = env_cursor_get(cursor->mdb, &key, &value, cursor->backward ? MDB_PREV : MDB_NEXT);
    if (!more || load_be32(key.mv_data) != cursor->collection_id)
        return false;
    cursor->started = true;
    cursor->after_id = load_be64((const uint8_t *)key.mv_data + 4);
    if (record_id != NULL)
        *record_id = cursor->after_id;
    if (doc != NULL)
        pieces_read(cursor->txn, cursor->collection_id, cursor->after_id, &value, &cursor->scratch, doc);
    return true;
}
