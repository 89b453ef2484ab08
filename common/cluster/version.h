/* Versions: what a router believes about a namespace when it sends an operation, and what a shard compares it with.
 * A sharded collection has (epoch, major, minor): a new epoch at every shardCollection, major rises when a chunk moves,
 * minor when one is split or merged. Pure data, any thread. */
#ifndef SHERD_CLUSTER_VERSION_H
#define SHERD_CLUSTER_VERSION_H

#include "bson/value.h"

enum { CLUSTER_UUID_BYTES = 16 };

struct chunk_version {
    bson_oid_t epoch; /* of the collection; all zero: no version */
    int64_t major;    /* 0 .. UINT32_MAX: it is the upper half of a chunk's lastmod */
    int64_t minor;    /* 0 .. UINT32_MAX: the lower half */
};

enum version_order {
    VERSION_OLDER, /* same epoch, lower */
    VERSION_SAME,
    VERSION_NEWER,
    VERSION_UNRELATED, /* another epoch: numbers say nothing */
};

/* How `a` stands to `b`, by (major, minor). */
enum version_order chunk_version_compare(const struct chunk_version *a, const struct chunk_version *b);
/* The same by major alone: what decides about ownership. */
enum version_order chunk_version_compare_major(const struct chunk_version *a, const struct chunk_version *b);
bool chunk_version_is_set(const struct chunk_version *version);
/* lastmod of config.chunks: a BSON timestamp, major in its seconds, minor in its increment. */
uint64_t chunk_version_to_timestamp(const struct chunk_version *version);
void chunk_version_set_timestamp(struct chunk_version *version, uint64_t timestamp);
/* {epoch, major, minor} under `name` of a document under construction. */
void chunk_version_append(bson_t *to, const char *name, const struct chunk_version *version);
/* Reads epoch, major and minor among the fields of `doc`, whose other fields are left alone. */
bool chunk_version_parse(struct bdoc doc, struct chunk_version *out, struct err *err) ERR_WARN_UNUSED;

enum op_version_kind {
    OP_VERSION_NONE,      /* not bound to a namespace version (internal and administrative commands) */
    OP_VERSION_DATABASE,  /* the router holds the namespace for unsharded */
    OP_VERSION_COLLECTION /* sharded */
};

enum { OP_VERSION_MAX_RANGES = 4096 };

/* The $sherdVersion field of a request from a router to a shard:
 *   {db: <uuid>}                                   unsharded namespace
 *   {uuid, epoch, major, minor}                    sharded, the operation names one shard key value
 *   {uuid, epoch, major, minor, ranges: [[min, max], ...]}   sharded, the operation means these ranges; a bound is a
 *                                                  BinData of encoded key bytes (cluster/shardkey.h) */
struct op_version {
    enum op_version_kind kind;
    uint8_t db_uuid[CLUSTER_UUID_BYTES]; /* DATABASE: version.uuid of the database entry */
    uint8_t uuid[CLUSTER_UUID_BYTES];    /* COLLECTION: of the collection */
    struct chunk_version version;        /* COLLECTION: the collection's, as the router knows it */
    struct bdoc ranges;                  /* COLLECTION: the array, borrowed; data NULL when absent */
};

#define OP_VERSION_FIELD "$sherdVersion"

/* Checks the shape of everything, the ranges included (sorted, not empty, at most OP_VERSION_MAX_RANGES). Borrows from
 * `doc`. */
bool op_version_parse(struct bdoc doc, struct op_version *out, struct err *err) ERR_WARN_UNUSED;
/* Appends it as the field $sherdVersion; nothing for OP_VERSION_NONE. */
void op_version_append(bson_t *to, const struct op_version *version);

/* Fills `err` as StaleConfig (13388) with details {ns, vReceived, vWanted, shardId} and returns false. `wanted` is the
 * version that the shard has and the sender should reach; NULL when the shard knows no sharded collection of that name.
 */
bool stale_config_set(struct err *err, const char *ns, const char *shard, const struct chunk_version *received,
                      const struct chunk_version *wanted);
/* Reads vWanted back from an error reply or a writeErrors entry; false when there is none. */
bool stale_config_wanted(struct bdoc details, struct chunk_version *out);

#endif
