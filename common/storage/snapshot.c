#include "storage/snapshot.h"

#include "base/check.h"
#include "base/mem.h"

static const char version_key[] = "catalog_version";

static uint64_t stored_version(struct store_txn *txn)
{
    MDB_val value;
    if (!env_get(txn, STORE_DB_META, version_key, sizeof version_key - 1, &value) || value.mv_size != 8)
        return 0;
    return load_le64(value.mv_data);
}

static int compare_ns(const struct collection_object *a, const struct collection_object *b)
{
    return strcmp(a->def.ns, b->def.ns);
}

static int compare_id(const struct collection_object *a, const struct collection_object *b)
{
    return a->def.id < b->def.id ? -1 : a->def.id > b->def.id;
}

static int compare_uuid(const struct collection_object *a, const struct collection_object *b)
{
    return memcmp(a->def.uuid, b->def.uuid, UUID_BYTES);
}

typedef int compare_fn(const struct collection_object *, const struct collection_object *);

/* Where `object` belongs in a sorted array. */
static uint32_t place_of(struct collection_object *const *array, uint32_t count, const struct collection_object *object,
                         compare_fn *compare)
{
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare(array[middle], object) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct catalog_snapshot *snapshot_new(uint64_t version, uint32_t capacity)
{
    struct catalog_snapshot *snapshot = mem_alloc(sizeof *snapshot);
    atomic_init(&snapshot->refs, 1);
    snapshot->version = version;
    snapshot->by_ns = mem_alloc_array(capacity + 1u, sizeof(void *));
    snapshot->by_id = mem_alloc_array(capacity + 1u, sizeof(void *));
    snapshot->by_uuid = mem_alloc_array(capacity + 1u, sizeof(void *));
    return snapshot;
}

static void insert_sorted(struct collection_object **array, uint32_t count, struct collection_object *object,
                          compare_fn *compare)
{
    uint32_t at = place_of(array, count, object, compare);
    memmove(array + at + 1, array + at, (count - at) * sizeof *array);
    array[at] = object;
}

/* Takes the reference. The arrays have room. */
static void add(struct catalog_snapshot *snapshot, struct collection_object *object)
{
    insert_sorted(snapshot->by_ns, snapshot->count, object, compare_ns);
    insert_sorted(snapshot->by_id, snapshot->count, object, compare_id);
    insert_sorted(snapshot->by_uuid, snapshot->count, object, compare_uuid);
    snapshot->count++;
}

static void copy_without(struct collection_object **to, struct collection_object *const *from, uint32_t count,
                         uint32_t without_id)
{
    for (uint32_t i = 0; i < count; i++)
        if (from[i]->def.id != without_id)
            *to++ = from[i];
}

/* A successor without one collection (0: with all), with room for one more. */
static struct catalog_snapshot *copy(const struct catalog_snapshot *from, uint32_t without_id)
{
    struct catalog_snapshot *snapshot = snapshot_new(from->version + 1, from->count + 1);
    copy_without(snapshot->by_ns, from->by_ns, from->count, without_id);
    copy_without(snapshot->by_id, from->by_id, from->count, without_id);
    copy_without(snapshot->by_uuid, from->by_uuid, from->count, without_id);
    while (snapshot->count <= from->count && snapshot->by_ns[snapshot->count] != NULL)
        atomic_fetch_add(&snapshot->by_ns[snapshot->count++]->refs, 1);
    return snapshot;
}

void catalog_snapshot_unref(struct catalog_snapshot *snapshot)
{
    if (snapshot == NULL || atomic_fetch_sub(&snapshot->refs, 1) != 1)
        return;
    for (uint32_t i = 0; i < snapshot->count; i++)
        collection_object_unref(snapshot->by_ns[i]);
    mem_free(snapshot->by_ns);
    mem_free(snapshot->by_id);
    mem_free(snapshot->by_uuid);
    mem_free(snapshot);
}

/* NULL, and an error, when the catalog can't be read. */
static struct catalog_snapshot *try_load(struct store_txn *txn, uint64_t version, struct err *err)
{
    MDB_stat stat;
    int rc = mdb_stat(txn->mdb, txn->store->dbi[STORE_DB_CATALOG], &stat);
    if (rc != 0)
        store_fatal(rc, "read the catalog");
    struct catalog_snapshot *snapshot = snapshot_new(version, (uint32_t)stat.ms_entries);
    MDB_cursor *cursor = env_cursor_take(txn, STORE_DB_CATALOG);
    uint8_t first[CATALOG_KEY_BYTES];
    catalog_key(first, CATALOG_KEY_COLLECTION, 0);
    MDB_val key = {sizeof first, first};
    MDB_val value;
    bool ok = true;
    bool more = env_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    while (ok && more && *(const uint8_t *)key.mv_data == CATALOG_KEY_COLLECTION) {
        struct collection_object *object;
        struct bdoc stored = {value.mv_data, (uint32_t)value.mv_size};
        ok = collection_object_parse(txn->store, stored, &object, err);
        if (ok)
            add(snapshot, object);
        more = env_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    env_cursor_give(txn, STORE_DB_CATALOG, cursor);
    if (ok)
        return snapshot;
    catalog_snapshot_unref(snapshot);
    return NULL;
}

static struct catalog_snapshot *load(struct store_txn *txn, uint64_t version)
{
    struct err err;
    struct catalog_snapshot *snapshot = try_load(txn, version, &err);
    if (snapshot == NULL)
        store_fatal(MDB_CORRUPTED, err.msg);
    return snapshot;
}

bool snapshot_check(struct store_txn *txn, struct err *err)
{
    struct catalog_snapshot *snapshot = try_load(txn, stored_version(txn), err);
    bool ok = snapshot != NULL;
    catalog_snapshot_unref(snapshot);
    return ok;
}

/* A published version with a reference, or NULL. */
static struct catalog_snapshot *find_recent(struct store *store, uint64_t version)
{
    struct catalog_snapshot *found = NULL;
    pthread_mutex_lock(&store->catalog_lock);
    for (int i = 0; i < 2 && found == NULL; i++) {
        if (store->recent[i] != NULL && store->recent[i]->version == version) {
            found = store->recent[i];
            atomic_fetch_add(&found->refs, 1);
        }
    }
    pthread_mutex_unlock(&store->catalog_lock);
    return found;
}

/* Keeps the two highest versions, with references of their own. */
static void remember(struct store *store, struct catalog_snapshot *snapshot)
{
    struct catalog_snapshot *old = NULL;
    pthread_mutex_lock(&store->catalog_lock);
    if (store->recent[0] == NULL || store->recent[0]->version < snapshot->version) {
        old = store->recent[1];
        store->recent[1] = store->recent[0];
        store->recent[0] = snapshot;
        atomic_fetch_add(&snapshot->refs, 1);
    }
    pthread_mutex_unlock(&store->catalog_lock);
    catalog_snapshot_unref(old);
}

void snapshot_forget_recent(struct store *store)
{
    for (int i = 0; i < 2; i++) {
        catalog_snapshot_unref(store->recent[i]);
        store->recent[i] = NULL;
    }
}

struct catalog_snapshot *snapshot_of(struct store_txn *txn)
{
    if (txn->catalog_checked)
        return txn->catalog;
    uint64_t version = stored_version(txn);
    if (txn->catalog == NULL || txn->catalog->version != version) {
        catalog_snapshot_unref(txn->catalog);
        txn->catalog = find_recent(txn->store, version);
        if (txn->catalog == NULL) {
            txn->catalog = load(txn, version);
            remember(txn->store, txn->catalog);
        }
    }
    txn->catalog_checked = true;
    return txn->catalog;
}

struct catalog_snapshot *catalog_snapshot_ref(struct store_txn *txn)
{
    struct catalog_snapshot *snapshot = snapshot_of(txn);
    atomic_fetch_add(&snapshot->refs, 1);
    return snapshot;
}

/* The transaction's version becomes `next`; the one before lives on until the transaction ends. */
static void replace(struct store_txn *txn, struct catalog_snapshot *next)
{
    struct write_state *write = txn->write;
    if (write->retired_count == write->retired_cap) {
        write->retired_cap = write->retired_cap == 0 ? 8 : write->retired_cap * 2;
        write->retired = mem_realloc(write->retired, write->retired_cap * sizeof *write->retired);
    }
    write->retired[write->retired_count++] = txn->catalog;
    txn->catalog = next;
    write->catalog_changed = true;
    uint8_t version[8];
    store_le64(version, next->version);
    env_put(txn, STORE_DB_META, version_key, sizeof version_key - 1, version, sizeof version);
}

void snapshot_put(struct store_txn *txn, uint32_t replaces_id, struct bdoc stored)
{
    struct collection_object *object;
    struct err err;
    if (!collection_object_parse(txn->store, stored, &object, &err))
        store_fatal(MDB_CORRUPTED, err.msg);
    uint8_t key[CATALOG_KEY_BYTES];
    catalog_key(key, CATALOG_KEY_COLLECTION, object->def.id);
    env_put(txn, STORE_DB_CATALOG, key, sizeof key, stored.data, stored.len);
    struct catalog_snapshot *next = copy(snapshot_of(txn), replaces_id);
    add(next, object);
    replace(txn, next);
}

void snapshot_remove(struct store_txn *txn, uint32_t collection_id)
{
    uint8_t key[CATALOG_KEY_BYTES];
    catalog_key(key, CATALOG_KEY_COLLECTION, collection_id);
    env_delete(txn, STORE_DB_CATALOG, key, sizeof key);
    replace(txn, copy(snapshot_of(txn), collection_id));
}

void snapshot_publish(struct store_txn *txn)
{
    if (txn->write->catalog_changed)
        remember(txn->store, txn->catalog);
}

void snapshot_after_write(struct store_txn *txn, bool committed)
{
    struct write_state *write = txn->write;
    if (write->catalog_changed && !committed) {
        catalog_snapshot_unref(txn->catalog);
        txn->catalog = NULL;
    }
    for (uint32_t i = 0; i < write->retired_count; i++)
        catalog_snapshot_unref(write->retired[i]);
    write->retired_count = 0;
    write->catalog_changed = false;
    txn->catalog_checked = false;
}

/* ---- finding ---- */

static const struct collection *found(struct collection_object *const *array, uint32_t count,
                                      const struct collection_object *probe, compare_fn *compare)
{
    uint32_t at = place_of(array, count, probe, compare);
    return at < count && compare(array[at], probe) == 0 ? &array[at]->def : NULL;
}

const struct collection *catalog_find(struct store_txn *txn, const char *ns, size_t ns_len)
{
    if (ns_len > CATALOG_NS_MAX)
        return NULL;
    char text[CATALOG_NS_MAX + 1];
    memcpy(text, ns, ns_len);
    text[ns_len] = 0;
    struct collection_object probe = {.def.ns = text};
    const struct catalog_snapshot *snapshot = snapshot_of(txn);
    return found(snapshot->by_ns, snapshot->count, &probe, compare_ns);
}

const struct collection *catalog_find_uuid(struct store_txn *txn, const uint8_t uuid[UUID_BYTES])
{
    struct collection_object probe = {0};
    memcpy(probe.def.uuid, uuid, UUID_BYTES);
    const struct catalog_snapshot *snapshot = snapshot_of(txn);
    return found(snapshot->by_uuid, snapshot->count, &probe, compare_uuid);
}

const struct collection *catalog_find_id(struct store_txn *txn, uint32_t collection_id)
{
    struct collection_object probe = {.def.id = collection_id};
    const struct catalog_snapshot *snapshot = snapshot_of(txn);
    return found(snapshot->by_id, snapshot->count, &probe, compare_id);
}

static bool in_db(const struct collection *coll, const char *db, size_t db_len)
{
    return db == NULL || (coll->db_len == db_len && memcmp(coll->ns, db, db_len) == 0);
}

const struct collection *catalog_next(struct store_txn *txn, const char *db, size_t db_len, size_t *position)
{
    const struct catalog_snapshot *snapshot = snapshot_of(txn);
    if (*position == 0 && db != NULL && db_len <= CATALOG_NS_MAX) {
        char text[CATALOG_NS_MAX + 1];
        memcpy(text, db, db_len);
        text[db_len] = 0;
        struct collection_object probe = {.def.ns = text};
        *position = place_of(snapshot->by_ns, snapshot->count, &probe, compare_ns);
    }
    while (*position < snapshot->count) {
        const struct collection *coll = &snapshot->by_ns[(*position)++]->def;
        if (in_db(coll, db, db_len))
            return coll;
        if (db != NULL && strncmp(coll->ns, db, db_len) > 0)
            break; /* beyond the database */
    }
    return NULL;
}

/* Order of the databases' names. */
static int compare_db(const struct collection *a, const struct collection *b)
{
    int order = memcmp(a->ns, b->ns, a->db_len < b->db_len ? a->db_len : b->db_len);
    return order != 0 ? order : (int)a->db_len - (int)b->db_len;
}

/* Where the collections of the database behind that of by_ns[at] begin. One database's collections stand together,
 * though the databases themselves don't stand in the order of their names ("a-b.c" before "a.c"). */
static uint32_t behind_db(const struct catalog_snapshot *snapshot, uint32_t at)
{
    const struct collection *coll = &snapshot->by_ns[at]->def;
    char text[CATALOG_NS_MAX + 1];
    memcpy(text, coll->ns, coll->db_len);
    text[coll->db_len] = '.' + 1;
    text[coll->db_len + 1] = 0;
    struct collection_object probe = {.def.ns = text};
    return place_of(snapshot->by_ns, snapshot->count, &probe, compare_ns);
}

const struct collection *catalog_next_db(struct store_txn *txn, const struct collection *previous)
{
    const struct catalog_snapshot *snapshot = snapshot_of(txn);
    const struct collection *best = NULL;
    for (uint32_t i = 0; i < snapshot->count; i = behind_db(snapshot, i)) {
        const struct collection *coll = &snapshot->by_ns[i]->def;
        if ((previous == NULL || compare_db(coll, previous) > 0) && (best == NULL || compare_db(coll, best) < 0))
            best = coll;
    }
    return best;
}

uint64_t catalog_version(struct store_txn *txn)
{
    return snapshot_of(txn)->version;
}

const struct index_def *collection_find_index(const struct collection *coll, const char *name)
{
    for (uint32_t i = 0; i < coll->index_count; i++)
        if (strcmp(coll->indexes[i]->name, name) == 0)
            return coll->indexes[i];
    return NULL;
}

const struct index_def *collection_find_index_id(const struct collection *coll, uint32_t index_id)
{
    for (uint32_t i = 0; i < coll->index_count; i++)
        if (coll->indexes[i]->id == index_id)
            return coll->indexes[i];
    return NULL;
}
