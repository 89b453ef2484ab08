#include "storage/env.h"

#include "base/check.h"
#include "base/log.h"

#include <unistd.h>

void store_fatal(int code, const char *what)
{
    log_error("STORAGE", 2000, "The store failed; stopping", LOG_STR("what", what), LOG_I64("code", code),
              LOG_STR("error", mdb_strerror(code)));
    _exit(70);
}

bool env_get(struct store_txn *txn, enum store_db db, const void *key, size_t key_len, MDB_val *value)
{
    MDB_val k = {key_len, (void *)(uintptr_t)key};
    int rc = mdb_get(txn->mdb, txn->store->dbi[db], &k, value);
    if (rc != 0 && rc != MDB_NOTFOUND)
        store_fatal(rc, "get");
    return rc == 0;
}

void env_put(struct store_txn *txn, enum store_db db, const void *key, size_t key_len, const void *value,
             size_t value_len)
{
    CHECK(txn->write != NULL);
    MDB_val k = {key_len, (void *)(uintptr_t)key};
    MDB_val v = {value_len, (void *)(uintptr_t)value};
    int rc = mdb_put(txn->mdb, txn->store->dbi[db], &k, &v, 0);
    if (rc != 0)
        store_fatal(rc, "put");
}

bool env_delete(struct store_txn *txn, enum store_db db, const void *key, size_t key_len)
{
    CHECK(txn->write != NULL);
    MDB_val k = {key_len, (void *)(uintptr_t)key};
    int rc = mdb_del(txn->mdb, txn->store->dbi[db], &k, NULL);
    if (rc != 0 && rc != MDB_NOTFOUND)
        store_fatal(rc, "delete");
    return rc == 0;
}

MDB_cursor *env_cursor_take(struct store_txn *txn, enum store_db db)
{
    MDB_cursor *cursor = NULL;
    int rc;
    if (txn->idle_count[db] > 0) {
        cursor = txn->idle[db][--txn->idle_count[db]];
        rc = mdb_cursor_renew(txn->mdb, cursor);
    } else {
        rc = mdb_cursor_open(txn->mdb, txn->store->dbi[db], &cursor);
    }
    if (rc != 0)
        store_fatal(rc, "open a cursor");
    return cursor;
}

void env_cursor_give(struct store_txn *txn, enum store_db db, MDB_cursor *cursor)
{
    if (txn->write == NULL && txn->idle_count[db] < ENV_IDLE_CURSORS)
        txn->idle[db][txn->idle_count[db]++] = cursor;
    else
        mdb_cursor_close(cursor);
}

bool env_cursor_get(MDB_cursor *cursor, MDB_val *key, MDB_val *value, MDB_cursor_op op)
{
    int rc = mdb_cursor_get(cursor, key, value, op);
    if (rc != 0 && rc != MDB_NOTFOUND)
        store_fatal(rc, "move a cursor");
    return rc == 0;
}

static MDB_cursor *kept_cursor(struct store_txn *txn, enum store_db db, MDB_cursor **slot)
{
    CHECK(txn->write != NULL);
    if (*slot == NULL) {
        int rc = mdb_cursor_open(txn->mdb, txn->store->dbi[db], slot);
        if (rc != 0)
            store_fatal(rc, "open a cursor");
    }
    return *slot;
}

MDB_cursor *env_write_cursor(struct store_txn *txn, enum store_db db, uint32_t id)
{
    return kept_cursor(txn, db, &txn->write->cursors[db][id & (ENV_WRITE_CURSORS - 1)]);
}

MDB_cursor *env_probe_cursor(struct store_txn *txn, uint32_t index_id)
{
    return kept_cursor(txn, STORE_DB_ENTRIES, &txn->write->probes[index_id & (ENV_WRITE_CURSORS - 1)]);
}

void env_cursor_put(MDB_cursor *cursor, const void *key, size_t key_len, const void *value, size_t value_len)
{
    MDB_val k = {key_len, (void *)(uintptr_t)key};
    MDB_val v = {value_len, (void *)(uintptr_t)value};
    int rc = mdb_cursor_put(cursor, &k, &v, 0);
    if (rc != 0)
        store_fatal(rc, "put");
}

bool env_cursor_delete_key(MDB_cursor *cursor, const void *key, size_t key_len)
{
    MDB_val k = {key_len, (void *)(uintptr_t)key};
    MDB_val v;
    if (!env_cursor_get(cursor, &k, &v, MDB_SET))
        return false;
    int rc = mdb_cursor_del(cursor, 0);
    if (rc != 0)
        store_fatal(rc, "delete");
    return true;
}

uint32_t env_next_id(struct store_txn *txn)
{
    static const char key[] = "next_id";
    uint32_t id = 1;
    MDB_val value;
    if (env_get(txn, STORE_DB_META, key, sizeof key - 1, &value) && value.mv_size == 4)
        id = load_le32(value.mv_data);
    uint8_t next[4];
    store_le32(next, id + 1);
    env_put(txn, STORE_DB_META, key, sizeof key - 1, next, sizeof next);
    return id;
}
