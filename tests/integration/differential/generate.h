/* Random documents, filters, sorts, projections and updates over a small world of fields, so that predicates meet what
 * is stored. Everything follows from the seed: the same seed makes the same operations on every machine.
 *
 * Fields of a document. None but `a`, `c` and `c.z` ever holds an array, so that no choice of indexes refuses a
 * document for parallel arrays.
 *
 *   _id  int, double or string, unique     k  scalar that no update changes: the shard key
 *   n    always a number                   a  anything: scalars, arrays of anything, documents
 *   b    scalar or document                c  a document {x, y, z} or an array of them
 *   s    string, mixed case and accents    d  date, or missing */
#ifndef SHERD_TESTS_INTEGRATION_DIFFERENTIAL_GENERATE_H
#define SHERD_TESTS_INTEGRATION_DIFFERENTIAL_GENERATE_H

#include <bson/bson.h>
#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

/* 0 <= result < bound. */
uint32_t rng_below(struct rng *rng, uint32_t bound);
/* True in `percent` of 100 cases. */
bool rng_chance(struct rng *rng, uint32_t percent);

/* {_id, k, n, a, ...} with the given number behind _id. */
void generate_document(struct rng *rng, int32_t number, bson_t *out);
/* The _id of the document with that number. */
void generate_id(int32_t number, bson_t *out, const char *key);
/* Appends predicates to `out`; `depth` levels of $and, $or, $nor may follow. */
void generate_filter(struct rng *rng, int depth, bson_t *out);
/* One or two fields and _id: a total order. */
void generate_sort(struct rng *rng, bson_t *out);
void generate_projection(struct rng *rng, bson_t *out);
/* A dotted path that distinct may ask for. */
const char *generate_path(struct rng *rng);

/* What an update needs besides its operators. */
struct generated_update {
    bson_t update;        /* the `u`; an array for a pipeline */
    bool pipeline;        /* `update` is one */
    bson_t filter;        /* predicates without which the update would be refused */
    bson_t array_filters; /* an array; empty: none */
};

/* The caller frees it with generated_update_deinit. */
void generate_update(struct rng *rng, struct generated_update *out);
void generated_update_deinit(struct generated_update *update);

/* Number and specification ({key, name, ...}) of the indexes that may be made; some exclude each other by name only. */
uint32_t generate_index_count(void);
/* JSON of the specification. */
const char *generate_index(uint32_t which);
/* Filter (JSON) of the documents that the index surely holds, so that it may be hinted: {} for all. NULL: it may not.
 */
const char *generate_index_needs(uint32_t which);

#endif
