/* One walk through an index: entries inside the bounds of a plan's scan, jumping over the gaps between the intervals of
 * any field. The part of plan/scan.h that knows keys. One thread. */
#ifndef SHERD_PLAN_WALK_H
#define SHERD_PLAN_WALK_H

#include "plan/plan.h"
#include "storage/cursor.h"
#include "storage/index_keys.h"

struct plan_walk {
    struct store_txn *txn;
    const struct plan_scan *plan;
    const struct index_def *index;
    struct index_cursor entries;
    struct index_entry entry; /* the last one returned */
    bool opened;
    bool done;
    bool one_interval;    /* the bounds are one run of bytes: the cursor's own ends say it all */
    bool one_key;         /* the bounds hold one key: no record can have two in it */
    bool test_all;        /* the index has become multikey since the plan was made: the whole filter is tested */
    uint32_t last_bound;  /* components up to here are looked at */
    uint32_t skip_fields; /* > 0: walk_skip passes over all entries with the same leading fields */
    struct buf target;    /* a place to jump to */
    struct buf low;       /* ends of the whole walk, for the cursor */
    struct buf high;
    struct index_keys keys; /* of a multikey document */

    /* What plan/scan.c keeps of each. */
    struct buf scratch;  /* of a document in pieces */
    struct buf made;     /* the document made of an entry's values */
    struct buf position; /* PLAN_MERGE: after the record that was given out last; empty: none was */
    struct buf sort_key; /* PLAN_MERGE: of the record at hand */
    struct bdoc doc;     /* of the record at hand; data NULL: it was not looked at */
    uint64_t record_id;  /* of the record at hand */

    uint64_t keys_examined;
    uint64_t docs_examined;
    uint64_t seeks;
    uint64_t dups_tested;
    uint64_t dups_dropped;
    uint64_t advanced;
};

/* ERR_QueryPlanKilled when the index is gone. `plan` and `txn` stay valid until walk_close. */
bool walk_open(struct plan_walk *walk, struct store_txn *txn, const struct collection *coll,
               const struct plan_scan *plan, struct err *err) ERR_WARN_UNUSED;
/* Goes on beyond a position; false when the bytes are none. */
bool walk_restore(struct plan_walk *walk, const void *position, size_t len);
/* Looks at one more entry; false at the end. *inside false: it was outside the bounds, and the walk has jumped; call
 * again. */
bool walk_step(struct plan_walk *walk, bool *inside);
/* A record with several keys inside the bounds is given at the first of them only, so nothing has to be remembered. */
bool walk_is_first_key(struct plan_walk *walk, struct bdoc doc);
/* True when one of the document's keys lies inside the walk's bounds: the walk gives it at some time. */
bool walk_would_give(struct plan_walk *walk, struct bdoc doc);
/* The next entry has other values in the first skip_fields fields. */
void walk_skip(struct plan_walk *walk);
/* Accepts a zeroed struct. */
void walk_close(struct plan_walk *walk);

#endif
