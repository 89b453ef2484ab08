/* What the router believes about namespaces: the database's entry and, for a sharded collection, its routing table.
 * Read from the config service on first use and again when a shard has shown that it is old: only the chunks that
 * changed, one request a namespace however many commands wait for it, and none of another namespace waits. Any thread.
 */
#ifndef SHERD_ROUTERD_ROUTING_CACHE_H
#define SHERD_ROUTERD_ROUTING_CACHE_H

#include "cluster/routing.h"
#include "command/namespace.h"
#include "routerd/router.h"

struct routing_cache;

enum { ROUTING_CACHE_MAX = 20000 }; /* namespaces; beyond it unused ones are dropped */

/* An immutable snapshot, counted by references. */
struct routing {
    _Atomic uint32_t refs;
    bool exists; /* the database does */
    struct database_entry db;
    struct routing_table *table; /* NULL: not a sharded collection */
};

/* Asks for a namespace's routing: appends the reply of _configsvrGetRouting to `reply` (initialised by the caller). The
 * version is the newest one known, NULL for all. Blocks. */
typedef bool routing_fetch(void *arg, const char *ns, const struct chunk_version *known, int64_t deadline_ms,
                           struct buf *reply, struct err *err);

struct routing_cache *routing_cache_new(routing_fetch *fetch, void *arg);
/* No thread may be inside. */
void routing_cache_free(struct routing_cache *cache);

/* A reference to the snapshot; `ns` may also be a database's name alone. Blocks while it is read. Errors: the config
 * service's. */
bool routing_cache_get(struct routing_cache *cache, const char *ns, int64_t deadline_ms, struct routing **out,
                       struct err *err) ERR_WARN_UNUSED;
/* `seen` proved to be old: the next get reads again, unless somebody has since. Doesn't block. */
void routing_cache_stale(struct routing_cache *cache, const char *ns, const struct routing *seen);
/* Everything is read again on next use: of one namespace, of a database and its collections, or (NULL) of all. */
void routing_cache_flush(struct routing_cache *cache, const char *ns_or_db);
struct routing *routing_ref(struct routing *routing);
/* Accepts NULL. */
void routing_unref(struct routing *routing);

/* The fetch of a real router, over rpc; `arg` is the router. */
bool routing_fetch_remote(void *arg, const char *ns, const struct chunk_version *known, int64_t deadline_ms,
                          struct buf *reply, struct err *err);

#endif
