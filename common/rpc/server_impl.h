/* Inside of struct rpc_server, for server.c (listening, all connections) and server_conn.c (one connection and its
 * requests). Lock order: server, then connection, then link. */
#ifndef SHERD_RPC_SERVER_IMPL_H
#define SHERD_RPC_SERVER_IMPL_H

#include "rpc/link.h"
#include "rpc/server.h"
#include "rpc/ticker.h"

#include <pthread.h>
#include <stdatomic.h>

struct rpc_server {
    struct rpc_server_options options; /* with defaults filled in; `bind` is not kept */
    uint16_t port;
    nng_stream_listener *listener;
    nng_aio *accept;        /* one accept is always under way, but after an error until the next tick */
    struct ticker *ticker;  /* silence, failed accepts */
    pthread_mutex_t mutex;  /* of everything below */
    pthread_cond_t quiet;   /* links or memory went to 0 */
    struct rpc_conn *conns; /* all that are not closed */
    unsigned conn_count;    /* of them */
    unsigned links;         /* not freed: the handler may be called */
    unsigned memory;        /* connections not freed (requests may be unanswered), jobs on a lent thread */
    bool stopping;
    bool accept_failed; /* try again at the next tick */
    _Atomic unsigned requests;
    _Atomic uint64_t accepted;
    _Atomic uint64_t handled;
    _Atomic uint64_t refused;
};

struct rpc_conn {
    struct rpc_server *server;
    struct rpc_conn *next; /* in server->conns, under its mutex */
    struct rpc_conn *prev;
    bool listed;            /* in it, likewise */
    _Atomic uint32_t refs;  /* the link and each request */
    atomic_bool closed;     /* nobody waits for replies any more */
    bool greeted;           /* the hello was good; on nng's thread only */
    char peer[64];          /* "127.0.0.1:50002" */
    pthread_mutex_t mutex;  /* of what follows */
    struct link *link;      /* NULL once closed */
    unsigned in_flight;     /* requests under way */
    size_t bytes_in_flight; /* of them */
    bool paused;            /* reading is stopped by the limits */
};

/* server_conn.c */
void server_conn_open(struct rpc_server *server, nng_stream *stream);
/* The link with a reference, or NULL when it is closed. */
struct link *server_conn_link(struct rpc_conn *conn);
/* Whether it should be closed for silence or for a reply that nobody takes. */
bool server_conn_is_dead(struct rpc_conn *conn, int64_t now_ms);
/* Whether the limits keep it from being read. */
bool server_conn_is_paused(struct rpc_conn *conn);
/* Sends a sign of life: pings aren't answered while nothing is read. Not under the server's mutex. */
void server_conn_beat(struct link *link);

/* server.c. Counts the new connection; puts it into the list unless it may not stay (false). */
bool server_add_conn(struct rpc_server *server, struct rpc_conn *conn);
void server_remove_conn(struct rpc_server *server, struct rpc_conn *conn);
/* A link, a connection's memory or a lent job is gone. */
void server_link_gone(struct rpc_server *server);
void server_memory_gone(struct rpc_server *server);
/* A job begins that runs on a lent thread; ended by server_memory_gone. */
void server_job_begins(struct rpc_server *server);

#endif
