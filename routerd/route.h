/* One command's way through the routing tables: it takes the current table of its namespace, runs, and starts again
 * with a newer one as often as a shard says that the table is old, a bounded number of times. On a worker; blocks.
 *
 *   route_init(&route, ctx, ns.full);
 *   while (route_next(&route, err)) {
 *       ... use route.routing ...
 *       if (failed && route_is_stale(&route, &request.err)) continue;
 *       break;
 *   }
 *   route_deinit(&route); */
#ifndef SHERD_ROUTERD_ROUTE_H
#define SHERD_ROUTERD_ROUTE_H

#include "cluster/routing.h"
#include "routerd/remote.h"
#include "routerd/routing_cache.h"

struct route {
    struct command_ctx *ctx;
    struct router *router;
    const char *ns;          /* borrowed */
    struct routing *routing; /* a reference; valid after route_next */
    unsigned stale_count;    /* times that the table proved old, or a shard was busy */
    bool counted;            /* once a round is enough */
};

void route_init(struct route *route, struct command_ctx *ctx, const char *ns);
void route_deinit(struct route *route);
/* Gets the table, a newer one after route_is_stale. False: err is ready for the client (also when there were too many
 * rounds). */
bool route_next(struct route *route, struct err *err) ERR_WARN_UNUSED;
/* True when `failure` says that the table is old: it is marked so, go on with route_next. */
bool route_is_stale(struct route *route, const struct err *failure);
/* True when `failure` says that the shard refuses the operation for the moment, also for want of a leader: nothing was
 * executed; go on with route_next, which pauses. */
bool route_is_busy(struct route *route, const struct err *failure);
/* Creates the database of the namespace on the shard with the least data unless it exists. */
bool route_create_database(struct route *route, struct err *err) ERR_WARN_UNUSED;

/* A reference to the set of the database's primary shard, or of the table's shard number `shard`. */
bool route_primary(struct route *route, struct remote_set **out, struct err *err) ERR_WARN_UNUSED;
bool route_shard(struct route *route, size_t shard, struct remote_set **out, struct err *err) ERR_WARN_UNUSED;

/* $sherdVersion of a request: for an unsharded namespace; for one key value; for the ranges of a target. */
void route_append_db_version(const struct route *route, bson_t *body);
void route_append_key_version(const struct route *route, bson_t *body);
void route_append_range_version(const struct route *route, bson_t *body, const struct key_range *ranges, size_t count);

#endif
