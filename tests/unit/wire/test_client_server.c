#include "tests/unit/cmocka_all.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/thread.h"
#include "wire/client_server.h"
#include "wire/compress.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

struct env {
    struct pool *pool;
    struct client_server *server;
    atomic_int opened;
    atomic_int closed;
    struct client_request *_Atomic kept; /* by {keep: 1} */
    atomic_int at_once;                  /* requests of one connection under way */
};

static void on_open(void *arg, struct client_conn *conn)
{
    struct env *env = arg;
    atomic_fetch_add(&env->opened, 1);
    client_conn_set_data(conn, mem_alloc(1));
}

static void on_close(void *arg, struct client_conn *conn)
{
    struct env *env = arg;
    atomic_fetch_add(&env->closed, 1);
    mem_free(client_conn_data(conn));
}

/* Commands: {echo: ...}, {keep: 1}, {drop: 1}, {big: n} answers with n bytes. */
static void handle(void *arg, struct client_request *request)
{
    struct env *env = arg;
    assert_int_equal(atomic_fetch_add(&env->at_once, 1) >= 0, 1);
    struct bval val;
    assert_non_null(client_conn_data(request->conn));
    if (bdoc_has(request->msg.body, "keep")) {
        atomic_store(&env->kept, request);
        return;
    }
    if (bdoc_has(request->msg.body, "drop")) {
        client_request_drop(request);
        return;
    }
    if (!bdoc_find(request->msg.body, "big", &val)) {
        client_request_reply_doc(request, request->msg.body);
        return;
    }
    char *text = mem_alloc((size_t)bval_i32(&val) + 1);
    memset(text, 'b', (size_t)bval_i32(&val));
    bson_t doc;
    bson_init(&doc);
    BSON_APPEND_UTF8(&doc, "text", text);
    client_request_reply_doc(request, bdoc_of(&doc));
    bson_destroy(&doc);
    mem_free(text);
}

static void env_start(struct env *env, struct client_server_options options, unsigned threads, unsigned queued)
{
    *env = (struct env){0};
    env->pool = pool_new(&(struct pool_options){.name = "work", .max_threads = threads, .max_queued = queued});
    options.pool = env->pool;
    options.handle = handle;
    options.on_open = on_open;
    options.on_close = on_close;
    options.arg = env;
    if (options.max_conns == 0)
        options.max_conns = 1000;
    struct err err;
    if (!client_server_start(&options, &env->server, &err))
        fail_msg("%s", err.msg);
}

static void env_end(struct env *env)
{
    client_server_stop(env->server, 1000);
    client_server_free(env->server);
    pool_free(env->pool);
    assert_int_equal(atomic_load(&env->opened), atomic_load(&env->closed));
}

static int dial(const struct env *env)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons(client_server_port(env->server))};
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

static void write_all(int fd, const void *data, size_t len)
{
    const uint8_t *bytes = data;
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        assert_true(sent > 0);
        bytes += sent;
        len -= (size_t)sent;
    }
}

static bool read_message(int fd, struct buf *out)
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

static struct wire_frame *command(const char *name, int32_t value, uint32_t id)
{
    bson_t doc;
    bson_init(&doc);
    BSON_APPEND_INT32(&doc, name, value);
    struct wire_frame *frame = wire_frame_of_doc(bdoc_of(&doc));
    wire_set_ids(frame->data, id, 0);
    bson_destroy(&doc);
    return frame;
}

static void send_command(int fd, const char *name, int32_t value, uint32_t id)
{
    struct wire_frame *frame = command(name, value, id);
    write_all(fd, frame->data, frame->len);
    wire_frame_unref(frame);
}

/* Reads a reply to `id` and returns it parsed. */
static struct wire_msg expect_reply(int fd, struct buf *in, uint32_t id)
{
    struct wire_msg msg;
    struct err err;
    assert_true(read_message(fd, in));
    if (!wire_msg_parse(in->data, in->len, WIRE_PARSE_CHECKED, &msg, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(msg.header.response_to, id);
    return msg;
}

static bool is_closed(int fd)
{
    char byte;
    return recv(fd, &byte, 1, 0) <= 0;
}

static void server_answers_on_many_connections(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){0}, 4, 100);
    enum { CONNS = 20 };
    int fds[CONNS];
    struct buf in = BUF_INIT;
    for (int i = 0; i < CONNS; i++)
        fds[i] = dial(&env);
    for (uint32_t round = 0; round < 20; round++) {
        for (int i = 0; i < CONNS; i++)
            send_command(fds[i], "echo", (int32_t)round, round);
        for (int i = 0; i < CONNS; i++) {
            struct wire_msg msg = expect_reply(fds[i], &in, round);
            struct bval val;
            assert_true(bdoc_find(msg.body, "echo", &val));
            assert_int_equal(bval_i32(&val), round);
        }
    }
    struct client_server_stats stats;
    client_server_stats_get(env.server, &stats);
    assert_int_equal(stats.conns, CONNS);
    assert_int_equal(stats.requests, CONNS * 20);
    for (int i = 0; i < CONNS; i++)
        close(fds[i]);
    buf_deinit(&in);
    env_end(&env);
}

/* All requests at once, cut anywhere: the replies come in the order of the requests. */
static void server_pipelined_requests_are_answered_in_order(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){0}, 4, 100);
    struct prng prng = {.state = 7};
    enum { REQUESTS = 300 };
    for (int round = 0; round < 3; round++) {
        int fd = dial(&env);
        struct buf out = BUF_INIT;
        struct buf in = BUF_INIT;
        for (uint32_t i = 0; i < REQUESTS; i++) {
            struct wire_frame *frame = command("echo", (int32_t)i, i);
            buf_append(&out, frame->data, frame->len);
            wire_frame_unref(frame);
        }
        for (size_t at = 0; at < out.len;) {
            size_t part = round == 0 ? out.len : 1 + prng_below(&prng, round == 1 ? 100 : 3000);
            if (part > out.len - at)
                part = out.len - at;
            write_all(fd, out.data + at, part);
            at += part;
        }
        for (uint32_t i = 0; i < REQUESTS; i++)
            expect_reply(fd, &in, i);
        close(fd);
        buf_deinit(&in);
        buf_deinit(&out);
    }
    env_end(&env);
}

static void server_large_messages_go_both_ways(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){0}, 2, 10);
    int fd = dial(&env);
    struct buf in = BUF_INIT;
    for (uint32_t i = 0; i < 2; i++) {
        send_command(fd, "big", 5000000, i);
        struct wire_msg msg = expect_reply(fd, &in, i);
        assert_true(msg.body.len > 5000000);
        write_all(fd, in.data, in.len); /* back as a request: echoed */
        assert_true(read_message(fd, &in));
        assert_true(in.len > 5000000);
    }
    close(fd);
    buf_deinit(&in);
    env_end(&env);
}

/* The reply doesn't fit into the socket: the worker is free, the loop finishes when the client reads. */
static void server_slow_reader_holds_no_worker(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){0}, 1, 10);
    int slow = dial(&env);
    int quick = dial(&env);
    struct buf in = BUF_INIT;
    send_command(slow, "big", 10000000, 1);
    clock_sleep_ms(50);
    for (uint32_t i = 0; i < 10; i++) {
        send_command(quick, "echo", 1, i);
        expect_reply(quick, &in, i);
    }
    struct wire_msg msg = expect_reply(slow, &in, 1);
    assert_true(msg.body.len > 10000000);
    send_command(slow, "echo", 1, 2);
    expect_reply(slow, &in, 2);
    close(slow);
    close(quick);
    buf_deinit(&in);
    env_end(&env);
}

static void server_reader_that_stalls_is_closed(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){.message_timeout_ms = 300}, 1, 10);
    int fd = dial(&env);
    send_command(fd, "big", 20000000, 1);
    for (int i = 0; i < 5000 && atomic_load(&env.closed) == 0; i++)
        clock_sleep_ms(1);
    assert_int_equal(atomic_load(&env.closed), 1);
    close(fd);
    env_end(&env);
}

static void server_half_message_is_closed_in_time(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){.message_timeout_ms = 300}, 1, 10);
    struct wire_frame *frame = command("echo", 1, 1);
    for (uint32_t len = 1; len < frame->len; len += 9) {
        int fd = dial(&env);
        write_all(fd, frame->data, len);
        int64_t start_ms = clock_now_ms();
        assert_true(is_closed(fd));
        assert_in_range(clock_now_ms() - start_ms, 200, 3000);
        close(fd);
    }
    wire_frame_unref(frame);
    env_end(&env);
}

static void server_idle_connection_is_closed_in_time(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){.idle_timeout_ms = 300}, 1, 10);
    int fd = dial(&env);
    struct buf in = BUF_INIT;
    send_command(fd, "echo", 1, 1);
    expect_reply(fd, &in, 1);
    assert_true(is_closed(fd));
    close(fd);
    buf_deinit(&in);
    env_end(&env);
}

static void server_over_max_conns_tells_so(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){.max_conns = 2}, 1, 10);
    struct buf in = BUF_INIT;
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = dial(&env);
        send_command(fds[i], "echo", 1, 1);
        struct wire_msg msg = expect_reply(fds[i], &in, 1);
        struct bval val;
        assert_int_equal(bdoc_find(msg.body, "code", &val), i == 2);
        if (i == 2)
            assert_int_equal(bval_i32(&val), ERR_TooManyFilesOpen);
    }
    assert_true(is_closed(fds[2]));
    assert_int_equal(atomic_load(&env.opened), 2);
    close(fds[0]);
    for (int i = 0; i < 5000 && atomic_load(&env.closed) == 0; i++)
        clock_sleep_ms(1);
    int again = dial(&env); /* room again */
    send_command(again, "echo", 1, 9);
    struct wire_msg msg = expect_reply(again, &in, 9);
    assert_true(bdoc_has(msg.body, "echo"));
    close(again);
    close(fds[1]);
    close(fds[2]);
    buf_deinit(&in);
    env_end(&env);
}

static void server_full_pool_answers_an_error(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){0}, 1, 1);
    struct buf in = BUF_INIT;
    int fds[3];
    for (int i = 0; i < 3; i++)
        fds[i] = dial(&env);
    /* The only worker is held up by a handler that waits; one more request may queue. */
    send_command(fds[0], "echo", 1, 1);
    expect_reply(fds[0], &in, 1);
    int errors = 0;
    for (int round = 0; round < 200 && errors == 0; round++) {
        for (int i = 0; i < 3; i++)
            send_command(fds[i], "big", 2000000, 2);
        for (int i = 0; i < 3; i++) {
            struct wire_msg msg = expect_reply(fds[i], &in, 2);
            struct bval val;
            if (bdoc_find(msg.body, "code", &val)) {
                assert_int_equal(bval_i32(&val), ERR_ExceededTimeLimit);
                assert_true(bdoc_has(msg.body, "errorLabels"));
                errors++;
            }
        }
    }
    assert_true(errors > 0);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    buf_deinit(&in);
    env_end(&env);
}

static void server_bad_bytes_close_only_that_connection(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){0}, 2, 10);
    struct buf in = BUF_INIT;
    int good = dial(&env);
    struct wire_frame *frame = command("echo", 1, 1);
    static const uint32_t lengths[] = {0, 15, 48000001, 0xffffffff};
    for (size_t i = 0; i < 4; i++) {
        int fd = dial(&env);
        store_le32(frame->data, lengths[i]);
        write_all(fd, frame->data, frame->len);
        assert_true(is_closed(fd));
        close(fd);
    }
    store_le32(frame->data, frame->len);
    store_le32(frame->data + 12, WIRE_OP_INSERT); /* a legacy opcode */
    int fd = dial(&env);
    write_all(fd, frame->data, frame->len);
    assert_true(is_closed(fd));
    close(fd);
    store_le32(frame->data + 12, WIRE_OP_MSG);
    store_le32(frame->data + 16, 1 << 5); /* an unknown flag: told, then closed */
    fd = dial(&env);
    write_all(fd, frame->data, frame->len);
    struct wire_msg msg = expect_reply(fd, &in, 1);
    assert_true(bdoc_has(msg.body, "errmsg"));
    assert_true(is_closed(fd));
    close(fd);
    send_command(good, "echo", 1, 3);
    expect_reply(good, &in, 3);
    wire_frame_unref(frame);
    close(good);
    buf_deinit(&in);
    env_end(&env);
}

static void server_broken_document_keeps_the_connection(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){0}, 2, 10);
    struct buf in = BUF_INIT;
    int fd = dial(&env);
    struct wire_frame *frame = command("echo", 1, 1);
    frame->data[25] = 0x44;
    write_all(fd, frame->data, frame->len);
    struct wire_msg msg = expect_reply(fd, &in, 1);
    struct bval val;
    assert_true(bdoc_find(msg.body, "code", &val));
    assert_int_equal(bval_i32(&val), ERR_InvalidBSON);
    send_command(fd, "echo", 1, 3);
    expect_reply(fd, &in, 3);
    wire_frame_unref(frame);
    close(fd);
    buf_deinit(&in);
    env_end(&env);
}

static void server_op_query_gets_op_reply(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){0}, 2, 10);
    struct buf out = BUF_INIT;
    struct buf in = BUF_INIT;
    bson_t query;
    bson_init(&query);
    BSON_APPEND_INT32(&query, "isMaster", 1);
    buf_append_le32(&out, 0);
    buf_append_le32(&out, 21);
    buf_append_le32(&out, 0);
    buf_append_le32(&out, WIRE_OP_QUERY);
    buf_append_le32(&out, 4);
    buf_append(&out, "admin.$cmd", 11);
    buf_append_le32(&out, 0);
    buf_append_le32(&out, UINT32_MAX);
    buf_append(&out, bson_get_data(&query), query.len);
    store_le32(out.data, (uint32_t)out.len);
    int fd = dial(&env);
    write_all(fd, out.data, out.len);
    struct wire_msg msg = expect_reply(fd, &in, 21);
    assert_int_equal(msg.header.opcode, WIRE_OP_REPLY);
    assert_true(bdoc_has(msg.body, "isMaster"));
    bson_destroy(&query);
    close(fd);
    buf_deinit(&in);
    buf_deinit(&out);
    env_end(&env);
}

static void server_compressed_request_gets_a_compressed_reply(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){0}, 2, 10);
    int fd = dial(&env);
    struct buf in = BUF_INIT;
    for (int compressor = WIRE_COMPRESSOR_SNAPPY; compressor <= WIRE_COMPRESSOR_ZSTD; compressor++) {
        bson_t doc;
        bson_init(&doc);
        char text[3000];
        memset(text, 'q', sizeof text - 1);
        text[sizeof text - 1] = '\0';
        BSON_APPEND_UTF8(&doc, "echo", text);
        struct wire_frame *plain = wire_frame_of_doc(bdoc_of(&doc));
        wire_set_ids(plain->data, 5, 0);
        struct wire_frame *small = wire_compress(plain, (enum wire_compressor)compressor);
        write_all(fd, small->data, small->len);
        assert_true(read_message(fd, &in));
        assert_int_equal(load_le32(in.data + 12), WIRE_OP_COMPRESSED);
        enum wire_compressor used;
        struct err err;
        struct wire_frame *reply = wire_decompress(in.data, in.len, &used, &err);
        assert_non_null(reply);
        assert_int_equal(used, compressor);
        assert_int_equal(load_le32(reply->data + 8), 5);
        assert_memory_equal(reply->data + 21, plain->data + 21, plain->len - 21);
        wire_frame_unref(reply);
        wire_frame_unref(small);
        wire_frame_unref(plain);
        bson_destroy(&doc);
    }
    close(fd);
    buf_deinit(&in);
    env_end(&env);
}

/* w:0: the handler answers all the same, the client gets nothing; the next request does. */
static void server_more_to_come_gets_no_reply(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){0}, 2, 10);
    int fd = dial(&env);
    struct buf in = BUF_INIT;
    for (uint32_t i = 0; i < 20; i++) {
        struct wire_frame *frame = command("echo", 1, i);
        store_le32(frame->data + 16, WIRE_MORE_TO_COME);
        write_all(fd, frame->data, frame->len);
        wire_frame_unref(frame);
    }
    send_command(fd, "echo", 1, 100);
    expect_reply(fd, &in, 100);
    close(fd);
    buf_deinit(&in);
    env_end(&env);
}

static void server_dropped_request_closes(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){0}, 2, 10);
    int fd = dial(&env);
    send_command(fd, "drop", 1, 1);
    assert_true(is_closed(fd));
    close(fd);
    env_end(&env);
}

static struct client_request *wait_kept(struct env *env)
{
    for (int i = 0; i < 5000 && atomic_load(&env->kept) == NULL; i++)
        clock_sleep_ms(1);
    assert_non_null(atomic_load(&env->kept));
    return atomic_load(&env->kept);
}

static void server_worker_sees_that_the_client_left(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){0}, 2, 10);
    int fd = dial(&env);
    send_command(fd, "keep", 1, 1);
    struct client_request *request = wait_kept(&env);
    assert_false(client_conn_is_closed(request->conn));
    assert_int_equal(strncmp(client_conn_peer(request->conn), "127.0.0.1:", 10), 0);
    assert_int_equal(client_conn_id(request->conn), 1);
    close(fd);
    for (int i = 0; i < 5000 && !client_conn_is_closed(request->conn); i++)
        clock_sleep_ms(1);
    assert_true(client_conn_is_closed(request->conn));
    assert_int_equal(atomic_load(&env.closed), 0); /* not before the request has ended */
    client_request_reply_doc(request, request->msg.body);
    for (int i = 0; i < 5000 && atomic_load(&env.closed) == 0; i++)
        clock_sleep_ms(1);
    assert_int_equal(atomic_load(&env.closed), 1);
    env_end(&env);
}

static void *answer_later(void *arg)
{
    clock_sleep_ms(200);
    struct client_request *request = arg;
    client_request_reply_doc(request, request->msg.body);
    return NULL;
}

static void server_stop_lets_requests_finish(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){0}, 2, 10);
    int idle = dial(&env);
    int fd = dial(&env);
    struct buf in = BUF_INIT;
    send_command(idle, "echo", 1, 1);
    expect_reply(idle, &in, 1);
    send_command(fd, "keep", 1, 4);
    pthread_t thread;
    thread_start(&thread, "later", answer_later, wait_kept(&env));
    client_server_stop(env.server, 5000);
    thread_join(thread);
    expect_reply(fd, &in, 4);
    assert_true(is_closed(fd));
    assert_true(is_closed(idle));
    close(fd);
    close(idle);
    buf_deinit(&in);
    env_end(&env);
}

static void server_clients_come_and_go(void **state)
{
    (void)state;
    struct env env;
    env_start(&env, (struct client_server_options){.max_conns = 50}, 4, 100);
    struct prng prng = {.state = 3};
    struct buf in = BUF_INIT;
    for (int i = 0; i < 1000; i++) {
        int fd = dial(&env);
        switch (prng_below(&prng, 5)) {
        case 0: /* leaves at once */
            break;
        case 1: /* leaves in the middle of a message */
            write_all(fd, "\x30\0\0\0\1", 5);
            break;
        case 2: /* leaves before the reply */
            send_command(fd, "echo", 1, 1);
            break;
        case 3: /* leaves with a reply half read */
            send_command(fd, "big", i % 10 == 0 ? 3000000 : 3000, 1);
            assert_true(recv(fd, buf_reserve(&in, 1000), 1000, 0) > 0);
            break;
        default:
            send_command(fd, "echo", 1, 1);
            assert_true(read_message(fd, &in));
            break;
        }
        close(fd);
    }
    buf_deinit(&in);
    env_end(&env);
}

static size_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    unsigned long pages = 0;
    unsigned long resident = 0;
    assert_int_equal(fscanf(file, "%lu %lu", &pages, &resident), 2);
    fclose(file);
    return resident * 4096;
}

/* Many announce a message of 48 MB and send little of it. */
static void server_announced_length_takes_no_memory(void **state)
{
    (void)state;
    enum { CONNS = 40 };
    struct env env;
    env_start(&env, (struct client_server_options){.max_conns = CONNS}, 1, 10);
    int fds[CONNS];
    uint8_t start[1000] = {0};
    store_le32(start, WIRE_MAX_MESSAGE_BYTES);
    store_le32(start + 12, WIRE_OP_MSG);
    size_t before = resident_bytes();
    for (int i = 0; i < CONNS; i++) {
        fds[i] = dial(&env);
        write_all(fds[i], start, sizeof start);
    }
    struct client_server_stats stats;
    do {
        client_server_stats_get(env.server, &stats);
    } while (stats.bytes_in < CONNS * sizeof start);
    size_t after = resident_bytes();
    for (int i = 0; i < CONNS; i++)
        close(fds[i]);
    env_end(&env);
    assert_true(after < before + (size_t)CONNS * (1 << 20));
}

static void server_idle_connection_costs_little(void **state)
{
    (void)state;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    enum { CONNS = 2000 };
    if (limit.rlim_cur < 2 * CONNS + 100)
        skip();
    struct env env;
    env_start(&env, (struct client_server_options){.max_conns = CONNS}, 4, CONNS);
    static int fds[CONNS];
    struct buf in = BUF_INIT;
    fds[0] = dial(&env);
    size_t before = resident_bytes();
    for (int i = 0; i < CONNS; i++) {
        if (i > 0)
            fds[i] = dial(&env);
        send_command(fds[i], "echo", 1, 1);
        expect_reply(fds[i], &in, 1);
    }
    size_t each = (resident_bytes() - before) / CONNS;
    for (int i = 0; i < CONNS; i++)
        close(fds[i]);
    buf_deinit(&in);
    env_end(&env);
    assert_in_range(each, 0, 8 << 10); /* the sanitizers' own bookkeeping included */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_answers_on_many_connections),
        cmocka_unit_test(server_pipelined_requests_are_answered_in_order),
        cmocka_unit_test(server_large_messages_go_both_ways),
        cmocka_unit_test(server_slow_reader_holds_no_worker),
        cmocka_unit_test(server_reader_that_stalls_is_closed),
        cmocka_unit_test(server_half_message_is_closed_in_time),
        cmocka_unit_test(server_idle_connection_is_closed_in_time),
        cmocka_unit_test(server_over_max_conns_tells_so),
        cmocka_unit_test(server_full_pool_answers_an_error),
        cmocka_unit_test(server_bad_bytes_close_only_that_connection),
        cmocka_unit_test(server_broken_document_keeps_the_connection),
        cmocka_unit_test(server_op_query_gets_op_reply),
        cmocka_unit_test(server_compressed_request_gets_a_compressed_reply),
        cmocka_unit_test(server_more_to_come_gets_no_reply),
        cmocka_unit_test(server_dropped_request_closes),
        cmocka_unit_test(server_worker_sees_that_the_client_left),
        cmocka_unit_test(server_stop_lets_requests_finish),
        cmocka_unit_test(server_clients_come_and_go),
        cmocka_unit_test(server_announced_length_takes_no_memory),
        cmocka_unit_test(server_idle_connection_costs_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
