/* Requests to other daemons. One client per process keeps one connection per address ("host:port", names and [IPv6]
 * allowed), made on first use and remade with a growing pause after a failure. Any number of calls share it. Any thread
 * may start and wait; callbacks run on nng's threads and only hand over. */
#ifndef SHERD_RPC_CLIENT_H
#define SHERD_RPC_CLIENT_H

#include "base/err.h"
#include "wire/frame.h"
#include "wire/message.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rpc_client;
struct rpc_call;
struct rpc_peer;
struct outq;

struct rpc_client_options {
    const char *name;            /* of this daemon, for the other side's log: "routerd", "shardd"; copied */
    unsigned max_calls_per_peer; /* 0: RPC_CLIENT_MAX_CALLS; more are refused as "not sent" */
    size_t max_bytes_per_peer;   /* of requests waiting to be written; 0: RPC_CLIENT_MAX_BYTES */
};

enum {
    RPC_CLIENT_MAX_CALLS = 20000,
    RPC_CLIENT_MAX_BYTES = 256 << 20,
    RPC_CLIENT_MAX_PEERS = 4096,
    RPC_ADDRESS_MAX = 300, /* bytes of "host:port", with the NUL */
};

enum rpc_outcome {
    RPC_PENDING,
    RPC_REPLY,    /* `reply` holds the answer, which may itself say ok: 0 */
    RPC_NOT_SENT, /* the other side has not seen the request: any request may be tried again */
    RPC_UNKNOWN,  /* it may or may not have been carried out: connection lost, or deadline passed after sending */
};

/* A kind-1 section of a request: whole documents, in pieces. */
struct rpc_sequence {
    const char *name;
    const struct wire_piece *pieces;
    unsigned piece_count;
};

/* What is sent. All borrowed for rpc_call_start only, but for pieces with an owner, which get a reference. */
struct rpc_body {
    struct bdoc body; /* unless body_pieces is set */
    const struct wire_piece
        *body_pieces; /* runs of bytes that make up one BSON document, its length and final NUL included */
    unsigned body_piece_count;
    const struct rpc_sequence *sequences;
    unsigned sequence_count;
    bool no_reply; /* WIRE_MORE_TO_COME: the call is over (RPC_REPLY without a reply) when it is queued */
};

/* Lets one thread start several calls and wait for them. Caller's storage; must outlive its calls. */
struct rpc_waiter {
    uint32_t started;          /* calls; the waiting thread's own */
    _Atomic uint32_t finished; /* calls that are over; a futex */
};

/* One call, in the caller's storage. Fields above `client` are set before rpc_call_start; outcome, err and reply are
 * valid once the call is over. */
struct rpc_call {
    int64_t deadline_ms;       /* base/clock.h; cut to RPC_MAX_WAIT_MS from now */
    struct rpc_waiter *waiter; /* whom to tell; NULL: nobody */
    /* Instead of a waiter: called once when the call is over, on a thread of nng or rpc or inside rpc_call_start or
     * rpc_call_cancel. Must not block; may free the call. */
    void (*done)(struct rpc_call *call);
    void *arg; /* the callback's */

    enum rpc_outcome outcome;
    int32_t err_code;         /* why there is no reply: ERR_HostUnreachable, ERR_NetworkTimeout, ... */
    char err_text[128];       /* see rpc_call_check */
    struct wire_frame *frame; /* the reply's bytes; rpc_call_deinit releases them unless taken */
    struct wire_msg reply;    /* views into `frame` */

    struct rpc_client *client;
    struct rpc_peer *peer;  /* internal from here: */
    struct rpc_call *next;  /* in the peer's hash chain, or in a list of calls that end */
    struct rpc_call *older; /* in the peer's list by age */
    struct rpc_call *newer;
    struct outq *unsent; /* the request while there is no connection */
    uint64_t position;   /* where the request lies in the connection's bytes */
    uint32_t request_id;
    bool no_reply;
    _Atomic uint8_t state; /* new, waiting for a connection, queued to one, over */
};

enum { RPC_MAX_WAIT_MS = 3600 * 1000 };

struct rpc_client *rpc_client_new(const struct rpc_client_options *options);
/* Ends all calls (RPC_UNKNOWN or RPC_NOT_SENT), closes the connections, waits for callbacks. Accepts NULL. */
void rpc_client_free(struct rpc_client *client);

void rpc_waiter_init(struct rpc_waiter *waiter);
/* Blocks until all calls started with it are over: by their deadlines at the latest. */
void rpc_waiter_wait_all(struct rpc_waiter *waiter);
/* Blocks until more than `seen` calls are over (pass the number handled so far), or until the deadline. Returns the
 * number that are over; find them with rpc_call_is_over. */
uint32_t rpc_waiter_wait_any(struct rpc_waiter *waiter, uint32_t seen, int64_t deadline_ms);

/* Zeroes the call and sets client and deadline. */
void rpc_call_init(struct rpc_call *call, struct rpc_client *client, int64_t deadline_ms);
/* Sends the request to `address` ("host:port" or "[::1]:port"; copied). Never blocks: the connection is made in the
 * background, the request waits for it within its deadline. Every failure is the call's outcome. Until the call is over
 * its storage must stay. */
void rpc_call_start(struct rpc_call *call, const char *address, const struct rpc_body *body);
/* Ends a call early: RPC_NOT_SENT or RPC_UNKNOWN, unless it is over already. A reply that comes later is thrown away. A
 * call with a waiter or without anybody to tell is over when this returns. Not for a call whose callback may free it
 * meanwhile. */
void rpc_call_cancel(struct rpc_call *call);
bool rpc_call_is_over(const struct rpc_call *call);
/* Releases the reply. The call must be over (or never started). */
void rpc_call_deinit(struct rpc_call *call);
/* Moves the reply's bytes to the caller, who unrefs them; call->reply stays valid with them. */
struct wire_frame *rpc_call_take_reply(struct rpc_call *call);
/* For an outcome other than RPC_REPLY: fills `err` with code and message, returns false. For RPC_REPLY returns true;
 * whether the reply says ok is the caller's business (command/reply.h, command_reply_check). */
bool rpc_call_check(const struct rpc_call *call, struct err *err) ERR_WARN_UNUSED;

/* Init, start, wait and check in one; blocks until the deadline at most. `call` holds the reply; the caller deinits it
 * whatever the result. */
bool rpc_call_run(struct rpc_call *call, struct rpc_client *client, const char *address, struct bdoc body,
                  int64_t deadline_ms, struct err *err) ERR_WARN_UNUSED;

struct rpc_client_stats {
    unsigned peers;
    unsigned connected;
    unsigned calls;    /* under way */
    uint64_t connects; /* connections made so far */
    uint64_t requests;
    uint64_t replies;
};
void rpc_client_stats_get(struct rpc_client *client, struct rpc_client_stats *out);

#endif
