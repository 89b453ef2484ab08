/* The client against servers that fail in every way. */
#include "tests/unit/rpc/rpc_env.h"

#include "base/thread.h"

static enum rpc_outcome ask(struct rpc_client *client, const char *address, int64_t timeout_ms)
{
    struct rpc_call call;
    struct err err;
    bson_t doc;
    bool good = rpc_call_run(&call, client, address, env_doc(&doc, "ping", 1), deadline_after_ms(timeout_ms), &err);
    enum rpc_outcome outcome = call.outcome;
    assert_int_equal(good, outcome == RPC_REPLY);
    rpc_call_deinit(&call);
    bson_destroy(&doc);
    return outcome;
}

static void client_refused_connection_is_not_sent(void **state)
{
    (void)state;
    char address[64];
    int fd = env_listen(address);
    close(fd);
    struct rpc_client *client = env_client();
    for (int i = 0; i < 5; i++) {
        int64_t start_ms = clock_now_ms();
        assert_int_equal(ask(client, address, 5000), RPC_NOT_SENT);
        assert_in_range(clock_now_ms() - start_ms, 0, 2500);
    }
    rpc_client_free(client);
}

static void client_reconnects_to_a_restarted_server(void **state)
{
    (void)state;
    char address[64];
    struct rpc_server *server = env_server(env_echo, NULL, address);
    uint16_t port = rpc_server_port(server);
    struct rpc_client *client = env_client();
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ask(client, address, 5000), RPC_REPLY);
        env_server_end(server);
        for (int tries = 0; tries < 50 && ask(client, address, 500) == RPC_REPLY; tries++)
            clock_sleep_ms(1);
        struct rpc_server_options options = {.port = port, .handle = env_echo};
        struct err err;
        if (!rpc_server_start(&options, &server, &err))
            fail_msg("%s", err.msg);
        enum rpc_outcome outcome = RPC_PENDING;
        for (int tries = 0; tries < 20 && outcome != RPC_REPLY; tries++)
            outcome = ask(client, address, 5000);
        assert_int_equal(outcome, RPC_REPLY);
    }
    env_server_end(server);
    rpc_client_free(client);
}

/* A server on a plain socket; what it does is `script`. */
struct fake {
    int listener;
    void (*script)(int fd);
};

static void *fake_run(void *arg)
{
    struct fake *fake = arg;
    int fd = accept(fake->listener, NULL, NULL);
    if (fd >= 0) {
        fake->script(fd);
        close(fd);
    }
    return NULL;
}

static enum rpc_outcome ask_fake(void (*script)(int fd), int64_t timeout_ms, int64_t *took_ms)
{
    char address[64];
    struct fake fake = {env_listen(address), script};
    pthread_t thread;
    thread_start(&thread, "fake", fake_run, &fake);
    struct rpc_client *client = env_client();
    int64_t start_ms = clock_now_ms();
    enum rpc_outcome outcome = ask(client, address, timeout_ms);
    *took_ms = clock_now_ms() - start_ms;
    rpc_client_free(client);
    close(fake.listener);
    thread_join(thread);
    return outcome;
}

static void close_at_once(int fd)
{
    (void)fd;
}

static void wrong_version(int fd)
{
    struct buf in = BUF_INIT;
    env_read_message(fd, &in);
    buf_deinit(&in);
    bson_t doc;
    bson_init(&doc);
    BSON_APPEND_DOUBLE(&doc, "ok", 1.0);
    BSON_APPEND_INT32(&doc, "version", 99);
    env_write_doc(fd, 1, 1, &doc);
    bson_destroy(&doc);
    env_is_closed_by_peer(fd);
}

static void garbage_for_hello(int fd)
{
    env_write(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
    struct buf in = BUF_INIT;
    while (env_read_message(fd, &in))
        ;
    buf_deinit(&in);
}

static void client_bad_hello_is_not_sent(void **state)
{
    (void)state;
    int64_t took_ms;
    assert_int_equal(ask_fake(close_at_once, 10000, &took_ms), RPC_NOT_SENT);
    assert_int_equal(ask_fake(wrong_version, 10000, &took_ms), RPC_NOT_SENT);
    assert_int_equal(ask_fake(garbage_for_hello, 10000, &took_ms), RPC_NOT_SENT);
}

static void read_then_close(int fd)
{
    env_greet(fd);
    struct buf in = BUF_INIT;
    env_read_message(fd, &in);
    buf_deinit(&in);
}

static void half_reply_then_close(int fd)
{
    env_greet(fd);
    struct buf in = BUF_INIT;
    env_read_message(fd, &in);
    uint8_t half[20];
    memcpy(half, in.data, sizeof half);
    memcpy(half + 8, in.data + 4, 4);
    env_write(fd, half, sizeof half);
    buf_deinit(&in);
}

static void broken_reply(int fd)
{
    env_greet(fd);
    struct buf in = BUF_INIT;
    env_read_message(fd, &in);
    wire_set_ids(in.data, 1, load_le32(in.data + 4));
    in.data[20] = 7; /* section kind */
    env_write(fd, in.data, in.len);
    buf_deinit(&in);
    env_is_closed_by_peer(fd);
}

static void client_connection_lost_after_sending_is_unknown(void **state)
{
    (void)state;
    int64_t took_ms;
    assert_int_equal(ask_fake(read_then_close, 10000, &took_ms), RPC_UNKNOWN);
    assert_int_equal(ask_fake(half_reply_then_close, 10000, &took_ms), RPC_UNKNOWN);
    assert_int_equal(ask_fake(broken_reply, 10000, &took_ms), RPC_UNKNOWN);
    assert_in_range(took_ms, 0, 4000);
}

static int pings_seen;

/* Reads everything, answers nothing, as a stopped process would whose kernel still acknowledges. */
static void silent(int fd)
{
    env_greet(fd);
    struct buf in = BUF_INIT;
    while (env_read_message(fd, &in)) {
        struct wire_msg msg;
        if (wire_msg_parse(in.data, in.len, WIRE_PARSE_CHECKED, &msg, NULL) && bdoc_has(msg.body, RPC_PING_FIELD))
            pings_seen++;
    }
    buf_deinit(&in);
}

static void client_silent_server_is_given_up_after_a_ping(void **state)
{
    (void)state;
    int64_t took_ms;
    pings_seen = 0;
    assert_int_equal(ask_fake(silent, 30000, &took_ms), RPC_UNKNOWN);
    /* A loaded machine wakes the client late, so more than one ping and a longer silence are in order. */
    assert_in_range(pings_seen, 1, 3);
    assert_in_range(took_ms, RPC_SILENCE_MAX_MS - 500, RPC_SILENCE_MAX_MS + 12000);
}

/* Answers pings for a while before it answers the request: slow, but alive. */
static void slow(int fd)
{
    env_greet(fd);
    struct buf in = BUF_INIT;
    struct buf request = BUF_INIT;
    env_read_message(fd, &request);
    int64_t until_ms = clock_now_ms() + RPC_SILENCE_MAX_MS + 1500;
    while (clock_now_ms() < until_ms && env_read_message(fd, &in)) {
        wire_set_ids(in.data, 0, load_le32(in.data + 4));
        env_write(fd, in.data, in.len);
    }
    wire_set_ids(request.data, 0, load_le32(request.data + 4));
    env_write(fd, request.data, request.len);
    env_is_closed_by_peer(fd);
    buf_deinit(&in);
    buf_deinit(&request);
}

static void client_slow_server_that_answers_pings_is_kept(void **state)
{
    (void)state;
    int64_t took_ms;
    assert_int_equal(ask_fake(slow, 30000, &took_ms), RPC_REPLY);
    assert_true(took_ms > RPC_SILENCE_MAX_MS);
}

enum { LARGE_BYTES = 16 << 20, SLOW_STEP_BYTES = 64 << 10, SLOW_STEP_MS = 27 };

/* Takes a large request bit by bit, longer than the limit of silence, and says nothing before it has it all. */
static void take_slowly(int fd)
{
    env_greet(fd);
    struct buf in = BUF_INIT;
    while (in.len < 4 || in.len < load_le32(in.data)) {
        ssize_t got = recv(fd, buf_reserve(&in, SLOW_STEP_BYTES), SLOW_STEP_BYTES, 0);
        if (got <= 0)
            break;
        in.len += (size_t)got;
        clock_sleep_ms(SLOW_STEP_MS);
    }
    if (in.len >= 8) {
        bson_t doc;
        env_doc(&doc, "ok", 1);
        env_write_doc(fd, 0, load_le32(in.data + 4), &doc);
        bson_destroy(&doc);
        env_is_closed_by_peer(fd);
    }
    buf_deinit(&in);
}

/* The ping waits behind the request: that the other side takes bytes must do for a sign of life. */
static void client_large_request_over_a_slow_link_is_kept(void **state)
{
    (void)state;
    char address[64];
    struct fake fake = {env_listen(address), take_slowly};
    int small = SLOW_STEP_BYTES; /* what the kernel may hold for a reader */
    assert_int_equal(setsockopt(fake.listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    pthread_t thread;
    thread_start(&thread, "fake", fake_run, &fake);
    struct rpc_client *client = env_client();
    struct rpc_call call;
    struct err err;
    bson_t doc;
    uint8_t *bytes = mem_alloc(LARGE_BYTES);
    env_doc(&doc, "n", 1);
    BSON_APPEND_BINARY(&doc, "large", BSON_SUBTYPE_BINARY, bytes, LARGE_BYTES);
    mem_free(bytes);
    int64_t start_ms = clock_now_ms();
    bool good = rpc_call_run(&call, client, address, bdoc_of(&doc), deadline_after_ms(60000), &err);
    if (!good)
        fail_msg("%s", err.msg);
    assert_true(clock_now_ms() - start_ms > RPC_SILENCE_MAX_MS + RPC_PING_AFTER_MS);
    rpc_call_deinit(&call);
    bson_destroy(&doc);
    rpc_client_free(client);
    close(fake.listener);
    thread_join(thread);
}

/* Accepts no connection: the backlog keeps the client waiting for the hello. */
static void client_deadline_before_the_hello_is_not_sent(void **state)
{
    (void)state;
    char address[64];
    int listener = env_listen(address);
    struct rpc_client *client = env_client();
    int64_t start_ms = clock_now_ms();
    assert_int_equal(ask(client, address, 300), RPC_NOT_SENT);
    assert_in_range(clock_now_ms() - start_ms, 290, 2000);
    rpc_client_free(client);
    close(listener);
}

static void client_free_ends_pending_calls(void **state)
{
    (void)state;
    char address[64];
    int listener = env_listen(address);
    struct rpc_client *client = env_client();
    struct rpc_call call;
    bson_t doc;
    rpc_call_init(&call, client, DEADLINE_NEVER);
    rpc_call_start(&call, address, &(struct rpc_body){.body = env_doc(&doc, "ping", 1)});
    rpc_client_free(client);
    assert_true(rpc_call_is_over(&call));
    assert_int_equal(call.outcome, RPC_NOT_SENT);
    rpc_call_deinit(&call);
    bson_destroy(&doc);
    close(listener);
}

static void client_limit_of_calls_refuses_more(void **state)
{
    (void)state;
    char address[64];
    int listener = env_listen(address);
    struct rpc_client *client = rpc_client_new(&(struct rpc_client_options){.name = "t", .max_calls_per_peer = 3});
    struct rpc_call calls[4];
    bson_t doc;
    env_doc(&doc, "ping", 1);
    for (int i = 0; i < 4; i++) {
        rpc_call_init(&calls[i], client, deadline_after_ms(20000));
        rpc_call_start(&calls[i], address, &(struct rpc_body){.body = bdoc_of(&doc)});
        assert_int_equal(rpc_call_is_over(&calls[i]), i == 3);
    }
    assert_int_equal(calls[3].outcome, RPC_NOT_SENT);
    rpc_client_free(client);
    for (int i = 0; i < 4; i++)
        rpc_call_deinit(&calls[i]);
    bson_destroy(&doc);
    close(listener);
}

static void client_names_and_ipv6_are_addresses(void **state)
{
    (void)state;
    struct rpc_server *server = NULL;
    struct err err;
    struct rpc_server_options options = {.bind = "::1", .handle = env_echo};
    struct rpc_client *client = env_client();
    char address[64];
    if (rpc_server_start(&options, &server, &err)) {
        snprintf(address, sizeof address, "[::1]:%u", rpc_server_port(server));
        assert_int_equal(ask(client, address, 5000), RPC_REPLY);
        env_server_end(server);
    }
    server = env_server(env_echo, NULL, address);
    snprintf(address, sizeof address, "localhost:%u", rpc_server_port(server));
    assert_int_equal(ask(client, address, 5000), RPC_REPLY);
    env_server_end(server);
    rpc_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_refused_connection_is_not_sent),
        cmocka_unit_test(client_reconnects_to_a_restarted_server),
        cmocka_unit_test(client_bad_hello_is_not_sent),
        cmocka_unit_test(client_connection_lost_after_sending_is_unknown),
        cmocka_unit_test(client_silent_server_is_given_up_after_a_ping),
        cmocka_unit_test(client_slow_server_that_answers_pings_is_kept),
        cmocka_unit_test(client_large_request_over_a_slow_link_is_kept),
        cmocka_unit_test(client_deadline_before_the_hello_is_not_sent),
        cmocka_unit_test(client_free_ends_pending_calls),
        cmocka_unit_test(client_limit_of_calls_refuses_more),
        cmocka_unit_test(client_names_and_ipv6_are_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
