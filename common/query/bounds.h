/* From a filter to intervals of encoded keys (bson/keyenc.h): for an index scan and for choosing shards. Called by the
 * planner and by the router's targeting, on any thread; pure.
 * An interval is a half-open run of bytes [low, high) in memcmp order; an encoded key k lies in it when low <= k <
 * high. An empty `low` is the start of all keys; an empty `high` is the end of all keys. Intervals of a list are sorted
 * and don't overlap. Two forms: intervals of each field by itself (struct key_bounds; a scan that jumps needs no
 * product), and intervals of whole compound keys (struct bounds). */
#ifndef SHERD_QUERY_BOUNDS_H
#define SHERD_QUERY_BOUNDS_H

#include "bson/compare.h"
#include "query/filter.h"

enum {
    BOUNDS_MAX_FIELDS = 32,      /* of a key pattern */
    BOUNDS_MAX_COMPONENTS = 33,  /* of a key: a wildcard field makes two */
    BOUNDS_MAX_INTERVALS = 4096, /* a product of $in lists beyond this keeps the leading fields' intervals only */
    BOUNDS_MAX_VALUES = 100000,  /* intervals of one field; an $in list beyond gets one around them all */
    BOUNDS_MAX_BRANCHES = 256,   /* of $or; one with more narrows nothing */
    BOUNDS_MAX_DEPTH = 8,        /* of $or beside each other that are multiplied out, ... */
    BOUNDS_MAX_PREDICATES = 100, /* ... with so many predicates at most: each branch takes them all */
};

struct bounds_field {
    const char *path; /* dotted */
    bool descending;
    bool hashed;       /* the key holds the value's 64-bit hash (bson/hash.h) as an int64 */
    bool constant;     /* the component is always `value` (the path of a wildcard index) */
    struct bval value; /* of a constant one */
    uint64_t arrays;   /* bit j: there may be an array at the end of the path's first j + 1 parts; ~0: who knows */
};

/* A key pattern {a: 1, b: -1, c: "hashed"}. */
struct bounds_pattern {
    struct bounds_field fields[BOUNDS_MAX_COMPONENTS];
    uint32_t field_count;
    bool shard_key;                 /* values are never arrays: equality with an array gives no point */
    const struct bval_order *order; /* of the strings in its keys; NULL: by bytes */
};

struct bounds_interval {
    const uint8_t *low; /* inclusive */
    uint32_t low_len;
    const uint8_t *high; /* exclusive; high_len 0: no upper end */
    uint32_t high_len;
};

/* Values of one field, from the first in the order of bytes to the last. */
struct value_interval {
    struct bounds_interval bytes;
    bool point;      /* one value exactly */
    bool first_open; /* for people to read: without `first` itself */
    bool last_open;
    struct bval first; /* for people to read; a descending field has the larger value first */
    struct bval last;
};

/* Sorted, apart from each other. */
struct value_list {
    struct value_interval *items; /* NULL when full */
    uint32_t count;
    bool full;  /* every value: nothing is known */
    bool exact; /* whoever has a key inside satisfies the predicates that made the list */
};

/* What a filter says about each component of a key. Everything lies in the arena that was given. */
struct key_bounds {
    struct value_list *fields;
    uint32_t field_count;
    uint64_t descending; /* bit i: component i */
    bool never;          /* the filter matches nothing */
    bool all;            /* no predicate helps */
    bool exact;  /* a key inside the intervals satisfies the WHOLE filter: no need to look at the document again */
    bool points; /* every field has single values only */
    bool needs_missing;    /* a document without any of the fields may match: a sparse index won't do */
    uint32_t fixed_fields; /* leading fields with exactly one value each: a scan is sorted by the fields after them */
    uint32_t used_fields;  /* leading fields that narrow the scan */
    uint32_t bound_fields; /* all that do, also behind a gap */
    const struct filter *rest; /* the predicates that the bounds don't say exactly; NULL: none */
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

/* Reads {a: 1, b: -1, c: "hashed"} into a pattern without arrays; the paths are borrowed from `key`. Error 67 for
 * another direction or too many fields. */
bool bounds_pattern_parse(struct bdoc key, struct bounds_pattern *out, struct err *err) ERR_WARN_UNUSED;

/* Lists that together hold a key of every document matching `filter`. Never fails: at worst all are full. */
void key_bounds_of(struct arena *arena, const struct filter *filter, const struct bounds_pattern *pattern,
                   struct key_bounds *out);
/* The whole of one field: MinKey to MaxKey. */
struct value_list value_list_all(struct arena *arena, const struct bounds_field *field);
bool value_list_is_points(const struct value_list *list);
/* True when the encoded component lies in one of the intervals (binary search). */
bool value_list_contains(const struct value_list *list, const uint8_t *bytes, uint32_t len);

/* Intervals of `pattern` that hold every document matching `filter`. Never fails: at worst bounds.all. */
void bounds_from_filter(struct arena *arena, const struct filter *filter, const struct bounds_pattern *pattern,
                        struct bounds *out);
/* True when the key lies in one of the intervals (binary search). */
bool bounds_contains(const struct bounds *bounds, const uint8_t *key, uint32_t key_len);
/* True when [low, high) (high_len 0: no end) meets one of the intervals: does a chunk or shard range matter? */
bool bounds_overlaps(const struct bounds *bounds, const uint8_t *low, uint32_t low_len, const uint8_t *high,
                     uint32_t high_len);
/* Order of two ends; the shorter first. */
int bounds_compare_bytes(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len);

#endif
