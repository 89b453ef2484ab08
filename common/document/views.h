/* Views: definitions in the catalog of a database's primary shard, without records. Reads of one are refused with the
 * pipeline that answers them, and the router runs that on the collection beneath, which may be sharded. */
#ifndef SHERD_DOCUMENT_VIEWS_H
#define SHERD_DOCUMENT_VIEWS_H

#include "document/traits.h"

enum {
    VIEWS_DEPTH_MAX = 20, /* views on views; ERR_ViewDepthLimitExceeded beyond */
    VIEWS_PIPELINE_MAX_BYTES = 16 * 1024 * 1024,
};

/* Refuses a read of a view: ERR_CommandOnShardedViewNotSupportedOnMongod with details {resolvedView: {ns, pipeline,
 * collation?}}, resolved down to what is no view. A pipeline too long for an error's details is left out: then
 * _shardsvrResolveView gives it. Returns false. */
bool views_refuse_read(struct store_txn *txn, const struct collection *view, struct err *err);
/* Refuses a write or an index command: ERR_CommandNotSupportedOnView. Returns false. */
bool views_refuse_write(const struct collection *view, struct err *err);
/* Appends ns, pipeline and collation to `out`. False: the definitions have become too deep. */
bool views_resolve(struct store_txn *txn, const struct collection *view, bson_t *out, struct err *err) ERR_WARN_UNUSED;

/* What a definition has to keep to: stages that exist and may stand in a view, in any order of catalog. Pure. */
bool views_check_pipeline(struct arena *arena, struct bdoc pipeline, struct err *err) ERR_WARN_UNUSED;
/* The graph of views with `ns` defined by `options` (viewOn, pipeline?, collation?; true when that is no view) has no
 * cycle (ERR_GraphContainsCycle), isn't too deep (ERR_ViewDepthLimitExceeded), and views that read each other have the
 * same collation (ERR_OptionNotSupportedOnView). Also in apply. */
bool views_check_graph(struct store_txn *txn, const char *ns, struct bdoc options, struct err *err) ERR_WARN_UNUSED;

#endif
