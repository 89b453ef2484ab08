#include "tests/bench/rpc/bench_rpc.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "rpc/client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SAMPLES_MAX = 1 << 20,
    LANES_MAX = 256,
};

static uint32_t samples_ns[SAMPLES_MAX]; /* latencies; the first so many */
static _Atomic uint64_t done;
static int64_t end_ns;

static void record(int64_t start_ns)
{
    uint64_t at = atomic_fetch_add_explicit(&done, 1, memory_order_relaxed);
    if (at < SAMPLES_MAX)
        samples_ns[at] = (uint32_t)(clock_now_ns() - start_ns);
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int64_t begin(double seconds)
{
    atomic_store(&done, 0);
    int64_t start_ns = clock_now_ns();
    end_ns = start_ns + (int64_t)(seconds * 1e9);
    return start_ns;
}

static void finish(int64_t start_ns, struct result *out)
{
    uint64_t count = atomic_load(&done);
    out->done = count;
    out->seconds = (double)(clock_now_ns() - start_ns) / 1e9;
    if (count > SAMPLES_MAX)
        count = SAMPLES_MAX;
    qsort(samples_ns, count, sizeof samples_ns[0], compare_u32);
    if (count > 0) {
        out->p50_us = samples_ns[count / 2] / 1e3;
        out->p99_us = samples_ns[count * 99 / 100] / 1e3;
    }
}

static void die(const char *what)
{
    fprintf(stderr, "bench-rpc: %s\n", what);
    exit(1);
}

struct wire_frame *bench_message(void)
{
    bson_t doc;
    bson_init(&doc);
    char filler[MESSAGE_BYTES - 60] = {0};
    memset(filler, 'x', sizeof filler - 1);
    BSON_APPEND_UTF8(&doc, "find", "collection");
    BSON_APPEND_UTF8(&doc, "filler", filler);
    struct wire_frame *frame = wire_frame_of_doc(bdoc_of(&doc));
    bson_destroy(&doc);
    return frame;
}

static int dial(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    if (fd < 0 || connect(fd, (struct sockaddr *)&in, sizeof in) != 0)
        die("cannot connect");
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void write_all(int fd, const uint8_t *data, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, data, len, MSG_NOSIGNAL);
        if (sent <= 0)
            die("cannot send");
        data += sent;
        len -= (size_t)sent;
    }
}

void load_tcp_one(uint16_t port, unsigned outstanding, double seconds, struct result *out)
{
    static uint8_t burst[LANES_MAX * 2 * MESSAGE_BYTES];
    static uint8_t in[256 << 10];
    struct wire_frame *frame = bench_message();
    for (unsigned i = 0; i < outstanding; i++)
        memcpy(burst + (size_t)i * frame->len, frame->data, frame->len);
    int fd = dial(port);
    int64_t start_ns = begin(seconds);
    write_all(fd, burst, (size_t)frame->len * outstanding);
    size_t have = 0;
    int64_t sent_ns = start_ns;
    while (clock_now_ns() < end_ns) {
        ssize_t got = recv(fd, in, sizeof in, 0);
        if (got <= 0)
            die("connection lost");
        have += (size_t)got;
        size_t whole = have / frame->len;
        have %= frame->len;
        for (size_t i = 0; i < whole; i++)
            record(sent_ns);
        sent_ns = clock_now_ns();
        write_all(fd, burst, whole * frame->len);
    }
    finish(start_ns, out);
    if (outstanding > 1)
        out->p50_us = out->p99_us = 0; /* a burst has no latency of its own */
    close(fd);
    wire_frame_unref(frame);
}

struct lane {
    int fd;
    size_t have;
    int64_t sent_ns;
};

void load_tcp_many(uint16_t port, unsigned conns, double seconds, struct result *out)
{
    static struct lane lanes[LANES_MAX];
    static uint8_t in[64 << 10];
    struct wire_frame *frame = bench_message();
    int set = epoll_create1(EPOLL_CLOEXEC);
    for (unsigned i = 0; i < conns; i++) {
        lanes[i] = (struct lane){.fd = dial(port)};
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &lanes[i]};
        epoll_ctl(set, EPOLL_CTL_ADD, lanes[i].fd, &event);
    }
    int64_t start_ns = begin(seconds);
    for (unsigned i = 0; i < conns; i++) {
        lanes[i].sent_ns = clock_now_ns();
        write_all(lanes[i].fd, frame->data, frame->len);
    }
    while (clock_now_ns() < end_ns) {
        struct epoll_event events[LANES_MAX];
        int count = epoll_wait(set, events, LANES_MAX, 100);
        for (int i = 0; i < count; i++) {
            struct lane *lane = events[i].data.ptr;
            ssize_t got = recv(lane->fd, in, sizeof in, 0);
            if (got <= 0)
                die("connection lost");
            lane->have += (size_t)got;
            if (lane->have < frame->len)
                continue;
            lane->have -= frame->len;
            record(lane->sent_ns);
            lane->sent_ns = clock_now_ns();
            write_all(lane->fd, frame->data, frame->len);
        }
    }
    finish(start_ns, out);
    for (unsigned i = 0; i < conns; i++)
        close(lanes[i].fd);
    close(set);
    wire_frame_unref(frame);
}

struct rpc_lane {
    struct rpc_call call; /* first: the callback finds the lane by it */
    struct rpc_client *client;
    const char *address;
    struct wire_frame *message;
    int64_t sent_ns;
    atomic_uint *running;
};

static struct bdoc body_of(const struct wire_frame *message)
{
    return (struct bdoc){.data = message->data + 21, .len = message->len - 21};
}

static void lane_start(struct rpc_lane *lane);

static void lane_done(struct rpc_call *call)
{
    struct rpc_lane *lane = (struct rpc_lane *)call;
    if (call->outcome != RPC_REPLY)
        die(call->err_text);
    rpc_call_deinit(call);
    record(lane->sent_ns);
    if (clock_now_ns() < end_ns)
        lane_start(lane);
    else
        atomic_fetch_sub(lane->running, 1);
}

static void lane_start(struct rpc_lane *lane)
{
    rpc_call_init(&lane->call, lane->client, deadline_after_ms(10000));
    lane->call.done = lane_done;
    lane->sent_ns = clock_now_ns();
    rpc_call_start(&lane->call, lane->address, &(struct rpc_body){.body = body_of(lane->message)});
}

static struct rpc_client *client_for(uint16_t port, char address[64], struct wire_frame *message)
{
    struct rpc_client *client = rpc_client_new(&(struct rpc_client_options){.name = "bench"});
    struct rpc_call call;
    struct err err;
    snprintf(address, 64, "127.0.0.1:%u", port);
    if (!rpc_call_run(&call, client, address, body_of(message), deadline_after_ms(5000), &err))
        die(err.msg);
    rpc_call_deinit(&call);
    return client;
}

void load_rpc_callback(uint16_t port, unsigned outstanding, double seconds, struct result *out)
{
    static struct rpc_lane lanes[LANES_MAX];
    char address[64];
    struct wire_frame *message = bench_message();
    struct rpc_client *client = client_for(port, address, message);
    atomic_uint running = outstanding;
    int64_t start_ns = begin(seconds);
    for (unsigned i = 0; i < outstanding; i++) {
        lanes[i] = (struct rpc_lane){.client = client, .address = address, .message = message, .running = &running};
        lane_start(&lanes[i]);
    }
    while (atomic_load(&running) > 0)
        clock_sleep_ms(1);
    finish(start_ns, out);
    rpc_client_free(client);
    wire_frame_unref(message);
}

static void *lane_thread(void *arg)
{
    struct rpc_lane *lane = arg;
    while (clock_now_ns() < end_ns) {
        struct err err;
        lane->sent_ns = clock_now_ns();
        if (!rpc_call_run(&lane->call, lane->client, lane->address, body_of(lane->message), deadline_after_ms(10000),
                          &err))
            die(err.msg);
        rpc_call_deinit(&lane->call);
        record(lane->sent_ns);
    }
    return NULL;
}

void load_rpc_threads(uint16_t port, unsigned outstanding, double seconds, struct result *out)
{
    static struct rpc_lane lanes[LANES_MAX];
    pthread_t threads[LANES_MAX];
    char address[64];
    struct wire_frame *message = bench_message();
    struct rpc_client *client = client_for(port, address, message);
    int64_t start_ns = begin(seconds);
    for (unsigned i = 0; i < outstanding; i++) {
        lanes[i] = (struct rpc_lane){.client = client, .address = address, .message = message};
        thread_start(&threads[i], "lane", lane_thread, &lanes[i]);
    }
    for (unsigned i = 0; i < outstanding; i++)
        thread_join(threads[i]);
    finish(start_ns, out);
    rpc_client_free(client);
    wire_frame_unref(message);
}

unsigned idle_open(uint16_t port, unsigned conns)
{
    struct wire_frame *frame = bench_message();
    uint8_t in[1024];
    for (unsigned i = 0; i < conns; i++) {
        int fd = dial(port); /* stays open until the process ends */
        write_all(fd, frame->data, frame->len);
        size_t have = 0;
        while (have < frame->len) {
            ssize_t got = recv(fd, in, sizeof in, 0);
            if (got <= 0)
                die("connection lost");
            have += (size_t)got;
        }
    }
    wire_frame_unref(frame);
    return conns;
}
