/* Connections that belong to the transport, not (yet) to the library. Used by transport.c and transport_conn.c. */
#ifndef SHERD_REPLICATION_TRANSPORT_CONN_H
#define SHERD_REPLICATION_TRANSPORT_CONN_H

#include "replication/transport.h"

/*   outgoing: RESOLVING -> CONNECTING (each address in turn) -> HANDSHAKE -> the library's, or TERMS
 *   incoming: HANDSHAKE -> the library's, or TERMS */
enum conn_state {
    CONN_RESOLVING,
    CONN_CONNECTING,
    CONN_HANDSHAKE,
    CONN_TERMS,
    CONN_DEAD, /* closed; freed when its last request has come back */
};

struct transport_conn {
    struct transport_conn *next, **link; /* in transport->conns */
    struct transport *transport;
    enum conn_state state;
    bool incoming;
    enum transport_purpose purpose;
    unsigned requests;   /* libuv requests under way that point into this struct */
    int64_t deadline_ms; /* of the handshake */
    uint64_t peer;       /* member at the other end; incoming: as it says */
    char peer_address[REPLICA_ADDRESS_MAX];
    uv_tcp_t *tcp; /* from raft_malloc: the library frees it when it gets it */
    uv_getaddrinfo_t resolve;
    struct addrinfo *addresses, *next_address;
    uv_connect_t connect;
    uv_write_t write;                     /* of the handshake */
    struct raft_uv_connect *raft_request; /* outgoing for the library: to be answered exactly once */
    raft_uv_connect_cb raft_cb;
    size_t got, want; /* bytes of `in` */
    uint8_t in[TRANSPORT_HELLO_BYTES + REPLICA_SET_NAME_MAX + REPLICA_ADDRESS_MAX];
    uint8_t out[TRANSPORT_HELLO_BYTES + REPLICA_SET_NAME_MAX + REPLICA_ADDRESS_MAX];
};

/* Takes a connection that waits at the listener. */
void conn_accept(struct transport *transport);
/* Begins to connect; the answer comes later through `cb` (PURPOSE_RAFT) or not at all. */
struct transport_conn *conn_open(struct transport *transport, enum transport_purpose purpose, uint64_t peer,
                                 const char *address, struct raft_uv_connect *request, raft_uv_connect_cb cb);
/* `status` is the library's code for the one who waits for the connection. */
void conn_close(struct transport_conn *conn, int status);
void conn_send_term(struct transport_conn *conn, uint64_t sequence, uint64_t term);
/* transport.c: closes done, perhaps the last one. */
void transport_handle_closed(struct transport *transport);

#endif
