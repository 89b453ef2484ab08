/* A collection in memory that answers commands with the pure layers alone: filters, sorts, projections, updates and
 * pipelines, no planner, no storage. For checking them against a recorded corpus of commands and replies. */
#ifndef SHERD_TESTS_UNIT_AGGREGATE_REPLAY_H
#define SHERD_TESTS_UNIT_AGGREGATE_REPLAY_H

#include "base/err.h"
#include "bson/value.h"

struct replay_collection {
    struct buf *docs;
    size_t count;
    uint32_t next_id; /* of generated ObjectIds */
};

/* Two collections, {{c}} and {{d}}: the second is what $lookup and its like read. */
struct replay_db {
    struct replay_collection main;
    struct replay_collection other;
};

void replay_collection_clear(struct replay_collection *coll);
void replay_collection_add(struct replay_collection *coll, struct bdoc doc);

enum replay_outcome {
    REPLAY_ANSWERED,
    REPLAY_REFUSED,     /* err says why */
    REPLAY_UNSUPPORTED, /* not a matter of these layers */
};

/* Runs a command; `reply` (initialised by the caller) gets the reduced reply: documents, n, nModified, values, value
 * ... */
enum replay_outcome replay_run(struct replay_db *db, struct bdoc command, bson_t *reply, struct err *err);

/* What may differ in a comparison. */
struct replay_flags {
    bool unordered;
    bool unordered_fields;
    bool numeric_classes;
    double tolerance;
    struct bdoc unordered_arrays; /* array of field names; data NULL: none */
};

bool replay_equal(const struct bval *want, const struct bval *got, const struct replay_flags *flags);

#endif
