#include "shardd/ownership_apply.h"

#include "command/fields.h"
#include "shardd/ownership.h"
#include "shardd/shard.h"
#include "storage/counters.h"

#include <string.h>

int64_t ownership_bump(struct document_apply *apply)
{
    uint8_t bytes[sizeof(uint64_t)];
    int64_t generation = ownership_generation(apply->txn) + 1;
    store_le64(bytes, (uint64_t)generation);
    store_meta_put(apply->txn, OWNERSHIP_GENERATION_KEY, strlen(OWNERSHIP_GENERATION_KEY), bytes, sizeof bytes);
    return generation;
}

/* Members must agree on uuids, so those of the shard's own collections are made of their names. */
static void uuid_of_name(const char *ns, uint8_t uuid[UUID_BYTES])
{
    uint64_t hash = hash_bytes(ns, strlen(ns));
    memset(uuid, 0, UUID_BYTES);
    memcpy(uuid, "sherd", 5);
    uuid[6] = 0x80; /* version 8 (RFC 9562): our own scheme */
    uuid[8] = 0x80;
    for (int i = 0; i < 7; i++)
        uuid[9 + i] = (uint8_t)(hash >> (8 * i));
}

bool ownership_put(struct document_apply *apply, const char *ns, const bson_t *doc, struct err *err)
{
    uint8_t uuid[UUID_BYTES];
    uuid_of_name(ns, uuid);
    return document_apply_create(apply, ns, uuid, (struct bdoc){0}, err) &&
           document_apply_put(apply, ns, bdoc_of(doc), err);
}

void ownership_delete(struct document_apply *apply, const char *ns, const char *id)
{
    bson_t wrapped = BSON_INITIALIZER;
    struct bval val;
    struct err ignored;
    BSON_APPEND_UTF8(&wrapped, "", id);
    bdoc_find(bdoc_of(&wrapped), "", &val);
    /* A collection that isn't there holds nothing to delete. */
    (void)!document_apply_delete(apply, ns, &val, &ignored);
    bson_destroy(&wrapped);
}

static bool exists(struct document_apply *apply, const char *ns, const char *id)
{
    bson_t wrapped = BSON_INITIALIZER;
    struct bval val;
    struct bdoc doc;
    BSON_APPEND_UTF8(&wrapped, "", id);
    bdoc_find(bdoc_of(&wrapped), "", &val);
    bool found = document_apply_get(apply, ns, &val, &doc);
    bson_destroy(&wrapped);
    return found;
}

static void forget_collection(struct document_apply *apply, const char *ns)
{
    ownership_delete(apply, OWNERSHIP_COLLECTIONS_NS, ns);
    ownership_delete(apply, OWNERSHIP_RECOUNT_NS, ns);
    ownership_delete(apply, OWNERSHIP_PREPARED_NS, ns);
}

/* Namespaces of one database, gathered before they are deleted. */
struct gather {
    struct arena *arena;
    const char *db;
    const char **names;
    size_t count;
    size_t cap;
};

static bool gather_ns(void *arg, struct bdoc doc)
{
    struct gather *gather = arg;
    struct bval id;
    uint32_t len;
    if (!bdoc_find(doc, "_id", &id) || id.type != BT_STRING)
        return true;
    const char *ns = bval_str(&id, &len);
    size_t db_len = strlen(gather->db);
    if (strncmp(ns, gather->db, db_len) != 0 || ns[db_len] != '.')
        return true;
    if (gather->count == gather->cap) {
        size_t cap = gather->cap == 0 ? 16 : gather->cap * 2;
        const char **names = arena_alloc(gather->arena, cap * sizeof *names);
        if (gather->count > 0)
            memcpy(names, gather->names, gather->count * sizeof *names);
        gather->names = names;
        gather->cap = cap;
    }
    gather->names[gather->count++] = arena_copy_str(gather->arena, ns, len);
    return true;
}

static void forget_database(struct document_apply *apply, const char *db)
{
    static const char *const holders[] = {OWNERSHIP_COLLECTIONS_NS, OWNERSHIP_PREPARED_NS};
    struct gather gather = {.arena = apply->arena, .db = db};
    struct err ignored;
    for (size_t i = 0; i < sizeof holders / sizeof holders[0]; i++)
        (void)!document_scan(apply->txn, holders[i], (struct bdoc){0}, gather_ns, &gather, &ignored);
    for (size_t i = 0; i < gather.count; i++)
        forget_collection(apply, gather.names[i]);
    ownership_delete(apply, OWNERSHIP_DATABASES_NS, db);
}

void ownership_forget(struct document_apply *apply, const char *ns)
{
    if (strncmp(ns, "local.", 6) == 0)
        return;
    if (strchr(ns, '.') != NULL)
        forget_collection(apply, ns);
    else
        forget_database(apply, ns);
    ownership_bump(apply);
}

static bool payload_doc(const uint8_t *payload, size_t len, struct bdoc *out, struct err *err)
{
    if (len < 5 || load_le32(payload) != len || payload[len - 1] != 0)
        return err_set(err, ERR_InternalError, "a log command of the shard can't be read");
    *out = (struct bdoc){.data = payload, .len = (uint32_t)len};
    return true;
}

/* ---- identity ---- */

static bool apply_identity(void *plugin, struct document_apply *apply, const uint8_t *payload, size_t len,
                           struct buf *result, struct err *err)
{
    struct shard *shard = plugin;
    struct bdoc doc;
    const bson_oid_t *cluster_id = NULL;
    const char *name = NULL;
    const char *configdb = NULL;
    (void)result;
    if (!payload_doc(payload, len, &doc, err) || !field_get_str(doc, "shardName", &name, err) ||
        !field_get_oid(doc, "clusterId", &cluster_id, err) || !field_get_str(doc, "configdb", &configdb, err))
        return false;
    if (name == NULL || cluster_id == NULL || configdb == NULL)
        return err_set(err, ERR_NoSuchKey, "the identity of a shard is {shardName, clusterId, configdb}");
    struct ownership_table *table = ownership_table_get(&shard->ownership, apply->txn);
    bool same = !table->has_identity ||
                (strcmp(table->shard_name, name) == 0 && bson_oid_equal(&table->cluster_id, cluster_id));
    if (!same)
        err_set(err, ERR_IllegalOperation, "this set is shard '%s' of another cluster, or under another name",
                table->shard_name);
    ownership_table_unref(table);
    if (!same)
        return false;
    bson_t stored = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&stored, "_id", "identity");
    BSON_APPEND_UTF8(&stored, "shardName", name);
    BSON_APPEND_OID(&stored, "clusterId", cluster_id);
    BSON_APPEND_UTF8(&stored, "configdb", configdb);
    ownership_bump(apply);
    bool ok = ownership_put(apply, OWNERSHIP_IDENTITY_NS, &stored, err);
    bson_destroy(&stored);
    return ok;
}

/* ---- ownership ---- */

static bool put_database(struct document_apply *apply, const char *ns, struct bdoc database, struct err *err)
{
    char db[CLUSTER_DB_NAME_MAX + 1];
    size_t db_len = strcspn(ns, ".");
    if (db_len >= sizeof db)
        return err_set(err, ERR_InvalidNamespace, "the database's name is too long");
    memcpy(db, ns, db_len);
    db[db_len] = '\0';
    if (database.data == NULL) {
        ownership_delete(apply, OWNERSHIP_DATABASES_NS, db);
        return true;
    }
    bson_t doc;
    bdoc_to_bson(database, &doc);
    return ownership_put(apply, OWNERSHIP_DATABASES_NS, &doc, err);
}

/* The stored form of a collection's ownership. */
static bool put_view(struct document_apply *apply, const struct document_view *view, struct err *err)
{
    bson_t doc = BSON_INITIALIZER;
    struct bval key = bval_from_doc(shardkey_pattern(view->key));
    BSON_APPEND_UTF8(&doc, "_id", view->ns);
    BSON_APPEND_INT64(&doc, "gen", view->generation);
    bson_append_binary(&doc, "uuid", -1, BSON_SUBTYPE_UUID, view->uuid, CLUSTER_UUID_BYTES);
    BSON_APPEND_OID(&doc, "epoch", &view->version.epoch);
    BSON_APPEND_INT64(&doc, "major", view->version.major);
    BSON_APPEND_INT64(&doc, "minor", view->version.minor);
    BSON_APPEND_INT64(&doc, "timestamp", (int64_t)view->timestamp);
    bval_append(&doc, "key", -1, &key);
    BSON_APPEND_BOOL(&doc, "unique", view->unique);
    BSON_APPEND_BOOL(&doc, "foreign", view->foreign);
    ranges_append(&doc, "ranges", view->ranges);
    bool ok = ownership_put(apply, OWNERSHIP_COLLECTIONS_NS, &doc, err);
    bson_destroy(&doc);
    return ok;
}

/* What the shard knows is at least as new: two refreshes may be logged in the other order than they were read. */
static bool is_known(const struct document_view *now, const struct document_view *next)
{
    if (now == NULL)
        return false;
    switch (chunk_version_compare(&next->version, &now->version)) {
    case VERSION_SAME:
        return memcmp(now->uuid, next->uuid, CLUSTER_UUID_BYTES) == 0;
    case VERSION_OLDER:
        return true;
    case VERSION_NEWER:
        return false;
    case VERSION_UNRELATED:
        break;
    }
    return next->timestamp < now->timestamp;
}

static bool covers_all_of(const struct document_view *next, const struct range_set *wanted)
{
    for (size_t i = 0; wanted != NULL && i < range_set_count(wanted); i++) {
        if (next->ranges == NULL || !range_set_covers(next->ranges, range_set_at(wanted, i)))
            return false;
    }
    return true;
}

static bool covers_everything(const struct document_view *view)
{
    static const uint8_t end[] = {KEY_AFTER_PREFIX};
    struct key_range all = {.min = {.data = NULL, .len = 0}, .max = {.data = end, .len = sizeof end}};
    if (view->ranges == NULL)
        return false;
    /* Ranges are sorted; the first begins with the least bound that a key can have. */
    all.min = range_set_at(view->ranges, 0).min;
    return range_set_covers(view->ranges, all);
}

static bool set_collection(struct shard *shard, struct document_apply *apply, const char *ns, struct bdoc doc,
                           struct err *err)
{
    struct document_view *next;
    struct ownership_table *table = ownership_table_get(&shard->ownership, apply->txn);
    const struct document_view *now = map_get(&table->collections, ns, strlen(ns));
    bool parsed = view_parse(doc, (struct bdoc){0}, &next, err);
    bool ok = parsed;
    if (ok && !is_known(now, next)) {
        bool same_data = now != NULL && memcmp(now->uuid, next->uuid, CLUSTER_UUID_BYTES) == 0;
        const struct collection *coll = catalog_find(apply->txn, ns, strlen(ns));
        struct counter counter = {0};
        if (coll != NULL)
            counter_collection(apply->txn, coll, &counter);
        next->generation = ownership_bump(apply);
        next->foreign = counter.docs > 0 &&
                        (same_data ? now->foreign || !covers_all_of(next, now->ranges) : !covers_everything(next));
        ok = recount_begin(apply, same_data ? now : NULL, next, next->generation, err) && put_view(apply, next, err);
    }
    if (parsed)
        view_unref(next);
    ownership_table_unref(table);
    return ok;
}

static bool apply_ownership(void *plugin, struct document_apply *apply, const uint8_t *payload, size_t len,
                            struct buf *result, struct err *err)
{
    struct bdoc doc;
    struct bdoc database = {0};
    struct bdoc collection = {0};
    const char *ns = NULL;
    (void)result;
    if (!payload_doc(payload, len, &doc, err) || !field_get_str(doc, "ns", &ns, err) ||
        !field_get_doc(doc, "database", &database, err) || !field_get_doc(doc, "collection", &collection, err))
        return false;
    if (ns == NULL)
        return err_set(err, ERR_NoSuchKey, "no namespace");
    if (!put_database(apply, ns, database, err))
        return false;
    if (collection.data != NULL) {
        ownership_delete(apply, OWNERSHIP_PREPARED_NS, ns);
        ownership_bump(apply);
        return set_collection(plugin, apply, ns, collection, err);
    }
    ownership_delete(apply, OWNERSHIP_COLLECTIONS_NS, ns);
    ownership_delete(apply, OWNERSHIP_RECOUNT_NS, ns);
    ownership_bump(apply);
    return true;
}

/* ---- preparing for shardCollection ---- */

/* One operation at a time: the end of a late one must not take the block away from the one that is under way. */
static bool check_prepared(struct shard *shard, struct document_apply *apply, const char *ns, const uint8_t *op,
                           struct err *err)
{
    struct ownership_table *table = ownership_table_get(&shard->ownership, apply->txn);
    const struct prepared *prepared = map_get(&table->prepared, ns, strlen(ns));
    bool ok = prepared == NULL || memcmp(prepared->op, op, UUID_BYTES) == 0;
    ownership_table_unref(table);
    return ok || document_busy_set(err, "another operation is about to shard the collection");
}

static bool apply_prepare(void *plugin, struct document_apply *apply, const uint8_t *payload, size_t len,
                          struct buf *result, struct err *err)
{
    struct bdoc doc;
    const char *ns = NULL;
    const uint8_t *uuid = NULL;
    const uint8_t *op = NULL;
    int64_t at_ms = 0;
    (void)result;
    if (!payload_doc(payload, len, &doc, err) || !field_get_str(doc, "ns", &ns, err) ||
        !field_get_uuid(doc, "uuid", &uuid, err) || !field_get_uuid(doc, "op", &op, err) ||
        !field_get_i64(doc, "at", &at_ms, err))
        return false;
    const struct collection *coll = catalog_find(apply->txn, ns, strlen(ns));
    if (coll != NULL && memcmp(coll->uuid, uuid, UUID_BYTES) != 0)
        return err_set(err, ERR_CollectionUUIDMismatch, "the collection %s has another uuid", ns);
    struct counter counter = {0};
    if (coll != NULL)
        counter_collection(apply->txn, coll, &counter);
    if (counter.docs > 0)
        return err_set(err, ERR_IllegalOperation, "the collection %s holds documents", ns);
    if (exists(apply, OWNERSHIP_COLLECTIONS_NS, ns))
        return err_set(err, ERR_IllegalOperation, "the collection %s is sharded", ns);
    if (!check_prepared(plugin, apply, ns, op, err))
        return false;
    bson_t stored = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&stored, "_id", ns);
    BSON_APPEND_INT64(&stored, "gen", ownership_bump(apply));
    bson_append_binary(&stored, "uuid", -1, BSON_SUBTYPE_UUID, uuid, UUID_BYTES);
    bson_append_binary(&stored, "op", -1, BSON_SUBTYPE_UUID, op, UUID_BYTES);
    BSON_APPEND_INT64(&stored, "at", at_ms);
    bool ok = ownership_put(apply, OWNERSHIP_PREPARED_NS, &stored, err);
    bson_destroy(&stored);
    return ok;
}

/* Only the operation that it names is over: a later one may have prepared meanwhile. */
static bool apply_unprepare(void *plugin, struct document_apply *apply, const uint8_t *payload, size_t len,
                            struct buf *result, struct err *err)
{
    struct shard *shard = plugin;
    struct bdoc doc;
    const char *ns = NULL;
    const uint8_t *op = NULL;
    (void)result;
    if (!payload_doc(payload, len, &doc, err) || !field_get_str(doc, "ns", &ns, err) ||
        !field_get_uuid(doc, "op", &op, err))
        return false;
    struct ownership_table *table = ownership_table_get(&shard->ownership, apply->txn);
    const struct prepared *prepared = map_get(&table->prepared, ns, strlen(ns));
    if (prepared != NULL && memcmp(prepared->op, op, UUID_BYTES) == 0) {
        ownership_delete(apply, OWNERSHIP_PREPARED_NS, ns);
        ownership_bump(apply);
    }
    ownership_table_unref(table);
    return true;
}

static bool apply_drop_sharded(void *plugin, struct document_apply *apply, const uint8_t *payload, size_t len,
                               struct buf *result, struct err *err)
{
    struct shard *shard = plugin;
    struct bdoc doc;
    const char *ns = NULL;
    const uint8_t *uuid = NULL;
    (void)result;
    if (!payload_doc(payload, len, &doc, err) || !field_get_str(doc, "ns", &ns, err) ||
        !field_get_uuid(doc, "uuid", &uuid, err))
        return false;
    const struct collection *coll = catalog_find(apply->txn, ns, strlen(ns));
    if (coll != NULL && (uuid == NULL || memcmp(coll->uuid, uuid, UUID_BYTES) == 0))
        catalog_drop(apply->txn, coll);
    struct ownership_table *table = ownership_table_get(&shard->ownership, apply->txn);
    const struct document_view *view = map_get(&table->collections, ns, strlen(ns));
    if (view != NULL && (uuid == NULL || memcmp(view->uuid, uuid, UUID_BYTES) == 0)) {
        forget_collection(apply, ns);
        ownership_bump(apply);
    }
    ownership_table_unref(table);
    return true;
}

static bool apply_recount(void *plugin, struct document_apply *apply, const uint8_t *payload, size_t len,
                          struct buf *result, struct err *err)
{
    struct shard *shard = plugin;
    struct bdoc doc;
    const char *ns = NULL;
    const uint8_t *uuid = NULL;
    int64_t max_docs = 0;
    if (!payload_doc(payload, len, &doc, err) || !field_get_str(doc, "ns", &ns, err) ||
        !field_get_uuid(doc, "uuid", &uuid, err) || !field_get_i64_in(doc, "max", 1, 1000000, &max_docs, err))
        return false;
    struct ownership_table *table = ownership_table_get(&shard->ownership, apply->txn);
    const struct document_view *view = map_get(&table->collections, ns, strlen(ns));
    bool more = false;
    bool ok = true;
    if (view != NULL && view->pending != NULL && memcmp(view->uuid, uuid, UUID_BYTES) == 0)
        ok = recount_step(apply, view, (uint32_t)max_docs, &more, err);
    ownership_table_unref(table);
    buf_append_u8(result, more);
    return ok;
}

const struct node_applier shard_appliers[] = {
    {SHARD_KIND_IDENTITY, apply_identity}, {SHARD_KIND_OWNERSHIP, apply_ownership},
    {SHARD_KIND_PREPARE, apply_prepare},   {SHARD_KIND_UNPREPARE, apply_unprepare},
    {SHARD_KIND_DROP, apply_drop_sharded}, {SHARD_KIND_RECOUNT, apply_recount},
};

const size_t shard_applier_count = sizeof shard_appliers / sizeof shard_appliers[0];
