/* The document of config.operations that stands for one shardCollection under way, or one ended:
 *   {_id: UUID, kind: "shardCollection", ns, state, at: Date, dbUuid, uuid, epoch, timestamp, key, unique,
 * numInitialChunks, empty, defaultCollation?, shards: [names]} One that was aborted before it began has only _id, kind, ns, state and at.
 *
 *   (unknown) --begin--> begun --commit--> committed
 *       |                  |
 *       +----- abort ------+---> aborted              committed and aborted are final */
#ifndef SHERD_CONFIGD_OPERATION_H
#define SHERD_CONFIGD_OPERATION_H

#include "configd/change.h"

enum operation_state {
    OPERATION_UNKNOWN,
    OPERATION_BEGUN,
    OPERATION_COMMITTED,
    OPERATION_ABORTED,
};

struct operation {
    uint8_t id[CLUSTER_UUID_BYTES];
    char ns[CLUSTER_NS_MAX + 1];
    enum operation_state state;
    int64_t at_ms; /* of the last change of state */
    /* From here on only when it ever began. */
    uint8_t db_uuid[CLUSTER_UUID_BYTES]; /* of the database entry it was planned on */
    struct collection_entry entry;       /* as it will stand in config.collections */
    int64_t initial_chunks;              /* numInitialChunks; 0: default */
    bool empty;                          /* first chunks may be spread */
    const char **shards;                 /* that may get chunks, the primary first; in the view's arena */
    size_t shard_count;
};

const char *operation_state_name(enum operation_state state);
/* False when there is none (out->state is OPERATION_UNKNOWN) or an error. The caller ends with operation_deinit in
 * every case. */
bool operation_read(const struct metadata_view *view, const uint8_t id[CLUSTER_UUID_BYTES], struct operation *out,
                    struct err *err) ERR_WARN_UNUSED;
bool operation_parse(struct bdoc doc, struct arena *arena, struct operation *out, struct err *err) ERR_WARN_UNUSED;
void operation_deinit(struct operation *operation);
/* Adds the write that stores it, with `at` = now. */
void operation_put(struct change *change, struct operation *operation);

#endif
