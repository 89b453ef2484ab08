/* What the parts of the rpc benchmark share. Servers run in a child process each, loads in the parent. */
#ifndef SHERD_TESTS_BENCH_RPC_BENCH_RPC_H
#define SHERD_TESTS_BENCH_RPC_BENCH_RPC_H

#include "wire/frame.h"

#include <stdint.h>

enum { MESSAGE_BYTES = 300 };

struct result {
    uint64_t done;
    double seconds;
    double p50_us; /* 0 when not measured */
    double p99_us;
    double client_cpu_us; /* per operation */
    double server_cpu_us;
};

/* A server in a child process. */
struct child {
    int pid;
    uint16_t port;
};

/* Forks; `serve` reports its port by report_port and never returns. Before any thread of the parent exists. */
struct child child_start(void (*serve)(int pipe_fd, uint16_t other_port), uint16_t other_port);
void report_port(int pipe_fd, uint16_t port);

/* echo.c: servers. */
void serve_tcp_echo(int pipe_fd, uint16_t other_port);
void serve_rpc_inline(int pipe_fd, uint16_t other_port);
void serve_rpc_pool(int pipe_fd, uint16_t other_port);
void serve_clients(int pipe_fd, uint16_t other_port);
/* Forwards to the rpc server at other_port. */
void serve_router(int pipe_fd, uint16_t other_port);

/* load.c: loads, each for `seconds`. */
/* One connection, `outstanding` requests on it. */
void load_tcp_one(uint16_t port, unsigned outstanding, double seconds, struct result *out);
/* `conns` connections with one request each, driven by one epoll thread. */
void load_tcp_many(uint16_t port, unsigned conns, double seconds, struct result *out);
/* One rpc connection, callbacks start the next call. */
void load_rpc_callback(uint16_t port, unsigned outstanding, double seconds, struct result *out);
/* One rpc connection, a thread per outstanding request that waits. */
void load_rpc_threads(uint16_t port, unsigned outstanding, double seconds, struct result *out);
/* Opens so many connections, one request on each; *kept: how many were opened. Call idle_close afterwards. */
unsigned idle_open(uint16_t port, unsigned conns);

struct wire_frame *bench_message(void);

#endif
