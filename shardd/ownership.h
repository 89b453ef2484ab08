/* What this shard owns, as part of its replicated state. The truth lies in collections of the reserved database
 * `local`, changed by log commands (ownership_apply.h): local.shard        {_id: "identity", shardName, clusterId,
 * configdb} local.databases    {_id: db, gen, primary, uuid} local.collections  {_id: ns, gen, uuid, epoch, major,
 * minor, timestamp, key, unique, foreign, ranges: [{min, max}]} local.prepared     {_id: ns, gen, uuid, op, at} writes
 * are refused: the collection is about to be sharded local.recount      {_id: ns, gen, uuid, position, pending: [{min,
 * max}]}   range counters that are being made Bounds are encoded shard keys. A number in the store's meta values, the
 * generation, rises with each change; a table of everything is built once per generation and shared by all requests
 * whose transaction sees that generation. Any thread. */
#ifndef SHERD_SHARDD_OWNERSHIP_H
#define SHERD_SHARDD_OWNERSHIP_H

#include "base/map.h"
#include "cluster/metadata.h"
#include "cluster/version.h"
#include "document/ownership.h"

#include <pthread.h>
#include <stdatomic.h>

struct store_txn;

#define OWNERSHIP_IDENTITY_NS    "local.shard"
#define OWNERSHIP_DATABASES_NS   "local.databases"
#define OWNERSHIP_COLLECTIONS_NS "local.collections"
#define OWNERSHIP_PREPARED_NS    "local.prepared"
#define OWNERSHIP_RECOUNT_NS     "local.recount"
#define OWNERSHIP_GENERATION_KEY "shard.generation"

/* One sharded collection: what a request holds while it looks at documents. Immutable, reference-counted. */
struct document_view {
    atomic_int refs;
    int64_t generation; /* of the last change of its documents */
    char ns[CLUSTER_NS_MAX + 1];
    uint8_t uuid[CLUSTER_UUID_BYTES];
    struct chunk_version version;
    uint64_t timestamp;
    struct shardkey *key;
    bool unique;
    bool foreign;              /* documents outside the ranges may lie here */
    struct range_set *ranges;  /* NULL: none */
    struct range_set *pending; /* ranges whose counters are being made; NULL: none */
    struct buf position;       /* of that: documents before it are counted */
};

struct owned_database {
    char primary[CLUSTER_SHARD_NAME_MAX + 1];
    uint8_t uuid[CLUSTER_UUID_BYTES];
};

struct prepared {
    uint8_t uuid[CLUSTER_UUID_BYTES];
    uint8_t op[CLUSTER_UUID_BYTES];
    int64_t at_ms; /* wall clock of the leader that logged it */
};

/* Everything at one generation. Immutable, reference-counted. */
struct ownership_table {
    atomic_int refs;
    int64_t generation;
    struct map collections; /* ns -> struct document_view */
    struct map databases;   /* name -> struct owned_database */
    struct map prepared;    /* ns -> struct prepared */
    bool has_identity;
    char shard_name[CLUSTER_SHARD_NAME_MAX + 1];
    char configdb[CLUSTER_HOST_MAX + 1];
    bson_oid_t cluster_id;
};

/* The process's cache of tables. */
struct ownership {
    pthread_mutex_t mutex;          /* protects `newest` */
    struct ownership_table *newest; /* NULL before the first use */
    struct document_ownership hooks;
};

void ownership_init(struct ownership *ownership);
void ownership_deinit(struct ownership *ownership);

/* The table that `txn` sees; the caller's reference. */
struct ownership_table *ownership_table_get(struct ownership *ownership, struct store_txn *txn);
/* The newest table any transaction has seen, NULL before that; the caller's reference. A hint. */
struct ownership_table *ownership_table_newest(struct ownership *ownership);
void ownership_table_unref(struct ownership_table *table); /* accepts NULL */

/* Reads all documents into a new table; parts that didn't change are taken from `before` (may be NULL). */
struct ownership_table *ownership_table_load(struct store_txn *txn, int64_t generation,
                                             const struct ownership_table *before);
int64_t ownership_generation(struct store_txn *txn);

struct document_view *view_ref(struct document_view *view);
void view_unref(struct document_view *view); /* accepts NULL */
/* Builds a view from a document of local.collections and its local.recount (data NULL: none). */
bool view_parse(struct bdoc doc, struct bdoc recount, struct document_view **out, struct err *err) ERR_WARN_UNUSED;
/* Parses [{min, max}]; *out is NULL for an empty array. */
bool ranges_parse(struct bdoc array, struct range_set **out, struct err *err) ERR_WARN_UNUSED;
/* Appends the array under `name`; `ranges` may be NULL. */
void ranges_append(bson_t *to, const char *name, const struct range_set *ranges);

/* What document commands ask (document/ownership.h); arg is the struct ownership. */
const struct document_ownership *ownership_hooks(struct ownership *ownership);
/* Whether a request with that version can be served with what `table` knows; false: the shard should ask the config
 * service first. */
bool ownership_knows(const struct ownership_table *table, const char *ns, const struct op_version *version);

#endif
