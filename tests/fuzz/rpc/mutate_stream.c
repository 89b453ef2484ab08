/* Streams of good and broken messages, cut anywhere, to a client server and to an rpc server, with and without a hello.
 * Neither may fall over, leak a connection, or stop serving others. Usage: fuzz_rpc_streams [rounds] [seed] */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "rpc/client.h"
#include "rpc/protocol.h"
#include "rpc/server.h"
#include "tests/fuzz/wire/fuzz_wire.h"
#include "wire/client_server.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DEFAULT_ROUNDS = 400, MESSAGES_MAX = 8 };

static void handle_client(void *arg, struct client_request *request)
{
    (void)arg;
    client_request_reply_doc(request, request->msg.body);
}

static void handle_rpc(void *arg, struct rpc_request *request)
{
    (void)arg;
    rpc_request_reply_doc(request, request->msg.body);
}

static int dial(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&in, sizeof in) == 0);
    return fd;
}

static void append_hello(struct buf *out)
{
    bson_t hello;
    bson_init(&hello);
    BSON_APPEND_INT32(&hello, RPC_HELLO_FIELD, 1);
    BSON_APPEND_INT32(&hello, "version", RPC_PROTOCOL_VERSION);
    size_t start = wire_msg_begin(out, 1, 0, 0);
    wire_msg_body(out, bdoc_of(&hello));
    wire_msg_end(out, start);
    bson_destroy(&hello);
}

/* Sends the bytes in random parts and reads a little now and then; the other side may close at any time. */
static void send_stream(struct prng *prng, uint16_t port, const struct buf *stream)
{
    int fd = dial(port);
    char in[4096];
    for (size_t at = 0; at < stream->len;) {
        size_t part = 1 + prng_below(prng, stream->len - at);
        ssize_t sent = send(fd, stream->data + at, part, MSG_NOSIGNAL);
        if (sent <= 0)
            break;
        at += (size_t)sent;
        if (prng_below(prng, 3) == 0)
            (void)!recv(fd, in, sizeof in, MSG_DONTWAIT);
    }
    close(fd);
}

static void random_stream(struct prng *prng, struct buf *out, bool hello)
{
    if (hello)
        append_hello(out);
    for (uint64_t n = prng_below(prng, MESSAGES_MAX); n > 0; n--) {
        struct wire_frame *frame = seed_message(prng);
        size_t len = frame->len;
        if (prng_below(prng, 3) == 0)
            seed_mutate(prng, frame->data, &len);
        buf_append(out, frame->data, len);
        wire_frame_unref(frame);
    }
}

/* Both servers still answer. */
static void check_alive(struct rpc_client *client, uint16_t rpc_port, uint16_t client_port)
{
    struct rpc_call call;
    struct err err;
    bson_t doc;
    char address[32];
    bson_init(&doc);
    BSON_APPEND_INT32(&doc, "ping", 1);
    snprintf(address, sizeof address, "127.0.0.1:%u", rpc_port);
    CHECK(rpc_call_run(&call, client, address, bdoc_of(&doc), deadline_after_ms(20000), &err));
    rpc_call_deinit(&call);
    struct wire_frame *frame = wire_frame_of_doc(bdoc_of(&doc));
    int fd = dial(client_port);
    char in[256];
    CHECK(send(fd, frame->data, frame->len, MSG_NOSIGNAL) == (ssize_t)frame->len);
    CHECK(recv(fd, in, sizeof in, 0) > 0);
    close(fd);
    wire_frame_unref(frame);
    bson_destroy(&doc);
}

static void run_rounds(long rounds, struct prng *prng, uint16_t rpc_port, uint16_t client_port)
{
    struct rpc_client *client = rpc_client_new(&(struct rpc_client_options){.name = "fuzz"});
    for (long i = 0; i < rounds; i++) {
        struct buf stream = BUF_INIT;
        random_stream(prng, &stream, i % 4 == 0);
        send_stream(prng, i % 2 == 0 ? rpc_port : client_port, &stream);
        buf_deinit(&stream);
        if (i % 50 == 49)
            check_alive(client, rpc_port, client_port);
    }
    rpc_client_free(client);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : DEFAULT_ROUNDS;
    struct prng prng = {argc > 2 ? strtoull(argv[2], NULL, 10) : 1};
    struct err err;
    struct rpc_server *rpc;
    struct client_server *server;
    log_set_level(LOG_LEVEL_ERROR);
    struct pool *pool = pool_new(&(struct pool_options){.name = "work", .max_threads = 4, .max_queued = 1000});
    CHECK(rpc_server_start(&(struct rpc_server_options){.handle = handle_rpc}, &rpc, &err));
    CHECK(client_server_start(&(struct client_server_options){.max_conns = 1000, .pool = pool, .handle = handle_client},
                              &server, &err));
    run_rounds(rounds, &prng, rpc_server_port(rpc), client_server_port(server));
    rpc_server_stop(rpc);
    rpc_server_free(rpc);
    client_server_stop(server, 1000);
    client_server_free(server);
    pool_free(pool);
    printf("%ld rounds\n", rounds);
    return 0;
}
