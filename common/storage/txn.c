/* Transactions: read ones from a pool, the apply thread's write transaction, and the values of "meta". */
#include "storage/env.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/mem.h"
#include "storage/snapshot.h"
#include "storage/txn.h"

static const char applied_key[] = "applied_index";

static struct store_txn *pool_take(struct store *store)
{
    pthread_mutex_lock(&store->pool_lock);
    struct store_txn *txn = store->pool;
    if (txn != NULL)
        store->pool = txn->next;
    store->open_txns++;
    pthread_mutex_unlock(&store->pool_lock);
    return txn;
}

static void pool_give(struct store_txn *txn)
{
    struct store *store = txn->store;
    pthread_mutex_lock(&store->pool_lock);
    txn->next = store->pool;
    store->pool = txn;
    store->open_txns--;
    pthread_mutex_unlock(&store->pool_lock);
}

static bool read_refused(struct store *store, int rc, struct err *err)
{
    if (rc != MDB_READERS_FULL)
        store_fatal(rc, "begin a read transaction");
    pthread_mutex_lock(&store->pool_lock);
    store->open_txns--;
    pthread_mutex_unlock(&store->pool_lock);
    return err_set(err, ERR_LockBusy, "too many read transactions are open");
}

bool store_read_begin(struct store *store, struct store_txn **out, struct err *err)
{
    struct store_txn *txn = pool_take(store);
    if (txn != NULL) {
        int rc = mdb_txn_renew(txn->mdb);
        if (rc != 0)
            store_fatal(rc, "renew a read transaction");
    } else {
        MDB_txn *mdb;
        int rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &mdb);
        if (rc != 0)
            return read_refused(store, rc, err);
        txn = mem_alloc(sizeof *txn);
        txn->store = store;
        txn->mdb = mdb;
    }
    txn->catalog_checked = false;
    *out = txn;
    return true;
}

void store_read_end(struct store_txn *txn)
{
    if (txn == NULL)
        return;
    CHECK(txn->write == NULL);
    mdb_txn_reset(txn->mdb);
    pool_give(txn);
}

void txn_free(struct store_txn *txn)
{
    if (txn == NULL)
        return;
    for (int db = 0; db < STORE_DB_COUNT; db++)
        for (int i = 0; i < txn->idle_count[db]; i++)
            mdb_cursor_close(txn->idle[db][i]);
    if (txn->mdb != NULL)
        mdb_txn_abort(txn->mdb);
    if (txn->write != NULL) {
        for (uint32_t i = 0; i < txn->write->keys_cap; i++) {
            index_keys_deinit(&txn->write->new_keys[i]);
            index_keys_deinit(&txn->write->old_keys[i]);
        }
        mem_free(txn->write->new_keys);
        mem_free(txn->write->old_keys);
        mem_free(txn->write->counters);
        mem_free(txn->write->retired);
        mem_free(txn->write);
    }
    catalog_snapshot_unref(txn->catalog);
    buf_deinit(&txn->scratch);
    buf_deinit(&txn->scratch_doc);
    mem_free(txn);
}

static struct store_txn *write_txn_new(struct store *store)
{
    struct store_txn *txn = mem_alloc(sizeof *txn);
    txn->store = store;
    txn->write = mem_alloc(sizeof *txn->write);
    return txn;
}

bool store_write_begin(struct store *store, struct store_txn **out, struct err *err)
{
    (void)err;
    pthread_mutex_lock(&store->gate);
    pthread_mutex_lock(&store->write_lock);
    pthread_mutex_unlock(&store->gate);
    space_allocate_ahead(store);
    if (store->write_txn == NULL)
        store->write_txn = write_txn_new(store);
    struct store_txn *txn = store->write_txn;
    CHECK(txn->mdb == NULL);
    int rc = mdb_txn_begin(store->env, NULL, 0, &txn->mdb);
    if (rc != 0)
        store_fatal(rc, "begin a write transaction");
    txn->catalog_checked = false;
    *out = txn;
    return true;
}

static void close_slots(MDB_cursor **slots)
{
    for (int i = 0; i < ENV_WRITE_CURSORS; i++) {
        if (slots[i] != NULL)
            mdb_cursor_close(slots[i]);
        slots[i] = NULL;
    }
}

static void close_write_cursors(struct write_state *write)
{
    for (int db = 0; db < STORE_DB_COUNT; db++)
        close_slots(write->cursors[db]);
    close_slots(write->probes);
}

void store_write_commit(struct store_txn *txn, uint64_t applied_index)
{
    struct store *store = txn->store;
    CHECK(txn->write != NULL);
    CHECK(applied_index >= atomic_load_explicit(&store->applied_index, memory_order_relaxed));
    fault_hit(FAULT_apply_before_commit);
    counters_flush(txn);
    uint8_t bytes[8];
    store_le64(bytes, applied_index);
    env_put(txn, STORE_DB_META, applied_key, sizeof applied_key - 1, bytes, sizeof bytes);
    close_write_cursors(txn->write);
    snapshot_publish(txn);
    int rc = mdb_txn_commit(txn->mdb);
    if (rc != 0)
        store_fatal(rc, "commit");
    txn->mdb = NULL;
    atomic_store_explicit(&store->applied_index, applied_index, memory_order_release);
    counters_forget(txn);
    snapshot_after_write(txn, true);
    space_after_commit(store);
    pthread_mutex_unlock(&store->write_lock);
    fault_hit(FAULT_apply_after_commit);
}

void store_write_abort(struct store_txn *txn)
{
    if (txn == NULL)
        return;
    CHECK(txn->write != NULL && txn->mdb != NULL);
    close_write_cursors(txn->write);
    mdb_txn_abort(txn->mdb);
    txn->mdb = NULL;
    counters_forget(txn);
    snapshot_after_write(txn, false);
    pthread_mutex_unlock(&txn->store->write_lock);
}

struct store *store_of(const struct store_txn *txn)
{
    return txn->store;
}

bool store_txn_is_write(const struct store_txn *txn)
{
    return txn->write != NULL;
}

uint64_t store_applied_index(const struct store *store)
{
    return atomic_load_explicit(&store->applied_index, memory_order_acquire);
}

uint64_t store_txn_applied_index(struct store_txn *txn)
{
    MDB_val value;
    if (!env_get(txn, STORE_DB_META, applied_key, sizeof applied_key - 1, &value) || value.mv_size != 8)
        return 0;
    return load_le64(value.mv_data);
}

/* ---- meta: the caller's keys have a prefix of their own ---- */

static size_t meta_key(uint8_t out[STORE_META_KEY_MAX + 2], const void *key, size_t key_len)
{
    CHECK(key_len <= STORE_META_KEY_MAX);
    memcpy(out, "u:", 2);
    memcpy(out + 2, key, key_len);
    return key_len + 2;
}

bool store_meta_get(struct store_txn *txn, const void *key, size_t key_len, const void **value, size_t *value_len)
{
    uint8_t full[STORE_META_KEY_MAX + 2];
    MDB_val found;
    if (!env_get(txn, STORE_DB_META, full, meta_key(full, key, key_len), &found))
        return false;
    *value = found.mv_data;
    *value_len = found.mv_size;
    return true;
}

void store_meta_put(struct store_txn *txn, const void *key, size_t key_len, const void *value, size_t value_len)
{
    uint8_t full[STORE_META_KEY_MAX + 2];
    env_put(txn, STORE_DB_META, full, meta_key(full, key, key_len), value, value_len);
}

void store_meta_delete(struct store_txn *txn, const void *key, size_t key_len)
{
    uint8_t full[STORE_META_KEY_MAX + 2];
    env_delete(txn, STORE_DB_META, full, meta_key(full, key, key_len));
}
