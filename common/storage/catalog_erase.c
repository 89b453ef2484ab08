/* Erasing what was dropped. The catalog database lists ids of collections and indexes that are gone; a step erases a
 * bounded number of keys of the first one, and takes it off the list when nothing of it is left. */
#include "storage/snapshot.h"

static bool first_waiting(struct store_txn *txn, uint32_t *id, uint8_t *kind)
{
    uint8_t first[CATALOG_KEY_BYTES];
    catalog_key(first, CATALOG_KEY_ERASE, 0);
    MDB_val key = {sizeof first, first};
    MDB_val value;
    MDB_cursor *cursor = env_cursor_take(txn, STORE_DB_CATALOG);
    bool found = env_cursor_get(cursor, &key, &value, MDB_SET_RANGE) && key.mv_size == CATALOG_KEY_BYTES &&
                 *(const uint8_t *)key.mv_data == CATALOG_KEY_ERASE && value.mv_size == 1;
    if (found) {
        *id = load_be32((const uint8_t *)key.mv_data + 1);
        *kind = *(const uint8_t *)value.mv_data;
    }
    env_cursor_give(txn, STORE_DB_CATALOG, cursor);
    return found;
}

/* Erases keys that begin with `id`; returns how many, at most `max`. */
static uint32_t erase_keys(struct store_txn *txn, enum store_db db, uint32_t id, uint32_t max)
{
    uint8_t prefix[4];
    store_be32(prefix, id);
    MDB_cursor *cursor = env_cursor_take(txn, db);
    uint32_t erased = 0;
    while (erased < max) {
        MDB_val key = {sizeof prefix, prefix};
        MDB_val value;
        if (!env_cursor_get(cursor, &key, &value, MDB_SET_RANGE) || key.mv_size < sizeof prefix ||
            load_be32(key.mv_data) != id)
            break;
        int rc = mdb_cursor_del(cursor, 0);
        if (rc != 0)
            store_fatal(rc, "erase what was dropped");
        erased++;
    }
    env_cursor_give(txn, db, cursor);
    return erased;
}

static uint32_t erase_waiting(struct store_txn *txn, uint32_t id, uint8_t kind, uint32_t max)
{
    counters_flush(txn); /* what the transaction itself counted must not come back after it was erased */
    counters_forget(txn);
    uint32_t erased = erase_keys(txn, kind == CATALOG_ERASE_INDEX ? STORE_DB_ENTRIES : STORE_DB_RECORDS, id, max);
    if (erased < max)
        erased += erase_keys(txn, STORE_DB_COUNTERS, id, max - erased);
    if (erased < max)
        erased += erase_keys(txn, STORE_DB_BUILDS, id, max - erased);
    return erased;
}

bool catalog_erase_pending(struct store_txn *txn)
{
    uint32_t id;
    uint8_t kind;
    return first_waiting(txn, &id, &kind);
}

bool catalog_erase_step(struct store_txn *txn, uint32_t max_entries)
{
    uint32_t left = max_entries;
    uint32_t id;
    uint8_t kind;
    while (left > 0 && first_waiting(txn, &id, &kind)) {
        uint32_t erased = erase_waiting(txn, id, kind, left);
        if (erased < left) {
            uint8_t key[CATALOG_KEY_BYTES];
            catalog_key(key, CATALOG_KEY_ERASE, id);
            env_delete(txn, STORE_DB_CATALOG, key, sizeof key);
            erased++; /* the item itself: many small ones must not make a long step */
        }
        left -= erased < left ? erased : left;
    }
    return catalog_erase_pending(txn);
}
