/* What routers and shards load their routing tables from. */
#ifndef SHERD_CONFIGD_ROUTING_H
#define SHERD_CONFIGD_ROUTING_H

#include "configd/view.h"

/* Larger answers are refused: the messages between daemons end at 48 MiB. */
enum { ROUTING_REPLY_MAX_BYTES = 40 * 1024 * 1024 };

/* {_configsvrGetRouting: "db.coll" or "db", epoch?, major?, minor?} -> struct routing_reply (cluster/routing.h), all of
 * it from one transaction. A view, any thread. */
bool routing_answer(const struct metadata_view *view, struct bdoc request, bson_t *reply,
                    struct err *err) ERR_WARN_UNUSED;

#endif
