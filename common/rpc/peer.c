/* The connection to one address: dialing, greeting, sending, silence. */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "rpc/client_impl.h"
#include "rpc/protocol.h"

#include <stdio.h>
#include <string.h>

static const struct state_table peer_states = {
    .machine = "rpc peer",
    .count = 4,
    .names = {"idle", "dialing", "greeting", "ready"},
    .next = {[PEER_IDLE] = STATE_BIT(PEER_DIALING),
             [PEER_DIALING] = STATE_BIT(PEER_IDLE) | STATE_BIT(PEER_GREETING),
             [PEER_GREETING] = STATE_BIT(PEER_IDLE) | STATE_BIT(PEER_READY),
             [PEER_READY] = STATE_BIT(PEER_IDLE)},
};

static void on_dialed(void *arg);

struct rpc_peer *peer_new(struct rpc_client *client, const char *address)
{
    struct rpc_peer *peer = mem_alloc(sizeof *peer);
    char url[RPC_ADDRESS_MAX + 8];
    snprintf(peer->address, sizeof peer->address, "%s", address);
    snprintf(url, sizeof url, "tcp://%s", address);
    if (nng_stream_dialer_alloc(&peer->dialer, url) != 0) {
        mem_free(peer);
        return NULL;
    }
    CHECK(nng_aio_alloc(&peer->dial, on_dialed, peer) == 0);
    nng_aio_set_timeout(peer->dial, RPC_DIAL_TIMEOUT_MS);
    pthread_mutex_init(&peer->mutex, NULL);
    thread_cond_init(&peer->quiet);
    peer->client = client;
    peer->pause_ms = RPC_RECONNECT_MIN_MS;
    state_init(&peer->state, &peer_states, PEER_IDLE);
    return peer;
}

void peer_stop(struct rpc_peer *peer)
{
    struct rpc_call *over = NULL;
    pthread_mutex_lock(&peer->mutex);
    peer->closing = true;
    struct link *link = peer->conn != NULL ? link_ref(peer->conn->link) : NULL;
    pthread_mutex_unlock(&peer->mutex);
    nng_aio_abort(peer->dial, NNG_ECANCELED);
    nng_aio_stop(peer->dial); /* waits for on_dialed, which makes no connection any more */
    if (link != NULL) {
        link_close(link);
        link_unref(link);
    }
    pthread_mutex_lock(&peer->mutex);
    calls_end_all_locked(peer, NULL, ERR_ShutdownInProgress, "shutting down", &over);
    while (peer->conn_count > 0)
        pthread_cond_wait(&peer->quiet, &peer->mutex);
    pthread_mutex_unlock(&peer->mutex);
    call_complete_list(over);
}

void peer_free(struct rpc_peer *peer)
{
    nng_stream_dialer_close(peer->dialer);
    nng_stream_dialer_free(peer->dialer);
    nng_aio_free(peer->dial);
    pthread_cond_destroy(&peer->quiet);
    pthread_mutex_destroy(&peer->mutex);
    mem_free(peer);
}

/* The connection failed or ended: everything under way ends, the next attempt comes after a pause. */
static void peer_reset_locked(struct rpc_peer *peer, struct link *link, int32_t code, const char *text,
                              struct rpc_call **over)
{
    state_move(&peer->state, PEER_IDLE);
    peer->conn = NULL;
    peer->next_dial_ms = clock_now_ms() + peer->pause_ms;
    peer->pause_ms *= 2;
    if (peer->pause_ms > RPC_RECONNECT_MAX_MS)
        peer->pause_ms = RPC_RECONNECT_MAX_MS;
    calls_end_all_locked(peer, link, code, text, over);
}

static void queue_doc(struct link *link, const bson_t *doc)
{
    uint64_t position;
    link_queue_frame(link, wire_frame_of_doc(bdoc_of(doc)), &position);
}

static void queue_hello(struct rpc_peer *peer, struct link *link)
{
    bson_t hello;
    bson_init(&hello);
    BSON_APPEND_INT32(&hello, RPC_HELLO_FIELD, 1);
    BSON_APPEND_INT32(&hello, "version", RPC_PROTOCOL_VERSION);
    BSON_APPEND_UTF8(&hello, "name", peer->client->options.name);
    queue_doc(link, &hello);
    bson_destroy(&hello);
}

/* The first frame from the server: {ok: 1, version}. */
static bool hello_is_good(const struct wire_frame *frame)
{
    struct wire_msg msg;
    struct bval ok;
    struct bval version;
    return wire_msg_parse(frame->data, frame->len, WIRE_PARSE_CHECKED, &msg, NULL) && bdoc_find(msg.body, "ok", &ok) &&
           bval_truthy(&ok) && bdoc_find(msg.body, "version", &version) && version.type == BT_INT32 &&
           bval_i32(&version) == RPC_PROTOCOL_VERSION;
}

/* Gives the requests that waited for the connection to it. Returns the calls that want no reply. */
static struct rpc_call *send_waiting_locked(struct rpc_peer *peer, struct link *link)
{
    struct rpc_call *over = NULL;
    struct rpc_call *newer;
    for (struct rpc_call *call = peer->oldest; call != NULL; call = newer) {
        newer = call->newer;
        if (!link_queue_all(link, call->unsent, &call->position))
            break; /* it closed already: on_closed follows and ends the rest */
        mem_free(call->unsent);
        call->unsent = NULL;
        call->state = CALL_QUEUED;
        if (call->no_reply) {
            call->outcome = RPC_REPLY;
            calls_remove_locked(peer, call);
            call->next = over;
            over = call;
        }
    }
    return over;
}

static bool on_greeted(struct peer_conn *conn, struct wire_frame *frame)
{
    struct rpc_peer *peer = conn->peer;
    struct rpc_call *over = NULL;
    bool good = hello_is_good(frame);
    wire_frame_unref(frame);
    pthread_mutex_lock(&peer->mutex);
    if (good && peer->conn == conn) {
        state_move(&peer->state, PEER_READY);
        peer->pause_ms = RPC_RECONNECT_MIN_MS;
        link_set_max_frame(conn->link, WIRE_MAX_INTERNAL_BYTES);
        over = send_waiting_locked(peer, conn->link);
    }
    pthread_mutex_unlock(&peer->mutex);
    call_complete_list(over);
    return good;
}

static bool on_frame(void *arg, struct wire_frame *frame)
{
    struct peer_conn *conn = arg;
    struct rpc_peer *peer = conn->peer;
    struct wire_header header;
    if (!wire_header_parse(frame->data, &header, NULL)) {
        wire_frame_unref(frame);
        return false;
    }
    pthread_mutex_lock(&peer->mutex);
    bool greeting = peer->conn == conn && peer->state.now == PEER_GREETING;
    struct rpc_call *call = greeting ? NULL : calls_find_locked(peer, header.response_to);
    if (call != NULL)
        calls_remove_locked(peer, call);
    pthread_mutex_unlock(&peer->mutex);
    if (greeting)
        return on_greeted(conn, frame);
    if (call == NULL) { /* the answer to a ping, or to a call that was given up */
        wire_frame_unref(frame);
        return true;
    }
    atomic_fetch_add_explicit(&peer->client->replies, 1, memory_order_relaxed);
    call->frame = frame;
    struct err err;
    bool good = wire_msg_parse(frame->data, frame->len, WIRE_PARSE_TRUSTED, &call->reply, &err);
    if (good)
        call->outcome = RPC_REPLY;
    else
        call_fail(call, RPC_UNKNOWN, ERR_ProtocolError, "%s sent a broken reply: %.60s", peer->address, err.msg);
    call_complete(call);
    return good;
}

static void on_closed(void *arg)
{
    struct peer_conn *conn = arg;
    struct rpc_peer *peer = conn->peer;
    struct rpc_call *over = NULL;
    pthread_mutex_lock(&peer->mutex);
    bool greeting = peer->state.now == PEER_GREETING;
    if (peer->conn == conn)
        peer_reset_locked(peer, conn->link, ERR_HostUnreachable,
                          greeting ? "the connection was closed before the hello" : "the connection was lost", &over);
    bool closing = peer->closing;
    pthread_mutex_unlock(&peer->mutex);
    if (!closing)
        log_info("NETWORK", 4101, "Connection lost", LOG_STR("peer", peer->address));
    call_complete_list(over);
    link_unref(conn->link);
}

static void on_freed(void *arg)
{
    struct peer_conn *conn = arg;
    struct rpc_peer *peer = conn->peer;
    mem_free(conn);
    pthread_mutex_lock(&peer->mutex);
    if (--peer->conn_count == 0)
        pthread_cond_signal(&peer->quiet);
    pthread_mutex_unlock(&peer->mutex);
}

static void peer_connected(struct rpc_peer *peer, nng_stream *stream)
{
    static const struct link_hooks hooks = {on_frame, on_closed, on_freed, NULL};
    struct peer_conn *conn = mem_alloc(sizeof *conn);
    conn->peer = peer;
    conn->link = link_new(stream, &hooks, conn, RPC_HELLO_MAX_BYTES);
    struct link *link = link_ref(conn->link);
    queue_hello(peer, link);
    pthread_mutex_lock(&peer->mutex);
    peer->conn_count++;
    bool closing = peer->closing;
    struct rpc_call *over = NULL;
    if (closing)
        peer_reset_locked(peer, NULL, ERR_ShutdownInProgress, "shutting down", &over);
    else
        state_move(&peer->state, PEER_GREETING);
    peer->conn = closing ? NULL : conn;
    peer->greeted_ms = clock_now_ms();
    peer->pinged_ms = 0;
    pthread_mutex_unlock(&peer->mutex);
    atomic_fetch_add_explicit(&peer->client->connects, 1, memory_order_relaxed);
    call_complete_list(over);
    if (closing)
        link_close(link);
    link_start(link);
    link_flush(link);
    link_unref(link);
    ticker_poke(peer->client->ticker, clock_now_ms() + RPC_PING_AFTER_MS);
}

/* The attempt to connect ended. On nng's thread. */
static void on_dialed(void *arg)
{
    struct rpc_peer *peer = arg;
    int result = nng_aio_result(peer->dial);
    if (result == 0) {
        peer_connected(peer, nng_aio_get_output(peer->dial, 0));
        return;
    }
    struct rpc_call *over = NULL;
    pthread_mutex_lock(&peer->mutex);
    bool first = peer->pause_ms == RPC_RECONNECT_MIN_MS;
    peer_reset_locked(peer, NULL, ERR_HostUnreachable, nng_strerror(result), &over);
    pthread_mutex_unlock(&peer->mutex);
    if (first)
        log_info("NETWORK", 4102, "Cannot connect", LOG_STR("peer", peer->address),
                 LOG_STR("error", nng_strerror(result)));
    call_complete_list(over);
}

/* Begins an attempt when one is due. */
static void peer_dial_locked(struct rpc_peer *peer, int64_t now_ms)
{
    if (peer->closing || peer->state.now != PEER_IDLE || now_ms < peer->next_dial_ms)
        return;
    state_move(&peer->state, PEER_DIALING);
    nng_stream_dialer_dial(peer->dialer, peer->dial);
}

/* Keeps the request until there is a connection. */
static void keep_unsent(struct rpc_call *call, const struct wire_piece *pieces, unsigned count)
{
    call->unsent = mem_alloc(sizeof *call->unsent);
    outq_append(call->unsent, pieces, count);
    call->state = CALL_WAITING;
}

static bool peer_refuses_locked(struct rpc_peer *peer, struct rpc_call *call)
{
    const struct rpc_client_options *options = &peer->client->options;
    bool too_much = peer->call_count >= options->max_calls_per_peer ||
                    (peer->conn != NULL && link_queued_bytes(peer->conn->link) > options->max_bytes_per_peer);
    if (peer->closing)
        call_fail(call, RPC_NOT_SENT, ERR_ShutdownInProgress, "shutting down");
    else if (too_much)
        call_fail(call, RPC_NOT_SENT, ERR_LockBusy, "too many requests under way to %s", peer->address);
    return peer->closing || too_much;
}

bool peer_start_call(struct rpc_peer *peer, struct rpc_call *call, const struct wire_piece *pieces, unsigned count)
{
    struct link *link = NULL;
    int64_t poke_ms = call->deadline_ms;
    pthread_mutex_lock(&peer->mutex);
    if (peer_refuses_locked(peer, call)) {
        pthread_mutex_unlock(&peer->mutex);
        return false;
    }
    bool is_first = peer->call_count == 0;
    bool queued = peer->state.now == PEER_READY && link_queue(peer->conn->link, pieces, count, &call->position);
    if (queued) {
        link = link_ref(peer->conn->link);
        call->state = CALL_QUEUED;
    } else {
        keep_unsent(call, pieces, count);
        peer_dial_locked(peer, clock_now_ms());
        if (peer->state.now == PEER_IDLE && peer->next_dial_ms < poke_ms)
            poke_ms = peer->next_dial_ms;
    }
    bool over = queued && call->no_reply;
    if (!over)
        calls_add_locked(peer, call); /* before the flush: the reply may be here at once */
    if (is_first && peer->busy_ms + RPC_PING_AFTER_MS < poke_ms)
        poke_ms = peer->busy_ms + RPC_PING_AFTER_MS;
    pthread_mutex_unlock(&peer->mutex);
    if (over) {
        call->outcome = RPC_REPLY;
        call_complete(call);
    }
    if (link != NULL) {
        link_flush(link);
        link_unref(link);
    }
    ticker_poke(peer->client->ticker, poke_ms);
    return true;
}

bool peer_withdraw_call(struct rpc_peer *peer, struct rpc_call *call, bool *sent)
{
    pthread_mutex_lock(&peer->mutex);
    bool found = calls_find_locked(peer, call->request_id) == call;
    if (found) {
        *sent = call->state == CALL_QUEUED; /* its bytes can't be taken back from the queue */
        calls_remove_locked(peer, call);
    }
    pthread_mutex_unlock(&peer->mutex);
    return found;
}

static void queue_ping(struct link *link)
{
    bson_t ping;
    bson_init(&ping);
    BSON_APPEND_INT32(&ping, RPC_PING_FIELD, 1);
    queue_doc(link, &ping);
    bson_destroy(&ping);
}

/* Watches for silence. Returns when to look again; *dead: the other side is given up. A ping waits behind a large
 * request, so bytes of ours that are taken count like an answer. */
static int64_t watch_locked(struct rpc_peer *peer, int64_t now_ms, bool late, bool *dead, bool *pinged)
{
    int64_t alive_ms = link_alive_ms(peer->conn->link);
    if (peer->state.now == PEER_GREETING) {
        int64_t until_ms = peer->greeted_ms + RPC_HELLO_TIMEOUT_MS;
        *dead = now_ms >= until_ms && !late;
        return until_ms > now_ms ? until_ms : now_ms + RPC_PING_AFTER_MS;
    }
    if (peer->pinged_ms > alive_ms) { /* no answer yet */
        if (late)
            peer->pinged_ms = now_ms;
        int64_t until_ms = peer->pinged_ms + RPC_SILENCE_MAX_MS - RPC_PING_AFTER_MS;
        *dead = now_ms >= until_ms;
        return until_ms;
    }
    int64_t since_ms = peer->call_count > 0 && peer->busy_ms > alive_ms ? peer->busy_ms : alive_ms;
    int64_t due_ms = since_ms + (peer->call_count > 0 ? RPC_PING_AFTER_MS : RPC_IDLE_PING_MS);
    if (now_ms < due_ms)
        return due_ms;
    queue_ping(peer->conn->link);
    peer->pinged_ms = now_ms;
    *pinged = true;
    return now_ms + RPC_SILENCE_MAX_MS - RPC_PING_AFTER_MS;
}

int64_t peer_tick(struct rpc_peer *peer, int64_t now_ms, bool late)
{
    struct rpc_call *over = NULL;
    bool dead = false;
    bool pinged = false;
    pthread_mutex_lock(&peer->mutex);
    int64_t next_ms = calls_expire_locked(peer, now_ms, &over);
    if (peer->state.now == PEER_IDLE && peer->call_count > 0) {
        peer_dial_locked(peer, now_ms);
        if (peer->state.now == PEER_IDLE && peer->next_dial_ms < next_ms)
            next_ms = peer->next_dial_ms;
    }
    struct link *link = peer->conn != NULL ? link_ref(peer->conn->link) : NULL;
    if (link != NULL) {
        int64_t look_ms = watch_locked(peer, now_ms, late, &dead, &pinged);
        if (look_ms < next_ms)
            next_ms = look_ms;
    }
    pthread_mutex_unlock(&peer->mutex);
    call_complete_list(over);
    if (dead) {
        log_warn("NETWORK", 4103, "No sign of life, closing the connection", LOG_STR("peer", peer->address));
        link_close(link);
    } else if (pinged) {
        link_flush(link);
    }
    if (link != NULL)
        link_unref(link);
    return next_ms;
}
