/* Building requests for shards out of a client's command. Pure; called on workers. */
#ifndef SHERD_ROUTERD_REQUEST_H
#define SHERD_ROUTERD_REQUEST_H

#include "command/context.h"

/* Appends the fields of `body` to `out`, without those that only concern the connection between client and router
 * (apiVersion, $clusterTime, $readPreference, maxTimeMS, writeConcern ...) and without the names in `skip` (ended by
 * NULL; may be NULL). */
void request_append_body(bson_t *out, struct bdoc body, const char *const *skip);

/* A copy of an array without its first element. */
struct bdoc request_array_rest(struct arena *arena, struct bdoc array);
/* Appends a value under the array index `index`. */
void request_append_at(bson_t *array, uint32_t index, const struct bval *value);

/* {cursor: {id, ns, firstBatch | nextBatch, sortKeys?}} of a shard. Views into the reply. */
struct cursor_reply {
    int64_t id;
    const uint8_t *id_at; /* where the eight bytes of the id stand */
    struct bdoc batch;
    struct bdoc sort_keys; /* data NULL: none */
};
/* ERR_FailedToParse. */
bool cursor_reply_parse(struct bdoc reply, struct cursor_reply *out, struct err *err) ERR_WARN_UNUSED;

#endif
