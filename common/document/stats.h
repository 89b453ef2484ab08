/* Sizes and counts of collections and databases, as collStats, dbStats, $collStats and $indexStats print them. Pure
 * reads. */
#ifndef SHERD_DOCUMENT_STATS_H
#define SHERD_DOCUMENT_STATS_H

#include "document/read_txn.h"

/* {ns, host, localTime, shard?, storageStats?: {...}, count?}: the one document of $collStats. ERR_NamespaceNotFound
 * when storageStats or count of a missing collection is asked for. */
bool stats_coll_stats_stage(struct document_engine *engine, const struct read_txn *read, const struct ns *ns,
                            const struct bval *spec, bson_t *out, struct err *err) ERR_WARN_UNUSED;
/* {name, key, host, accesses: {ops, since}, shard?, spec, building?}: one index's document of $indexStats. */
void stats_index_stats_stage(struct document_engine *engine, const struct index_def *index, bson_t *out);

#endif
