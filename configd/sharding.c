#include "configd/names.h"
#include "configd/operation.h"
#include "configd/plans.h"

#include "cluster/fields.h"
#include "cluster/plan.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- what goes out ---- */

static bool reply_state(struct change *change, const struct operation *operation)
{
    struct chunk_version version;
    bson_append_utf8(&change->reply, "state", -1, operation_state_name(operation->state), -1);
    append_uuid(&change->reply, "op", operation->id);
    if (operation->entry.key != NULL) {
        append_uuid(&change->reply, "uuid", operation->entry.uuid);
    }
    if (operation->state == OPERATION_COMMITTED && view_collection_version(change->view, &operation->entry, &version)) {
        chunk_version_append(&change->reply, "version", &version);
    }
    return true;
}

static bool make_plan(const struct operation *operation, struct chunk_plan *plan, struct err *err)
{
    struct chunk_plan_input input = {.key = operation->entry.key,
                                     .shards = operation->shards,
                                     .shard_count = operation->shard_count,
                                     .empty = operation->empty,
                                     .initial_chunks = operation->initial_chunks};
    return chunk_plan_make(&input, plan, err);
}

/* What the router needs to prepare the shards: who will own a part, how many chunks. */
static bool reply_begun(struct change *change, const struct operation *operation, struct err *err)
{
    struct chunk_plan plan;
    bson_t shards;
    if (!make_plan(operation, &plan, err)) {
        return false;
    }
    reply_state(change, operation);
    bson_append_utf8(&change->reply, "primary", -1, operation->shards[0], -1);
    bson_append_int32(&change->reply, "chunks", -1, (int32_t)plan.count);
    bson_append_array_begin(&change->reply, "shards", -1, &shards);
    uint32_t used = 0;
    for (size_t i = 0; i < plan.count; i++) {
        if (i == 0 || plan.items[i].shard != plan.items[i - 1].shard) {
            char text[16];
            const char *name;
            bson_uint32_to_string(used++, &name, text, sizeof text);
            bson_append_utf8(&shards, name, -1, operation->shards[plan.items[i].shard], -1);
        }
    }
    bson_append_array_end(&change->reply, &shards);
    chunk_plan_deinit(&plan);
    return true;
}

static bool refuse_aborted(struct err *err)
{
    return err_set(err, ERR_ConflictingOperationInProgress, "this shardCollection was aborted; run it again");
}

/* ---- begin ---- */

static bool check_name(const char *ns, struct err *err)
{
    char db[CLUSTER_DB_NAME_MAX + 1];
    const char *collection;
    if (!ns_check(ns, strlen(ns), err) || !ns_split(ns, strlen(ns), db, &collection)) {
        return false;
    }
    if (strcasecmp(db, "admin") == 0 || strcasecmp(db, "local") == 0 || strcasecmp(db, "config") == 0) {
        return err_set(err, ERR_IllegalOperation, "collections of the database '%s' can't be sharded", db);
    }
    if (strncmp(collection, "system.", strlen("system.")) == 0) {
        return err_set(err, ERR_IllegalOperation, "can't shard system namespaces");
    }
    return true;
}

static bool parse_request(struct change *change, struct bdoc request, struct operation *out, struct err *err)
{
    struct bdoc pattern;
    if (!field_str(request, "_configsvrShardCollectionBegin", out->ns, sizeof out->ns, err) ||
        !check_name(out->ns, err) || !field_uuid(request, "op", out->id, err) ||
        !field_uuid(request, "uuid", out->entry.uuid, err) || !field_doc(request, "key", &pattern, err) ||
        !shardkey_parse(pattern, &out->entry.key, err)) {
        return false;
    }
    if (bdoc_has(request, "numInitialChunks") && !field_i64(request, "numInitialChunks", &out->initial_chunks, err)) {
        return false;
    }
    if (bdoc_has(request, "defaultCollation")) {
        struct bdoc collation;
        if (!field_doc(request, "defaultCollation", &collation, err)) {
            return false;
        }
        collection_entry_set_collation(&out->entry, collation);
    }
    memcpy(out->entry.ns, out->ns, sizeof out->entry.ns);
    out->entry.unique = field_flag(request, "unique");
    out->empty = field_flag(request, "empty");
    out->state = OPERATION_BEGUN;
    out->entry.timestamp = change_timestamp(change);
    bson_oid_init(&out->entry.epoch, NULL);
    if (out->entry.unique && shardkey_hashed_field(out->entry.key) != SIZE_MAX) {
        return err_set(err, ERR_InvalidOptions,
                       "Hashed shard keys cannot be declared unique. It's possible to ensure uniqueness on the hashed "
                       "field by declaring an additional (non-hashed) unique index on the field.");
    }
    return true;
}

/* The primary first, then every other shard that may take chunks. */
static void list_shards(const struct metadata_view *view, const char *primary, struct operation *out)
{
    struct shard_entry *entries;
    size_t count = view_shards(view, &entries);
    out->shards = arena_alloc(view->arena, (count + 1) * sizeof *out->shards);
    out->shards[out->shard_count++] = arena_copy_str(view->arena, primary, strlen(primary));
    for (size_t i = 0; i < count; i++) {
        if (!entries[i].draining && strcmp(entries[i].name, primary) != 0) {
            out->shards[out->shard_count++] = entries[i].name;
        }
    }
}

/* Sharded already: fine with the same key, and said so. */
static bool answer_sharded(struct change *change, const struct collection_entry *there, const struct operation *wanted,
                           struct err *err)
{
    struct chunk_version version;
    if (!shardkey_equal(there->key, wanted->entry.key) || there->unique != wanted->entry.unique) {
        return err_set(err, ERR_AlreadyInitialized,
                       "sharding already enabled for collection %s with another shard key or another 'unique'",
                       there->ns);
    }
    bson_append_utf8(&change->reply, "state", -1, "committed", -1);
    bson_append_bool(&change->reply, "alreadySharded", -1, true);
    append_uuid(&change->reply, "uuid", there->uuid);
    if (view_collection_version(change->view, there, &version)) {
        chunk_version_append(&change->reply, "version", &version);
    }
    return true;
}

struct operation_walk {
    struct change *change;
    const char *ns;
    int64_t older_than_ms; /* begun before: aborted */
    bool busy;             /* a younger one is there */
};

static bool abort_if_begun(void *arg, struct bdoc doc)
{
    struct operation_walk *walk = arg;
    struct operation operation;
    if (operation_parse(doc, walk->change->view->arena, &operation, NULL) && operation.state == OPERATION_BEGUN &&
        strcmp(operation.ns, walk->ns) == 0) {
        if (operation.at_ms < walk->older_than_ms) {
            operation.state = OPERATION_ABORTED;
            operation_put(walk->change, &operation);
        } else {
            walk->busy = true;
        }
    }
    operation_deinit(&operation);
    return true;
}

bool abort_operations(struct change *change, const char *ns, struct err *err)
{
    struct operation_walk walk = {.change = change, .ns = ns, .older_than_ms = INT64_MAX};
    return view_each(change->view, NS_OPERATIONS, (struct bdoc){0}, abort_if_begun, &walk, err);
}

static bool begin_new(struct change *change, struct operation *operation, struct err *err)
{
    char db[CLUSTER_DB_NAME_MAX + 1];
    const char *collection;
    struct database_entry database;
    struct operation_walk walk = {
        .change = change, .ns = operation->ns, .older_than_ms = change->now_ms - OPERATION_STALE_MS};
    if (!ns_split(operation->ns, strlen(operation->ns), db, &collection) ||
        !view_database(change->view, db, &database)) {
        return err_set(err, ERR_NamespaceNotFound, "database of %s not found", operation->ns);
    }
    if (!view_each(change->view, NS_OPERATIONS, (struct bdoc){0}, abort_if_begun, &walk, err)) {
        return false;
    }
    if (walk.busy) {
        return err_set(err, ERR_ConflictingOperationInProgress, "another shardCollection of %s is under way",
                       operation->ns);
    }
    memcpy(operation->db_uuid, database.uuid, sizeof operation->db_uuid);
    list_shards(change->view, database.primary, operation);
    if (!reply_begun(change, operation, err)) {
        return false;
    }
    operation_put(change, operation);
    return true;
}

static bool begin(struct change *change, struct operation *wanted, struct err *err)
{
    struct collection_entry there;
    struct operation known;
    bool ok = operation_read(change->view, wanted->id, &known, err);
    if (!ok) {
        goto out;
    }
    if (known.state == OPERATION_BEGUN) {
        ok = reply_begun(change, &known, err);
    } else if (known.state == OPERATION_COMMITTED) {
        ok = reply_state(change, &known);
    } else if (known.state == OPERATION_ABORTED) {
        ok = refuse_aborted(err);
    } else if (view_collection(change->view, wanted->ns, &there)) {
        ok = answer_sharded(change, &there, wanted, err);
        collection_entry_deinit(&there);
    } else {
        ok = begin_new(change, wanted, err);
    }
out:
    operation_deinit(&known);
    return ok;
}

bool plan_shard_begin(struct change *change, struct bdoc request, struct err *err)
{
    struct operation wanted = {0};
    bool ok = parse_request(change, request, &wanted, err) && begin(change, &wanted, err);
    operation_deinit(&wanted);
    return ok;
}

/* ---- commit ---- */

static bool put_chunk(struct change *change, const struct operation *operation, const struct chunk_plan_item *item,
                      int64_t minor, struct err *err)
{
    bson_oid_t id;
    struct chunk *chunk;
    bson_t doc = BSON_INITIALIZER;
    bson_oid_init(&id, NULL);
    struct chunk_spec spec = {.id = &id,
                              .uuid = operation->entry.uuid,
                              .min = item->min,
                              .max = item->max,
                              .shard = operation->shards[item->shard],
                              .version = {.epoch = operation->entry.epoch, .major = 1, .minor = minor},
                              .since = operation->entry.timestamp};
    if (!chunk_new(operation->entry.key, &spec, &chunk, err)) {
        return false;
    }
    chunk_append(&doc, chunk);
    change_put(change, NS_CHUNKS, &doc);
    bson_destroy(&doc);
    chunk_unref(chunk);
    return true;
}

static void log_sharded(struct change *change, const struct operation *operation, size_t chunks)
{
    bson_t details = BSON_INITIALIZER;
    char version[80];
    char epoch[25];
    append_bdoc(&details, "shardKey", shardkey_pattern(operation->entry.key));
    bson_append_utf8(&details, "collection", -1, operation->ns, -1);
    append_uuid(&details, "uuid", operation->entry.uuid);
    bson_append_bool(&details, "empty", -1, operation->empty);
    bson_append_utf8(&details, "primary", -1, operation->shards[0], -1);
    bson_append_int32(&details, "numChunks", -1, (int32_t)chunks);
    change_log(change, "shardCollection.start", operation->ns, &details);
    bson_oid_to_string(&operation->entry.epoch, epoch);
    snprintf(version, sizeof version, "1|%zu||%s", chunks - 1, epoch);
    bson_reinit(&details);
    bson_append_utf8(&details, "version", -1, version, -1);
    change_log(change, "shardCollection.end", operation->ns, &details);
    bson_destroy(&details);
}

/* The database must be what the plan was made on: the same one, with its data where it was. */
static bool check_database(const struct metadata_view *view, const struct operation *operation, struct err *err)
{
    char db[CLUSTER_DB_NAME_MAX + 1];
    const char *collection;
    struct database_entry database;
    if (!ns_split(operation->ns, strlen(operation->ns), db, &collection) || !view_database(view, db, &database) ||
        memcmp(database.uuid, operation->db_uuid, sizeof database.uuid) != 0 ||
        strcmp(database.primary, operation->shards[0]) != 0) {
        return err_set(err, ERR_ConflictingOperationInProgress, "the database of %s was dropped or moved meanwhile",
                       operation->ns);
    }
    return true;
}

static bool commit_begun(struct change *change, struct operation *operation, struct err *err)
{
    struct collection_entry there;
    struct chunk_plan plan;
    if (!check_database(change->view, operation, err)) {
        return false;
    }
    if (view_collection(change->view, operation->ns, &there)) {
        collection_entry_deinit(&there);
        return err_set(err, ERR_ConflictingOperationInProgress, "%s was sharded meanwhile", operation->ns);
    }
    if (!make_plan(operation, &plan, err)) {
        return false;
    }
    bson_t doc = BSON_INITIALIZER;
    bool ok = true;
    operation->entry.last_mod_ms = change->now_ms;
    collection_entry_append(&doc, &operation->entry);
    change_put(change, NS_COLLECTIONS, &doc);
    bson_destroy(&doc);
    for (size_t i = 0; i < plan.count && ok; i++) {
        ok = put_chunk(change, operation, &plan.items[i], (int64_t)i, err);
    }
    operation->state = OPERATION_COMMITTED;
    operation_put(change, operation);
    log_sharded(change, operation, plan.count);
    struct chunk_version version = {.epoch = operation->entry.epoch, .major = 1, .minor = (int64_t)plan.count - 1};
    reply_state(change, operation);
    chunk_version_append(&change->reply, "version", &version);
    chunk_plan_deinit(&plan);
    return ok;
}

static bool read_named(struct change *change, struct bdoc request, const char *command, struct operation *out,
                       struct err *err)
{
    uint8_t id[CLUSTER_UUID_BYTES];
    char ns[CLUSTER_NS_MAX + 1];
    *out = (struct operation){0};
    if (!field_str(request, command, ns, sizeof ns, err) || !field_uuid(request, "op", id, err) ||
        !operation_read(change->view, id, out, err)) {
        return false;
    }
    if (out->state == OPERATION_UNKNOWN) {
        memcpy(out->ns, ns, sizeof out->ns);
    } else if (strcmp(out->ns, ns) != 0) {
        return err_set(err, ERR_BadValue, "that operation is on %s, not on %s", out->ns, ns);
    }
    return true;
}

bool plan_shard_commit(struct change *change, struct bdoc request, struct err *err)
{
    struct operation operation;
    bool ok = read_named(change, request, "_configsvrShardCollectionCommit", &operation, err);
    if (ok && operation.state == OPERATION_BEGUN) {
        ok = commit_begun(change, &operation, err);
    } else if (ok && operation.state == OPERATION_COMMITTED) {
        ok = reply_state(change, &operation);
    } else if (ok) {
        ok = refuse_aborted(err);
    }
    operation_deinit(&operation);
    return ok;
}

/* ---- abort and status ---- */

static bool end_or_tell(struct change *change, struct bdoc request, const char *command, bool abort, struct err *err)
{
    struct operation operation;
    bool ok = read_named(change, request, command, &operation, err);
    if (ok) {
        if (abort && (operation.state == OPERATION_BEGUN || operation.state == OPERATION_UNKNOWN)) {
            operation.state = OPERATION_ABORTED;
            operation_put(change, &operation);
        }
        ok = reply_state(change, &operation);
    }
    operation_deinit(&operation);
    return ok;
}

bool plan_shard_abort(struct change *change, struct bdoc request, struct err *err)
{
    return end_or_tell(change, request, "_configsvrShardCollectionAbort", true, err);
}

bool plan_shard_status(struct change *change, struct bdoc request, struct err *err)
{
    bool abort = field_flag(request, "abort");
    return end_or_tell(change, request, "_configsvrShardCollectionStatus", abort, err);
}
