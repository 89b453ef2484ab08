/* The routing table of one sharded collection: which shard owns which range of keys, at one version. An immutable,
 * reference-counted snapshot: a router targets with it from many threads while a newer one is being built; a shard
 * derives its own ranges from it. */
#ifndef SHERD_CLUSTER_ROUTING_H
#define SHERD_CLUSTER_ROUTING_H

#include "base/arena.h"
#include "cluster/chunk.h"

struct routing_table;

/* The config service's answer to _configsvrGetRouting {ns, epoch?, major?, minor?}:
 *   {database: {..} | null, collection: {..} | null, chunks: [ those at or above the given version ], version: {epoch,
 * major, minor}} Without a version, or with one of another epoch, chunks holds all. Views borrow from the reply. */
struct routing_reply {
    struct bdoc database;   /* data NULL: no such database */
    struct bdoc collection; /* data NULL: not a sharded collection */
    struct bdoc chunks;     /* array; data NULL when collection is */
    struct chunk_version version;
};

bool routing_reply_parse(struct bdoc reply, struct routing_reply *out, struct err *err) ERR_WARN_UNUSED;

/* A complete reply to a table; the caller ends with routing_table_unref. ERR_RangeOverlapConflict when the chunks leave
 * a hole or overlap. */
bool routing_table_build(const struct routing_reply *reply, struct routing_table **out,
                         struct err *err) ERR_WARN_UNUSED;
/* `old` and an incremental reply to a newer table. When nothing changed *out is a new reference to `old`.
 * ERR_ConflictingOperationInProgress when the reply doesn't fit (another epoch, a hole): ask again without a version.
 */
bool routing_table_update(struct routing_table *old, const struct routing_reply *reply, struct routing_table **out,
                          struct err *err) ERR_WARN_UNUSED;
struct routing_table *routing_table_ref(struct routing_table *table);
void routing_table_unref(struct routing_table *table); /* accepts NULL */

/* All borrowed from the table. */
const struct collection_entry *routing_table_collection(const struct routing_table *table);
struct shardkey *routing_table_key(const struct routing_table *table);
const struct chunk_version *routing_table_version(const struct routing_table *table);
size_t routing_table_chunk_count(const struct routing_table *table);
const struct chunk *routing_table_chunk(const struct routing_table *table, size_t index); /* in order of min */
/* Shards that own a chunk, numbered from 0 in order of their names. */
size_t routing_table_shard_count(const struct routing_table *table);
const char *routing_table_shard_name(const struct routing_table *table, size_t shard);
/* SIZE_MAX when that shard owns nothing of the collection. */
size_t routing_table_shard_index(const struct routing_table *table, const char *name);
/* Highest version among the shard's chunks. */
struct chunk_version routing_table_shard_version(const struct routing_table *table, size_t shard);
/* Two tables with the same content (for tests and assertions). */
bool routing_table_equal(const struct routing_table *a, const struct routing_table *b);

/* The shard of one complete encoded key, and its chunk. */
size_t routing_table_target_key(const struct routing_table *table, struct key_bytes key, const struct chunk **chunk);

struct routing_target {
    size_t shard;             /* index of the shard */
    struct key_range *ranges; /* what it owns of the wanted intervals: sorted, adjacent ones joined */
    size_t range_count;       /* at least 1 */
};

/* The shards that own a part of `intervals` (sorted, disjoint, as the filter gave them), in the order of their first
 * range. Arrays come from `arena`, bounds are borrowed from the table and the intervals. Returns the number of targets.
 * An empty interval counts for nothing. */
size_t routing_table_target(const struct routing_table *table, const struct key_range *intervals, size_t count,
                            struct arena *arena, struct routing_target **out);
/* All keys: from the smallest to behind the largest. */
struct key_range routing_all_keys(void);
/* The ranges of one shard as a set, chunk by chunk: its ownership. An unknown shard gives an empty set. The caller
 * frees it. */
struct range_set *routing_table_shard_ranges(const struct routing_table *table, const char *shard);

#endif
