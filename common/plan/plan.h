/* Chooses how the documents of a filter are found: by _id, through one index or several, or by walking all records.
 * Called once per command on a worker, inside its read transaction; the plan outlives it and is checked again when a
 * cursor goes on. The choice among several indexes is made by running each for a bounded number of steps
 * (plan/trial.c); the outcome is remembered for queries of the same shape (plan/cache.h). */
#ifndef SHERD_PLAN_PLAN_H
#define SHERD_PLAN_PLAN_H

#include "base/arena.h"
#include "query/bounds.h"
#include "query/filter.h"
#include "query/projection.h"
#include "query/sort.h"
#include "storage/catalog.h"

enum {
    PLAN_CANDIDATES_MAX = 16,       /* plans tried against each other for one query */
    PLAN_SCANS_MAX = 200,           /* index scans of one union or merge */
    PLAN_ERR_NO_QUERY_PLAN = 291,   /* MongoDB's NoQueryExecutionPlans */
    PLAN_ERR_MIN_MAX_HINT = 51173,  /* min or max without a hint */
    PLAN_ERR_MIN_MAX_INDEX = 51174, /* ... whose fields are not those of the index */
    PLAN_ERR_MIN_MAX_ORDER = 51175, /* min does not come before max */
};

struct plan_cache;

enum plan_kind {
    PLAN_NOTHING, /* no document can match */
    PLAN_ID,      /* one document by its _id */
    PLAN_INDEX,   /* scans[0] */
    PLAN_RECORDS, /* all records, in the order of their ids */
    PLAN_UNION,   /* scans, one after the other; a document that several would give comes from the first */
    PLAN_MERGE,   /* scans side by side, each in the wanted order, merged by the sort's keys; likewise */
};

struct plan_request {
    const struct filter *filter;
    const struct sort_spec *sort;        /* NULL: any order */
    int natural;                         /* 1 or -1: {$natural: n} was asked for as sort or hint; 0: not */
    struct bval hint;                    /* an index's name or key pattern; BT_EOO: none */
    struct bdoc min;                     /* lowest key of the hinted index, as find's `min`; data NULL: none */
    struct bdoc max;                     /* exclusive, as find's `max`; data NULL: none */
    bool limited;                        /* few documents are wanted: an index that gives the order is worth more */
    uint64_t wanted;                     /* how many at most: skip and limit together; 0: all */
    bool count_only;                     /* only the number of matches: keys may be enough */
    const char *distinct;                /* only the values of this field: an index may be skipped through; NULL: no */
    const struct projection *projection; /* what of each document is wanted; NULL: all of it */
    struct store_txn *txn;               /* for trials; NULL: candidates are ranked without */
    struct plan_cache *cache;            /* NULL: nothing is remembered */
    bool explain;                        /* a trial is made in any case, and the rejected plans are kept */
    bool replan;                         /* what the cache says turned out wrong: a trial is made anew */
};

/* One walk through an index. */
struct plan_scan {
    uint32_t index_id;
    const char *index_name;
    struct bdoc key_pattern;
    bool backward;
    bool multikey; /* as it was when the plan was made */
    bool unique;
    bool sparse;
    bool partial;
    struct bdoc collation;          /* of the index's specification; data NULL: none */
    const struct bval_order *order; /* of the strings in its keys; only while the plan's transaction is open */
    const char *wildcard_path;      /* of a wildcard index: whose values are walked through; NULL: not one */
    const uint64_t *multikey_paths; /* struct index_field.multikey, for each field of the key pattern */
    uint32_t field_count;           /* of the key pattern */
    struct key_bounds bounds;
    struct bdoc min_key; /* find's `min` and `max` as given; data NULL: none */
    struct bdoc max_key;
    const uint8_t *min; /* lowest key of find's `min`; min_len 0: none */
    uint32_t min_len;
    const uint8_t *max; /* exclusive, of find's `max`; max_len 0: none */
    uint32_t max_len;
    const struct filter *filter; /* what the bounds don't say already; NULL: nothing */
    /* PLAN_UNION, PLAN_MERGE: the part of the query that this walk stands for. A document that matches the part of an
     * earlier one is left to that. NULL: the walks are told apart by their bounds (one index, cut into pieces). */
    const struct filter *part;
};

/* Lies in the arena that was given, with everything it points at. */
struct plan {
    enum plan_kind kind;
    bool backward;                      /* PLAN_RECORDS */
    bool sorted;                        /* documents come in the order that was asked for */
    bool covered;                       /* the index holds all that is wanted of the documents */
    bool keys_only;                     /* counting needs no document: MongoDB's COUNT_SCAN */
    uint32_t distinct_fields;           /* > 0: one entry for each value of so many leading fields: DISTINCT_SCAN */
    bool from_cache;                    /* chosen by an earlier query's trial */
    const struct filter *filter;        /* the whole one, as asked */
    const struct filter *test;          /* PLAN_ID, PLAN_RECORDS: what each document is tested with; NULL: nothing */
    const struct sort_spec *merge_sort; /* PLAN_MERGE */
    struct bval id;                     /* PLAN_ID; borrowed from the filter */
    struct plan_scan *scans;
    uint32_t scan_count;
    struct plan **rejected; /* of a trial, the better ones first; only with plan_request.explain */
    uint32_t rejected_count;
    uint32_t shape_hash;      /* of the query's shape: filter without its constants, sort, projection, collation */
    uint32_t key_hash;        /* of shape and usable indexes */
    uint64_t trial_works;     /* steps that it took in its trial; 0: there was none */
    double score;             /* in its trial */
    const uint8_t *cache_key; /* under which it is remembered; NULL: it is not */
    size_t cache_key_len;
    uint64_t works_limit; /* from the cache: give up beyond so many steps (scan.h); 0: none */
};

/* Errors: 2 BadValue for a hint that names no index (or a hidden one), 291 when the hinted one can't serve, 51173 and
 * others for a `min` or `max` that doesn't fit the hint; what interrupt_check says during a trial. */
bool plan_make(struct arena *arena, const struct collection *coll, const struct plan_request *request,
               struct plan **out, struct err *err) ERR_WARN_UNUSED;
/* The plan without help of an index. */
struct plan *plan_records(struct arena *arena, const struct filter *filter);
/* "IDHACK", "IXSCAN { a: 1 }" for logs, currentOp and explain's planSummary, in the arena. */
const char *plan_summary(const struct plan *plan, struct arena *arena);
/* The first walk's index, NULL when there is none. */
const char *plan_index_name(const struct plan *plan);

#endif
