#include "tests/unit/rpc/rpc_env.h"

#include "base/thread.h"

static void call_run_returns_the_reply(void **state)
{
    (void)state;
    char address[64];
    struct rpc_server *server = env_server(env_echo, NULL, address);
    struct rpc_client *client = env_client();
    for (int64_t i = 0; i < 100; i++) {
        struct rpc_call call;
        struct err err;
        bson_t doc;
        struct bval value;
        assert_true(rpc_call_run(&call, client, address, env_doc(&doc, "ping", i), deadline_after_ms(5000), &err));
        assert_int_equal(call.outcome, RPC_REPLY);
        assert_true(bdoc_find(call.reply.body, "ping", &value));
        assert_int_equal(bval_i64(&value), i);
        rpc_call_deinit(&call);
        bson_destroy(&doc);
    }
    struct rpc_client_stats stats;
    rpc_client_stats_get(client, &stats);
    assert_int_equal(stats.connects, 1);
    assert_int_equal(stats.replies, 100);
    assert_int_equal(stats.calls, 0);
    rpc_client_free(client);
    env_server_end(server);
}

/* Documents of a sequence come in pieces, some owned, some large: the server must see them end to end. */
static void call_with_pieces_arrives_whole(void **state)
{
    (void)state;
    char address[64];
    struct rpc_server *server = env_server(env_echo, NULL, address);
    struct rpc_client *client = env_client();
    static const size_t sizes[] = {10, 300, 9000, 70000, 200000};
    struct buf expected = BUF_INIT;
    struct wire_piece pieces[5];
    bson_t docs[5];
    for (int i = 0; i < 5; i++) {
        char *filler = mem_alloc(sizes[i] + 1);
        memset(filler, 'a' + i, sizes[i]);
        bson_init(&docs[i]);
        BSON_APPEND_UTF8(&docs[i], "x", filler);
        mem_free(filler);
        struct bdoc doc = bdoc_of(&docs[i]);
        buf_append(&expected, doc.data, doc.len);
        struct wire_frame *owner = NULL;
        if (i % 2 == 0) {
            owner = wire_frame_new(doc.len);
            memcpy(owner->data, doc.data, doc.len);
        }
        pieces[i] = (struct wire_piece){owner != NULL ? owner->data : doc.data, doc.len, owner};
    }
    bson_t body;
    struct bdoc whole = env_doc(&body, "insert", 1);
    struct wire_piece halves[2] = {{whole.data, 6, NULL}, {whole.data + 6, whole.len - 6, NULL}};
    struct rpc_sequence sequence = {"documents", pieces, 5};
    for (int round = 0; round < 3; round++) {
        struct rpc_call call;
        struct rpc_waiter waiter;
        rpc_waiter_init(&waiter);
        rpc_call_init(&call, client, deadline_after_ms(10000));
        call.waiter = &waiter;
        rpc_call_start(&call, address,
                       &(struct rpc_body){
                           .body_pieces = halves, .body_piece_count = 2, .sequences = &sequence, .sequence_count = 1});
        rpc_waiter_wait_all(&waiter);
        assert_int_equal(call.outcome, RPC_REPLY);
        struct bval value;
        uint8_t subtype;
        uint32_t len;
        assert_true(bdoc_find(call.reply.body, "sequence", &value));
        const uint8_t *got = bval_binary(&value, &subtype, &len);
        assert_int_equal(len, expected.len);
        assert_memory_equal(got, expected.data, len);
        rpc_call_deinit(&call);
    }
    for (int i = 0; i < 5; i++) {
        wire_frame_unref(pieces[i].owner);
        bson_destroy(&docs[i]);
    }
    bson_destroy(&body);
    buf_deinit(&expected);
    rpc_client_free(client);
    env_server_end(server);
}

/* Answers with the number of documents in the request's first sequence. */
static void handle_count(void *arg, struct rpc_request *request)
{
    (void)arg;
    bson_t reply = BSON_INITIALIZER;
    BSON_APPEND_INT64(&reply, "count", request->msg.sequences[0].count);
    rpc_request_reply_doc(request, bdoc_of(&reply));
    bson_destroy(&reply);
}

/* A driver fills its messages up to the limit; what a router adds must not make them undeliverable. */
static void call_with_a_clients_full_message_and_more_arrives(void **state)
{
    enum { DOCS = 4, DOC_BYTES = WIRE_MAX_MESSAGE_BYTES / DOCS };
    (void)state;
    char address[64];
    struct rpc_server *server = env_server(handle_count, NULL, address);
    struct rpc_client *client = env_client();
    struct buf docs = BUF_INIT;
    char *filler = mem_alloc(DOC_BYTES);
    memset(filler, 'f', DOC_BYTES - 1);
    for (int i = 0; i < DOCS; i++) {
        bson_t doc = BSON_INITIALIZER;
        BSON_APPEND_UTF8(&doc, "x", filler);
        buf_append(&docs, bson_get_data(&doc), doc.len);
        bson_destroy(&doc);
    }
    mem_free(filler);
    assert_true(docs.len > WIRE_MAX_MESSAGE_BYTES);
    bson_t body;
    struct wire_piece piece = {docs.data, docs.len, NULL};
    struct rpc_sequence sequence = {"documents", &piece, 1};
    struct rpc_call call;
    struct rpc_waiter waiter;
    rpc_waiter_init(&waiter);
    rpc_call_init(&call, client, deadline_after_ms(60000));
    call.waiter = &waiter;
    rpc_call_start(
        &call, address,
        &(struct rpc_body){.body = env_doc(&body, "insert", 1), .sequences = &sequence, .sequence_count = 1});
    rpc_waiter_wait_all(&waiter);
    assert_int_equal(call.outcome, RPC_REPLY);
    struct bval count;
    int64_t number = 0;
    assert_true(bdoc_find(call.reply.body, "count", &count) && bval_to_i64(&count, &number));
    assert_int_equal(number, DOCS);
    rpc_call_deinit(&call);
    bson_destroy(&body);
    buf_deinit(&docs);
    rpc_client_free(client);
    env_server_end(server);
}

static void call_too_large_is_not_sent(void **state)
{
    (void)state;
    struct rpc_client *client = env_client();
    struct rpc_call call;
    struct err err;
    uint8_t *huge = mem_alloc(WIRE_MAX_INTERNAL_BYTES);
    assert_false(rpc_call_run(&call, client, "127.0.0.1:1", (struct bdoc){huge, WIRE_MAX_INTERNAL_BYTES},
                              deadline_after_ms(1000), &err));
    assert_int_equal(call.outcome, RPC_NOT_SENT);
    assert_int_equal(err.code, ERR_BSONObjectTooLarge);
    rpc_call_deinit(&call);
    mem_free(huge);
    rpc_client_free(client);
}

static void call_bad_address_is_not_sent(void **state)
{
    (void)state;
    struct rpc_client *client = env_client();
    static const char *const addresses[] = {"", "nothing", "127.0.0.1:99999999", "a/b:1", "host:port"};
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        struct rpc_call call;
        struct err err;
        bson_t doc;
        assert_false(
            rpc_call_run(&call, client, addresses[i], env_doc(&doc, "ping", 1), deadline_after_ms(4000), &err));
        assert_int_equal(call.outcome, RPC_NOT_SENT);
        rpc_call_deinit(&call);
        bson_destroy(&doc);
    }
    rpc_client_free(client);
}

/* Keeps requests until the test lets them go. */
struct keeper {
    pthread_mutex_t mutex;
    struct rpc_request *kept[64];
    unsigned count;
};

static void keep(void *arg, struct rpc_request *request)
{
    struct keeper *keeper = arg;
    pthread_mutex_lock(&keeper->mutex);
    keeper->kept[keeper->count++] = request;
    pthread_mutex_unlock(&keeper->mutex);
}

static unsigned kept_count(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->mutex);
    unsigned count = keeper->count;
    pthread_mutex_unlock(&keeper->mutex);
    return count;
}

static void wait_kept(struct keeper *keeper, unsigned count)
{
    for (int i = 0; i < 5000 && kept_count(keeper) < count; i++)
        clock_sleep_ms(1);
    assert_int_equal(kept_count(keeper), count);
}

static void call_deadline_after_sending_is_unknown(void **state)
{
    (void)state;
    struct keeper keeper = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    char address[64];
    struct rpc_server *server = env_server(keep, &keeper, address);
    struct rpc_client *client = env_client();
    struct rpc_call call;
    struct err err;
    bson_t doc;
    int64_t start_ms = clock_now_ms();
    assert_false(rpc_call_run(&call, client, address, env_doc(&doc, "ping", 1), deadline_after_ms(200), &err));
    int64_t took_ms = clock_now_ms() - start_ms;
    assert_int_equal(call.outcome, RPC_UNKNOWN);
    assert_int_equal(err.code, ERR_NetworkTimeout);
    assert_in_range(took_ms, 190, 1500);
    rpc_call_deinit(&call);
    wait_kept(&keeper, 1);
    rpc_request_reply_doc(keeper.kept[0], bdoc_of(&doc)); /* late: thrown away */
    bson_destroy(&doc);
    rpc_client_free(client);
    env_server_end(server);
}

static void call_replies_are_matched_out_of_order(void **state)
{
    (void)state;
    enum { CALLS = 20 };
    struct keeper keeper = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    char address[64];
    struct rpc_server *server = env_server(keep, &keeper, address);
    struct rpc_client *client = env_client();
    struct rpc_call calls[CALLS];
    struct rpc_waiter waiter;
    rpc_waiter_init(&waiter);
    for (int i = 0; i < CALLS; i++) {
        bson_t doc;
        rpc_call_init(&calls[i], client, deadline_after_ms(10000));
        calls[i].waiter = &waiter;
        rpc_call_start(&calls[i], address, &(struct rpc_body){.body = env_doc(&doc, "n", i)});
        bson_destroy(&doc);
    }
    wait_kept(&keeper, CALLS);
    assert_int_equal(rpc_waiter_wait_any(&waiter, 0, deadline_after_ms(20)), 0);
    for (int i = CALLS - 1; i >= 0; i--) {
        env_echo(NULL, keeper.kept[i]);
        uint32_t seen = (uint32_t)(CALLS - 1 - i);
        assert_int_equal(rpc_waiter_wait_any(&waiter, seen, deadline_after_ms(5000)), seen + 1);
    }
    rpc_waiter_wait_all(&waiter);
    for (int i = 0; i < CALLS; i++) {
        struct bval value;
        assert_int_equal(calls[i].outcome, RPC_REPLY);
        assert_true(bdoc_find(calls[i].reply.body, "n", &value));
        assert_int_equal(bval_i64(&value), i);
        rpc_call_deinit(&calls[i]);
    }
    rpc_client_free(client);
    env_server_end(server);
}

static void call_cancel_ends_it_at_once(void **state)
{
    (void)state;
    struct keeper keeper = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    char address[64];
    struct rpc_server *server = env_server(keep, &keeper, address);
    struct rpc_client *client = env_client();
    struct rpc_call call;
    bson_t doc;
    rpc_call_init(&call, client, deadline_after_ms(60000));
    rpc_call_cancel(&call); /* never started: nothing to end */
    rpc_call_start(&call, address, &(struct rpc_body){.body = env_doc(&doc, "n", 1)});
    wait_kept(&keeper, 1);
    assert_false(rpc_call_is_over(&call));
    rpc_call_cancel(&call);
    assert_true(rpc_call_is_over(&call));
    assert_int_equal(call.outcome, RPC_UNKNOWN);
    rpc_call_cancel(&call);
    rpc_call_deinit(&call);
    env_echo(NULL, keeper.kept[0]);
    bson_destroy(&doc);
    rpc_client_free(client);
    env_server_end(server);
}

static void count_done(struct rpc_call *call)
{
    atomic_uint *count = call->arg;
    if (call->outcome == RPC_REPLY)
        atomic_fetch_add(count, 1);
    rpc_call_deinit(call);
    mem_free(call);
}

static void call_callback_may_free_it(void **state)
{
    (void)state;
    enum { CALLS = 500 };
    char address[64];
    struct rpc_server *server = env_server(env_echo, NULL, address);
    struct rpc_client *client = env_client();
    atomic_uint count = 0;
    for (int i = 0; i < CALLS; i++) {
        struct rpc_call *call = mem_alloc(sizeof *call);
        bson_t doc;
        rpc_call_init(call, client, deadline_after_ms(10000));
        call->done = count_done;
        call->arg = &count;
        rpc_call_start(call, address, &(struct rpc_body){.body = env_doc(&doc, "n", i)});
        bson_destroy(&doc);
    }
    for (int i = 0; i < 10000 && atomic_load(&count) < CALLS; i++)
        clock_sleep_ms(1);
    assert_int_equal(atomic_load(&count), CALLS);
    rpc_client_free(client);
    env_server_end(server);
}

static void call_without_reply_is_over_when_sent(void **state)
{
    (void)state;
    struct keeper keeper = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    char address[64];
    struct rpc_server *server = env_server(keep, &keeper, address);
    struct rpc_client *client = env_client();
    for (unsigned i = 1; i <= 3; i++) {
        struct rpc_call call;
        struct rpc_waiter waiter;
        bson_t doc;
        rpc_waiter_init(&waiter);
        rpc_call_init(&call, client, deadline_after_ms(10000));
        call.waiter = &waiter;
        rpc_call_start(&call, address, &(struct rpc_body){.body = env_doc(&doc, "n", i), .no_reply = true});
        rpc_waiter_wait_all(&waiter);
        assert_int_equal(call.outcome, RPC_REPLY);
        assert_null(call.frame);
        rpc_call_deinit(&call);
        wait_kept(&keeper, i);
        assert_false(rpc_request_wants_reply(keeper.kept[i - 1]));
        rpc_request_reply_doc(keeper.kept[i - 1], bdoc_of(&doc));
        bson_destroy(&doc);
    }
    rpc_client_free(client);
    env_server_end(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_run_returns_the_reply),
        cmocka_unit_test(call_with_pieces_arrives_whole),
        cmocka_unit_test(call_with_a_clients_full_message_and_more_arrives),
        cmocka_unit_test(call_too_large_is_not_sent),
        cmocka_unit_test(call_bad_address_is_not_sent),
        cmocka_unit_test(call_deadline_after_sending_is_unknown),
        cmocka_unit_test(call_replies_are_matched_out_of_order),
        cmocka_unit_test(call_cancel_ends_it_at_once),
        cmocka_unit_test(call_callback_may_free_it),
        cmocka_unit_test(call_without_reply_is_over_when_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
