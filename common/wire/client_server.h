/* The server side of drivers' connections, for routerd. One net loop (a thread that this starts) accepts, reads whole
 * messages and makes each a job of the worker pool; the handler runs on a worker and may block. A connection has one
 * request under way at a time: what the client pipelines waits in the socket. The worker writes the reply itself when
 * the socket takes it at once; the loop finishes the rest. An idle connection owns no thread and no read buffer. */
#ifndef SHERD_WIRE_CLIENT_SERVER_H
#define SHERD_WIRE_CLIENT_SERVER_H

#include "async/pool.h"
#include "base/err.h"
#include "wire/frame.h"
#include "wire/message.h"

struct client_server;
struct client_conn;

/* One request. Lives from the handler's call until client_request_reply or client_request_drop. */
struct client_request {
    struct pool_job job;      /* free for the handler's use once it runs */
    struct client_conn *conn; /* lives at least as long as the request */
    struct wire_frame *frame; /* the message's bytes, decompressed; keep them longer with a reference */
    struct wire_msg msg;      /* views into `frame`; OP_MSG or OP_QUERY, validated */
    bool wants_reply;         /* false with WIRE_MORE_TO_COME: the reply is dropped, but must be given all the same */
    int compressor;           /* enum wire_compressor of the request: the reply is compressed alike */
    int64_t received_ms;      /* clock_now_ms() when it was complete */
};

struct client_server_options {
    const char *bind; /* "127.0.0.1", "::", ...: an address, no name; NULL: 127.0.0.1 */
    uint16_t port;    /* 0: the system chooses; see client_server_port */
    unsigned max_conns;
    int64_t idle_timeout_ms;    /* a connection without a request for that long is closed; 0: never */
    int64_t message_timeout_ms; /* a message or a reply that makes no progress for that long closes it; 0: default */
    struct pool *pool;          /* borrowed; must outlive the server */
    /* On a worker. Must answer the request exactly once, now or later, from any thread. */
    void (*handle)(void *arg, struct client_request *request);
    /* On the loop; any may be NULL. on_close: the last moment of the connection, after its last request was answered;
     * the place to free client_conn_data. */
    void (*on_open)(void *arg, struct client_conn *conn);
    void (*on_close)(void *arg, struct client_conn *conn);
    void *arg;
};

enum { CLIENT_SERVER_MESSAGE_TIMEOUT_MS = 30000 };

struct client_server_stats {
    unsigned conns;
    uint64_t accepted;
    uint64_t refused; /* over max_conns */
    uint64_t requests;
    uint64_t bytes_in;
    uint64_t bytes_out;
};

/* Binds, listens and starts the loop thread. The caller ends it with client_server_stop and client_server_free. */
bool client_server_start(const struct client_server_options *options, struct client_server **out,
                         struct err *err) ERR_WARN_UNUSED;
uint16_t client_server_port(const struct client_server *server);
/* Stops accepting and reading; requests under way may still be answered for up to `grace_ms`; then all connections are
 * closed. Blocks until every request has been answered (replies to closed connections are dropped). Not from a worker.
 */
void client_server_stop(struct client_server *server, int64_t grace_ms);
/* After client_server_stop. Accepts NULL. */
void client_server_free(struct client_server *server);
void client_server_stats_get(const struct client_server *server, struct client_server_stats *out);

/* Takes the reference to `reply`, a complete OP_MSG without checksum (the ids are filled in here; the frame must be the
 * caller's alone), and ends the request: the caller may not touch it again. An OP_QUERY's reply is turned into an
 * OP_REPLY. Never blocks. Any thread. */
void client_request_reply(struct client_request *request, struct wire_frame *reply);
void client_request_reply_doc(struct client_request *request, struct bdoc body);
/* Ends the request without a reply and closes the connection (failCommand's closeConnection, a protocol error). */
void client_request_drop(struct client_request *request);

/* Unique in the process, from 1. */
uint64_t client_conn_id(const struct client_conn *conn);
/* "127.0.0.1:50002" */
const char *client_conn_peer(const struct client_conn *conn);
/* True once the client has gone or the server is stopping; a worker polls it to give up early. Any thread. */
bool client_conn_is_closed(const struct client_conn *conn);
/* The daemon's own state of the connection (session, user, app name); set and used by the handler of its one request.
 */
void client_conn_set_data(struct client_conn *conn, void *data);
void *client_conn_data(const struct client_conn *conn);

#endif
