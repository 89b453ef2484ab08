/* The documents of config.shards, databases, collections and chunks, in the field forms that drivers, mongosh and
 * routers read. Parsers accept what the printers write and refuse the rest with ERR_NoSuchKey or ERR_TypeMismatch; they
 * copy, nothing is borrowed unless said. Pure, any thread. */
#ifndef SHERD_CLUSTER_METADATA_H
#define SHERD_CLUSTER_METADATA_H

#include "base/buf.h"
#include "cluster/shardkey.h"
#include "cluster/version.h"

enum {
    CLUSTER_DB_NAME_MAX = 63, /* bytes, without the NUL */
    CLUSTER_NS_MAX = 255,
    CLUSTER_SHARD_NAME_MAX = 127,
    CLUSTER_HOST_MAX = 1023, /* a connection string: set/host:port,host:port */
};

/* config.shards: {_id, host, state: 1, topologyTime, draining?, tags?} */
struct shard_entry {
    char name[CLUSTER_SHARD_NAME_MAX + 1];
    char host[CLUSTER_HOST_MAX + 1]; /* "setname/host:port,host:port" */
    bool draining;
    uint64_t topology_time; /* a BSON timestamp */
};

/* config.databases: {_id, primary, partitioned, version: {uuid, timestamp, lastMod}} */
struct database_entry {
    char name[CLUSTER_DB_NAME_MAX + 1];
    char primary[CLUSTER_SHARD_NAME_MAX + 1];
    bool partitioned;
    uint8_t uuid[CLUSTER_UUID_BYTES];
    uint64_t timestamp; /* of its creation, a BSON timestamp */
    int32_t last_mod;   /* rises with each change of the primary */
};

/* config.collections: {_id: ns, lastmodEpoch, lastmod: Date, timestamp, uuid, key, unique, noBalance,
 * defaultCollation?} */
struct collection_entry {
    char ns[CLUSTER_NS_MAX + 1];
    uint8_t uuid[CLUSTER_UUID_BYTES];
    bson_oid_t epoch;
    uint64_t timestamp; /* a BSON timestamp */
    int64_t last_mod_ms;
    struct shardkey *key; /* one reference, given back by collection_entry_deinit */
    bool unique;
    bool no_balance;
    struct buf default_collation; /* of queries that name none, a BSON document; empty: simple */
};

bool shard_entry_parse(struct bdoc doc, struct shard_entry *out, struct err *err) ERR_WARN_UNUSED;
void shard_entry_append(bson_t *to, const struct shard_entry *entry);
bool database_entry_parse(struct bdoc doc, struct database_entry *out, struct err *err) ERR_WARN_UNUSED;
void database_entry_append(bson_t *to, const struct database_entry *entry);
bool collection_entry_parse(struct bdoc doc, struct collection_entry *out, struct err *err) ERR_WARN_UNUSED;
void collection_entry_append(bson_t *to, const struct collection_entry *entry);
void collection_entry_deinit(struct collection_entry *entry);
/* Copies the specification; data NULL: none. */
void collection_entry_set_collation(struct collection_entry *entry, struct bdoc collation);
/* Borrowed from the entry; data NULL: simple. */
struct bdoc collection_entry_collation(const struct collection_entry *entry);

/* "a.b.c" -> database part; false when there is no dot, a part is empty or too long, or the database name has a
 * forbidden character. */
bool ns_split(const char *ns, size_t ns_len, char db[CLUSTER_DB_NAME_MAX + 1], const char **collection);
/* ERR_InvalidNamespace with MongoDB's words. */
bool ns_check(const char *ns, size_t ns_len, struct err *err) ERR_WARN_UNUSED;
bool db_name_check(const char *db, size_t len, struct err *err) ERR_WARN_UNUSED;
/* Splits "set/h:p,h:p" (the set name may be absent: then *set is ""). ERR_FailedToParse. */
struct host_list {
    char set[CLUSTER_SHARD_NAME_MAX + 1];
    size_t count;
    char hosts[8][128]; /* "host:port", at most 8 members */
};
bool host_list_parse(const char *text, struct host_list *out, struct err *err) ERR_WARN_UNUSED;

#endif
