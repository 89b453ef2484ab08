/* createIndexes on a sharded collection is all or nothing: what some shards have made while another one refused is
 * taken back. On a worker; blocks. */
#ifndef SHERD_ROUTERD_INDEX_CLEANUP_H
#define SHERD_ROUTERD_INDEX_CLEANUP_H

#include "routerd/scatter.h"

/* Before: the indexes of the route's sharded collection, an array in the request's arena. */
bool index_cleanup_look(struct route *route, const struct ns *ns, struct bdoc *before, struct err *err) ERR_WARN_UNUSED;
/* After `tried` failed: drops on all owners those of `specs` that were not there before, unless some shard's outcome is
 * unknown or worth a repetition: then the client repeats the command. Errors are logged. */
void index_cleanup_run(struct route *route, const struct ns *ns, struct bdoc specs, struct bdoc before,
                       const struct scatter *tried);

#endif
