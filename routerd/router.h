/* What all parts of the router share: one per process, made by main before any thread starts, reachable from every
 * command through router_of(ctx). Nothing in it changes after start but what its modules guard themselves. */
#ifndef SHERD_ROUTERD_ROUTER_H
#define SHERD_ROUTERD_ROUTER_H

#include "cluster/metadata.h"
#include "command/context.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct client_server;
struct command_table;
struct cursor_table;
struct failpoints;
struct pool;
struct registry;
struct routing_cache;
struct rpc_client;
struct temp_space;

enum {
    ROUTER_DEFAULT_PORT = 27017,
    ROUTER_DEFAULT_MAX_CONNS = 20000,
    ROUTER_WORKERS_MAX = 2000,      /* threads: commands under way at once */
    ROUTER_QUEUE_MAX = 40000,       /* commands that wait for a thread; more are refused */
    ROUTER_STALE_RETRIES_MAX = 30,  /* times one command starts again with a newer routing table */
    ROUTER_HOLD_MS = 20000,         /* how long a command waits for a set that has no leader */
    ROUTER_ADMIN_TIMEOUT_MS = 60000 /* of one step of an administrative command */
};

struct router_options {
    char *configdb; /* "config/h:p,h:p" */
    char *bind;     /* address to listen on */
    int64_t port;   /* for drivers */
    int64_t max_conns;
    char *log_level;
    char *tmpdir;       /* of temporary files; NULL: TMPDIR or /tmp */
    char *faults;       /* fault points to set (base/fault.h); NULL: none */
    bool test_commands; /* configureFailPoint and its like exist */
};

/* Operations since start, as serverStatus shows them. */
struct router_counters {
    _Atomic uint64_t insert, query, update, remove, getmore, command;
};

struct router {
    struct router_options options;
    int argc;           /* for getCmdLineOpts */
    char **argv;        /* main's own */
    int64_t started_ms; /* clock_now_ms() at start */
    char address[300];  /* "host:port" under which this router shows in config.mongos */
    struct rpc_client *rpc;
    struct registry *registry;
    struct routing_cache *routing;
    struct cursor_table *cursors;
    struct command_table *commands;
    struct failpoints *failpoints;
    struct op_registry *ops;
    struct temp_space *temp; /* of large sorts and groups */
    struct pool *pool;
    struct client_server *server; /* NULL until it listens */
    struct router_counters counters;
};

static inline struct router *router_of(const struct command_ctx *ctx)
{
    return ctx->daemon;
}

#endif
