#include "storage/env.h"

/* A mix over 8 bytes at a time; speed matters, an attacker doesn't. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static uint64_t hash_val(uint64_t hash, const MDB_val *val)
{
    const uint8_t *data = val->mv_data;
    size_t len = val->mv_size;
    hash = mix(hash, len);
    for (; len >= 8; len -= 8, data += 8)
        hash = mix(hash, load_le64(data));
    uint64_t tail = 0;
    if (len > 0)
        memcpy(&tail, data, len);
    return mix(hash, tail);
}

uint64_t store_logical_hash(struct store_txn *txn)
{
    uint64_t hash = UINT64_C(1469598103934665603);
    for (int db = 0; db < STORE_DB_COUNT; db++) {
        hash = mix(hash, (uint64_t)db);
        MDB_cursor *cursor = env_cursor_take(txn, (enum store_db)db);
        MDB_val key;
        MDB_val value;
        bool more = env_cursor_get(cursor, &key, &value, MDB_FIRST);
        while (more) {
            hash = hash_val(hash_val(hash, &key), &value);
            more = env_cursor_get(cursor, &key, &value, MDB_NEXT);
        }
        env_cursor_give(txn, (enum store_db)db, cursor);
    }
    return hash;
}
