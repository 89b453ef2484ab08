/* Sorting: the sort specification, the key bytes it gives a document (streams sorted by it merge by memcmp, so a router
 * needs no comparison of its own; query/sorter.h sorts by them). Called on any thread; a spec is read-only. Array
 * fields sort by their least element ascending and greatest descending; the keys are made as an index would make them:
 * https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/ */
#ifndef SHERD_QUERY_SORT_H
#define SHERD_QUERY_SORT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "bson/compare.h"

enum {
    SORT_MAX_FIELDS = 32,            /* as MongoDB's compound limit */
    SORT_MAX_KEYS_PER_DOC = 1000000, /* array elements looked at for one document */
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
/* The values behind that key, one for each field (null for a missing one), as elements of the array `out`, which the
 * caller has begun: what {$meta: "sortKey"} gives. */
bool sort_key_values(const struct sort_spec *spec, struct bdoc doc, bson_t *out, struct err *err) ERR_WARN_UNUSED;

#endif
