/* system.views: a document {_id: "db.view", viewOn, pipeline, collation?} for each view of the database, as clients of
 * MongoDB know it. Made with the first view. Apply thread. */
#ifndef SHERD_DOCUMENT_VIEW_RECORDS_H
#define SHERD_DOCUMENT_VIEW_RECORDS_H

#include "document/apply.h"

/* The view `ns` has these options now. `uuid` (16 bytes) is of the command: the collection's is made from it. */
bool view_records_put(struct document_apply *apply, const char *ns, const uint8_t *uuid, struct bdoc options,
                      struct err *err) ERR_WARN_UNUSED;
/* The view is gone. */
void view_records_remove(struct document_apply *apply, const char *ns);

#endif
