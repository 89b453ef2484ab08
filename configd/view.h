/* Reading cluster metadata in one transaction: what a command decides on, and what apply checks a change against.
 * Any thread; everything returned lives in the view's arena unless said otherwise. */
#ifndef SHERD_CONFIGD_VIEW_H
#define SHERD_CONFIGD_VIEW_H

#include "base/arena.h"
#include "cluster/chunk.h"

struct store_txn;

struct metadata_view {
    struct store_txn *txn; /* read, or apply's write transaction */
    struct arena *arena;
};

/* Counts the changes of metadata; every commit checks the value it was planned on and raises it. */
int64_t view_sequence(const struct metadata_view *view);
/* Within apply. */
void view_set_sequence(const struct metadata_view *view, int64_t sequence);

/* A document by its _id; false when there is none. */
bool view_get(const struct metadata_view *view, const char *ns, const struct bval *id, struct bdoc *out);
bool view_get_str(const struct metadata_view *view, const char *ns, const char *id, struct bdoc *out);
/* All documents of `ns` whose fields equal those of `match` (data NULL: all), until `visit` returns false. */
bool view_each(const struct metadata_view *view, const char *ns, struct bdoc match,
               bool (*visit)(void *arg, struct bdoc doc), void *arg, struct err *err) ERR_WARN_UNUSED;

bool view_shard(const struct metadata_view *view, const char *name, struct shard_entry *out);
/* Sorted by name. */
size_t view_shards(const struct metadata_view *view, struct shard_entry **out);
bool view_database(const struct metadata_view *view, const char *db, struct database_entry *out);
/* The caller ends with collection_entry_deinit. */
bool view_collection(const struct metadata_view *view, const char *ns, struct collection_entry *out);
bool view_collection_by_uuid(const struct metadata_view *view, const uint8_t uuid[CLUSTER_UUID_BYTES],
                             struct collection_entry *out);

/* Chunks of a collection in order of their versions, from `since` (a lastmod timestamp) upward, until `visit` returns
 * false. The document is valid during the call. */
void view_each_chunk(const struct metadata_view *view, const uint8_t uuid[CLUSTER_UUID_BYTES], uint64_t since,
                     bool (*visit)(void *arg, struct bdoc doc), void *arg);
/* Highest version among the collection's chunks; false when it has none. */
bool view_collection_version(const struct metadata_view *view, const struct collection_entry *entry,
                             struct chunk_version *out);
/* All chunks sorted by min, in an array of the arena with one reference each, given back with view_chunks_unref. */
bool view_chunks(const struct metadata_view *view, const struct collection_entry *entry, struct chunk ***out,
                 size_t *count, struct err *err) ERR_WARN_UNUSED;
void view_chunks_unref(struct chunk **chunks, size_t count);

/* One chunk by its exact lower bound; false when there is none. The caller ends with chunk_unref. */
bool view_chunk_at(const struct metadata_view *view, const struct collection_entry *entry, struct bdoc min,
                   struct chunk **out);

/* A string, a uuid as values whose bytes live in `arena`. */
struct bval view_str_value(struct arena *arena, const char *text);
struct bval view_uuid_value(struct arena *arena, const uint8_t uuid[CLUSTER_UUID_BYTES]);

#endif
