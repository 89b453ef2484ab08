/* What two daemons say to each other below the requests. Every frame is an OP_MSG. The client's first frame is
 *   {$sherdHello: 1, version: <int32>, name: "routerd"}
 * and the server answers {ok: 1.0, version: <int32>}; a server that doesn't speak the version closes. Afterwards the
 * client sends requests, and {$sherdPing: 1} when it hears nothing, which is answered by {ok: 1.0} on nng's thread. */
#ifndef SHERD_RPC_PROTOCOL_H
#define SHERD_RPC_PROTOCOL_H

#define RPC_HELLO_FIELD "$sherdHello"
#define RPC_PING_FIELD  "$sherdPing"

enum {
    RPC_PROTOCOL_VERSION = 1,
    RPC_HELLO_MAX_BYTES = 4096, /* a first frame that is longer closes the connection unread */
    RPC_HELLO_TIMEOUT_MS = 5000,
    RPC_DIAL_TIMEOUT_MS = 3000,
    RPC_PING_AFTER_MS = 1000,  /* of silence while requests are pending */
    RPC_SILENCE_MAX_MS = 5000, /* then the connection is given up */
    RPC_IDLE_PING_MS = 15000,  /* without requests pending, so that a server can tell an idle client from a lost one */
    RPC_SERVER_SILENCE_MAX_MS = 60000, /* a server gives up a connection from which nothing came for that long */
    RPC_RECONNECT_MIN_MS = 20,         /* pause after a failure; doubles up to: */
    RPC_RECONNECT_MAX_MS = 1000,
};

#endif
