/* What the operations share: the four collections, the random numbers and how answers are compared. */
#ifndef SHERD_TESTS_INTEGRATION_DIFFERENTIAL_WORLD_H
#define SHERD_TESTS_INTEGRATION_DIFFERENTIAL_WORLD_H

#include "client.h"
#include "generate.h"

enum {
    TARGETS = 4,
    DOCUMENTS = 110,
    ROUND_OPERATIONS = 500, /* with one set of indexes and one shard key */
    COMPARE_EVERY = 12,     /* writes between two comparisons of everything that is stored */
    DIFFERENCES_MAX = 10,
    CHOSEN_MAX = 8, /* indexes of one round */
};

struct world {
    struct rng rng;
    const char *db;
    struct collection_target targets[TARGETS];
    char indexes[1000]; /* names, for reports */
    uint32_t chosen[CHOSEN_MAX];
    uint32_t chosen_count;
    const char *shard_key;
    int32_t next_number;
    uint64_t operations;
    uint64_t differences;
    uint32_t writes;
    bool diverged; /* a write had different effects: the round is over */
};

/* Runs the command on all collections and reports those whose answers differ from the first's. */
void world_compare(struct world *world, const bson_t *command, enum reply_shape shape, bool write);
/* Reports a difference between two answers. */
void world_report(struct world *world, const bson_t *command, const bson_t *expected, const bson_t *got, int which);
void world_append_collation(struct world *world, bson_t *command);
void world_append_filter(struct world *world, bson_t *command, const char *key);

/* aggregate with $lookup, $facet, $unwind ... */
void op_pipeline(struct world *world);
/* A find whose documents change, move and go between its batches: what stays untouched comes exactly once. */
void op_moving(struct world *world);

#endif
