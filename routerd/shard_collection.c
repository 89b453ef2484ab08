#include "routerd/shard_collection.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/random.h"
#include "command/fields.h"
#include "routerd/client_error.h"
#include "routerd/command_env.h"
#include "routerd/request.h"

#include <stdio.h>
#include <string.h>

enum { TARGETS_MAX = REGISTRY_MAX_SHARDS };

/* One run. */
struct sharding {
    struct command_ctx *ctx;
    const struct shard_collection_request *request;
    struct route route;
    struct ddl_collection collection;
    uint8_t op[CLUSTER_UUID_BYTES]; /* names the operation in the config service */
    const char **targets;           /* shards that get chunks, the primary always among them; in the arena */
    size_t target_count;
    bool done_before;              /* it is sharded like that already */
    struct bdoc default_collation; /* of the collection; data NULL: simple */
};

static bool on_primary(struct sharding *s, const bson_t *body, struct err *err)
{
    struct remote_request request;
    bool ok = ddl_on_shard(s->ctx, s->route.routing->db.primary, body, &request, err);
    remote_request_deinit(&request);
    return ok;
}

/* Only plain and clustered collections can be spread over shards. */
static bool check_kind(struct sharding *s, struct err *err)
{
    struct ddl_collection found;
    const char *name = s->request->ns.full;
    struct bval value;
    if (!ddl_describe_options(&s->route, &s->request->ns, &found, err))
        return false;
    if (!found.options.data)
        return true;
    if (bdoc_has(found.options, "viewOn"))
        return err_set(err, ERR_CommandNotSupportedOnView, "Namespace %s is a view, not a collection", name);
    if (bdoc_find(found.options, "capped", &value) && bval_truthy(&value))
        return err_set(err, ERR_InvalidOptions, "can't shard a capped collection: %s", name);
    return !bdoc_has(found.options, "timeseries") ||
           err_set(err, ERR_IllegalOperation, "sharding a time-series collection is not supported: %s", name);
}

/* Step 1: the collection must exist, for its uuid. */
static bool make_collection(struct sharding *s, struct err *err)
{
    if (!check_kind(s, err) || !ddl_describe(&s->route, &s->request->ns, &s->collection, err))
        return false;
    if (s->collection.exists)
        return true;
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "create", s->request->ns.coll);
    BSON_APPEND_UTF8(&body, "$db", s->request->ns.db);
    bool ok = on_primary(s, &body, err);
    bson_destroy(&body);
    if (!ok && err->code != ERR_NamespaceExists)
        return false;
    if (!ddl_describe(&s->route, &s->request->ns, &s->collection, err))
        return false;
    return s->collection.exists ||
           err_set(err, ERR_ConflictingOperationInProgress, "%s was dropped meanwhile", s->request->ns.full);
}

/* Shard keys are in order of bytes: a collection whose strings compare otherwise is sharded only by somebody who says
 * that he knows. */
static bool check_collation(struct sharding *s, struct err *err)
{
    bool simple;
    struct bdoc options = s->collection.options;
    if (options.data && !field_get_doc(options, "collation", &s->default_collation, err))
        return false;
    if (s->request->collation.data) {
        if (!command_env_same_collation(s->request->collation, (struct bdoc){0}, &simple, err))
            return false;
        return simple || err_set(err, ERR_BadValue, "The collation for shardCollection must be {locale: 'simple'}");
    }
    if (!command_env_same_collation(s->default_collation, (struct bdoc){0}, &simple, err))
        return false;
    return simple || err_set(err, ERR_BadValue,
                             "%s has a default collation: the collation {locale: 'simple'} must be given to shard it",
                             s->request->ns.full);
}

/* True when the index's key begins with the fields of the shard key, in their order and kind. */
static bool index_fits(struct bdoc shard_key, struct bdoc index_key)
{
    struct biter want, have;
    struct belem a, b;
    biter_init(&want, shard_key);
    biter_init(&have, index_key);
    while (biter_next(&want, &a)) {
        double left, right;
        if (!biter_next(&have, &b) || strcmp(a.key, b.key) != 0)
            return false;
        bool numbers = bval_to_f64(&a.val, &left) && bval_to_f64(&b.val, &right);
        if (numbers ? left != right : !(bval_is_str(&a.val, "hashed") && bval_is_str(&b.val, "hashed")))
            return false;
    }
    return true;
}

static bool has_index(const struct sharding *s)
{
    struct biter iter;
    struct belem elem;
    struct bval key, option;
    if (!s->collection.indexes.data)
        return false;
    biter_init(&iter, s->collection.indexes);
    while (biter_next(&iter, &elem)) {
        if (elem.val.type != BT_DOCUMENT || !bdoc_find(bval_doc(&elem.val), "key", &key) || key.type != BT_DOCUMENT ||
            !index_fits(s->request->key, bval_doc(&key)))
            continue;
        struct bdoc spec = bval_doc(&elem.val);
        bool partial =
            bdoc_has(spec, "partialFilterExpression") || (bdoc_find(spec, "sparse", &option) && bval_truthy(&option));
        bool unique = bdoc_find(spec, "unique", &option) && bval_truthy(&option);
        bool is_id = bdoc_count(bval_doc(&key)) == 1 && bdoc_has(bval_doc(&key), "_id");
        if (!partial && !bdoc_has(spec, "collation") && (!s->request->unique || unique || is_id))
            return true;
    }
    return false;
}

bool shard_collection_check_unique(const struct shardkey *key, struct bdoc indexes, struct err *err)
{
    struct biter iter;
    struct belem elem;
    if (!indexes.data)
        return true;
    for (biter_init(&iter, indexes); biter_next(&iter, &elem);) {
        struct bval pattern, unique, name;
        uint32_t len;
        if (elem.val.type != BT_DOCUMENT || !bdoc_find(bval_doc(&elem.val), "unique", &unique) ||
            !bval_truthy(&unique) || !bdoc_find(bval_doc(&elem.val), "key", &pattern) || pattern.type != BT_DOCUMENT ||
            shardkey_is_prefix_of(key, bval_doc(&pattern)))
            continue;
        bool named = bdoc_find(bval_doc(&elem.val), "name", &name) && name.type == BT_STRING;
        return err_set(err, ERR_InvalidOptions,
                       "can't shard a collection with the unique index '%s': it doesn't begin with the shard key",
                       named ? bval_str(&name, &len) : "");
    }
    return true;
}

void shard_collection_misfits(const struct shardkey *key, bson_t *out)
{
    bson_t any;
    uint32_t count = 0;
    BSON_APPEND_ARRAY_BEGIN(out, "$or", &any);
    for (size_t i = 0; i < shardkey_field_count(key); i++) {
        const char *path = shardkey_field_path(key, i);
        for (const char *end = strchrnul(path, '.');; end = strchrnul(end + 1, '.')) {
            bson_t choice, type;
            char number[16];
            const char *at;
            size_t len = bson_uint32_to_string(count++, &at, number, sizeof number);
            bson_append_document_begin(&any, at, (int)len, &choice);
            bson_append_document_begin(&choice, path, (int)(end - path), &type);
            BSON_APPEND_UTF8(&type, "$type", "array");
            bson_append_document_end(&choice, &type);
            bson_append_document_end(&any, &choice);
            if (!*end)
                break;
        }
    }
    bson_append_array_end(out, &any);
}

/* What is there must fit the key: no shard owns a document with an array in it. */
static bool check_documents(struct sharding *s, const struct shardkey *key, struct err *err)
{
    struct remote_request request;
    struct cursor_reply reply;
    bson_t body = BSON_INITIALIZER;
    bson_t filter, projection;
    if (s->collection.empty)
        return true;
    BSON_APPEND_UTF8(&body, "find", s->request->ns.coll);
    BSON_APPEND_DOCUMENT_BEGIN(&body, "filter", &filter);
    shard_collection_misfits(key, &filter);
    bson_append_document_end(&body, &filter);
    BSON_APPEND_DOCUMENT_BEGIN(&body, "projection", &projection);
    BSON_APPEND_INT32(&projection, "_id", 1);
    bson_append_document_end(&body, &projection);
    BSON_APPEND_INT32(&body, "limit", 1);
    BSON_APPEND_BOOL(&body, "singleBatch", true);
    BSON_APPEND_UTF8(&body, "$db", s->request->ns.db);
    bool ok = ddl_on_shard(s->ctx, s->route.routing->db.primary, &body, &request, err) &&
              cursor_reply_parse(request.reply, &reply, err);
    if (ok && !bdoc_is_empty(reply.batch))
        ok = err_set(err, ERR_InvalidOptions,
                     "can't shard %s: the shard key of one of its documents is or holds an array", s->request->ns.full);
    remote_request_deinit(&request);
    bson_destroy(&body);
    return ok;
}

/* {a: 1, b: "hashed"} -> "a_1_b_hashed" */
static void index_name(struct bdoc key, char *out, size_t size)
{
    struct biter iter;
    struct belem elem;
    size_t at = 0;
    out[0] = 0;
    biter_init(&iter, key);
    while (biter_next(&iter, &elem) && at < size) {
        bool hashed = elem.val.type == BT_STRING;
        int n = snprintf(out + at, size - at, "%s%s_%s", at ? "_" : "", elem.key, hashed ? "hashed" : "1");
        at += n > 0 ? (size_t)n : 0;
    }
}

/* Step 2: an index that begins with the key; an empty collection gets one. */
static bool make_index(struct sharding *s, struct err *err)
{
    enum { NAME_MAX_BYTES = 128 };
    if (has_index(s))
        return true;
    if (!s->collection.empty)
        return err_set(
            err, ERR_InvalidOptions,
            "Please create an index that starts with the proposed shard key before sharding the collection.");
    char name[NAME_MAX_BYTES];
    bson_t body = BSON_INITIALIZER;
    bson_t indexes, spec;
    struct bval key = bval_from_doc(s->request->key);
    index_name(s->request->key, name, sizeof name);
    BSON_APPEND_UTF8(&body, "createIndexes", s->request->ns.coll);
    BSON_APPEND_ARRAY_BEGIN(&body, "indexes", &indexes);
    BSON_APPEND_DOCUMENT_BEGIN(&indexes, "0", &spec);
    bval_append(&spec, "key", -1, &key);
    BSON_APPEND_UTF8(&spec, "name", name);
    if (s->default_collation.data)
        BCON_APPEND(&spec, "collation", "{", "locale", BCON_UTF8("simple"), "}");
    if (s->request->unique)
        BSON_APPEND_BOOL(&spec, "unique", true);
    bson_append_document_end(&indexes, &spec);
    bson_append_array_end(&body, &indexes);
    BSON_APPEND_UTF8(&body, "$db", s->request->ns.db);
    bool ok = on_primary(s, &body, err);
    bson_destroy(&body);
    /* Once more, for the list of indexes that the other shards are to have. */
    return ok && ddl_describe(&s->route, &s->request->ns, &s->collection, err);
}

static bool is_target(const struct sharding *s, const char *name)
{
    for (size_t i = 0; i < s->target_count; i++)
        if (strcmp(s->targets[i], name) == 0)
            return true;
    return false;
}

static void add_target(struct sharding *s, const char *name)
{
    if (!is_target(s, name) && s->target_count < TARGETS_MAX)
        s->targets[s->target_count++] = arena_copy_str(&s->ctx->arena, name, strlen(name));
}

static bool read_begun(struct sharding *s, struct bdoc reply, struct err *err)
{
    struct bval value;
    struct biter iter;
    struct belem elem;
    s->targets = arena_alloc(&s->ctx->arena, TARGETS_MAX * sizeof *s->targets);
    s->target_count = 0;
    s->done_before = bdoc_find(reply, "state", &value) && bval_is_str(&value, "committed");
    add_target(s, s->route.routing->db.primary);
    if (s->done_before)
        return true;
    if (!bdoc_find(reply, "shards", &value) || value.type != BT_ARRAY)
        return err_set(err, ERR_FailedToParse, "the config service's plan names no shards");
    biter_init(&iter, bval_doc(&value));
    while (biter_next(&iter, &elem)) {
        uint32_t len;
        if (elem.val.type == BT_STRING)
            add_target(s, bval_str(&elem.val, &len));
    }
    return true;
}

/* Step 3: the config service makes the plan and keeps the operation. */
static bool begin(struct sharding *s, struct err *err)
{
    struct remote_request request;
    struct bval key = bval_from_doc(s->request->key);
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "_configsvrShardCollectionBegin", s->request->ns.full);
    BSON_APPEND_BINARY(&body, "op", BSON_SUBTYPE_UUID, s->op, sizeof s->op);
    bval_append(&body, "key", -1, &key);
    BSON_APPEND_BOOL(&body, "unique", s->request->unique);
    if (s->request->initial_chunks > 0)
        BSON_APPEND_INT64(&body, "numInitialChunks", s->request->initial_chunks);
    BSON_APPEND_BOOL(&body, "empty", s->collection.empty);
    if (s->default_collation.data) {
        struct bval collation = bval_from_doc(s->default_collation);
        bval_append(&body, "defaultCollation", -1, &collation);
    }
    BSON_APPEND_BINARY(&body, "uuid", BSON_SUBTYPE_UUID, s->collection.uuid, sizeof s->collection.uuid);
    BSON_APPEND_UTF8(&body, "$db", "admin");
    bool ok = ddl_on_config(s->ctx, &body, true, &request, err) && read_begun(s, request.reply, err);
    remote_request_deinit(&request);
    bson_destroy(&body);
    return ok;
}

/* Step 4: the primary shard refuses writes to the collection until it knows the outcome. */
static bool prepare(struct sharding *s, struct err *err)
{
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "_shardsvrPrepare", s->request->ns.full);
    BSON_APPEND_BINARY(&body, "uuid", BSON_SUBTYPE_UUID, s->collection.uuid, sizeof s->collection.uuid);
    BSON_APPEND_BINARY(&body, "op", BSON_SUBTYPE_UUID, s->op, sizeof s->op);
    BSON_APPEND_UTF8(&body, "$db", "admin");
    bool ok = on_primary(s, &body, err);
    bson_destroy(&body);
    return ok;
}

/* Step 5: the collection with its options and indexes on every other shard that gets chunks. */
static bool create_on_targets(struct sharding *s, struct err *err)
{
    bson_t body = BSON_INITIALIZER;
    struct bval options = bval_from_doc(s->collection.options.data ? s->collection.options : bdoc_empty());
    struct bval indexes = {.type = BT_ARRAY, .data = s->collection.indexes.data, .len = s->collection.indexes.len};
    bool ok = true;
    BSON_APPEND_UTF8(&body, "_shardsvrCreateCollection", s->request->ns.full);
    BSON_APPEND_BINARY(&body, "uuid", BSON_SUBTYPE_UUID, s->collection.uuid, sizeof s->collection.uuid);
    bval_append(&body, "options", -1, &options);
    bval_append(&body, "indexes", -1, &indexes);
    BSON_APPEND_UTF8(&body, "$db", "admin");
    for (size_t i = 0; ok && i < s->target_count; i++) {
        struct remote_request request;
        if (strcmp(s->targets[i], s->route.routing->db.primary) == 0)
            continue;
        ok = ddl_on_shard(s->ctx, s->targets[i], &body, &request, err);
        remote_request_deinit(&request);
    }
    bson_destroy(&body);
    return ok;
}

static bool end_operation(struct sharding *s, const char *command, struct err *err)
{
    struct remote_request request;
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, command, s->request->ns.full);
    BSON_APPEND_BINARY(&body, "op", BSON_SUBTYPE_UUID, s->op, sizeof s->op);
    BSON_APPEND_UTF8(&body, "$db", "admin");
    bool ok = ddl_on_config(s->ctx, &body, true, &request, err);
    remote_request_deinit(&request);
    bson_destroy(&body);
    return ok;
}

/* Steps 4 to 6. A collection with documents stays one chunk where it is: nobody else has to be prepared. */
static bool carry_out(struct sharding *s, struct err *err)
{
    if (s->collection.empty && (!prepare(s, err) || !create_on_targets(s, err)))
        return false;
    if (fault_hit(FAULT_shard_collection_after_prepare))
        return err_set(err, ERR_InternalError, "fault injected");
    return end_operation(s, "_configsvrShardCollectionCommit", err);
}

/* One try. *filled: documents came in while the collection was taken for empty. */
static bool run_once(struct sharding *s, const struct shardkey *key, bool *filled, struct err *err)
{
    random_uuid(s->op);
    *filled = false;
    if (!make_collection(s, err) || !check_collation(s, err) ||
        !shard_collection_check_unique(key, s->collection.indexes, err) || !check_documents(s, key, err) ||
        !make_index(s, err) || !begin(s, err))
        return false;
    bool ok = s->done_before || carry_out(s, err);
    if (!ok) {
        struct err ignored;
        struct ddl_collection now;
        (void)end_operation(s, "_configsvrShardCollectionAbort", &ignored);
        ddl_refresh_shard(s->ctx, s->route.routing->db.primary, s->request->ns.full);
        *filled =
            s->collection.empty && ddl_describe(&s->route, &s->request->ns, &now, &ignored) && now.exists && !now.empty;
        return false;
    }
    if (fault_hit(FAULT_shard_collection_after_commit))
        return err_set(err, ERR_InternalError, "fault injected");
    /* Step 7: ownership is in force; the primary's block ends with it. */
    for (size_t i = 0; i < s->target_count; i++)
        ddl_refresh_shard(s->ctx, s->targets[i], s->request->ns.full);
    return true;
}

/* True when the collection is sharded already; *same: in the wanted way. */
static bool is_sharded(const struct sharding *s, const struct shardkey *key, bool *same)
{
    const struct routing_table *table = s->route.routing->table;
    *same = table && shardkey_equal(routing_table_key(table), key) &&
            routing_table_collection(table)->unique == s->request->unique;
    return table;
}

bool shard_collection_run(struct command_ctx *ctx, const struct shard_collection_request *request, struct err *err)
{
    struct sharding s = {.ctx = ctx, .request = request};
    struct shardkey *key;
    bool filled = false;
    if (!shardkey_parse(request->key, &key, err))
        return false;
    routing_cache_flush(router_of(ctx)->routing, request->ns.full);
    route_init(&s.route, ctx, request->ns.full);
    bool same = false;
    bool ok = route_next(&s.route, err) && route_create_database(&s.route, err);
    if (ok && is_sharded(&s, key, &same)) {
        ok = same || err_set(err, ERR_AlreadyInitialized, "%s is sharded already, with another key or another 'unique'",
                             request->ns.full);
    } else if (ok) {
        ok = run_once(&s, key, &filled, err);
        if (!ok && filled)
            ok = run_once(&s, key, &filled, err);
    }
    shardkey_unref(key);
    routing_cache_flush(router_of(ctx)->routing, request->ns.full);
    route_deinit(&s.route);
    return ok;
}
