/* The server against clients that misbehave. */
#include "tests/unit/rpc/rpc_env.h"

#include "async/pool.h"
#include "base/thread.h"
#include "rpc/server_impl.h"

static uint16_t port_of(const struct rpc_server *server)
{
    return rpc_server_port(server);
}

static void server_closes_what_is_no_hello(void **state)
{
    (void)state;
    char address[64];
    struct rpc_server *server = env_server(env_echo, NULL, address);
    bson_t doc;
    env_doc(&doc, "isMaster", 1);

    int fd = env_connect(port_of(server)); /* a MongoDB client */
    env_write_doc(fd, 1, 0, &doc);
    assert_true(env_is_closed_by_peer(fd));
    close(fd);

    fd = env_connect(port_of(server)); /* another version */
    env_hello(fd, RPC_PROTOCOL_VERSION + 1);
    assert_true(env_is_closed_by_peer(fd));
    close(fd);

    fd = env_connect(port_of(server));
    env_write(fd, "GET / HTTP/1.1\r\n\r\n\r\n", 20);
    assert_true(env_is_closed_by_peer(fd));
    close(fd);

    fd = env_connect(port_of(server)); /* a hello that announces 48 MB is closed before they are taken */
    uint8_t header[16] = {0};
    store_le32(header, 48000000);
    store_le32(header + 12, WIRE_OP_MSG);
    env_write(fd, header, sizeof header);
    assert_true(env_is_closed_by_peer(fd));
    close(fd);

    struct rpc_server_stats stats;
    rpc_server_stats_get(server, &stats);
    assert_int_equal(stats.handled, 0);
    assert_int_equal(stats.accepted, 4);
    bson_destroy(&doc);
    env_server_end(server);
}

static void server_closes_after_a_broken_message(void **state)
{
    (void)state;
    char address[64];
    struct rpc_server *server = env_server(env_echo, NULL, address);
    for (int round = 0; round < 3; round++) {
        int fd = env_connect(port_of(server));
        struct buf in = BUF_INIT;
        env_hello(fd, RPC_PROTOCOL_VERSION);
        assert_true(env_read_message(fd, &in));
        bson_t doc;
        env_doc(&doc, "find", 1);
        struct wire_frame *frame = wire_frame_of_doc(bdoc_of(&doc));
        if (round == 0)
            frame->data[16] = 4; /* an unknown required flag */
        else if (round == 1)
            frame->data[21] = 200; /* the document's length */
        else
            store_le32(frame->data, 7); /* the message's length */
        env_write(fd, frame->data, frame->len);
        assert_true(env_is_closed_by_peer(fd));
        wire_frame_unref(frame);
        bson_destroy(&doc);
        buf_deinit(&in);
        close(fd);
    }
    env_server_end(server);
}

/* A message that comes byte by byte is a message all the same. */
static void server_takes_a_message_in_bits(void **state)
{
    (void)state;
    char address[64];
    struct rpc_server *server = env_server(env_echo, NULL, address);
    int fd = env_connect(port_of(server));
    struct buf in = BUF_INIT;
    env_hello(fd, RPC_PROTOCOL_VERSION);
    assert_true(env_read_message(fd, &in));
    bson_t doc;
    env_doc(&doc, "find", 4711);
    struct wire_frame *frame = wire_frame_of_doc(bdoc_of(&doc));
    wire_set_ids(frame->data, 77, 0);
    for (uint32_t i = 0; i < frame->len; i++) {
        env_write(fd, frame->data + i, 1);
        if (i % 7 == 0)
            clock_sleep_ms(1);
    }
    assert_true(env_read_message(fd, &in));
    assert_int_equal(load_le32(in.data + 8), 77);
    assert_memory_equal(in.data + 21, frame->data + 21, frame->len - 21);
    wire_frame_unref(frame);
    bson_destroy(&doc);
    buf_deinit(&in);
    close(fd);
    env_server_end(server);
}

static void server_over_max_conns_closes_the_new_one(void **state)
{
    (void)state;
    struct rpc_server *server = NULL;
    struct err err;
    struct rpc_server_options options = {.handle = env_echo, .max_conns = 2};
    assert_true(rpc_server_start(&options, &server, &err));
    int fds[3];
    struct buf in = BUF_INIT;
    for (int i = 0; i < 3; i++) {
        fds[i] = env_connect(port_of(server));
        if (i < 2) {
            env_hello(fds[i], RPC_PROTOCOL_VERSION);
            assert_true(env_read_message(fds[i], &in));
        }
    }
    assert_true(env_is_closed_by_peer(fds[2]));
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    buf_deinit(&in);
    env_server_end(server);
}

struct slow_env {
    struct pool *pool;
    atomic_uint at_once; /* requests under way */
    atomic_uint peak;
};

static void slow_job(struct pool_job *job)
{
    struct rpc_request *request = (struct rpc_request *)job;
    struct slow_env *env = request->arg;
    clock_sleep_ms(2);
    atomic_fetch_sub(&env->at_once, 1);
    env_echo(NULL, request);
}

static void slow_handle(void *arg, struct rpc_request *request)
{
    struct slow_env *env = arg;
    unsigned now = atomic_fetch_add(&env->at_once, 1) + 1;
    if (now > atomic_load(&env->peak))
        atomic_store(&env->peak, now);
    request->job.run = slow_job;
    if (!pool_submit(env->pool, &request->job))
        rpc_request_drop(request);
}

static void server_limit_of_requests_stops_reading(void **state)
{
    (void)state;
    enum { CALLS = 400, LIMIT = 8 };
    struct slow_env env = {.pool =
                               pool_new(&(struct pool_options){.name = "slow", .max_threads = 4, .max_queued = CALLS})};
    struct rpc_server *server = NULL;
    struct err err;
    struct rpc_server_options options = {.handle = slow_handle, .arg = &env, .max_requests_per_conn = LIMIT};
    assert_true(rpc_server_start(&options, &server, &err));
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%u", port_of(server));
    struct rpc_client *client = env_client();
    static struct rpc_call calls[CALLS];
    struct rpc_waiter waiter;
    rpc_waiter_init(&waiter);
    char filler[2000];
    memset(filler, 'x', sizeof filler - 1);
    filler[sizeof filler - 1] = '\0';
    for (int i = 0; i < CALLS; i++) {
        bson_t doc;
        env_doc(&doc, "n", i);
        BSON_APPEND_UTF8(&doc, "filler", filler);
        rpc_call_init(&calls[i], client, deadline_after_ms(30000));
        calls[i].waiter = &waiter;
        rpc_call_start(&calls[i], address, &(struct rpc_body){.body = bdoc_of(&doc)});
        bson_destroy(&doc);
    }
    rpc_waiter_wait_all(&waiter);
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(calls[i].outcome, RPC_REPLY);
        rpc_call_deinit(&calls[i]);
    }
    /* One buffer may hold some more frames when the limit is reached. */
    assert_in_range(atomic_load(&env.peak), 2, LIMIT + (64 << 10) / 2000 + 1);
    rpc_client_free(client);
    rpc_server_stop(server);
    pool_free(env.pool);
    rpc_server_free(server);
}

static struct rpc_request *_Atomic held[2];

static void hold(void *arg, struct rpc_request *request)
{
    (void)arg;
    atomic_store(&held[atomic_load(&held[0]) != NULL], request);
}

/* Nothing is read, so no ping is answered; requests that take long must not end as unknown for it. */
static void server_at_its_limit_gives_signs_of_life(void **state)
{
    (void)state;
    struct rpc_server *server = NULL;
    struct err err;
    struct rpc_server_options options = {.handle = hold, .max_requests_per_conn = 2};
    struct rpc_call calls[2];
    struct rpc_waiter waiter;
    char address[64];
    assert_true(rpc_server_start(&options, &server, &err));
    snprintf(address, sizeof address, "127.0.0.1:%u", port_of(server));
    struct rpc_client *client = env_client();
    rpc_waiter_init(&waiter);
    for (int i = 0; i < 2; i++) {
        bson_t doc;
        rpc_call_init(&calls[i], client, deadline_after_ms(30000));
        calls[i].waiter = &waiter;
        rpc_call_start(&calls[i], address, &(struct rpc_body){.body = env_doc(&doc, "n", i)});
        bson_destroy(&doc);
    }
    clock_sleep_ms(RPC_SILENCE_MAX_MS + 2 * RPC_PING_AFTER_MS);
    for (int i = 0; i < 2; i++) {
        assert_non_null(atomic_load(&held[i]));
        env_echo(NULL, atomic_load(&held[i]));
    }
    rpc_waiter_wait_all(&waiter);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(calls[i].outcome, RPC_REPLY);
        rpc_call_deinit(&calls[i]);
    }
    rpc_client_free(client);
    env_server_end(server);
}

static void *reply_later(void *arg)
{
    struct rpc_request *request = arg;
    while (!rpc_request_is_orphaned(request))
        clock_sleep_ms(1);
    env_echo(NULL, request);
    return NULL;
}

static struct rpc_request *_Atomic kept_request;

static void keep_one(void *arg, struct rpc_request *request)
{
    (void)arg;
    atomic_store(&kept_request, request);
}

static void server_reply_after_stop_is_dropped(void **state)
{
    (void)state;
    char address[64];
    struct rpc_server *server = env_server(keep_one, NULL, address);
    struct rpc_client *client = env_client();
    struct rpc_call call;
    struct rpc_waiter waiter;
    bson_t doc;
    rpc_waiter_init(&waiter);
    rpc_call_init(&call, client, deadline_after_ms(20000));
    call.waiter = &waiter;
    rpc_call_start(&call, address, &(struct rpc_body){.body = env_doc(&doc, "n", 1)});
    while (atomic_load(&kept_request) == NULL)
        clock_sleep_ms(1);
    assert_false(rpc_request_is_orphaned(kept_request));
    assert_int_equal(strncmp(rpc_request_peer(kept_request), "127.0.0.1:", 10), 0);
    pthread_t thread;
    thread_start(&thread, "later", reply_later, kept_request);
    rpc_server_stop(server);
    rpc_server_free(server); /* waits for the reply */
    thread_join(thread);
    rpc_waiter_wait_all(&waiter);
    assert_int_equal(call.outcome, RPC_UNKNOWN);
    rpc_call_deinit(&call);
    bson_destroy(&doc);
    rpc_client_free(client);
}

/* A client that sends and never reads must not hold memory for ever, nor a worker. */
static void server_large_replies_to_a_slow_reader_all_arrive(void **state)
{
    (void)state;
    char address[64];
    struct rpc_server *server = env_server(env_echo, NULL, address);
    int fd = env_connect(port_of(server));
    struct buf in = BUF_INIT;
    env_hello(fd, RPC_PROTOCOL_VERSION);
    assert_true(env_read_message(fd, &in));
    char *filler = mem_alloc(1 << 20);
    memset(filler, 'x', (1 << 20) - 1);
    bson_t doc;
    env_doc(&doc, "n", 1);
    BSON_APPEND_UTF8(&doc, "filler", filler);
    mem_free(filler);
    for (uint32_t i = 0; i < 5; i++) {
        env_write_doc(fd, 10 + i, 0, &doc);
        clock_sleep_ms(20);
    }
    for (uint32_t i = 0; i < 5; i++) {
        clock_sleep_ms(20);
        assert_true(env_read_message(fd, &in));
        assert_int_equal(load_le32(in.data + 8), 10 + i);
        assert_int_equal(in.len, doc.len + 21);
    }
    bson_destroy(&doc);
    buf_deinit(&in);
    close(fd);
    env_server_end(server);
}

/* A client that only takes a long reply sends nothing, not even pings; taking it is a sign of life all the same. */
static void server_reply_that_is_taken_is_a_sign_of_life(void **state)
{
    (void)state;
    enum { BYTES = 16 << 20, LATER_MS = 400 };
    char address[64];
    struct rpc_server *server = env_server(env_echo, NULL, address);
    int fd = env_connect(port_of(server));
    struct buf in = BUF_INIT;
    env_hello(fd, RPC_PROTOCOL_VERSION);
    assert_true(env_read_message(fd, &in));
    bson_t doc;
    uint8_t *bytes = mem_alloc(BYTES);
    env_doc(&doc, "n", 1);
    BSON_APPEND_BINARY(&doc, "large", BSON_SUBTYPE_BINARY, bytes, BYTES);
    mem_free(bytes);
    env_write_doc(fd, 10, 0, &doc);
    bson_destroy(&doc);
    clock_sleep_ms(2 * LATER_MS);
    pthread_mutex_lock(&server->mutex);
    struct rpc_conn *conn = server->conns;
    pthread_mutex_unlock(&server->mutex);
    struct link *link = server_conn_link(conn);
    int64_t heard_ms = link_heard_ms(link);
    int64_t silent_ms = heard_ms + RPC_SERVER_SILENCE_MAX_MS + LATER_MS;
    assert_true(link_queued_bytes(link) > 0);
    assert_true(server_conn_is_dead(conn, silent_ms));
    assert_true(env_read_message(fd, &in));
    for (int i = 0; i < 2000 && link_stuck_since_ms(link) != 0; i++)
        clock_sleep_ms(1);
    assert_int_equal(link_heard_ms(link), heard_ms);
    assert_false(server_conn_is_dead(conn, silent_ms));
    assert_true(server_conn_is_dead(conn, clock_now_ms() + RPC_SERVER_SILENCE_MAX_MS + 1));
    link_unref(link);
    buf_deinit(&in);
    close(fd);
    env_server_end(server);
}

struct dispatch_env {
    struct pool *pool;
    atomic_uint blocked;    /* jobs that wait for the gate */
    atomic_uint on_workers; /* jobs that ran on a thread of the pool */
    atomic_bool open;       /* the gate */
};

static void dispatch_job(struct pool_job *job)
{
    struct rpc_request *request = (struct rpc_request *)job;
    struct dispatch_env *env = request->arg;
    char name[16];
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strcmp(name, "dispatch") == 0)
        atomic_fetch_add(&env->on_workers, 1);
    if (bdoc_has(request->msg.body, "block")) {
        atomic_fetch_add(&env->blocked, 1);
        while (!atomic_load(&env->open))
            clock_sleep_ms(1);
    }
    env_echo(NULL, request);
}

static void dispatch_handle(void *arg, struct rpc_request *request)
{
    struct dispatch_env *env = arg;
    request->job.run = dispatch_job;
    if (!rpc_request_dispatch(request, env->pool))
        rpc_request_drop(request);
}

static void start_named(struct rpc_call *call, struct rpc_waiter *waiter, struct rpc_client *client,
                        const char *address, const char *name)
{
    bson_t doc;
    rpc_call_init(call, client, deadline_after_ms(20000));
    call->waiter = waiter;
    rpc_call_start(call, address, &(struct rpc_body){.body = env_doc(&doc, name, 1)});
    bson_destroy(&doc);
}

/* A job may block the thread that it was lent: requests behind it, on the same connection and on others, are served. */
static void server_dispatched_job_may_block(void **state)
{
    (void)state;
    struct dispatch_env env = {
        .pool = pool_new(&(struct pool_options){.name = "dispatch", .max_threads = 16, .max_queued = 100})};
    char address[64];
    struct rpc_server *server = env_server(dispatch_handle, &env, address);
    struct rpc_client *clients[2] = {env_client(), env_client()};
    struct rpc_call blocked[8];
    struct rpc_waiter waiter;
    rpc_waiter_init(&waiter);
    for (unsigned i = 0; i < 8; i++) {
        start_named(&blocked[i], &waiter, clients[i % 2], address, "block");
        for (int wait = 0; wait < 5000 && atomic_load(&env.blocked) <= i; wait++)
            clock_sleep_ms(1);
        assert_int_equal(atomic_load(&env.blocked), i + 1);
        struct rpc_call quick;
        struct err err;
        bson_t doc;
        assert_true(
            rpc_call_run(&quick, clients[i % 2], address, env_doc(&doc, "n", 1), deadline_after_ms(5000), &err));
        rpc_call_deinit(&quick);
        bson_destroy(&doc);
    }
    assert_true(atomic_load(&env.on_workers) >= 15); /* one thread of nng's is lent at most */
    atomic_store(&env.open, true);
    rpc_waiter_wait_all(&waiter);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(blocked[i].outcome, RPC_REPLY);
        rpc_call_deinit(&blocked[i]);
    }
    rpc_client_free(clients[0]);
    rpc_client_free(clients[1]);
    rpc_server_stop(server);
    pool_free(env.pool);
    rpc_server_free(server);
}

static void linger_job(struct pool_job *job)
{
    struct rpc_request *request = (struct rpc_request *)job;
    atomic_bool *ended = request->arg;
    env_echo(NULL, request);
    clock_sleep_ms(200); /* as a job that still uses what its daemon frees after the server */
    atomic_store(ended, true);
}

static void linger_handle(void *arg, struct rpc_request *request)
{
    (void)arg;
    static struct pool *none; /* a lone request is lent a thread */
    request->job.run = linger_job;
    if (!rpc_request_dispatch(request, none))
        rpc_request_drop(request);
}

static void server_free_waits_for_a_dispatched_job(void **state)
{
    (void)state;
    atomic_bool ended = false;
    char address[64];
    struct rpc_server *server = env_server(linger_handle, &ended, address);
    struct rpc_client *client = env_client();
    struct rpc_call call;
    struct err err;
    bson_t doc;
    assert_true(rpc_call_run(&call, client, address, env_doc(&doc, "n", 1), deadline_after_ms(5000), &err));
    rpc_call_deinit(&call);
    bson_destroy(&doc);
    rpc_client_free(client);
    env_server_end(server);
    assert_true(atomic_load(&ended));
}

static void server_busy_port_is_an_error(void **state)
{
    (void)state;
    char address[64];
    struct rpc_server *server = env_server(env_echo, NULL, address);
    struct rpc_server *second = NULL;
    struct err err;
    struct rpc_server_options options = {.port = port_of(server), .handle = env_echo};
    assert_false(rpc_server_start(&options, &second, &err));
    assert_non_null(strstr(err.msg, "cannot listen"));
    env_server_end(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_closes_what_is_no_hello),
        cmocka_unit_test(server_closes_after_a_broken_message),
        cmocka_unit_test(server_takes_a_message_in_bits),
        cmocka_unit_test(server_over_max_conns_closes_the_new_one),
        cmocka_unit_test(server_limit_of_requests_stops_reading),
        cmocka_unit_test(server_at_its_limit_gives_signs_of_life),
        cmocka_unit_test(server_reply_after_stop_is_dropped),
        cmocka_unit_test(server_large_replies_to_a_slow_reader_all_arrive),
        cmocka_unit_test(server_reply_that_is_taken_is_a_sign_of_life),
        cmocka_unit_test(server_dispatched_job_may_block),
        cmocka_unit_test(server_free_waits_for_a_dispatched_job),
        cmocka_unit_test(server_busy_port_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
