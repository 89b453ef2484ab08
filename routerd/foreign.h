/* What $lookup, $unionWith and $graphLookup read when they run on a router: each read is an aggregate of its own on the
 * other collection, sharded or not, or on the view of that name. Used by the command that has its cursor taken out. */
#ifndef SHERD_ROUTERD_FOREIGN_H
#define SHERD_ROUTERD_FOREIGN_H

#include "aggregate/pipeline.h"

struct router_cursor;

/* For the pipeline of `cursor`, whose `ctx` names the command at work; lives in the cursor's arena. `db` and
 * `collation` (data NULL: simple) are copied; `depth` is that of the cursor's own aggregate. */
struct pipeline_foreign *foreign_new(struct router_cursor *cursor, const char *db, struct bdoc collation,
                                     unsigned depth);

#endif
