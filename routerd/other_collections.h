/* Pipelines that read or write other collections than their own ($lookup, $graphLookup, $unionWith, $out, $merge). They
 * run whole on the primary shard of the database, so every collection they touch has to be there. On a worker; blocks.
 */
#ifndef SHERD_ROUTERD_OTHER_COLLECTIONS_H
#define SHERD_ROUTERD_OTHER_COLLECTIONS_H

#include "command/namespace.h"
#include "routerd/route.h"

/* False (ERR_NotImplemented) when the pipeline names another collection, and that one or its own is sharded, or it lies
 * in another database. Leaves the route anywhere. */
bool other_collections_allowed(struct route *route, const struct ns *ns, struct bdoc stages,
                               struct err *err) ERR_WARN_UNUSED;

#endif
