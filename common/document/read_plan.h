/* Plans and scans of a read transaction: what of the engine and of its ownership they need. On a worker. */
#ifndef SHERD_DOCUMENT_READ_PLAN_H
#define SHERD_DOCUMENT_READ_PLAN_H

#include "document/read_txn.h"
#include "plan/scan.h"

/* plan_make for the read's collection (there is one): with the engine's cache and with trials, and unless it is
 * explained the use of the chosen indexes is noted ($indexStats). `request` gets its txn and cache here. */
bool read_plan_make(struct arena *arena, const struct read_txn *read, struct plan_request *request, struct plan **out,
                    struct err *err) ERR_WARN_UNUSED;
/* A scan of `plan` in the read's transaction that gives whole documents, those that `view` shows (NULL: all). */
struct scan_options read_plan_scan(const struct read_txn *read, const struct plan *plan,
                                   const struct document_view *view);

/* After a scan that could not be begun again (a write, a count): a remembered plan that took far too many steps is
 * forgotten. */
void read_plan_done(const struct read_txn *read, const struct plan *plan, const struct scan *scan);

#endif
