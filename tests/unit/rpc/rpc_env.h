/* What the rpc tests share: a server whose handler answers on a pool, and raw sockets that misbehave. */
#ifndef SHERD_TESTS_UNIT_RPC_RPC_ENV_H
#define SHERD_TESTS_UNIT_RPC_RPC_ENV_H

#include "tests/unit/cmocka_all.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "rpc/client.h"
#include "rpc/protocol.h"
#include "rpc/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static inline struct rpc_server *env_server(void (*handle)(void *arg, struct rpc_request *request), void *arg,
                                            char address[64])
{
    struct rpc_server *server = NULL;
    struct err err;
    struct rpc_server_options options = {.handle = handle, .arg = arg};
    if (!rpc_server_start(&options, &server, &err))
        fail_msg("%s", err.msg);
    snprintf(address, 64, "127.0.0.1:%u", rpc_server_port(server));
    return server;
}

static inline void env_server_end(struct rpc_server *server)
{
    rpc_server_stop(server);
    rpc_server_free(server);
}

static inline struct rpc_client *env_client(void)
{
    return rpc_client_new(&(struct rpc_client_options){.name = "test"});
}

/* {<name>: <value>} in the caller's bson_t. */
static inline struct bdoc env_doc(bson_t *doc, const char *name, int64_t value)
{
    bson_init(doc);
    BSON_APPEND_INT64(doc, name, value);
    return bdoc_of(doc);
}

/* Answers with the request's own body and, when there is one, the bytes of its first sequence as binary. */
static inline void env_echo(void *arg, struct rpc_request *request)
{
    (void)arg;
    bson_t reply;
    bdoc_to_bson(request->msg.body, &reply);
    bson_t copy;
    bson_copy_to(&reply, &copy);
    if (request->msg.sequence_count > 0)
        BSON_APPEND_BINARY(&copy, "sequence", BSON_SUBTYPE_BINARY, request->msg.sequences[0].data,
                           request->msg.sequences[0].len);
    rpc_request_reply_doc(request, bdoc_of(&copy));
    bson_destroy(&copy);
}

/* A plain listening socket; *address gets where. */
static inline int env_listen(char address[64])
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    assert_int_equal(bind(fd, (struct sockaddr *)&in, len), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    snprintf(address, 64, "127.0.0.1:%u", ntohs(in.sin_port));
    return fd;
}

static inline int env_connect(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

static inline void env_write(int fd, const void *data, size_t len)
{
    assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* Reads one whole message; false when the connection ends. */
static inline bool env_read_message(int fd, struct buf *out)
{
    buf_clear(out);
    for (size_t want = 4; out->len < want;) {
        ssize_t got = recv(fd, buf_reserve(out, want), want - out->len, 0);
        if (got <= 0)
            return false;
        out->len += (size_t)got;
        if (out->len >= 4)
            want = load_le32(out->data);
    }
    return true;
}

/* True when the other side closes without sending another byte. */
static inline bool env_is_closed_by_peer(int fd)
{
    char byte;
    return recv(fd, &byte, 1, 0) <= 0;
}

static inline void env_write_doc(int fd, uint32_t request_id, uint32_t response_to, const bson_t *doc)
{
    struct wire_frame *frame = wire_frame_of_doc(bdoc_of(doc));
    wire_set_ids(frame->data, request_id, response_to);
    env_write(fd, frame->data, frame->len);
    wire_frame_unref(frame);
}

/* The server's side of the hello on a plain socket. */
static inline void env_greet(int fd)
{
    struct buf in = BUF_INIT;
    assert_true(env_read_message(fd, &in));
    bson_t doc;
    bson_init(&doc);
    BSON_APPEND_DOUBLE(&doc, "ok", 1.0);
    BSON_APPEND_INT32(&doc, "version", RPC_PROTOCOL_VERSION);
    env_write_doc(fd, 1, load_le32(in.data + 4), &doc);
    bson_destroy(&doc);
    buf_deinit(&in);
}

/* The client's side of it. */
static inline void env_hello(int fd, int32_t version)
{
    bson_t doc;
    bson_init(&doc);
    BSON_APPEND_INT32(&doc, RPC_HELLO_FIELD, 1);
    BSON_APPEND_INT32(&doc, "version", version);
    env_write_doc(fd, 1, 0, &doc);
    bson_destroy(&doc);
}

#endif
