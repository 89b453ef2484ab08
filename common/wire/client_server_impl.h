/* Inside of the client server: client_server.c (loop, accepting, time limits), client_conn.c (one connection's bytes),
 * client_request.c (from bytes to a request and from a reply to bytes).
 *
 * The loop thread owns every connection's reading side and its end; workers write. Sockets are in an epoll set of our
 * own, edge-triggered, that the libuv loop watches: a worker neither touches the set nor wakes the loop for an ordinary
 * request.
 *
 *          whole message read            reply written, nothing more to read
 *   idle ---------------------> busy ------------------------------------> idle
 *    |                           |  reply written partly: the loop writes the rest, still busy
 *    | error, end, time limit    | the same; the end waits for the request
 *    +-------> closed <----------+                                                          */
#ifndef SHERD_WIRE_CLIENT_SERVER_IMPL_H
#define SHERD_WIRE_CLIENT_SERVER_IMPL_H

#include "async/loop.h"
#include "wire/client_server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

enum {
    CLIENT_READ_BYTES = 64 << 10,      /* the loop's read buffer, shared by all connections */
    CLIENT_BELIEVED_BYTES = 256 << 10, /* memory taken for an announced length before the bytes come */
    CLIENT_PEER_MAX = 56,              /* "[ipv6]:port" */
    CLIENT_REFUSING_MAX = 100,         /* connections over the limit that are kept until they can be told so */
    CLIENT_REFUSING_MS = 5000,         /* for so long */
};

struct client_conn {
    struct client_server *server;
    struct client_conn *next; /* in server->conns; the loop's */
    struct client_conn *prev;
    uint64_t id;
    void *data;            /* client_conn_set_data */
    struct loop_mail mail; /* "look at me"; posted at most once at a time */
    atomic_bool gone;      /* the client has left, or will be made to */
    bool refusing;         /* over max_conns: the first message gets an error */
    bool removed;          /* no longer in the list; the loop's */

    /* Reading; the loop's. */
    struct wire_frame *frame;          /* the message that is coming in; NULL: its header isn't complete */
    uint32_t frame_len;                /* bytes of it that are there */
    uint32_t frame_room;               /* bytes that there is memory for */
    uint32_t header_len;               /* bytes in `header` */
    uint8_t header[WIRE_HEADER_BYTES]; /* the start of a message */
    struct wire_frame *rest;           /* read too much: the client pipelines. NULL: nothing */
    uint32_t rest_at;                  /* where the unused part of `rest` begins */

    int fd;                 /* open as long as the struct is there: a worker writes without the mutex */
    pthread_mutex_t mutex;  /* of what follows */
    bool busy;              /* a request is under way, until its reply is in the socket */
    bool closing;           /* nothing is read or written any more */
    bool writable;          /* the socket got room while a worker was writing */
    bool readable;          /* the socket may have bytes that no further edge announces */
    bool mailed;            /* `mail` is posted */
    bool close_after;       /* close when the reply is written */
    struct wire_frame *out; /* a reply that the socket didn't take whole */
    uint32_t out_len;       /* bytes of it that are written */
    int64_t active_ms;      /* clock_now_ms() of the last progress */
    char peer[CLIENT_PEER_MAX];
};

struct client_server {
    struct client_server_options options;
    struct loop *loop;
    pthread_t thread;
    uint16_t port;
    int listener; /* -1 once stopped */
    int epoll;    /* all sockets */
    int spare;    /* a descriptor to give up when there are no others */
    uv_poll_t poll;
    struct loop_timer *timer;
    struct loop_mail stop_mail;
    struct client_conn *conns;
    unsigned refusing; /* connections over max_conns among them */
    bool stopped;      /* client_server_stop was called */
    int64_t grace_ms;  /* its argument; written before stop_mail is posted */
    int64_t force_ms;  /* the loop's; when stopping: close what is busy then; 0: not stopping */
    uint8_t buffer[CLIENT_READ_BYTES];
    _Atomic unsigned conn_count; /* without those being refused */
    _Atomic uint64_t next_id;
    _Atomic uint64_t accepted;
    _Atomic uint64_t refused;
    _Atomic uint64_t requests;
    _Atomic uint64_t bytes_in;
    _Atomic uint64_t bytes_out;
};

/* client_conn.c. All on the loop unless said otherwise. */
void client_conn_open(struct client_server *server, int fd, const char *peer, bool refusing);
/* The socket reports `events` (epoll's). */
void client_conn_on_events(struct client_conn *conn, uint32_t events);
/* Closes the socket; the connection is freed at once, or when its request has ended. */
void client_conn_close(struct client_conn *conn);
/* Closes it if a time limit has passed. */
void client_conn_check_time(struct client_conn *conn, int64_t now_ms);
/* Any thread: writes the reply (taken; NULL: none) and ends the request that was under way. */
void client_conn_end_request(struct client_conn *conn, struct wire_frame *reply, bool close_after);

/* client_request.c. On the loop: makes the message a request and hands it to the pool. Takes the frame. */
void client_request_submit(struct client_conn *conn, struct wire_frame *frame);

#endif
