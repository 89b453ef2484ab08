/* The log commands of the config service and how every member applies them.
 *
 * commit: {sequence?: NumberLong, writes: [...]}, a write being one of
 *   {put: ns, doc}             insert, or replace the document of that _id
 *   {erase: ns, id}            erase by _id; absent is fine
 *   {eraseChunks: uuid}        every chunk of a collection
 * Refused as a whole with ERR_ConflictingOperationInProgress when `sequence` isn't the current one (someone else
 * changed metadata first: plan again), and with ERR_RangeOverlapConflict when the chunks of a touched collection would
 * no longer cover all keys exactly once. A guarded commit raises the sequence. The result is empty.
 *
 * bootstrap: {clusterId, collections: [{ns, uuid}, ...]} creates the config collections, their indexes and
 * config.version; nothing the second time. */
#ifndef SHERD_CONFIGD_COMMIT_H
#define SHERD_CONFIGD_COMMIT_H

#include "document/apply.h"

enum {
    CONFIG_KIND_COMMIT = DOCUMENT_KIND_LIMIT,
    CONFIG_KIND_BOOTSTRAP,
};

enum { COMMIT_MAX_BYTES = 12 * 1024 * 1024 }; /* of one commit: enough for PLAN_MAX_CHUNKS first chunks */

/* Both on the apply thread, by the contract of struct node_applier; `plugin` isn't used. */
bool commit_apply(void *plugin, struct document_apply *apply, const uint8_t *payload, size_t len, struct buf *result,
                  struct err *err) ERR_WARN_UNUSED;
bool bootstrap_apply(void *plugin, struct document_apply *apply, const uint8_t *payload, size_t len, struct buf *result,
                     struct err *err) ERR_WARN_UNUSED;

/* Appends a bootstrap payload with fresh ids. On the leader. */
void bootstrap_encode(struct buf *out);
/* True once the bootstrap was applied. */
struct metadata_view;
bool bootstrap_done(const struct metadata_view *view);

#endif
