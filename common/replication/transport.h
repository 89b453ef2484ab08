/* The connections between the members of a group: plain TCP through libuv, behind the interface that the consensus
 * library asks for, and beside it a small question of our own ("what is your term?") for linearizable reads. Raft
 * thread only.
 *
 * A connection carries one direction. Whoever opened it sends, little-endian:
 *    0  u32 magic   4  u8 version   5  u8 purpose   6  u16 bytes of the set's name
 *    8  u64 sender's id   16  u64 id of the member that it wants   24  u16 bytes of its address   26  6 zeros
 *   32  the set's name, the sender's address
 * and gets  0  u32 magic   4  u8 version   5  u8 verdict   6  u16 zero   8  u64 id of the answering member.
 * After verdict 0 a connection for PURPOSE_RAFT belongs to the library. On one for PURPOSE_TERM, 16-byte questions
 * {u64 sequence, u64 term of the asker} are answered by {u64 sequence, u64 own term}. Members of another set, and a
 * sender that wants another member, are refused. */
#ifndef SHERD_REPLICATION_TRANSPORT_H
#define SHERD_REPLICATION_TRANSPORT_H

#include "replication/replica.h"

#include <raft.h>
#include <raft/uv.h>
#include <uv.h>

enum {
    TRANSPORT_MAGIC = 0x52485331, /* "1SHR" in the file of bytes */
    TRANSPORT_VERSION = 1,
    TRANSPORT_HELLO_BYTES = 32,
    TRANSPORT_ANSWER_BYTES = 16,
    TRANSPORT_TERM_BYTES = 16,
    TRANSPORT_HANDSHAKE_MS = 5000, /* connecting and the exchange above, together */
    TRANSPORT_ACCEPTED_MAX = 64,   /* connections that are not the library's; more are closed */
    TRANSPORT_BACKLOG = 128,
    TRANSPORT_UNSENT_MAX = 64 << 10, /* a peer that takes no questions any more is dropped at this many bytes */
};

enum transport_purpose {
    PURPOSE_RAFT = 1,
    PURPOSE_TERM = 2,
};

enum transport_verdict {
    VERDICT_WELCOME = 0,
    VERDICT_OTHER_VERSION = 1,
    VERDICT_OTHER_SET = 2,
    VERDICT_OTHER_MEMBER = 3,
};

struct transport_conn;

struct transport_hooks {
    void *arg;
    uint64_t (*current_term)(void *arg);
    /* A member answered transport_ask_term. */
    void (*on_term)(void *arg, uint64_t peer, uint64_t sequence, uint64_t term);
};

struct transport {
    struct raft_uv_transport base; /* what the library sees; base.impl is this struct */
    uv_loop_t *loop;
    uint64_t id;
    char address[REPLICA_ADDRESS_MAX];
    char set_name[REPLICA_SET_NAME_MAX];
    char bind_host[REPLICA_ADDRESS_MAX]; /* "": every interface */
    struct transport_hooks hooks;
    raft_uv_accept_cb accept_cb;
    raft_uv_transport_close_cb close_cb; /* set once the library wants it closed */
    uv_tcp_t listener;
    uv_timer_t sweep; /* ends handshakes that take too long */
    bool listening;
    bool closing;
    unsigned open_handles;        /* of ours, until their close callback */
    unsigned accepted;            /* incoming connections that are ours */
    struct transport_conn *conns; /* all that are not the library's */
};

/* No handle is opened before the library calls listen. `set_name` and `bind_host` are copied; bind_host may be NULL. */
void transport_init(struct transport *transport, uv_loop_t *loop, const char *set_name, const char *bind_host,
                    const struct transport_hooks *hooks);
/* Sends the question, or begins to connect; then it is lost and the caller asks again later. */
void transport_ask_term(struct transport *transport, uint64_t peer, const char *address, uint64_t sequence,
                        uint64_t term);

#endif
