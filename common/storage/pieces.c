#include "storage/pieces.h"

#include "storage/records.h"

static void piece_key(uint8_t out[RECORD_PIECE_KEY_BYTES], uint32_t collection_id, uint64_t record_id, uint32_t piece)
{
    record_key(out, collection_id, record_id);
    out[12] = (uint8_t)(piece >> 8);
    out[13] = (uint8_t)piece;
}

uint32_t pieces_count(uint32_t len)
{
    return (len + RECORD_PIECE_BYTES - 1) / RECORD_PIECE_BYTES;
}

static uint32_t piece_len(uint32_t len, uint32_t piece)
{
    uint32_t left = len - piece * RECORD_PIECE_BYTES;
    return left < RECORD_PIECE_BYTES ? left : RECORD_PIECE_BYTES;
}

void pieces_read(struct store_txn *txn, uint32_t collection_id, uint64_t record_id, const MDB_val *first,
                 struct buf *scratch, struct bdoc *doc)
{
    if (first->mv_size < 5)
        store_fatal(MDB_CORRUPTED, "read a document");
    uint32_t len = load_le32(first->mv_data);
    if (len == first->mv_size) {
        *doc = (struct bdoc){first->mv_data, len};
        return;
    }
    if (len < first->mv_size || len > BDOC_MAX_INTERNAL_BYTES)
        store_fatal(MDB_CORRUPTED, "read a document");
    buf_clear(scratch);
    buf_append(scratch, first->mv_data, first->mv_size);
    for (uint32_t piece = 1; scratch->len < len; piece++) {
        uint8_t key[RECORD_PIECE_KEY_BYTES];
        MDB_val value;
        piece_key(key, collection_id, record_id, piece);
        if (!env_get(txn, STORE_DB_RECORDS, key, sizeof key, &value) || value.mv_size == 0 ||
            value.mv_size > len - scratch->len)
            store_fatal(MDB_CORRUPTED, "read a document's piece");
        buf_append(scratch, value.mv_data, value.mv_size);
    }
    *doc = (struct bdoc){scratch->data, len};
}

static void put_piece(struct store_txn *txn, const uint8_t *key, size_t key_len, const uint8_t *data, uint32_t len)
{
    MDB_val old;
    if (env_get(txn, STORE_DB_RECORDS, key, key_len, &old) && old.mv_size == len && memcmp(old.mv_data, data, len) == 0)
        return;
    env_put(txn, STORE_DB_RECORDS, key, key_len, data, len);
}

void pieces_write(struct store_txn *txn, uint32_t collection_id, uint64_t record_id, struct bdoc doc, uint32_t old_len)
{
    uint8_t key[RECORD_PIECE_KEY_BYTES];
    record_key(key, collection_id, record_id);
    uint32_t count = pieces_count(doc.len);
    uint32_t old_count = pieces_count(old_len);
    if (count <= 1 && old_count <= 1) {
        env_cursor_put(env_write_cursor(txn, STORE_DB_RECORDS, collection_id), key, RECORD_KEY_BYTES, doc.data,
                       doc.len);
        return;
    }
    for (uint32_t piece = 0; piece < count; piece++) {
        piece_key(key, collection_id, record_id, piece);
        put_piece(txn, key, piece == 0 ? RECORD_KEY_BYTES : RECORD_PIECE_KEY_BYTES,
                  doc.data + (size_t)piece * RECORD_PIECE_BYTES, piece_len(doc.len, piece));
    }
    for (uint32_t piece = count; piece < old_count; piece++) {
        piece_key(key, collection_id, record_id, piece);
        env_delete(txn, STORE_DB_RECORDS, key, sizeof key);
    }
}

void pieces_erase(struct store_txn *txn, uint32_t collection_id, uint64_t record_id, uint32_t old_len)
{
    uint8_t key[RECORD_PIECE_KEY_BYTES];
    for (uint32_t piece = 0; piece < pieces_count(old_len); piece++) {
        piece_key(key, collection_id, record_id, piece);
        env_delete(txn, STORE_DB_RECORDS, key, piece == 0 ? RECORD_KEY_BYTES : RECORD_PIECE_KEY_BYTES);
    }
}
