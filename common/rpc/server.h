/* The receiving side of requests between daemons: an nng byte stream that carries OP_MSGs. The first frame of a
 * connection is a hello with the protocol's version (rpc/protocol.h); anything else closes it. The handler is called on
 * one of nng's threads and only hands the request over (it has a struct pool_job inside); the reply may come from any
 * thread at any time. */
#ifndef SHERD_RPC_SERVER_H
#define SHERD_RPC_SERVER_H

#include "async/pool.h"
#include "base/err.h"
#include "wire/frame.h"
#include "wire/message.h"

#include <stdint.h>

struct rpc_server;
struct rpc_conn;

/* One request. Lives from the handler's call until rpc_request_reply or rpc_request_drop. */
struct rpc_request {
    struct pool_job job;      /* for handing over; unused by rpc once the handler was called */
    void *arg;                /* the server's options.arg */
    struct wire_frame *frame; /* the message's bytes; keep them longer with a reference */
    struct wire_msg msg;      /* views into `frame`, an OP_MSG, validated */
    int64_t received_ms;      /* clock_now_ms() */
    struct rpc_conn *conn;    /* internal */
};

struct rpc_server_options {
    const char *bind;               /* address, no name; NULL: 127.0.0.1 */
    uint16_t port;                  /* 0: the system chooses; see rpc_server_port */
    unsigned max_conns;             /* 0: RPC_SERVER_MAX_CONNS */
    unsigned max_requests_per_conn; /* under way; beyond it reading stops; 0: RPC_SERVER_MAX_REQUESTS */
    size_t max_bytes_per_conn; /* of requests under way, likewise; with more than that in replies that are not taken the
                                  connection is closed; 0: RPC_SERVER_MAX_BYTES */
    /* On nng's thread; must not block. The request is the handler's until it is replied to or dropped. */
    void (*handle)(void *arg, struct rpc_request *request);
    void *arg;
};

enum {
    RPC_SERVER_MAX_CONNS = 2000,
    RPC_SERVER_MAX_REQUESTS = 8192,
    RPC_SERVER_MAX_BYTES = 256 << 20,
};

struct rpc_server_stats {
    unsigned conns;
    unsigned requests; /* under way */
    uint64_t accepted;
    uint64_t handled; /* requests that were given to the handler */
    uint64_t refused; /* connections closed for a bad hello or too many */
};

/* Listens. The caller ends it with rpc_server_stop, then rpc_server_free. */
bool rpc_server_start(const struct rpc_server_options *options, struct rpc_server **out,
                      struct err *err) ERR_WARN_UNUSED;
uint16_t rpc_server_port(const struct rpc_server *server);
/* Stops accepting and closes all connections. After it returns the handler is not called again; requests under way stay
 * valid, their replies are dropped. Not from the handler. */
void rpc_server_stop(struct rpc_server *server);
/* After rpc_server_stop; blocks until every request was replied to or dropped and no dispatched job is on a lent thread
 * any more. Accepts NULL. */
void rpc_server_free(struct rpc_server *server);
void rpc_server_stats_get(struct rpc_server *server, struct rpc_server_stats *out);

/* From the handler only: has request->job.run called soon, on a worker of the pool or, when nothing else is under way
 * on the connection, on this thread after the handler has returned (that saves a change of threads; at most one of
 * nng's threads is lent at a time, so the job may block). False when the pool takes no more: the request is still the
 * handler's. */
bool rpc_request_dispatch(struct rpc_request *request, struct pool *pool) ERR_WARN_UNUSED;
/* Takes the reference to `reply`, a complete OP_MSG without checksum in a frame that is the caller's alone (ids are
 * filled in here), and ends the request. Never blocks: writes at once when nothing else is being written. Any thread.
 */
void rpc_request_reply(struct rpc_request *request, struct wire_frame *reply);
void rpc_request_reply_doc(struct rpc_request *request, struct bdoc body);
/* Ends the request without a reply: only for one that wants none; the sender of another would wait for its deadline. */
void rpc_request_drop(struct rpc_request *request);
/* True once the connection is gone: nobody waits for the reply. Any thread. */
bool rpc_request_is_orphaned(const struct rpc_request *request);
/* "127.0.0.1:50002" */
const char *rpc_request_peer(const struct rpc_request *request);
/* False with WIRE_MORE_TO_COME: a reply is accepted and thrown away. */
bool rpc_request_wants_reply(const struct rpc_request *request);

#endif
