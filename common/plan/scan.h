/* Walks the documents of a plan inside one transaction: tests what the plan leaves to be tested, leaves out documents
 * that the node doesn't own, gives every record once. Its position is bytes that a later scan of the same plan, in
 * another transaction, goes on from. One thread; long walks end when the thread's operation is interrupted
 * (base/interrupt.h). */
#ifndef SHERD_PLAN_SCAN_H
#define SHERD_PLAN_SCAN_H

#include "plan/plan.h"
#include "plan/walk.h"
#include "storage/cursor.h"

enum {
    /* Not an answer to a client: the plan came from the cache and takes far more steps than it did when it was chosen.
     * Whoever has handed out nothing yet makes another one (plan_request.replan). */
    PLAN_ERR_REPLAN = -1,
    PLAN_FIRST_RESULTS = 101, /* once a plan has given so many, it is not given up any more */
};

struct document_view;

struct scan_options {
    struct store_txn *txn;
    const struct collection *coll;
    const struct plan *plan;
    const struct document_view *view; /* NULL: everything is visible */
    bool (*visible)(const struct document_view *view, struct bdoc doc);
    bool need_doc; /* false: `doc` is filled only when the scan looked at it */
    bool replan;   /* the caller can deal with PLAN_ERR_REPLAN */
};

struct scan {
    struct scan_options options;
    struct record_cursor records; /* PLAN_RECORDS */
    struct plan_walk only;        /* PLAN_INDEX */
    struct plan_walk *walks;      /* one for each of the plan's scans; &only for PLAN_INDEX */
    uint32_t walk_count;
    uint32_t at;         /* PLAN_UNION, PLAN_MERGE: the walk that gave the record at hand */
    uint32_t *heap;      /* PLAN_MERGE: walks with a record at hand, the least key first */
    uint32_t heap_count; /* of them */
    uint32_t filled;     /* PLAN_MERGE: walks that have been asked for their first record */
    bool refill;         /* PLAN_MERGE: the walk at the top has given its record and needs another */
    bool done;
    bool ended;         /* it has given everything */
    struct buf scratch; /* of documents in pieces */

    /* The document at hand, valid until the next call. */
    uint64_t record_id;
    struct bdoc doc;

    uint64_t works; /* steps: entries and records looked at */
    uint64_t advanced;
    uint64_t keys_examined; /* of all walks; with scan_count up to date */
    uint64_t docs_examined;
    uint64_t not_owned; /* documents that `visible` refused */
};

enum scan_step {
    SCAN_FOUND, /* a document is at hand */
    SCAN_WORK,  /* nothing yet; go on */
    SCAN_END,
};

/* ERR_QueryPlanKilled when an index of the plan is gone. The caller ends with scan_close, also after a failure. The
 * struct must stay where it is until then. */
bool scan_open(struct scan *scan, const struct scan_options *options, struct err *err) ERR_WARN_UNUSED;
/* Before the first scan_next: goes on after the document at which the position was taken. */
bool scan_restore(struct scan *scan, const void *position, size_t len, struct err *err) ERR_WARN_UNUSED;
/* Appends the position after the document returned last. */
void scan_position(const struct scan *scan, struct buf *out);
/* *found false: no more. Errors: what interrupt_check says (50, 11601 ...), what the filter's evaluation reports,
 * PLAN_ERR_REPLAN. */
bool scan_next(struct scan *scan, bool *found, struct err *err) ERR_WARN_UNUSED;
/* One step of it: one entry or record is looked at. For trials, which take turns. */
bool scan_one_step(struct scan *scan, enum scan_step *step, struct err *err) ERR_WARN_UNUSED;
/* Accepts a zeroed struct. */
void scan_close(struct scan *scan);

#endif
