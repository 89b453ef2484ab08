/* Inside of struct rpc_client, for client.c (the registry of peers), call.c (one call's life) and peer.c (the
 * connection to one address). Lock order: peer, then link. Nobody calls back under a lock. */
#ifndef SHERD_RPC_CLIENT_IMPL_H
#define SHERD_RPC_CLIENT_IMPL_H

#include "async/state.h"
#include "base/map.h"
#include "rpc/client.h"
#include "rpc/link.h"
#include "rpc/ticker.h"

#include <pthread.h>

enum { PEER_BUCKETS = 1024 };

enum call_state {
    CALL_NEW,
    CALL_WAITING, /* in its peer's table, the request in `unsent` */
    CALL_QUEUED,  /* in its peer's table, the request given to the link */
    CALL_OVER,
};

/*         start            connected          hello answered
 *  idle ---------> dialing ---------> greeting -------------> ready
 *   ^                 | refused          | closed               | closed
 *   +-----------------+------------------+----------------------+          */
enum peer_state { PEER_IDLE, PEER_DIALING, PEER_GREETING, PEER_READY };

/* One connection of a peer; outlived by nothing of the link. */
struct peer_conn {
    struct rpc_peer *peer;
    struct link *link; /* the owner's reference, dropped when it closed */
};

struct rpc_peer {
    struct rpc_peer *next; /* in client->peers; set once */
    struct rpc_client *client;
    pthread_mutex_t mutex; /* of everything below */
    pthread_cond_t quiet;  /* conn_count went to 0 */
    char address[RPC_ADDRESS_MAX];
    struct state state;     /* enum peer_state */
    struct peer_conn *conn; /* in greeting and ready */
    unsigned conn_count;    /* connections whose link is not freed yet */
    nng_stream_dialer *dialer;
    nng_aio *dial;        /* the attempt under way in dialing */
    int64_t next_dial_ms; /* not before, after a failure */
    int64_t pause_ms;     /* the next pause between attempts */
    int64_t greeted_ms;   /* when the hello was sent */
    int64_t busy_ms;      /* since when there are calls */
    int64_t pinged_ms;    /* last ping; 0: none on this connection */
    bool closing;         /* the client is being freed */
    unsigned call_count;
    struct rpc_call *oldest;
    struct rpc_call *newest;
    struct rpc_call *buckets[PEER_BUCKETS]; /* by request_id */
};

struct rpc_client {
    pthread_mutex_t mutex;          /* of by_address, and of adding to peers */
    struct map by_address;          /* -> struct rpc_peer */
    struct rpc_peer *_Atomic peers; /* all, newest first; only added to */
    unsigned peer_count;            /* under the mutex */
    struct ticker *ticker;          /* deadlines, pings, pauses */
    int64_t planned_ms;             /* the ticker's own: when it wanted to be called */
    struct rpc_client_options options;
    char *name; /* options.name */
    _Atomic uint32_t next_request_id;
    _Atomic uint64_t connects;
    _Atomic uint64_t requests;
    _Atomic uint64_t replies;
};

/* client.c: the peer of an address, made when new; NULL when the address is bad or there are too many. */
struct rpc_peer *client_peer(struct rpc_client *client, const char *address);

/* peer.c. peer_new returns NULL for an address that nng doesn't take. */
struct rpc_peer *peer_new(struct rpc_client *client, const char *address);
/* Ends all calls, refuses new ones, waits for the connection to be gone. */
void peer_stop(struct rpc_peer *peer);
/* After peer_stop and the end of ticks. */
void peer_free(struct rpc_peer *peer);
/* Puts the call into the table and its request on the way; the pieces are the whole message. False: nothing was done,
 * *err_code and text say why it ends as "not sent". */
bool peer_start_call(struct rpc_peer *peer, struct rpc_call *call, const struct wire_piece *pieces, unsigned count);
/* Takes the call out of the table: true when it was there, *sent telling whether its request may have left. */
bool peer_withdraw_call(struct rpc_peer *peer, struct rpc_call *call, bool *sent);
/* Deadlines, pings, dialing. Returns when to be called next. `late`: the ticker overslept, silence means nothing. */
int64_t peer_tick(struct rpc_peer *peer, int64_t now_ms, bool late);

/* peer_calls.c: the table. All under the peer's mutex. */
void calls_add_locked(struct rpc_peer *peer, struct rpc_call *call);
struct rpc_call *calls_find_locked(const struct rpc_peer *peer, uint32_t request_id);
void calls_remove_locked(struct rpc_peer *peer, struct rpc_call *call);
/* Moves what is past its deadline to the list *over (linked by next, outcome set); returns the next deadline. */
int64_t calls_expire_locked(struct rpc_peer *peer, int64_t now_ms, struct rpc_call **over);
/* Moves all to the list. A call whose request has not left on `link` (NULL: there is none to ask) is "not sent", others
 * are unknown. */
void calls_end_all_locked(struct rpc_peer *peer, struct link *link, int32_t code, const char *text,
                          struct rpc_call **over);

/* call.c. Sets why there is no reply. */
void call_fail(struct rpc_call *call, enum rpc_outcome outcome, int32_t code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Tells whoever waits. The call may be gone afterwards. */
void call_complete(struct rpc_call *call);
void call_complete_list(struct rpc_call *over);

#endif
