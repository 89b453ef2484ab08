/* Walks the documents of a plan inside one transaction: tests the filter, leaves out documents that the node doesn't
 * own, gives every record once. Its position is bytes that a later scan of the same plan, in another transaction, goes
 * on from. One thread. */
#ifndef SHERD_DOCUMENT_SCAN_H
#define SHERD_DOCUMENT_SCAN_H

#include "document/ownership.h"
#include "document/planner.h"
#include "storage/cursor.h"
#include "storage/index_keys.h"
#include "storage/records.h"

struct scan_options {
    struct store_txn *txn;
    const struct collection *coll;
    const struct plan *plan;
    const struct filter *filter;
    const struct document_ownership *ownership; /* NULL: everything is visible */
    const struct document_view *view;           /* NULL: everything is visible */
    bool need_doc;                              /* false: `doc` is filled only when the scan looked at it */
    int64_t deadline_ms;
};

struct scan {
    struct scan_options options;
    const struct index_def *index; /* PLAN_INDEX */
    struct record_cursor records;
    struct index_cursor entries;
    struct index_entry entry; /* the last one returned */
    uint32_t interval;        /* of the plan's bounds, in the direction of travel */
    bool test_filter;
    bool done;
    struct buf scratch;     /* of documents in pieces */
    struct index_keys keys; /* of a multikey document */

    /* The document at hand, valid until the next call. */
    uint64_t record_id;
    struct bdoc doc;

    uint64_t keys_examined;
    uint64_t docs_examined;
};

/* ERR_QueryPlanKilled when the plan's index is gone. The caller ends with scan_close, also after a failure. */
bool scan_open(struct scan *scan, const struct scan_options *options, struct err *err) ERR_WARN_UNUSED;
/* Before the first scan_next: goes on after the document at which the position was taken. */
bool scan_restore(struct scan *scan, const void *position, size_t len, struct err *err) ERR_WARN_UNUSED;
/* Appends the position after the document returned last. */
void scan_position(const struct scan *scan, struct buf *out);
/* *found false: no more. Errors: 50 past the deadline, what the filter's evaluation reports. */
bool scan_next(struct scan *scan, bool *found, struct err *err) ERR_WARN_UNUSED;
/* Accepts a zeroed struct. */
void scan_close(struct scan *scan);

#endif
