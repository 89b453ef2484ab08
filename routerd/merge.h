/* The streams of one query from several shards as one stream: in the order of their sort keys, or as they come. Fetches
 * the next batches of all streams that have run dry side by side. One user at a time, on a worker; blocks. */
#ifndef SHERD_ROUTERD_MERGE_H
#define SHERD_ROUTERD_MERGE_H

#include "query/sort.h"
#include "routerd/remote.h"

struct merge;

/* How the next batches are asked for. */
struct merge_fetch {
    int64_t batch_size; /* documents from each shard; 0: the shard's default */
    int64_t deadline_ms;
};

enum merge_order {
    MERGE_ANY,      /* as they come */
    MERGE_BY_KEYS,  /* by the sortKeys in the replies */
    MERGE_BY_FIELDS /* by keys made from the documents here */
};

/* `db` and `coll` are copied; `sort` (for MERGE_BY_FIELDS, else NULL) is borrowed. The caller ends with merge_close. */
struct merge *merge_new(struct router *router, const char *db, const char *coll, enum merge_order order,
                        const struct sort_spec *sort);
/* Adds a shard's first reply; takes its frame. ERR_FailedToParse. */
bool merge_add(struct merge *merge, struct remote_request *opened, struct err *err) ERR_WARN_UNUSED;
/* The next document, borrowed until the next call; data NULL at the end. Errors: the shards'. */
bool merge_next(struct merge *merge, const struct merge_fetch *fetch, struct bdoc *out,
                struct err *err) ERR_WARN_UNUSED;
/* No shard has anything left: what remains is here. */
bool merge_is_local(const struct merge *merge);
/* What the batches at hand hold. */
size_t merge_memory_bytes(const struct merge *merge);
/* Kills what is still open on the shards, without waiting long. Accepts NULL. */
void merge_close(struct merge *merge);
/* The same without a word to the shards. Accepts NULL. */
void merge_abandon(struct merge *merge);

/* Kills a cursor on a shard's member. */
void merge_kill_cursor(struct router *router, struct remote_set *set, const char *member, const char *db,
                       const char *coll, int64_t id);

#endif
