/* Intervals over encoded shard keys. Encoded keys compare with memcmp, the shorter of two with a common prefix first.
 * The views borrow their bytes. Pure, any thread. */
#ifndef SHERD_CLUSTER_KEYRANGE_H
#define SHERD_CLUSTER_KEYRANGE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

struct key_bytes {
    const uint8_t *data; /* NULL only when len is 0 */
    uint32_t len;
};

/* [min, max); empty when min >= max. */
struct key_range {
    struct key_bytes min;
    struct key_bytes max;
};

/* No encoded component starts with it, so PREFIX + this byte lies behind every key that begins with PREFIX, and the
 * byte alone lies behind every key. The global upper bound is encoded like that, so that a document whose key is MaxKey
 * has a chunk. */
enum { KEY_AFTER_PREFIX = 0xff };

int key_bytes_compare(struct key_bytes a, struct key_bytes b);
struct key_bytes key_bytes_of(const struct buf *buf);
bool key_range_is_empty(struct key_range range);
bool key_range_contains(struct key_range range, struct key_bytes key);
bool key_range_overlaps(struct key_range a, struct key_range b);
/* May be empty. */
struct key_range key_range_intersect(struct key_range a, struct key_range b);

/* A sorted set of disjoint ranges: what a shard owns of a collection. Immutable once made; adjacent ranges stay apart,
 * so that an index into the set names a chunk. */
struct range_set;

/* Copies the bounds; any order is accepted. ERR_RangeOverlapConflict when two overlap, ERR_BadValue when one is empty.
 * The caller frees *out with range_set_free. */
bool range_set_new(const struct key_range *ranges, size_t count, struct range_set **out,
                   struct err *err) ERR_WARN_UNUSED;
void range_set_free(struct range_set *set);
size_t range_set_count(const struct range_set *set);
/* Borrowed from the set. */
struct key_range range_set_at(const struct range_set *set, size_t index);
/* Binary search: the range with `key` in it, or SIZE_MAX. */
size_t range_set_find(const struct range_set *set, struct key_bytes key);
bool range_set_contains(const struct range_set *set, struct key_bytes key);
/* True when every key of `range` is in the set, adjacent ranges taken together. An empty range is covered. */
bool range_set_covers(const struct range_set *set, struct key_range range);
bool range_set_overlaps(const struct range_set *set, struct key_range range);

#endif
