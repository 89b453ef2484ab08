/* Commands that go to one place as they are: the config service, or the primary shard of a database whose collection is
 * not sharded. On a worker; blocks. */
#ifndef SHERD_ROUTERD_FORWARD_H
#define SHERD_ROUTERD_FORWARD_H

#include "command/namespace.h"
#include "command/table.h"
#include "routerd/route.h"

/* Databases whose collections live in the config service. */
bool forward_is_config_db(const char *db);
/* The command to the config service; the request is initialised in any case and the caller deinits it. */
bool forward_config(struct command_ctx *ctx, bool repeatable, struct remote_request *request,
                    struct err *err) ERR_WARN_UNUSED;

enum forward_outcome {
    FORWARD_DONE,        /* the request is there, ok */
    FORWARD_SHARDED,     /* not sent: the collection is sharded; route->routing says how */
    FORWARD_NO_DATABASE, /* not sent: the database doesn't exist */
    FORWARD_FAILED,      /* err is ready for the client */
};

struct forward_options {
    bool repeatable;
    bool create_database;    /* instead of FORWARD_NO_DATABASE */
    bool even_sharded;       /* to the primary shard whatever the collection is; then without a version */
    const char *const *skip; /* fields left out, ended by NULL; may be NULL */
};

/* The command to the database's primary shard, again with a newer table when that is needed. With FORWARD_DONE the
 * caller deinits the request. */
enum forward_outcome forward_primary(struct route *route, const struct forward_options *options,
                                     struct remote_request *request, struct err *err);

/* Makes a shard's answer the client's. One with a cursor makes a cursor of the router: `ns` names it. */
enum command_status forward_reply(struct command_ctx *ctx, struct remote_request *request);
enum command_status forward_cursor_reply(struct command_ctx *ctx, const char *ns, struct remote_request *request,
                                         struct err *err);
/* {cursor: {id: 0, ns, firstBatch: []}} */
enum command_status forward_empty_cursor(struct command_ctx *ctx, const char *ns, struct err *err);

#endif
