/* The 64-bit hash of a value in a hashed index or shard key: the first 8 bytes of an MD5 over a seed, the value's class
 * and its bytes, as MongoDB computes it, so that convertShardKeyToHashed and presplit points agree. Any thread. Numbers
 * that stand for the same whole number hash alike whatever their type. MongoDB truncates the others; here a number with
 * a fraction, or outside int64, hashes by its exact value (its keyenc bytes), so 1 and 1.99 differ. */
#ifndef SHERD_BSON_HASH_H
#define SHERD_BSON_HASH_H

#include "bson/compare.h"

/* A missing value hashes as null. */
int64_t bval_hash(const struct bval *val);
int64_t bval_hash_seeded(const struct bval *val, int32_t seed);
/* Values that are equal in `order` hash alike; NULL: as bval_hash. */
int64_t bval_hash_ordered(const struct bval *val, const struct bval_order *order);

#endif
