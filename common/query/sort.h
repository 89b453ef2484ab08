/* Sorting: the sort specification, the key bytes it gives a document (streams sorted by it merge by memcmp, so a router
 * needs no comparison of its own), and a sorter in memory. Called on any thread; a spec is read-only, a sorter has one
 * user. Array fields sort by their least element ascending and greatest descending; the keys are made as an index would
 * make them: https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/ */
#ifndef SHERD_QUERY_SORT_H
#define SHERD_QUERY_SORT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "bson/compare.h"

enum {
    SORT_MAX_FIELDS = 32,                        /* as MongoDB's compound limit */
    SORT_MEMORY_LIMIT_BYTES = 100 * 1024 * 1024, /* of one sorter, keys and documents */
    SORT_MAX_KEYS_PER_DOC = 1000000,             /* array elements looked at for one document */
};

struct keygen;

struct sort_field {
    const char *path; /* dotted */
    bool descending;
};

struct sort_spec {
    struct bdoc source;
    struct sort_field *fields;
    uint32_t field_count;           /* 0: no sort */
    struct keygen *keys;            /* how the fields' values are found; private to sort.c */
    const struct bval_order *order; /* of strings; NULL: by bytes */
};

/* Values 1 and -1 (any number type); errors: 15975 direction out of range, 15974 of another type, 2 BadValue for empty
 * path parts, 31138 for an illegal $meta, too many fields. `spec` and `order` (NULL: strings by bytes) are borrowed.
 * {$natural: ...} is the caller's: ask sort_spec_is_natural before. */
bool sort_spec_compile(struct arena *arena, struct bdoc spec, const struct bval_order *order, struct sort_spec **out,
                       struct err *err) ERR_WARN_UNUSED;
/* {$natural: 1 or -1}: direction is 1 or -1; 0 when it isn't one. */
int sort_spec_natural(struct bdoc spec);
/* Appends the document's sort key: keyenc bytes of each field, directions applied. Error 2: two of the fields run
 * through parallel arrays. */
bool sort_key_append(const struct sort_spec *spec, struct bdoc doc, struct buf *key, struct err *err) ERR_WARN_UNUSED;

/* What a sorter hands out. Borrowed until the next call. */
struct sort_item {
    const uint8_t *key; /* as it was given */
    uint32_t key_len;
    struct bdoc doc;
    uint64_t tag; /* the caller's own number: a record id, a shard's index */
};

struct sorter;

/* Sorts by key bytes; equal keys keep the order they came in. `limit` > 0 keeps only the first `limit` items (top-k).
 */
struct sorter *sorter_new(uint64_t limit, size_t memory_limit_bytes);
void sorter_free(struct sorter *sorter);
/* Copies key and document (doc.data may be NULL: only the tag is kept). Error 292 beyond the memory limit. */
bool sorter_add(struct sorter *sorter, const void *key, size_t key_len, struct bdoc doc, uint64_t tag,
                struct err *err) ERR_WARN_UNUSED;
/* Adds nothing any more; sorts. */
void sorter_finish(struct sorter *sorter);
/* In order; false at the end. Only after sorter_finish. */
bool sorter_next(struct sorter *sorter, struct sort_item *out);
uint64_t sorter_count(const struct sorter *sorter);
size_t sorter_memory_bytes(const struct sorter *sorter);

#endif
