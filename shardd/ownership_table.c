#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "document/apply.h"
#include "shardd/ownership.h"
#include "storage/store.h"

#include <string.h>

int64_t ownership_generation(struct store_txn *txn)
{
    const void *value;
    size_t len;
    bool found = store_meta_get(txn, OWNERSHIP_GENERATION_KEY, strlen(OWNERSHIP_GENERATION_KEY), &value, &len);
    return found && len == sizeof(uint64_t) ? (int64_t)load_le64(value) : 0;
}

struct document_view *view_ref(struct document_view *view)
{
    atomic_fetch_add(&view->refs, 1);
    return view;
}

void view_unref(struct document_view *view)
{
    if (view == NULL || atomic_fetch_sub(&view->refs, 1) != 1)
        return;
    shardkey_unref(view->key);
    range_set_free(view->ranges);
    range_set_free(view->pending);
    buf_deinit(&view->position);
    mem_free(view);
}

/* ---- documents into structs ---- */

static bool get_bytes(struct bdoc doc, const char *name, struct key_bytes *out)
{
    struct bval val;
    uint8_t subtype;
    if (!bdoc_find(doc, name, &val) || val.type != BT_BINARY)
        return false;
    out->data = bval_binary(&val, &subtype, &out->len);
    return true;
}

static bool get_uuid(struct bdoc doc, const char *name, uint8_t out[CLUSTER_UUID_BYTES])
{
    struct key_bytes bytes;
    if (!get_bytes(doc, name, &bytes) || bytes.len != CLUSTER_UUID_BYTES)
        return false;
    memcpy(out, bytes.data, CLUSTER_UUID_BYTES);
    return true;
}

static int64_t get_i64(struct bdoc doc, const char *name)
{
    struct bval val;
    int64_t number = 0;
    return bdoc_find(doc, name, &val) && bval_to_i64(&val, &number) ? number : 0;
}

static bool get_str(struct bdoc doc, const char *name, char *out, size_t size)
{
    struct bval val;
    uint32_t len;
    if (!bdoc_find(doc, name, &val) || val.type != BT_STRING || strlen(bval_str(&val, &len)) >= size)
        return false;
    memcpy(out, bval_str(&val, &len), strlen(bval_str(&val, &len)) + 1);
    return true;
}

bool ranges_parse(struct bdoc array, struct range_set **out, struct err *err)
{
    struct biter iter;
    struct belem elem;
    size_t count = bdoc_count(array);
    size_t at = 0;
    *out = NULL;
    if (count == 0)
        return true;
    struct key_range *ranges = mem_alloc_array(count, sizeof *ranges);
    bool ok = true;
    biter_init(&iter, array);
    while (ok && biter_next(&iter, &elem)) {
        ok = elem.val.type == BT_DOCUMENT && get_bytes(bval_doc(&elem.val), "min", &ranges[at].min) &&
             get_bytes(bval_doc(&elem.val), "max", &ranges[at].max);
        at++;
    }
    ok = ok ? range_set_new(ranges, count, out, err) : err_set(err, ERR_FailedToParse, "a range is not {min, max}");
    mem_free(ranges);
    return ok;
}

void ranges_append(bson_t *to, const char *name, const struct range_set *ranges)
{
    bson_t array;
    BSON_APPEND_ARRAY_BEGIN(to, name, &array);
    for (size_t i = 0; ranges != NULL && i < range_set_count(ranges); i++) {
        struct key_range range = range_set_at(ranges, i);
        bson_t one;
        const char *key;
        char digits[16];
        bson_uint32_to_string((uint32_t)i, &key, digits, sizeof digits);
        BSON_APPEND_DOCUMENT_BEGIN(&array, key, &one);
        bson_append_binary(&one, "min", -1, BSON_SUBTYPE_BINARY, range.min.data, range.min.len);
        bson_append_binary(&one, "max", -1, BSON_SUBTYPE_BINARY, range.max.data, range.max.len);
        bson_append_document_end(&array, &one);
    }
    bson_append_array_end(to, &array);
}

static bool parse_ranges_field(struct bdoc doc, const char *name, struct range_set **out, struct err *err)
{
    struct bval val;
    if (!bdoc_find(doc, name, &val) || val.type != BT_ARRAY)
        return err_set(err, ERR_FailedToParse, "no array '%s'", name);
    return ranges_parse(bval_doc(&val), out, err);
}

static bool parse_recount(struct bdoc recount, struct document_view *view, struct err *err)
{
    struct key_bytes position;
    if (recount.data == NULL)
        return true;
    if (!get_bytes(recount, "position", &position))
        return err_set(err, ERR_FailedToParse, "no position");
    buf_append(&view->position, position.data, position.len);
    int64_t generation = get_i64(recount, "gen");
    if (generation > view->generation)
        view->generation = generation;
    return parse_ranges_field(recount, "pending", &view->pending, err);
}

static bool parse_view(struct bdoc doc, struct bdoc recount, struct document_view *view, struct err *err)
{
    struct bval key;
    struct bval flag;
    view->generation = get_i64(doc, "gen");
    view->timestamp = (uint64_t)get_i64(doc, "timestamp");
    view->unique = bdoc_find(doc, "unique", &flag) && bval_truthy(&flag);
    view->foreign = bdoc_find(doc, "foreign", &flag) && bval_truthy(&flag);
    if (!get_str(doc, "_id", view->ns, sizeof view->ns) || !get_uuid(doc, "uuid", view->uuid))
        return err_set(err, ERR_FailedToParse, "no namespace or uuid");
    if (!chunk_version_parse(doc, &view->version, err))
        return false;
    if (!bdoc_find(doc, "key", &key) || key.type != BT_DOCUMENT)
        return err_set(err, ERR_FailedToParse, "no shard key");
    return shardkey_parse(bval_doc(&key), &view->key, err) && parse_ranges_field(doc, "ranges", &view->ranges, err) &&
           parse_recount(recount, view, err);
}

bool view_parse(struct bdoc doc, struct bdoc recount, struct document_view **out, struct err *err)
{
    struct document_view *view = mem_alloc(sizeof *view);
    atomic_init(&view->refs, 1);
    if (!parse_view(doc, recount, view, err)) {
        view_unref(view);
        return false;
    }
    *out = view;
    return true;
}

/* ---- the table ---- */

void ownership_table_unref(struct ownership_table *table)
{
    if (table == NULL || atomic_fetch_sub(&table->refs, 1) != 1)
        return;
    struct map_entry *entry = NULL;
    while ((entry = map_next(&table->collections, entry)) != NULL)
        view_unref(entry->value);
    entry = NULL;
    while ((entry = map_next(&table->databases, entry)) != NULL)
        mem_free(entry->value);
    entry = NULL;
    while ((entry = map_next(&table->prepared, entry)) != NULL)
        mem_free(entry->value);
    map_deinit(&table->collections);
    map_deinit(&table->databases);
    map_deinit(&table->prepared);
    mem_free(table);
}

/* A load under way. */
struct load {
    struct ownership_table *table;
    const struct ownership_table *before;
    struct store_txn *txn;
};

/* Such a document was written by our own apply: one that can't be read means damaged data, and a shard that forgets
 * what it owns would do harm. */
static void check_loaded(bool ok, const char *what, const struct err *err)
{
    if (ok)
        return;
    log_error("SHARDING", 6001, "The shard's own state can't be read", LOG_STR("what", what),
              LOG_STR("error", err->msg));
    CHECK(ok);
}

static bool load_collection(void *arg, struct bdoc doc)
{
    struct load *load = arg;
    struct bval id;
    uint32_t len;
    struct err err = {0};
    struct bdoc recount;
    struct arena arena;
    struct document_view *view = NULL;
    bool ok = bdoc_find(doc, "_id", &id) && id.type == BT_STRING;
    err_set(&err, ERR_FailedToParse, "no _id");
    check_loaded(ok, OWNERSHIP_COLLECTIONS_NS, &err);
    const char *ns = bval_str(&id, &len);
    arena_init(&arena);
    document_get(load->txn, OWNERSHIP_RECOUNT_NS, &id, &arena, &recount);
    struct document_view *known = load->before == NULL ? NULL : map_get(&load->before->collections, ns, strlen(ns));
    int64_t generation = get_i64(doc, "gen");
    if (recount.data != NULL && get_i64(recount, "gen") > generation)
        generation = get_i64(recount, "gen");
    if (known != NULL && known->generation == generation && (recount.data == NULL) == (known->pending == NULL))
        view = view_ref(known);
    else
        check_loaded(view_parse(doc, recount, &view, &err), ns, &err);
    map_put(&load->table->collections, ns, strlen(ns), view);
    arena_deinit(&arena);
    return true;
}

static bool load_database(void *arg, struct bdoc doc)
{
    struct load *load = arg;
    char name[CLUSTER_DB_NAME_MAX + 1];
    struct owned_database *database = mem_alloc(sizeof *database);
    bool ok = get_str(doc, "_id", name, sizeof name) && get_uuid(doc, "uuid", database->uuid) &&
              get_str(doc, "primary", database->primary, sizeof database->primary);
    check_loaded(ok, OWNERSHIP_DATABASES_NS, &(struct err){.msg = "not {_id, uuid, primary}"});
    map_put(&load->table->databases, name, strlen(name), database);
    return true;
}

static bool load_prepared(void *arg, struct bdoc doc)
{
    struct load *load = arg;
    char ns[CLUSTER_NS_MAX + 1];
    struct prepared *prepared = mem_alloc(sizeof *prepared);
    bool ok = get_str(doc, "_id", ns, sizeof ns) && get_uuid(doc, "uuid", prepared->uuid) &&
              get_uuid(doc, "op", prepared->op);
    check_loaded(ok, OWNERSHIP_PREPARED_NS, &(struct err){.msg = "not {_id, uuid, op}"});
    prepared->at_ms = get_i64(doc, "at");
    map_put(&load->table->prepared, ns, strlen(ns), prepared);
    return true;
}

static bool load_identity(void *arg, struct bdoc doc)
{
    struct load *load = arg;
    struct ownership_table *table = load->table;
    struct bval id;
    table->has_identity = get_str(doc, "shardName", table->shard_name, sizeof table->shard_name) &&
                          get_str(doc, "configdb", table->configdb, sizeof table->configdb);
    if (bdoc_find(doc, "clusterId", &id) && id.type == BT_OBJECT_ID)
        table->cluster_id = *bval_oid(&id);
    return false;
}

struct ownership_table *ownership_table_load(struct store_txn *txn, int64_t generation,
                                             const struct ownership_table *before)
{
    struct ownership_table *table = mem_alloc(sizeof *table);
    struct load load = {.table = table, .before = before, .txn = txn};
    struct err err;
    atomic_init(&table->refs, 1);
    table->generation = generation;
    bool ok = document_scan(txn, OWNERSHIP_IDENTITY_NS, (struct bdoc){0}, load_identity, &load, &err) &&
              document_scan(txn, OWNERSHIP_DATABASES_NS, (struct bdoc){0}, load_database, &load, &err) &&
              document_scan(txn, OWNERSHIP_COLLECTIONS_NS, (struct bdoc){0}, load_collection, &load, &err) &&
              document_scan(txn, OWNERSHIP_PREPARED_NS, (struct bdoc){0}, load_prepared, &load, &err);
    check_loaded(ok, "local", &err);
    return table;
}

struct ownership_table *ownership_table_newest(struct ownership *ownership)
{
    pthread_mutex_lock(&ownership->mutex);
    struct ownership_table *table = ownership->newest;
    if (table != NULL)
        atomic_fetch_add(&table->refs, 1);
    pthread_mutex_unlock(&ownership->mutex);
    return table;
}

struct ownership_table *ownership_table_get(struct ownership *ownership, struct store_txn *txn)
{
    int64_t generation = ownership_generation(txn);
    struct ownership_table *newest = ownership_table_newest(ownership);
    if (newest != NULL && newest->generation == generation)
        return newest;
    struct ownership_table *table = ownership_table_load(txn, generation, newest);
    ownership_table_unref(newest);
    struct ownership_table *replaced = NULL;
    pthread_mutex_lock(&ownership->mutex);
    if (ownership->newest == NULL || ownership->newest->generation < generation) {
        replaced = ownership->newest;
        ownership->newest = table;
        atomic_fetch_add(&table->refs, 1);
    }
    pthread_mutex_unlock(&ownership->mutex);
    ownership_table_unref(replaced);
    return table;
}
