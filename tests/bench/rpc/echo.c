#include "tests/bench/rpc/bench_rpc.h"

#include "async/pool.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "wire/client_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void die(const char *what)
{
    fprintf(stderr, "bench-rpc: %s\n", what);
    exit(1);
}

static void wait_for_ever(void)
{
    for (;;)
        pause();
}

/* The floor: a thread per connection, blocking reads, everything read is written back. */
static void *echo_thread(void *arg)
{
    int fd = (int)(intptr_t)arg;
    static _Thread_local char buffer[256 << 10];
    for (;;) {
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got <= 0)
            break;
        for (ssize_t at = 0; at < got;) {
            ssize_t sent = send(fd, buffer + at, (size_t)(got - at), MSG_NOSIGNAL);
            if (sent <= 0)
                break;
            at += sent;
        }
    }
    close(fd);
    return NULL;
}

void serve_tcp_echo(int pipe_fd, uint16_t other_port)
{
    (void)other_port;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    if (bind(listener, (struct sockaddr *)&in, len) != 0 || listen(listener, 1024) != 0 ||
        getsockname(listener, (struct sockaddr *)&in, &len) != 0)
        die("cannot listen");
    report_port(pipe_fd, ntohs(in.sin_port));
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        pthread_t thread;
        thread_start(&thread, "echo", echo_thread, (void *)(intptr_t)fd);
        pthread_detach(thread);
    }
}

static struct pool *workers;

static struct pool *make_pool(unsigned threads)
{
    return pool_new(&(struct pool_options){.name = "work", .max_threads = threads, .max_queued = 20000});
}

static void reply_same(struct pool_job *job)
{
    struct rpc_request *request = (struct rpc_request *)job;
    rpc_request_reply_doc(request, request->msg.body);
}

static void handle_inline(void *arg, struct rpc_request *request)
{
    (void)arg;
    reply_same(&request->job);
}

static void handle_pool(void *arg, struct rpc_request *request)
{
    (void)arg;
    request->job.run = reply_same;
    if (!rpc_request_dispatch(request, workers))
        rpc_request_drop(request);
}

static void serve_rpc(int pipe_fd, void (*handle)(void *arg, struct rpc_request *request))
{
    struct rpc_server *server;
    struct err err;
    if (!rpc_server_start(&(struct rpc_server_options){.handle = handle}, &server, &err))
        die(err.msg);
    report_port(pipe_fd, rpc_server_port(server));
    wait_for_ever();
}

void serve_rpc_inline(int pipe_fd, uint16_t other_port)
{
    (void)other_port;
    serve_rpc(pipe_fd, handle_inline);
}

void serve_rpc_pool(int pipe_fd, uint16_t other_port)
{
    (void)other_port;
    workers = make_pool(4);
    serve_rpc(pipe_fd, handle_pool);
}

static void handle_client(void *arg, struct client_request *request)
{
    (void)arg;
    client_request_reply_doc(request, request->msg.body);
}

static struct rpc_client *shard_client;
static char shard_address[64];

/* As a router does it: the shard's reply goes to the client as it is. */
static void handle_routed(void *arg, struct client_request *request)
{
    (void)arg;
    struct rpc_call call;
    struct err err;
    if (!rpc_call_run(&call, shard_client, shard_address, request->msg.body, deadline_after_ms(10000), &err))
        die(err.msg);
    client_request_reply(request, rpc_call_take_reply(&call));
    rpc_call_deinit(&call);
}

static void serve_client_port(int pipe_fd, void (*handle)(void *arg, struct client_request *request))
{
    struct client_server *server;
    struct err err;
    workers = make_pool(256);
    if (!client_server_start(&(struct client_server_options){.max_conns = 30000, .pool = workers, .handle = handle},
                             &server, &err))
        die(err.msg);
    report_port(pipe_fd, client_server_port(server));
    wait_for_ever();
}

void serve_clients(int pipe_fd, uint16_t other_port)
{
    (void)other_port;
    serve_client_port(pipe_fd, handle_client);
}

void serve_router(int pipe_fd, uint16_t other_port)
{
    shard_client = rpc_client_new(&(struct rpc_client_options){.name = "bench"});
    snprintf(shard_address, sizeof shard_address, "127.0.0.1:%u", other_port);
    serve_client_port(pipe_fd, handle_routed);
}
