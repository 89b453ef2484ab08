/* Random filters, updates, projections, sorts and pipelines: half of them make sense, the rest has operands of the
 * wrong type, in the wrong place, nested at random. Equal choices, equal documents. */
#ifndef SHERD_TESTS_FUZZ_QUERY_RANDOM_QUERY_H
#define SHERD_TESTS_FUZZ_QUERY_RANDOM_QUERY_H

#include "bson/value.h"
#include "tests/fuzz/query/chooser.h"

enum random_kind {
    RANDOM_DOCUMENT,
    RANDOM_FILTER,
    RANDOM_OPERATORS, /* {$gt: ..., $in: ...} */
    RANDOM_EXPRESSION,
    RANDOM_UPDATE,
    RANDOM_UPDATE_FIELDS, /* below $set and the like */
    RANDOM_PUSH,
    RANDOM_PROJECTION,
    RANDOM_SORT,
    RANDOM_STAGE,
    RANDOM_GROUP,
    RANDOM_ACCUMULATOR,
    RANDOM_KEY,   /* {a: 1, b: "hashed"} */
    RANDOM_INDEX, /* {key, name, and options} */
};

/* Appends a document of the kind as the field `key` of `to`. */
void random_query_append(struct chooser *choose, bson_t *to, const char *key, enum random_kind kind, int depth);
/* An array of such documents. */
void random_query_append_list(struct chooser *choose, bson_t *to, const char *key, enum random_kind kind, int depth);

#endif
