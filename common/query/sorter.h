/* Sorting whole streams by key bytes (query/sort.h makes the keys): in memory up to a limit, beyond it in runs on the
 * disk that are merged when everything was added. One user at a time, on a worker; spilling blocks on the disk. */
#ifndef SHERD_QUERY_SORTER_H
#define SHERD_QUERY_SORTER_H

#include "base/err.h"
#include "bson/value.h"

#include <stddef.h>

enum {
    SORT_MEMORY_LIMIT_BYTES = 100 * 1024 * 1024, /* of one sorter, keys and documents */
};

struct temp_space;
struct sorter;

/* What a sorter hands out. Borrowed until the next call. */
struct sort_item {
    const uint8_t *key; /* as it was given */
    uint32_t key_len;
    struct bdoc doc;
    uint64_t tag; /* the caller's own number: a record id, a shard's index */
};

struct sorter_options {
    uint64_t limit;            /* keep only the first `limit` items (top-k); 0: all */
    size_t memory_limit_bytes; /* held in memory at once */
    struct temp_space *space;  /* where to go beyond that; NULL: nowhere (292). Outlives the sorter */
};

struct sorter_stats {
    uint64_t items;        /* added */
    int64_t bytes;         /* of them all */
    uint64_t runs;         /* written to the disk, merged ones included */
    int64_t spilled_bytes; /* written altogether */
};

/* Sorts by key bytes; equal keys keep the order they came in. */
struct sorter *sorter_new(const struct sorter_options *options);
/* Accepts NULL. */
void sorter_free(struct sorter *sorter);
/* Copies key and document (doc.data may be NULL: only key and tag are kept). Errors: 292 beyond the memory limit
 * without a space, 14031 when the disk or the space is full, an interrupt's. */
bool sorter_add(struct sorter *sorter, const void *key, size_t key_len, struct bdoc doc, uint64_t tag,
                struct err *err) ERR_WARN_UNUSED;
/* Adds nothing any more; sorts. The same errors. */
bool sorter_finish(struct sorter *sorter, struct err *err) ERR_WARN_UNUSED;
/* In order; *found false at the end. Only after sorter_finish. */
bool sorter_next(struct sorter *sorter, struct sort_item *out, bool *found, struct err *err) ERR_WARN_UNUSED;
/* Items that sorter_next gives altogether. */
uint64_t sorter_count(const struct sorter *sorter);
/* Held in memory now. */
size_t sorter_memory_bytes(const struct sorter *sorter);
void sorter_stats_get(const struct sorter *sorter, struct sorter_stats *out);

#endif
