/* Changes of the catalog. Each writes the collection's new stored form and makes the transaction's next snapshot. */
#include "storage/catalog.h"

#include "base/check.h"
#include "bson/compare.h"
#include "storage/catalog_write.h"
#include "storage/snapshot.h"

enum { ERR_INCOMPATIBLE_COLLATION = 161 };

/* Where arrays are on the paths of the fields. */
static void append_paths(bson_t *entry, const struct index_def *index)
{
    bson_t paths;
    BSON_APPEND_ARRAY_BEGIN(entry, "paths", &paths);
    for (uint32_t i = 0; i < index->field_count; i++) {
        char text[16];
        const char *key;
        bson_uint32_to_string(i, &key, text, sizeof text);
        BSON_APPEND_INT64(&paths, key, (int64_t)index->fields[i].multikey);
    }
    bson_append_array_end(entry, &paths);
}

static void append_index(bson_t *list, uint32_t position, const struct index_def *index)
{
    char text[16];
    const char *key;
    size_t key_len = bson_uint32_to_string(position, &key, text, sizeof text);
    bson_t entry;
    bson_t spec;
    bdoc_to_bson(index->spec, &spec);
    BSON_APPEND_DOCUMENT_BEGIN(list, key, &entry);
    (void)key_len;
    BSON_APPEND_INT64(&entry, "id", index->id);
    BSON_APPEND_DOCUMENT(&entry, "spec", &spec);
    BSON_APPEND_INT32(&entry, "state", (int32_t)index->state);
    BSON_APPEND_BOOL(&entry, "multikey", index->multikey);
    if (index->multikey)
        append_paths(&entry, index);
    if (index->build_group != 0)
        BSON_APPEND_INT64(&entry, "buildGroup", index->build_group);
    bson_append_document_end(list, &entry);
}

/* Writes `coll` as it stands in the struct; the indexes may be the caller's own list. */
static void store_collection(struct store_txn *txn, const struct collection *coll, bool is_new)
{
    bson_t doc = BSON_INITIALIZER;
    bson_t options;
    bson_t indexes;
    bdoc_to_bson(coll->options, &options);
    BSON_APPEND_INT64(&doc, "id", coll->id);
    BSON_APPEND_BINARY(&doc, "uuid", BSON_SUBTYPE_UUID, coll->uuid, UUID_BYTES);
    bson_append_utf8(&doc, "ns", -1, coll->ns, (int)coll->ns_len);
    BSON_APPEND_DOCUMENT(&doc, "options", &options);
    BSON_APPEND_ARRAY_BEGIN(&doc, "indexes", &indexes);
    for (uint32_t i = 0; i < coll->index_count; i++)
        append_index(&indexes, i, coll->indexes[i]);
    bson_append_array_end(&doc, &indexes);
    snapshot_put(txn, is_new ? 0 : coll->id, bdoc_of(&doc));
    bson_destroy(&doc);
}

/* The transaction's version of a collection that the caller found earlier. */
static const struct collection *current(struct store_txn *txn, const struct collection *coll)
{
    const struct collection *now = catalog_find_id(txn, coll->id);
    CHECK(now != NULL);
    return now;
}

/* The index on _id; a clustered collection gives it its own name and says so. */
static void id_index_spec(struct bdoc options, bson_t *spec)
{
    bson_t key;
    struct bval clustered;
    struct bval name = BVAL_MISSING;
    struct bval collation;
    bool is_clustered = bdoc_find(options, "clusteredIndex", &clustered) && clustered.type == BT_DOCUMENT;
    BSON_APPEND_INT32(spec, "v", 2);
    BSON_APPEND_DOCUMENT_BEGIN(spec, "key", &key);
    BSON_APPEND_INT32(&key, "_id", 1);
    bson_append_document_end(spec, &key);
    if (is_clustered && bdoc_find(bval_doc(&clustered), "name", &name) && name.type == BT_STRING)
        bval_append(spec, "name", -1, &name);
    else
        BSON_APPEND_UTF8(spec, "name", "_id_");
    if (is_clustered) {
        BSON_APPEND_BOOL(spec, "unique", true);
        BSON_APPEND_BOOL(spec, "clustered", true);
    }
    if (bdoc_find(options, "collation", &collation) && collation.type == BT_DOCUMENT)
        bval_append(spec, "collation", -1, &collation);
}

bool catalog_create(struct store_txn *txn, const char *ns, size_t ns_len, const uint8_t uuid[UUID_BYTES],
                    struct bdoc options, struct err *err)
{
    CHECK(store_txn_is_write(txn));
    if (!catalog_check_ns(ns, ns_len, err))
        return false;
    if (catalog_find(txn, ns, ns_len) != NULL)
        return err_set(err, ERR_NamespaceExists, "Collection %.*s already exists.", (int)ns_len, ns);
    if (catalog_find_uuid(txn, uuid) != NULL)
        return err_set(err, ERR_CollectionUUIDMismatch, "the uuid of the new collection is already in use");
    if (snapshot_of(txn)->count >= CATALOG_COLLECTIONS_MAX)
        return err_set(err, ERR_CannotCreateIndex, "there are already %d collections", CATALOG_COLLECTIONS_MAX);
    bson_t spec = BSON_INITIALIZER;
    id_index_spec(options.data == NULL ? bdoc_empty() : options, &spec);
    struct index_def id_index = {.id = env_next_id(txn), .spec = bdoc_of(&spec), .state = INDEX_READY};
    struct index_def *const indexes[] = {&id_index};
    struct collection coll = {
        .id = env_next_id(txn),
        .ns = ns,
        .ns_len = (uint32_t)ns_len,
        .options = options.data == NULL ? bdoc_empty() : options,
        .indexes = indexes,
        .index_count = 1,
    };
    memcpy(coll.uuid, uuid, UUID_BYTES);
    store_collection(txn, &coll, true);
    bson_destroy(&spec);
    return true;
}

void catalog_set_options(struct store_txn *txn, const struct collection *coll, struct bdoc options)
{
    struct collection changed = *current(txn, coll);
    changed.options = options;
    store_collection(txn, &changed, false);
}

bool catalog_rename(struct store_txn *txn, const struct collection *coll, const char *ns, size_t ns_len,
                    struct err *err)
{
    if (!catalog_check_ns(ns, ns_len, err))
        return false;
    if (catalog_find(txn, ns, ns_len) != NULL)
        return err_set(err, ERR_NamespaceExists, "target namespace exists");
    struct collection changed = *current(txn, coll);
    changed.ns = ns;
    changed.ns_len = (uint32_t)ns_len;
    store_collection(txn, &changed, false);
    return true;
}

struct bdoc collection_default_collation(const struct collection *coll)
{
    struct bval val;
    if (coll == NULL || !bdoc_find(coll->options, "collation", &val) || val.type != BT_DOCUMENT)
        return (struct bdoc){0};
    return bval_doc(&val);
}

/* ---- indexes ---- */

static void store_with_indexes(struct store_txn *txn, const struct collection *now, struct index_def *const *indexes,
                               uint32_t count)
{
    struct collection changed = *now;
    changed.indexes = indexes;
    changed.index_count = count;
    store_collection(txn, &changed, false);
}

static void change_index(struct store_txn *txn, uint32_t collection_id, const struct index_def *changed)
{
    const struct collection *now = catalog_find_id(txn, collection_id);
    CHECK(now != NULL && now->index_count <= CATALOG_INDEXES_MAX);
    struct index_def *list[CATALOG_INDEXES_MAX];
    struct index_def copy = *changed;
    for (uint32_t i = 0; i < now->index_count; i++)
        list[i] = now->indexes[i]->id == changed->id ? &copy : now->indexes[i];
    store_with_indexes(txn, now, list, now->index_count);
}

static const struct index_def *current_index(struct store_txn *txn, uint32_t collection_id, uint32_t index_id)
{
    const struct collection *now = catalog_find_id(txn, collection_id);
    const struct index_def *index = now == NULL ? NULL : collection_find_index_id(now, index_id);
    CHECK(index != NULL);
    return index;
}

void catalog_set_multikey(struct store_txn *txn, uint32_t collection_id, uint32_t index_id, const uint64_t *paths)
{
    struct index_def changed = *current_index(txn, collection_id, index_id);
    struct index_field fields[CATALOG_INDEX_FIELDS_MAX];
    bool news = !changed.multikey;
    for (uint32_t i = 0; i < changed.field_count; i++) {
        fields[i] = changed.fields[i];
        news |= (paths[i] & ~fields[i].multikey) != 0;
        fields[i].multikey |= paths[i];
    }
    if (!news)
        return;
    changed.multikey = true;
    changed.fields = fields;
    change_index(txn, collection_id, &changed);
}

void catalog_group_builds(struct store_txn *txn, const struct collection *coll, const uint32_t *ids, uint32_t count)
{
    for (uint32_t i = 0; count > 1 && i < count; i++) {
        struct index_def changed = *current_index(txn, coll->id, ids[i]);
        changed.build_group = ids[0];
        change_index(txn, coll->id, &changed);
    }
}

void catalog_set_index_spec(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                            struct bdoc normal_spec)
{
    struct index_def changed = *current_index(txn, coll->id, index->id);
    changed.spec = normal_spec;
    change_index(txn, coll->id, &changed);
}

void catalog_set_index_state(struct store_txn *txn, uint32_t collection_id, uint32_t index_id, enum index_state state)
{
    struct index_def changed = *current_index(txn, collection_id, index_id);
    if (changed.state == state)
        return;
    changed.state = state;
    changed.build_group = 0;
    change_index(txn, collection_id, &changed);
}

static bool add_index(struct store_txn *txn, const struct collection *now, struct bdoc normal_spec, uint32_t *index_id,
                      struct err *err)
{
    if (now->index_count >= CATALOG_INDEXES_MAX)
        return err_set(err, ERR_CannotCreateIndex, "add index fails, too many indexes for %s (limit %d)", now->ns,
                       CATALOG_INDEXES_MAX);
    struct index_def added = {.id = env_next_id(txn), .spec = normal_spec, .state = INDEX_BUILDING};
    struct index_def *list[CATALOG_INDEXES_MAX];
    for (uint32_t i = 0; i < now->index_count; i++)
        list[i] = now->indexes[i];
    list[now->index_count] = &added;
    store_with_indexes(txn, now, list, now->index_count + 1);
    *index_id = added.id;
    return true;
}

bool catalog_normalise_spec(struct store_txn *txn, const struct collection *coll, struct bdoc spec, bson_t *out,
                            struct err *err)
{
    CHECK(store_txn_is_write(txn));
    bool ok = index_spec_normalise(txn->store, spec, collection_default_collation(coll), out, err);
    if (!ok && err->code == ERR_INCOMPATIBLE_COLLATION)
        store_fatal(MDB_INCOMPATIBLE, err->msg);
    return ok;
}

bool catalog_create_index(struct store_txn *txn, const struct collection *coll, struct bdoc spec, uint32_t *index_id,
                          bool *exists, struct err *err)
{
    CHECK(store_txn_is_write(txn));
    bson_t normal = BSON_INITIALIZER;
    const struct collection *now = current(txn, coll);
    bool ok = catalog_normalise_spec(txn, now, spec, &normal, err);
    const struct index_def *existing = NULL;
    enum index_compare compared = ok ? collection_compare_index(now, bdoc_of(&normal), &existing, err) : INDEX_CONFLICT;
    if (exists != NULL)
        *exists = compared == INDEX_EXISTS;
    if (compared == INDEX_EXISTS)
        *index_id = existing->id;
    ok = compared == INDEX_EXISTS || (compared == INDEX_IS_NEW && add_index(txn, now, bdoc_of(&normal), index_id, err));
    bson_destroy(&normal);
    return ok;
}

/* ---- dropping: what is taken out waits in the catalog database until catalog_erase_step has erased it ---- */

static void leave_to_erase(struct store_txn *txn, uint32_t id, uint8_t kind)
{
    uint8_t key[CATALOG_KEY_BYTES];
    catalog_key(key, CATALOG_KEY_ERASE, id);
    env_put(txn, STORE_DB_CATALOG, key, sizeof key, &kind, 1);
}

void catalog_drop(struct store_txn *txn, const struct collection *coll)
{
    CHECK(store_txn_is_write(txn));
    const struct collection *now = current(txn, coll);
    for (uint32_t i = 0; i < now->index_count; i++)
        leave_to_erase(txn, now->indexes[i]->id, CATALOG_ERASE_INDEX);
    leave_to_erase(txn, now->id, CATALOG_ERASE_COLLECTION);
    snapshot_remove(txn, now->id);
}

bool catalog_drop_index(struct store_txn *txn, const struct collection *coll, const struct index_def *index,
                        struct err *err)
{
    CHECK(store_txn_is_write(txn));
    if (index->is_id)
        return err_set(err, ERR_InvalidOptions, "cannot drop _id index");
    const struct collection *now = current(txn, coll);
    struct index_def *list[CATALOG_INDEXES_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < now->index_count; i++)
        if (now->indexes[i]->id != index->id)
            list[count++] = now->indexes[i];
    leave_to_erase(txn, index->id, CATALOG_ERASE_INDEX);
    store_with_indexes(txn, now, list, count);
    return true;
}
