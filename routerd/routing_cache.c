#include "routerd/routing_cache.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/thread.h"
#include "routerd/remote.h"

#include <string.h>

/* One namespace. Guarded by the cache's lock. */
struct entry {
    struct routing *routing; /* newest snapshot, NULL before the first */
    bool stale;              /* must be read again before use */
    bool reading;            /* somebody does */
    unsigned waiting;        /* threads that look at it: it can't be dropped */
    char ns[];
};

struct routing_cache {
    routing_fetch *fetch;
    void *arg;
    pthread_mutex_t lock; /* guards `entries` and all of them; never held over a fetch */
    pthread_cond_t read;  /* an entry was read */
    struct map entries;   /* ns -> struct entry * */
};

struct routing_cache *routing_cache_new(routing_fetch *fetch, void *arg)
{
    struct routing_cache *cache = mem_alloc(sizeof *cache);
    cache->fetch = fetch;
    cache->arg = arg;
    pthread_mutex_init(&cache->lock, NULL);
    thread_cond_init(&cache->read);
    return cache;
}

static void entry_free(struct entry *entry)
{
    routing_unref(entry->routing);
    mem_free(entry);
}

void routing_cache_free(struct routing_cache *cache)
{
    if (!cache)
        return;
    for (struct map_entry *e = map_next(&cache->entries, NULL); e; e = map_next(&cache->entries, e))
        entry_free(e->value);
    map_deinit(&cache->entries);
    pthread_cond_destroy(&cache->read);
    pthread_mutex_destroy(&cache->lock);
    mem_free(cache);
}

struct routing *routing_ref(struct routing *routing)
{
    atomic_fetch_add_explicit(&routing->refs, 1, memory_order_relaxed);
    return routing;
}

void routing_unref(struct routing *routing)
{
    if (!routing || atomic_fetch_sub_explicit(&routing->refs, 1, memory_order_acq_rel) != 1)
        return;
    routing_table_unref(routing->table);
    mem_free(routing);
}

/* A snapshot from a reply and what was known before. ERR_ConflictingOperationInProgress: read all again. */
static bool routing_make(struct bdoc doc, struct routing_table *old, struct routing **out, struct err *err)
{
    struct routing_reply reply;
    if (!routing_reply_parse(doc, &reply, err))
        return false;
    struct routing *routing = mem_alloc(sizeof *routing);
    atomic_init(&routing->refs, 1);
    bool ok = true;
    if (reply.database.data) {
        routing->exists = true;
        ok = database_entry_parse(reply.database, &routing->db, err);
    }
    if (ok && reply.collection.data)
        ok = old ? routing_table_update(old, &reply, &routing->table, err)
                 : routing_table_build(&reply, &routing->table, err);
    if (!ok) {
        routing->table = NULL;
        routing_unref(routing);
        return false;
    }
    *out = routing;
    return true;
}

static bool routing_read(struct routing_cache *cache, const char *ns, struct routing_table *old, int64_t deadline_ms,
                         struct routing **out, struct err *err)
{
    struct buf reply = BUF_INIT;
    bool ok = cache->fetch(cache->arg, ns, old ? routing_table_version(old) : NULL, deadline_ms, &reply, err) &&
              routing_make((struct bdoc){reply.data, (uint32_t)reply.len}, old, out, err);
    if (!ok && old && err->code == ERR_ConflictingOperationInProgress) {
        buf_clear(&reply);
        ok = cache->fetch(cache->arg, ns, NULL, deadline_ms, &reply, err) &&
             routing_make((struct bdoc){reply.data, (uint32_t)reply.len}, NULL, out, err);
    }
    buf_deinit(&reply);
    return ok;
}

/* Drops something that nobody looks at, to keep the number of entries bounded. */
static void evict_locked(struct routing_cache *cache)
{
    for (struct map_entry *e = map_next(&cache->entries, NULL); e; e = map_next(&cache->entries, e)) {
        struct entry *entry = e->value;
        if (entry->waiting)
            continue;
        map_remove(&cache->entries, entry->ns, strlen(entry->ns));
        entry_free(entry);
        return;
    }
}

static struct entry *entry_get_locked(struct routing_cache *cache, const char *ns)
{
    size_t len = strlen(ns);
    struct entry *entry = map_get(&cache->entries, ns, len);
    if (entry)
        return entry;
    if (cache->entries.count >= ROUTING_CACHE_MAX)
        evict_locked(cache);
    entry = mem_alloc(sizeof *entry + len + 1);
    memcpy(entry->ns, ns, len);
    entry->stale = true;
    map_put(&cache->entries, ns, len, entry);
    return entry;
}

/* Reads the entry with the lock let go. A database that doesn't exist is told but not remembered: another router may
 * create it at any moment. */
static bool entry_read_locked(struct routing_cache *cache, struct entry *entry, int64_t deadline_ms,
                              struct routing **out, struct err *err)
{
    struct routing *fresh = NULL;
    struct routing_table *old = NULL;
    if (entry->routing && entry->routing->table)
        old = routing_table_ref(entry->routing->table);
    entry->reading = true;
    entry->stale = false;
    pthread_mutex_unlock(&cache->lock);
    bool ok = routing_read(cache, entry->ns, old, deadline_ms, &fresh, err);
    routing_table_unref(old);
    pthread_mutex_lock(&cache->lock);
    entry->reading = false;
    if (!ok) {
        entry->stale = true;
    } else {
        struct routing *before = entry->routing;
        entry->routing = fresh;
        entry->stale |= !fresh->exists;
        routing_unref(before);
        *out = routing_ref(fresh);
    }
    pthread_cond_broadcast(&cache->read);
    return ok;
}

bool routing_cache_get(struct routing_cache *cache, const char *ns, int64_t deadline_ms, struct routing **out,
                       struct err *err)
{
    bool ok = true;
    *out = NULL;
    pthread_mutex_lock(&cache->lock);
    struct entry *entry = entry_get_locked(cache, ns);
    entry->waiting++;
    while (ok && !*out) {
        if (!entry->stale && !entry->reading)
            *out = routing_ref(entry->routing);
        else if (!entry->reading)
            ok = entry_read_locked(cache, entry, deadline_ms, out, err);
        else if (deadline_passed(deadline_ms))
            ok = err_set(err, ERR_MaxTimeMSExpired, "operation exceeded time limit");
        else
            thread_cond_wait_until(&cache->read, &cache->lock, deadline_ms);
    }
    entry->waiting--;
    pthread_mutex_unlock(&cache->lock);
    return ok;
}

void routing_cache_stale(struct routing_cache *cache, const char *ns, const struct routing *seen)
{
    pthread_mutex_lock(&cache->lock);
    struct entry *entry = map_get(&cache->entries, ns, strlen(ns));
    if (entry && entry->routing == seen)
        entry->stale = true;
    pthread_mutex_unlock(&cache->lock);
}

void routing_cache_flush(struct routing_cache *cache, const char *ns_or_db)
{
    size_t len = ns_or_db ? strlen(ns_or_db) : 0;
    pthread_mutex_lock(&cache->lock);
    for (struct map_entry *e = map_next(&cache->entries, NULL); e; e = map_next(&cache->entries, e)) {
        struct entry *entry = e->value;
        if (!ns_or_db || (strncmp(entry->ns, ns_or_db, len) == 0 && (!entry->ns[len] || entry->ns[len] == '.')))
            entry->stale = true;
    }
    pthread_mutex_unlock(&cache->lock);
}

bool routing_fetch_remote(void *arg, const char *ns, const struct chunk_version *known, int64_t deadline_ms,
                          struct buf *reply, struct err *err)
{
    struct remote_request request;
    remote_request_init_config(&request, arg, true);
    BSON_APPEND_UTF8(&request.body, "_configsvrGetRouting", ns);
    if (known) {
        BSON_APPEND_OID(&request.body, "epoch", &known->epoch);
        BSON_APPEND_INT64(&request.body, "major", known->major);
        BSON_APPEND_INT64(&request.body, "minor", known->minor);
    }
    BSON_APPEND_UTF8(&request.body, "$db", "admin");
    bool ok = remote_run_one(arg, &request, deadline_ms, err);
    if (ok)
        buf_append(reply, request.reply.data, request.reply.len);
    remote_request_deinit(&request);
    return ok;
}
