/* One connection of the server, and the requests that came in on it. */
#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"
#include "rpc/protocol.h"
#include "rpc/server_impl.h"

#include <stdio.h>
#include <string.h>

enum { STUCK_MAX_MS = 30000 }; /* a reply that the other side doesn't take for that long */

static void conn_unref(struct rpc_conn *conn)
{
    if (atomic_fetch_sub_explicit(&conn->refs, 1, memory_order_acq_rel) > 1)
        return;
    struct rpc_server *server = conn->server;
    pthread_mutex_destroy(&conn->mutex);
    mem_free(conn);
    server_memory_gone(server);
}

struct link *server_conn_link(struct rpc_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    struct link *link = conn->link != NULL ? link_ref(conn->link) : NULL;
    pthread_mutex_unlock(&conn->mutex);
    return link;
}

bool server_conn_is_dead(struct rpc_conn *conn, int64_t now_ms)
{
    struct link *link = server_conn_link(conn);
    if (link == NULL)
        return false;
    int64_t stuck_ms = link_stuck_since_ms(link);
    int64_t silence_ms = now_ms - link_alive_ms(link);
    link_unref(link);
    bool paused = server_conn_is_paused(conn); /* we don't listen: the silence is ours */
    return (silence_ms > RPC_SERVER_SILENCE_MAX_MS && !paused) || (stuck_ms != 0 && now_ms - stuck_ms > STUCK_MAX_MS);
}

/* Queues the answer of rpc itself to a hello or a ping; it leaves when the frames at hand are through. */
static void answer(struct link *link, uint32_t request_id, bool hello)
{
    bson_t doc;
    bson_init(&doc);
    BSON_APPEND_DOUBLE(&doc, "ok", 1.0);
    if (hello)
        BSON_APPEND_INT32(&doc, "version", RPC_PROTOCOL_VERSION);
    struct wire_frame *frame = wire_frame_of_doc(bdoc_of(&doc));
    bson_destroy(&doc);
    wire_set_ids(frame->data, 0, request_id);
    uint64_t position;
    link_queue_frame(link, frame, &position);
}

void server_conn_beat(struct link *link)
{
    answer(link, 0, false);
    link_flush(link);
}

bool server_conn_is_paused(struct rpc_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    bool paused = conn->paused;
    pthread_mutex_unlock(&conn->mutex);
    return paused;
}

/* The first frame. */
static bool take_hello(struct rpc_conn *conn, struct link *link, const struct wire_msg *msg)
{
    struct bval version;
    if (!bdoc_has(msg->body, RPC_HELLO_FIELD) || !bdoc_find(msg->body, "version", &version) ||
        version.type != BT_INT32 || bval_i32(&version) != RPC_PROTOCOL_VERSION) {
        log_warn("NETWORK", 4202, "Connection without a proper hello", LOG_STR("peer", conn->peer));
        return false;
    }
    conn->greeted = true;
    link_set_max_frame(link, WIRE_MAX_INTERNAL_BYTES);
    answer(link, msg->header.request_id, true);
    return true;
}

static bool is_ping(const struct wire_msg *msg)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, msg->body);
    return biter_next(&iter, &elem) && strcmp(elem.key, RPC_PING_FIELD) == 0;
}

/* Counts a request in; stops reading at the limits. */
static void count_in(struct rpc_conn *conn, struct link *link, uint32_t bytes)
{
    const struct rpc_server_options *options = &conn->server->options;
    atomic_fetch_add_explicit(&conn->refs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&conn->server->requests, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&conn->server->handled, 1, memory_order_relaxed);
    pthread_mutex_lock(&conn->mutex);
    conn->in_flight++;
    conn->bytes_in_flight += bytes;
    if (!conn->paused &&
        (conn->in_flight >= options->max_requests_per_conn || conn->bytes_in_flight >= options->max_bytes_per_conn)) {
        conn->paused = true;
        link_pause(link);
    }
    pthread_mutex_unlock(&conn->mutex);
}

/* Counts it out; reads again once half of the limits is free. Returns the link with a reference, or NULL. */
static struct link *count_out(struct rpc_conn *conn, uint32_t bytes, bool *resume)
{
    const struct rpc_server_options *options = &conn->server->options;
    atomic_fetch_sub_explicit(&conn->server->requests, 1, memory_order_relaxed);
    pthread_mutex_lock(&conn->mutex);
    conn->in_flight--;
    conn->bytes_in_flight -= bytes;
    struct link *link = conn->link != NULL ? link_ref(conn->link) : NULL;
    *resume = conn->paused && conn->in_flight <= options->max_requests_per_conn / 2 &&
              conn->bytes_in_flight <= options->max_bytes_per_conn / 2;
    if (*resume)
        conn->paused = false;
    pthread_mutex_unlock(&conn->mutex);
    return link;
}

/* Whether one of nng's threads is lent to a request. One at a time: nng needs the others to go on. */
static atomic_bool thread_lent;
/* The request that this thread has been lent to, until after_read. */
static _Thread_local struct rpc_request *deferred;

static bool is_alone(struct rpc_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    bool alone = conn->in_flight == 1 && conn->link != NULL && link_is_delivering(conn->link);
    pthread_mutex_unlock(&conn->mutex);
    return alone;
}

bool rpc_request_dispatch(struct rpc_request *request, struct pool *pool)
{
    if (deferred == NULL && is_alone(request->conn) && !atomic_exchange(&thread_lent, true)) {
        deferred = request;
        server_job_begins(request->conn->server);
        return true;
    }
    return pool_submit(pool, &request->job);
}

static void after_read(void)
{
    struct rpc_request *request = deferred;
    if (request == NULL)
        return;
    deferred = NULL;
    struct rpc_server *server = request->conn->server; /* the job frees the request */
    request->job.run(&request->job);
    atomic_store(&thread_lent, false);
    server_memory_gone(server);
}

static bool on_request(struct rpc_conn *conn, struct link *link, struct wire_frame *frame)
{
    struct rpc_server *server = conn->server;
    struct rpc_request *request = mem_alloc(sizeof *request);
    struct err err;
    bool good = wire_msg_parse(frame->data, frame->len, WIRE_PARSE_CHECKED, &request->msg, &err) &&
                request->msg.header.opcode == WIRE_OP_MSG;
    if (!good) {
        log_warn("NETWORK", 4203, "Broken message", LOG_STR("peer", conn->peer));
    } else if (!conn->greeted) {
        good = take_hello(conn, link, &request->msg);
    } else if (is_ping(&request->msg)) {
        answer(link, request->msg.header.request_id, false);
    } else if (link_queued_bytes(link) > server->options.max_bytes_per_conn) {
        log_warn("NETWORK", 4205, "Replies are not taken, closing the connection", LOG_STR("peer", conn->peer));
        good = false;
    } else {
        request->frame = frame;
        request->arg = server->options.arg;
        request->conn = conn;
        request->received_ms = link_heard_ms(link);
        count_in(conn, link, frame->len);
        server->options.handle(server->options.arg, request);
        return true;
    }
    if (!good)
        atomic_fetch_add(&server->refused, 1);
    mem_free(request);
    wire_frame_unref(frame);
    return good;
}

static bool on_frame(void *arg, struct wire_frame *frame)
{
    struct rpc_conn *conn = arg;
    struct link *link = server_conn_link(conn);
    if (link == NULL) {
        wire_frame_unref(frame);
        return false;
    }
    bool good = on_request(conn, link, frame);
    link_unref(link);
    return good;
}

static void on_closed(void *arg)
{
    struct rpc_conn *conn = arg;
    atomic_store(&conn->closed, true);
    server_remove_conn(conn->server, conn);
    pthread_mutex_lock(&conn->mutex);
    struct link *link = conn->link;
    conn->link = NULL;
    pthread_mutex_unlock(&conn->mutex);
    link_unref(link);
}

static void on_freed(void *arg)
{
    struct rpc_conn *conn = arg;
    server_link_gone(conn->server);
    conn_unref(conn);
}

void server_conn_open(struct rpc_server *server, nng_stream *stream)
{
    static const struct link_hooks hooks = {on_frame, on_closed, on_freed, after_read};
    struct rpc_conn *conn = mem_alloc(sizeof *conn);
    conn->server = server;
    atomic_init(&conn->refs, 1);
    pthread_mutex_init(&conn->mutex, NULL);
    struct link *link = link_new(stream, &hooks, conn, RPC_HELLO_MAX_BYTES);
    conn->link = link_ref(link);
    snprintf(conn->peer, sizeof conn->peer, "%s", link_peer_name(link));
    if (server_add_conn(server, conn)) {
        link_start(link);
    } else {
        atomic_fetch_add(&server->refused, 1);
        log_warn("NETWORK", 4204, "Too many connections, refused", LOG_STR("peer", conn->peer));
        link_close(link);
    }
    link_unref(link);
}

/* Ends a request; `reply` (may be NULL) is taken. */
static void request_end(struct rpc_request *request, struct wire_frame *reply)
{
    struct rpc_conn *conn = request->conn;
    bool resume;
    struct link *link = count_out(conn, request->frame->len, &resume);
    if (link != NULL && reply != NULL) {
        uint64_t position;
        link_queue_frame(link, reply, &position);
        link_flush(link);
    } else {
        wire_frame_unref(reply);
    }
    if (link != NULL && resume)
        link_resume(link);
    if (link != NULL)
        link_unref(link);
    wire_frame_unref(request->frame);
    mem_free(request);
    conn_unref(conn);
}

void rpc_request_reply(struct rpc_request *request, struct wire_frame *reply)
{
    CHECK(wire_frame_is_sole(reply) && reply->len >= WIRE_HEADER_BYTES);
    if (!rpc_request_wants_reply(request) || fault_hit(FAULT_rpc_drop_reply)) {
        wire_frame_unref(reply);
        reply = NULL;
    } else {
        wire_set_ids(reply->data, 0, request->msg.header.request_id);
    }
    request_end(request, reply);
}

void rpc_request_reply_doc(struct rpc_request *request, struct bdoc body)
{
    rpc_request_reply(request, wire_frame_of_doc(body));
}

void rpc_request_drop(struct rpc_request *request)
{
    request_end(request, NULL);
}

bool rpc_request_is_orphaned(const struct rpc_request *request)
{
    return atomic_load(&request->conn->closed);
}

const char *rpc_request_peer(const struct rpc_request *request)
{
    return request->conn->peer;
}

bool rpc_request_wants_reply(const struct rpc_request *request)
{
    return (request->msg.flags & WIRE_MORE_TO_COME) == 0;
}
