/* The shard's own log commands: how its knowledge of what it owns changes. Payloads are BSON documents. Apply thread
 * only. */
#ifndef SHERD_SHARDD_OWNERSHIP_APPLY_H
#define SHERD_SHARDD_OWNERSHIP_APPLY_H

#include "document/apply.h"
#include "node/node.h"

struct document_view;

/* Numbers are part of the log's format. */
enum shard_kind {
    SHARD_KIND_IDENTITY = DOCUMENT_KIND_LIMIT, /* {shardName, clusterId, configdb} */
    SHARD_KIND_OWNERSHIP, /* {ns, database: {_id, primary, uuid} | null, collection: {uuid, epoch, major, minor,
                             timestamp, key, unique, ranges} | null}: what the config service says; older knowledge
                             changes nothing */
    SHARD_KIND_PREPARE,   /* {ns, uuid, op, at} */
    SHARD_KIND_UNPREPARE, /* {ns, op} */
    SHARD_KIND_DROP,      /* {ns, uuid}: data and ownership */
    SHARD_KIND_RECOUNT,   /* {ns, uuid, max} */
};

enum {
    RECOUNT_INLINE_DOCS = 1000, /* counted at once when ownership changes; more goes on step by step */
    RECOUNT_STEP_DOCS = 2000,
};

extern const struct node_applier shard_appliers[];
extern const size_t shard_applier_count;

/* A collection or a database is gone: so is what the shard knows of it. */
void ownership_forget(struct document_apply *apply, const char *ns);
/* The next generation, stored: every change of the documents takes one. */
int64_t ownership_bump(struct document_apply *apply);
/* Puts a document into one of the collections of `local`, made on first use. */
bool ownership_put(struct document_apply *apply, const char *ns, const bson_t *doc, struct err *err) ERR_WARN_UNUSED;
void ownership_delete(struct document_apply *apply, const char *ns, const char *id);

/* ---- recount.c: counters of ranges that were split, merged or won ---- */

/* The ownership of a collection changes from `before` (NULL: none) to `after` (its pending is filled in here): keeps
 * counters of ranges that stay, resets the others and begins to count them. Writes local.recount. */
bool recount_begin(struct document_apply *apply, const struct document_view *before, struct document_view *after,
                   int64_t generation, struct err *err) ERR_WARN_UNUSED;
/* Counts up to `max_docs` more documents (whole key values). *more: there is still something pending. */
bool recount_step(struct document_apply *apply, const struct document_view *view, uint32_t max_docs, bool *more,
                  struct err *err) ERR_WARN_UNUSED;

#endif
