/* Steps that administrative commands share: what a collection is on its shards, commands to all shards that own it, and
 * dropping. On a worker; blocks. */
#ifndef SHERD_ROUTERD_DDL_H
#define SHERD_ROUTERD_DDL_H

#include "routerd/forward.h"
#include "routerd/scatter.h"

/* A collection as its primary shard describes it; documents lie in the arena that was given. */
struct ddl_collection {
    bool exists;
    uint8_t uuid[CLUSTER_UUID_BYTES];
    struct bdoc options; /* of create */
    struct bdoc indexes; /* array of specifications; data NULL unless asked for */
    bool empty;          /* holds no document; only when asked for */
};

/* Asks the primary shard of the route's database; the route must be at a routing with a database. */
bool ddl_describe(struct route *route, const struct ns *ns, struct ddl_collection *out,
                  struct err *err) ERR_WARN_UNUSED;

/* The same without indexes: `exists` and `options` only. A view exists too. */
bool ddl_describe_options(struct route *route, const struct ns *ns, struct ddl_collection *out,
                          struct err *err) ERR_WARN_UNUSED;

/* The command body, which must be repeatable, to every shard that owns a part of the route's sharded collection, again
 * with a newer table when that is needed. `gone_code`: see struct scatter_command. SCATTER_STALE never comes out; when
 * the collection is no longer sharded *sharded is false and nothing was sent. The caller ends with scatter_deinit. */
enum scatter_outcome ddl_owners(struct route *route, const bson_t *body, int32_t gone_code, bool *sharded,
                                struct scatter *out, struct err *err);

/* An internal command {name: ns, $db: "admin"} with further fields appended by the caller to `body`. */
void ddl_internal_body(bson_t *body, const char *name, const char *ns);
/* Runs it on one shard by name. The reply is the request's; the caller deinits it in any case. */
bool ddl_on_shard(struct command_ctx *ctx, const char *shard, const bson_t *body, struct remote_request *request,
                  struct err *err) ERR_WARN_UNUSED;
/* Runs it on the config service. The same. */
bool ddl_on_config(struct command_ctx *ctx, const bson_t *body, bool repeatable, struct remote_request *request,
                   struct err *err) ERR_WARN_UNUSED;
/* Tells a shard to read its ownership of `ns` (or of a database) again; errors don't matter, it asks by itself too. */
void ddl_refresh_shard(struct command_ctx *ctx, const char *shard, const char *ns);

/* Drops a sharded collection everywhere: on its shards, then in the config service. Fine when it is gone already. */
bool ddl_drop_sharded(struct route *route, const struct ns *ns, struct err *err) ERR_WARN_UNUSED;

#endif
