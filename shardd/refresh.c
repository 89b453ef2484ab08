#include "shardd/refresh.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cluster/routing.h"
#include "command/fields.h"
#include "shardd/config_client.h"
#include "shardd/ownership_apply.h"
#include "shardd/shard.h"
#include "storage/store.h"

#include <stdio.h>
#include <string.h>

/* One refresh under way; callers that come before it has begun to read share it. */
struct refresh {
    struct refresh *next;
    char ns[CLUSTER_NS_MAX + 1];
    int waiters;  /* threads that look at it, the one that runs it included */
    bool reading; /* too late to join: what it reads may be older than the caller's wish */
    bool over;
    bool ok;
    struct err err;
};

void refresher_init(struct refresher *refresher)
{
    *refresher = (struct refresher){0};
    pthread_mutex_init(&refresher->mutex, NULL);
    thread_cond_init(&refresher->cond);
}

void refresher_stop(struct refresher *refresher)
{
    pthread_mutex_lock(&refresher->mutex);
    refresher->stopping = true;
    pthread_cond_broadcast(&refresher->cond);
    pthread_mutex_unlock(&refresher->mutex);
}

void refresher_deinit(struct refresher *refresher)
{
    pthread_cond_destroy(&refresher->cond);
    pthread_mutex_destroy(&refresher->mutex);
}

static struct ownership_table *table_now(struct shard *shard, struct err *err)
{
    struct store_txn *txn;
    if (!store_read_begin(node_store(shard->node), &txn, err))
        return NULL;
    struct ownership_table *table = ownership_table_get(&shard->ownership, txn);
    store_read_end(txn);
    return table;
}

/* ---- reading the config service ---- */

static void append_database(bson_t *out, struct bdoc doc)
{
    struct database_entry entry;
    struct err ignored;
    if (doc.data == NULL || !database_entry_parse(doc, &entry, &ignored)) {
        BSON_APPEND_NULL(out, "database");
        return;
    }
    bson_t database;
    BSON_APPEND_DOCUMENT_BEGIN(out, "database", &database);
    BSON_APPEND_UTF8(&database, "_id", entry.name);
    BSON_APPEND_UTF8(&database, "primary", entry.primary);
    bson_append_binary(&database, "uuid", -1, BSON_SUBTYPE_UUID, entry.uuid, CLUSTER_UUID_BYTES);
    bson_append_document_end(out, &database);
}

static void append_collection(bson_t *out, const struct routing_table *table, const char *shard_name)
{
    const struct collection_entry *entry = routing_table_collection(table);
    const struct chunk_version *version = routing_table_version(table);
    struct range_set *ranges = routing_table_shard_ranges(table, shard_name);
    struct bval key = bval_from_doc(shardkey_pattern(entry->key));
    bson_t collection;
    BSON_APPEND_DOCUMENT_BEGIN(out, "collection", &collection);
    BSON_APPEND_UTF8(&collection, "_id", entry->ns);
    bson_append_binary(&collection, "uuid", -1, BSON_SUBTYPE_UUID, entry->uuid, CLUSTER_UUID_BYTES);
    BSON_APPEND_OID(&collection, "epoch", &version->epoch);
    BSON_APPEND_INT64(&collection, "major", version->major);
    BSON_APPEND_INT64(&collection, "minor", version->minor);
    BSON_APPEND_INT64(&collection, "timestamp", (int64_t)entry->timestamp);
    bval_append(&collection, "key", -1, &key);
    BSON_APPEND_BOOL(&collection, "unique", entry->unique);
    ranges_append(&collection, "ranges", ranges);
    bson_append_document_end(out, &collection);
    range_set_free(ranges);
}

/* What the log will carry, from the config service's answer. *sharded: there is a sharded collection of that name. */
static bool build_payload(const char *ns, struct bdoc answer, const char *shard_name, bson_t *out, bool *sharded,
                          struct err *err)
{
    struct routing_reply reply;
    struct routing_table *table = NULL;
    if (!routing_reply_parse(answer, &reply, err))
        return false;
    *sharded = reply.collection.data != NULL;
    if (*sharded && !routing_table_build(&reply, &table, err))
        return false;
    BSON_APPEND_UTF8(out, "ns", ns);
    append_database(out, reply.database);
    if (table != NULL)
        append_collection(out, table, shard_name);
    else
        BSON_APPEND_NULL(out, "collection");
    routing_table_unref(table);
    return true;
}

/* Nothing in the answer is news: it needs no log entry. */
static bool is_news(const struct ownership_table *table, const char *ns, const bson_t *payload)
{
    struct bval database;
    struct bval collection;
    struct bval field;
    struct chunk_version version;
    uint8_t subtype;
    uint32_t len;
    const struct owned_database *known = map_get(&table->databases, ns, strcspn(ns, "."));
    const struct document_view *view = map_get(&table->collections, ns, strlen(ns));
    bdoc_find(bdoc_of(payload), "database", &database);
    bdoc_find(bdoc_of(payload), "collection", &collection);
    if ((database.type == BT_DOCUMENT) != (known != NULL) || (collection.type == BT_DOCUMENT) != (view != NULL))
        return true;
    if (known != NULL) {
        bool same = bdoc_find(bval_doc(&database), "primary", &field) && bval_is_str(&field, known->primary) &&
                    bdoc_find(bval_doc(&database), "uuid", &field) &&
                    memcmp(bval_binary(&field, &subtype, &len), known->uuid, CLUSTER_UUID_BYTES) == 0;
        if (!same)
            return true;
    }
    if (view == NULL)
        return false;
    return !chunk_version_parse(bval_doc(&collection), &version, NULL) ||
           chunk_version_compare(&version, &view->version) != VERSION_SAME ||
           map_get(&table->prepared, ns, strlen(ns)) != NULL;
}

static bool propose(struct shard *shard, uint8_t kind, const bson_t *payload, int64_t deadline_ms, struct err *err)
{
    struct node_command command = {.kind = kind, .payload = bson_get_data(payload), .len = payload->len};
    return node_propose_wait(shard->node, &command, deadline_ms, NULL, err);
}

/* A preparation whose operation the config service has given up is ended. `abort`: it is told to give up now unless it
 * committed. */
static bool settle_prepared(struct shard *shard, const struct ownership_table *table, const char *ns, bool abort,
                            int64_t deadline_ms, struct err *err)
{
    const struct prepared *prepared = map_get(&table->prepared, ns, strlen(ns));
    struct rpc_call call;
    struct bval state;
    if (prepared == NULL)
        return true;
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "_configsvrShardCollectionStatus", ns);
    bson_append_binary(&body, "op", -1, BSON_SUBTYPE_UUID, prepared->op, CLUSTER_UUID_BYTES);
    BSON_APPEND_BOOL(&body, "abort", abort);
    BSON_APPEND_UTF8(&body, "$db", "admin");
    bool ok = config_client_ask(shard, table->configdb, bdoc_of(&body), deadline_ms, &call, err);
    bool aborted = ok && bdoc_find(call.reply.body, "state", &state) && bval_is_str(&state, "aborted");
    rpc_call_deinit(&call);
    bson_destroy(&body);
    if (!aborted)
        return ok;
    bson_t payload = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&payload, "ns", ns);
    bson_append_binary(&payload, "op", -1, BSON_SUBTYPE_UUID, prepared->op, CLUSTER_UUID_BYTES);
    ok = propose(shard, SHARD_KIND_UNPREPARE, &payload, deadline_ms, err);
    bson_destroy(&payload);
    return ok;
}

static bool refresh_with(struct shard *shard, const struct ownership_table *table, const char *ns, int64_t deadline_ms,
                         struct err *err)
{
    struct rpc_call call;
    bool sharded = false;
    bson_t body = BSON_INITIALIZER;
    bson_t payload = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "_configsvrGetRouting", ns);
    BSON_APPEND_UTF8(&body, "$db", "admin");
    bool ok = config_client_ask(shard, table->configdb, bdoc_of(&body), deadline_ms, &call, err) &&
              build_payload(ns, call.reply.body, table->shard_name, &payload, &sharded, err);
    rpc_call_deinit(&call);
    if (ok && is_news(table, ns, &payload)) {
        ok = propose(shard, SHARD_KIND_OWNERSHIP, &payload, deadline_ms, err);
        log_info("SHARDING", 6101, "Ownership refreshed", LOG_STR("ns", ns), LOG_BOOL("sharded", sharded),
                 LOG_BOOL("ok", ok));
    }
    if (ok && !sharded)
        ok = settle_prepared(shard, table, ns, false, deadline_ms, err);
    bson_destroy(&payload);
    bson_destroy(&body);
    return ok;
}

static bool refresh_once(struct shard *shard, const char *ns, int64_t deadline_ms, struct err *err)
{
    struct ownership_table *table = table_now(shard, err);
    if (table == NULL)
        return false;
    bool ok = table->has_identity ? refresh_with(shard, table, ns, deadline_ms, err)
                                  : err_set(err, ERR_IllegalOperation, "this set is not part of a cluster yet");
    ownership_table_unref(table);
    return ok;
}

/* ---- sharing ---- */

static struct refresh *find_locked(struct refresher *refresher, const char *ns)
{
    for (struct refresh *refresh = refresher->running; refresh != NULL; refresh = refresh->next) {
        if (strcmp(refresh->ns, ns) == 0 && !refresh->over)
            return refresh;
    }
    return NULL;
}

static void leave_locked(struct refresher *refresher, struct refresh *refresh)
{
    if (--refresh->waiters > 0)
        return;
    struct refresh **place = &refresher->running;
    while (*place != refresh)
        place = &(*place)->next;
    *place = refresh->next;
    mem_free(refresh);
}

static struct refresh *begin_locked(struct refresher *refresher, const char *ns)
{
    struct refresh *refresh = mem_alloc(sizeof *refresh);
    snprintf(refresh->ns, sizeof refresh->ns, "%s", ns);
    refresh->waiters = 1;
    refresh->next = refresher->running;
    refresher->running = refresh;
    return refresh;
}

static void run_locked(struct shard *shard, struct refresh *refresh, int64_t deadline_ms)
{
    struct refresher *refresher = &shard->refresher;
    refresh->reading = true;
    pthread_mutex_unlock(&refresher->mutex);
    struct err err = {0};
    bool ok = refresh_once(shard, refresh->ns, deadline_ms, &err);
    pthread_mutex_lock(&refresher->mutex);
    refresh->over = true;
    refresh->ok = ok;
    refresh->err = err;
    pthread_cond_broadcast(&refresher->cond);
}

bool refresh_run(struct shard *shard, const char *ns, int64_t deadline_ms, struct err *err)
{
    struct refresher *refresher = &shard->refresher;
    bool ok = false;
    pthread_mutex_lock(&refresher->mutex);
    struct refresh *refresh = find_locked(refresher, ns);
    if (refresh == NULL) {
        refresh = begin_locked(refresher, ns);
        run_locked(shard, refresh, deadline_ms);
    } else {
        /* It may have read before this caller's reason came up: then its answer is the floor, and one more is due. */
        bool too_late = refresh->reading;
        refresh->waiters++;
        while (!refresh->over && !refresher->stopping && !deadline_passed(deadline_ms))
            thread_cond_wait_until(&refresher->cond, &refresher->mutex, deadline_ms);
        if (refresh->over && too_late && find_locked(refresher, ns) == NULL) {
            struct refresh *next = begin_locked(refresher, ns);
            leave_locked(refresher, refresh);
            refresh = next;
            run_locked(shard, refresh, deadline_ms);
        }
    }
    ok = refresh->over && refresh->ok;
    if (!refresh->over)
        err_set(err, ERR_NetworkTimeout, "the config service was not heard in time");
    else if (!ok && err != NULL)
        *err = refresh->err;
    leave_locked(refresher, refresh);
    pthread_mutex_unlock(&refresher->mutex);
    return ok;
}

/* ---- when ---- */

bool refresh_admit(struct shard *shard, struct command_ctx *ctx, struct err *err)
{
    struct bdoc doc = {0};
    struct op_version version;
    if (!field_get_doc(ctx->body, OP_VERSION_FIELD, &doc, err))
        return false;
    if (doc.data == NULL)
        return true;
    if (!op_version_parse(doc, &version, err))
        return false;
    char ns[CLUSTER_NS_MAX + 1];
    uint32_t len;
    bool has_coll = ctx->value.type == BT_STRING;
    snprintf(ns, sizeof ns, "%s.%s", ctx->db, has_coll ? bval_str(&ctx->value, &len) : "$cmd");
    struct ownership_table *table = ownership_table_newest(&shard->ownership);
    bool known = table != NULL && ownership_knows(table, ns, &version);
    ownership_table_unref(table);
    if (known)
        return true;
    int64_t limit_ms = deadline_after_ms(REFRESH_TIMEOUT_MS);
    struct err failure;
    if (!refresh_run(shard, ns, ctx->deadline_ms < limit_ms ? ctx->deadline_ms : limit_ms, &failure))
        log_info("SHARDING", 6102, "Ownership could not be refreshed", LOG_STR("ns", ns),
                 LOG_STR("error", failure.msg));
    return true;
}

static void drive_recount(struct shard *shard, const struct document_view *view, int64_t deadline_ms)
{
    struct err err;
    bson_t payload = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&payload, "ns", view->ns);
    bson_append_binary(&payload, "uuid", -1, BSON_SUBTYPE_UUID, view->uuid, CLUSTER_UUID_BYTES);
    BSON_APPEND_INT32(&payload, "max", RECOUNT_STEP_DOCS);
    struct node_command command = {.kind = SHARD_KIND_RECOUNT, .payload = bson_get_data(&payload), .len = payload.len};
    bool more = true;
    while (more && !deadline_passed(deadline_ms)) {
        struct buf result = BUF_INIT;
        bool ok = node_propose_wait(shard->node, &command, deadline_after_ms(REFRESH_TIMEOUT_MS), &result, &err);
        more = ok && result.len > 0 && result.data[0] != 0;
        buf_deinit(&result);
    }
    bson_destroy(&payload);
}

static void settle_if_old(struct shard *shard, const struct ownership_table *table, const char *ns,
                          const struct prepared *prepared, int64_t deadline_ms)
{
    struct err err;
    if (deadline_passed(deadline_ms) || clock_wall_ms() - prepared->at_ms < PREPARED_STALE_MS)
        return;
    /* Committed: the refresh takes the preparation away. Not committed: it is given up. */
    if (!settle_prepared(shard, table, ns, true, deadline_ms, &err) || !refresh_run(shard, ns, deadline_ms, &err))
        log_warn("SHARDING", 6103, "A prepared collection waits for the config service", LOG_STR("ns", ns),
                 LOG_STR("error", err.msg));
}

void refresh_tick(struct shard *shard)
{
    struct err err;
    struct node_state state;
    node_state_get(shard->node, &state);
    struct ownership_table *table = state.leading ? table_now(shard, &err) : NULL;
    if (table == NULL)
        return;
    int64_t deadline_ms = deadline_after_ms(REFRESH_TICK_MS);
    struct map_entry *entry = NULL;
    while ((entry = map_next(&table->prepared, entry)) != NULL)
        settle_if_old(shard, table, entry->key, entry->value, deadline_ms);
    entry = NULL;
    while ((entry = map_next(&table->collections, entry)) != NULL) {
        const struct document_view *view = entry->value;
        if (view->pending != NULL)
            drive_recount(shard, view, deadline_ms);
    }
    ownership_table_unref(table);
}
