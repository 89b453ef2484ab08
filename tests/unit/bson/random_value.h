/* Random BSON values of every type for the property tests; small alphabets, so that equal and nearly equal ones are
 * common. */
#ifndef SHERD_TESTS_UNIT_BSON_RANDOM_VALUE_H
#define SHERD_TESTS_UNIT_BSON_RANDOM_VALUE_H

#include "base/random.h"
#include "bson/value.h"

/* Appends one random element under `key`; nested values are at most `depth` levels deep. */
void random_value_append(struct prng *prng, bson_t *to, const char *key, int depth);
/* The same for numbers only, near the places where types lose precision. */
void random_number_append(struct prng *prng, bson_t *to, const char *key);
/* A new document with the one field "v". The caller destroys it. */
bson_t *random_value_new(struct prng *prng, int depth);
bson_t *random_number_new(struct prng *prng);
/* The value of the field "v". */
struct bval random_value_of(const bson_t *doc);

#endif
