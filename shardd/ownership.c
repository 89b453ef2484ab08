#include "shardd/ownership.h"

#include "document/log.h"
#include "shardd/ownership_apply.h"
#include "storage/catalog.h"
#include "storage/store.h"

#include <string.h>

enum {
    ERR_WOULD_CHANGE_OWNING_SHARD = 283,
};

/* ---- may a request be served? ---- */

static bool is_reserved(const char *ns)
{
    return strncmp(ns, "local.", 6) == 0 || strncmp(ns, "config.", 7) == 0 || strncmp(ns, "admin.", 6) == 0;
}

static const struct owned_database *find_database(const struct ownership_table *table, const char *ns)
{
    return map_get(&table->databases, ns, strcspn(ns, "."));
}

static bool same_incarnation(const struct document_view *view, const struct op_version *version)
{
    return memcmp(view->uuid, version->uuid, CLUSTER_UUID_BYTES) == 0 &&
           bson_oid_equal(&view->version.epoch, &version->version.epoch);
}

bool ownership_knows(const struct ownership_table *table, const char *ns, const struct op_version *version)
{
    const struct document_view *view = map_get(&table->collections, ns, strlen(ns));
    if (version->kind == OP_VERSION_COLLECTION)
        return view != NULL && same_incarnation(view, version) && view->version.major >= version->version.major;
    if (version->kind == OP_VERSION_DATABASE) {
        const struct owned_database *database = find_database(table, ns);
        return view == NULL && database != NULL && memcmp(database->uuid, version->db_uuid, CLUSTER_UUID_BYTES) == 0;
    }
    return true;
}

/* Every range that the router means is ours, as it thinks. */
static bool covers(const struct document_view *view, struct bdoc ranges)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, ranges);
    while (biter_next(&iter, &elem)) {
        struct bval min;
        struct bval max;
        uint8_t subtype;
        struct key_range range;
        bdoc_find(bval_doc(&elem.val), "0", &min);
        bdoc_find(bval_doc(&elem.val), "1", &max);
        range.min.data = bval_binary(&min, &subtype, &range.min.len);
        range.max.data = bval_binary(&max, &subtype, &range.max.len);
        if (view->ranges == NULL || !range_set_covers(view->ranges, range))
            return false;
    }
    return true;
}

static bool check_collection(const struct ownership_table *table, const struct document_view *view, const char *ns,
                             const struct op_version *version, struct err *err)
{
    bool ok = view != NULL && same_incarnation(view, version) && view->version.major == version->version.major &&
              (version->ranges.data == NULL || covers(view, version->ranges));
    return ok || stale_config_set(err, ns, table->shard_name, &version->version, view == NULL ? NULL : &view->version);
}

static bool check_database(const struct ownership_table *table, const struct document_view *view, const char *ns,
                           const struct op_version *version, struct err *err)
{
    const struct owned_database *database = find_database(table, ns);
    bool ok = view == NULL && database != NULL && strcmp(database->primary, table->shard_name) == 0 &&
              memcmp(database->uuid, version->db_uuid, CLUSTER_UUID_BYTES) == 0;
    return ok || stale_config_set(err, ns, table->shard_name, NULL, view == NULL ? NULL : &view->version);
}

static bool check(const struct ownership_table *table, const struct document_view *view,
                  const struct document_access *access, struct err *err)
{
    struct op_version version = {.kind = OP_VERSION_NONE};
    if (access->version.data != NULL && !op_version_parse(access->version, &version, err))
        return false;
    bool bound = version.kind != OP_VERSION_NONE;
    /* Between the config service's commit and this shard's knowledge of it others may already write elsewhere. */
    if (map_get(&table->prepared, access->ns, strlen(access->ns)) != NULL && (access->write || bound))
        return document_busy_set(err, "the collection is about to be sharded");
    if (version.kind == OP_VERSION_COLLECTION)
        return check_collection(table, view, access->ns, &version, err);
    return version.kind != OP_VERSION_DATABASE || check_database(table, view, access->ns, &version, err);
}

/* The sharded collection itself is here. Between its drop on the shards and in the config service its ownership may be
 * read again: a write must not make another collection of that name. */
static bool has_collection(struct store_txn *txn, const struct document_view *view)
{
    const struct collection *coll = catalog_find(txn, view->ns, strlen(view->ns));
    return coll != NULL && memcmp(coll->uuid, view->uuid, CLUSTER_UUID_BYTES) == 0;
}

static bool hook_open(void *arg, struct store_txn *txn, const struct document_access *access,
                      struct document_view **view, struct err *err)
{
    struct ownership *ownership = arg;
    *view = NULL;
    if (is_reserved(access->ns))
        return true;
    struct ownership_table *table = ownership_table_get(ownership, txn);
    struct document_view *found = map_get(&table->collections, access->ns, strlen(access->ns));
    bool ok = check(table, found, access, err);
    if (ok && found != NULL && access->write && access->version.data != NULL && !has_collection(txn, found))
        ok = stale_config_set(err, access->ns, table->shard_name, NULL, &found->version);
    if (ok && found != NULL)
        *view = view_ref(found);
    ownership_table_unref(table);
    return ok;
}

static void hook_close(void *arg, struct document_view *view)
{
    (void)arg;
    view_unref(view);
}

/* ---- documents ---- */

static bool hook_all_visible(const struct document_view *view)
{
    return !view->foreign;
}

static size_t find_range(const struct document_view *view, const struct buf *key)
{
    return view->ranges == NULL ? SIZE_MAX : range_set_find(view->ranges, key_bytes_of(key));
}

static bool hook_visible(const struct document_view *view, struct bdoc doc)
{
    struct buf key = BUF_INIT;
    bool visible = shardkey_encode_doc(view->key, doc, &key, NULL) && find_range(view, &key) != SIZE_MAX;
    buf_deinit(&key);
    return visible;
}

/* The document leaves its place: fine inside the shard, otherwise a matter of two shards. */
static bool refuse_new_key(const struct document_view *view, struct bdoc before, struct err *err)
{
    if (before.data != NULL)
        return err_set(err, ERR_WOULD_CHANGE_OWNING_SHARD,
                       "the update would move the document of %s to another shard, which is not supported", view->ns);
    return stale_config_set(err, view->ns, "", NULL, &view->version);
}

static bool hook_may_write(const struct document_view *view, struct bdoc before, struct bdoc after, struct err *err)
{
    struct buf key = BUF_INIT;
    bool ok = shardkey_encode_doc(view->key, after.data == NULL ? before : after, &key, err);
    if (ok && find_range(view, &key) == SIZE_MAX)
        ok = refuse_new_key(view, after.data == NULL ? (struct bdoc){0} : before, err);
    buf_deinit(&key);
    return ok;
}

/* A range is named by its lower bound. One whose counter is being made counts only what lies behind the count's
 * position: the rest is still to come. */
static void hook_range_of(const struct document_view *view, struct bdoc doc, struct buf *range)
{
    struct buf key = BUF_INIT;
    if (shardkey_encode_doc(view->key, doc, &key, NULL)) {
        size_t index = find_range(view, &key);
        bool counted = index != SIZE_MAX;
        if (counted && view->pending != NULL && range_set_contains(view->pending, key_bytes_of(&key)))
            counted = key_bytes_compare(key_bytes_of(&key), key_bytes_of(&view->position)) < 0;
        if (counted) {
            struct key_range found = range_set_at(view->ranges, index);
            buf_append(range, found.min.data, found.min.len);
        }
    }
    buf_deinit(&key);
}

/* ---- indexes ---- */

static bool hook_may_create_index(const struct document_view *view, struct bdoc key_pattern, bool unique,
                                  struct err *err)
{
    if (!unique || shardkey_is_prefix_of(view->key, key_pattern))
        return true;
    return err_set(err, ERR_CannotCreateIndex,
                   "cannot create unique index over a key that doesn't begin with the shard key of %s", view->ns);
}

/* The pattern begins with the shard key's fields, hashed where that is. */
static bool hook_serves_key(const struct document_view *view, struct bdoc key_pattern)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, key_pattern);
    for (size_t i = 0; i < shardkey_field_count(view->key); i++) {
        if (!biter_next(&iter, &elem) || strcmp(elem.key, shardkey_field_path(view->key, i)) != 0)
            return false;
        if (bval_is_number(&elem.val) == shardkey_field_is_hashed(view->key, i))
            return false;
    }
    return true;
}

static void hook_dropped(void *arg, struct document_apply *apply, const char *ns)
{
    (void)arg;
    ownership_forget(apply, ns);
}

const struct document_ownership *ownership_hooks(struct ownership *ownership)
{
    return &ownership->hooks;
}

void ownership_init(struct ownership *ownership)
{
    *ownership = (struct ownership){.hooks = {
                                        .arg = ownership,
                                        .open = hook_open,
                                        .close = hook_close,
                                        .ref = view_ref,
                                        .all_visible = hook_all_visible,
                                        .visible = hook_visible,
                                        .may_write = hook_may_write,
                                        .range_of = hook_range_of,
                                        .may_create_index = hook_may_create_index,
                                        .serves_key = hook_serves_key,
                                        .dropped = hook_dropped,
                                    }};
    pthread_mutex_init(&ownership->mutex, NULL);
}

void ownership_deinit(struct ownership *ownership)
{
    ownership_table_unref(ownership->newest);
    pthread_mutex_destroy(&ownership->mutex);
}
