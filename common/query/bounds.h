/* From a filter to intervals of encoded keys (bson/keyenc.h): for an index scan and for choosing shards. Called by the
 * planner and by the router's targeting, on any thread; pure.
 * An interval is a half-open run of bytes [low, high) in memcmp order; an encoded compound key k lies in it when low <=
 * k < high. An empty `low` is the start of all keys; an empty `high` is the end of all keys. Intervals of a list are
 * sorted and don't overlap. */
#ifndef SHERD_QUERY_BOUNDS_H
#define SHERD_QUERY_BOUNDS_H

#include "query/filter.h"

enum {
    BOUNDS_MAX_FIELDS = 32,
    BOUNDS_MAX_INTERVALS = 4096, /* a product of $in lists beyond this keeps the leading fields' intervals only */
};

struct bounds_field {
    const char *path; /* dotted */
    bool descending;
    bool hashed; /* the key holds the value's 64-bit hash (bson/hash.h) as an int64 */
};

/* A key pattern {a: 1, b: -1, c: "hashed"}. */
struct bounds_pattern {
    struct bounds_field fields[BOUNDS_MAX_FIELDS];
    uint32_t field_count;
    bool multikey;  /* an index with array values: bounds of one field are not intersected, nothing is exact */
    bool shard_key; /* values are never arrays: equality with an array gives no point */
    const struct bval_order *order; /* of the strings in its keys; NULL: by bytes */
};

struct bounds_interval {
    const uint8_t *low; /* inclusive */
    uint32_t low_len;
    const uint8_t *high; /* exclusive; high_len 0: no upper end */
    uint32_t high_len;
};

/* Everything lies in the arena that was given. */
struct bounds {
    struct bounds_interval *intervals;
    uint32_t interval_count; /* 0: the filter matches nothing */
    bool all;                /* no predicate helps: one interval over everything; for routing: every shard */
    bool exact;  /* a key inside the intervals satisfies the WHOLE filter: no need to look at the document again */
    bool points; /* each interval is the prefix of one full key (every field fixed by equality) */
    uint32_t fixed_fields; /* leading fields with exactly one value each: a scan is sorted by the fields after them */
    uint32_t used_fields;  /* leading fields that narrow the scan; a planner prefers more */
};

/* Reads {a: 1, b: -1, c: "hashed"} into a pattern; the paths are borrowed from `key`. Error 67 for another direction or
 * too many fields. */
bool bounds_pattern_parse(struct bdoc key, struct bounds_pattern *out, struct err *err) ERR_WARN_UNUSED;
/* Intervals of `pattern` that hold every document matching `filter`. Never fails: at worst bounds.all. */
void bounds_from_filter(struct arena *arena, const struct filter *filter, const struct bounds_pattern *pattern,
                        struct bounds *out);
/* True when the key lies in one of the intervals (binary search). */
bool bounds_contains(const struct bounds *bounds, const uint8_t *key, uint32_t key_len);
/* True when [low, high) (high_len 0: no end) meets one of the intervals: does a chunk or shard range matter? */
bool bounds_overlaps(const struct bounds *bounds, const uint8_t *low, uint32_t low_len, const uint8_t *high,
                     uint32_t high_len);

#endif
