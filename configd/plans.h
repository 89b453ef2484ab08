/* The plans of all changes: pure decisions on a view, run by the leader under its lock (struct change). Each names the
 * request it reads; the answers are what the routers' side gets beside ok. Any thread. */
#ifndef SHERD_CONFIGD_PLANS_H
#define SHERD_CONFIGD_PLANS_H

#include "configd/change.h"

enum {
    SPLIT_MAX_POINTS = 1000,            /* of one request */
    OPERATION_STALE_MS = 15 * 1000,     /* a begun shardCollection that old may be aborted by the next one */
    OPERATION_KEEP_MS = 60 * 60 * 1000, /* operations are remembered that long, for repeated requests */
    CHANGELOG_KEEP_DAYS = 30,
    PRUNE_MAX_WRITES = 1000, /* in one change */
};

/* {_configsvrCommitAddShard: 1, name, host: "set/h:p,..."} -> {shardAdded}. Again with the same name and set: fine.
 * ERR_IllegalOperation for a name, set or host that another shard has. */
bool plan_add_shard(struct change *change, struct bdoc request, struct err *err) ERR_WARN_UNUSED;

/* {_configsvrCreateDatabase: db, primaryShard?, preferredShard?} -> {database: entry}. There already: its entry, or
 * ERR_NamespaceExists when primaryShard names another. preferredShard is the router's choice; without one the shard
 * with the fewest databases. 13297 for a name that differs only in case. */
bool plan_create_database(struct change *change, struct bdoc request, struct err *err) ERR_WARN_UNUSED;
/* {_configsvrDropDatabase: db} -> {dropped}; its sharded collections go with it. */
bool plan_drop_database(struct change *change, struct bdoc request, struct err *err) ERR_WARN_UNUSED;
/* {_configsvrDropCollection: ns, uuid?} -> {dropped: false} when it isn't sharded or has another uuid. */
bool plan_drop_collection(struct change *change, struct bdoc request, struct err *err) ERR_WARN_UNUSED;

/* {_configsvrShardCollectionBegin: ns, op: UUID, key, unique?, numInitialChunks?, empty, uuid}
 *   -> {state: "begun", op, uuid, primary, shards: [names that get chunks], chunks: NumberInt} or {state: "committed",
 * alreadySharded, ...} */
bool plan_shard_begin(struct change *change, struct bdoc request, struct err *err) ERR_WARN_UNUSED;
/* {_configsvrShardCollectionCommit: ns, op} -> {state: "committed", uuid, version}; ERR_ConflictingOperationInProgress
 * when it was aborted. */
bool plan_shard_commit(struct change *change, struct bdoc request, struct err *err) ERR_WARN_UNUSED;
/* {_configsvrShardCollectionAbort: ns, op} and {_configsvrShardCollectionStatus: ns, op, abort?: bool} -> {state:
 * "begun" | "committed" | "aborted" | "unknown", uuid?, version?}. After an abort that answered "aborted" no commit of
 * that op succeeds, also if its begin comes later. */
bool plan_shard_abort(struct change *change, struct bdoc request, struct err *err) ERR_WARN_UNUSED;
bool plan_shard_status(struct change *change, struct bdoc request, struct err *err) ERR_WARN_UNUSED;

/* {_configsvrSplit: ns, epoch, min, max, points: [bounds], op?: UUID} -> {version, chunks: NumberInt}. min and max must
 * be those of a chunk (ERR_BadValue), points strictly between them and ascending (ERR_InvalidOptions). The same op
 * again gets the same answer. */
bool plan_split(struct change *change, struct bdoc request, struct err *err) ERR_WARN_UNUSED;

/* One statement of a user's update: {q: {_id}, u, upsert?} on config.settings or config.collections (noBalance only) ->
 * {n, nModified, upserted?: id}. */
bool plan_update_settings(struct change *change, struct bdoc request, struct err *err) ERR_WARN_UNUSED;
bool plan_update_collections(struct change *change, struct bdoc request, struct err *err) ERR_WARN_UNUSED;
/* {q: {_id}} -> {n} */
bool plan_delete_settings(struct change *change, struct bdoc request, struct err *err) ERR_WARN_UNUSED;

/* {_configsvrPing: "host:port" of the router, up?: seconds, version?}: its document in config.mongos. */
bool plan_ping(struct change *change, struct bdoc request, struct err *err) ERR_WARN_UNUSED;
/* Forgets operations and changelog entries that are old enough, some at a time. */
bool plan_prune(struct change *change, struct bdoc request, struct err *err) ERR_WARN_UNUSED;

/* Marks every begun operation on `ns` aborted; for drops. */
bool abort_operations(struct change *change, const char *ns, struct err *err) ERR_WARN_UNUSED;

#endif
