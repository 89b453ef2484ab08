#include "replication/transport_conn.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "replication/address.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

static const char *const verdicts[] = {"welcome", "another format version", "another set", "another member"};

static struct transport_conn *conn_new(struct transport *transport, bool incoming)
{
    struct transport_conn *conn = mem_alloc(sizeof *conn);
    conn->transport = transport;
    conn->incoming = incoming;
    conn->state = CONN_HANDSHAKE;
    conn->deadline_ms = clock_now_ms() + TRANSPORT_HANDSHAKE_MS;
    conn->next = transport->conns;
    conn->link = &transport->conns;
    if (conn->next != NULL)
        conn->next->link = &conn->next;
    transport->conns = conn;
    if (incoming)
        transport->accepted++;
    return conn;
}

static void conn_free(struct transport_conn *conn)
{
    struct transport *transport = conn->transport;
    CHECK(conn->requests == 0 && conn->tcp == NULL);
    *conn->link = conn->next;
    if (conn->next != NULL)
        conn->next->link = conn->link;
    if (conn->incoming)
        transport->accepted--;
    if (conn->addresses != NULL)
        uv_freeaddrinfo(conn->addresses);
    mem_free(conn);
    /* The transport may wait for this one. */
    transport->open_handles++;
    transport_handle_closed(transport);
}

static void on_tcp_closed(uv_handle_t *handle)
{
    struct transport *transport = handle->data;
    raft_free(handle);
    transport_handle_closed(transport);
}

static void drop_tcp(struct transport_conn *conn)
{
    if (conn->tcp == NULL)
        return;
    conn->tcp->data = conn->transport;
    uv_close((uv_handle_t *)conn->tcp, on_tcp_closed);
    conn->tcp = NULL;
}

static void open_tcp(struct transport_conn *conn)
{
    conn->tcp = raft_malloc(sizeof *conn->tcp);
    CHECK(conn->tcp != NULL);
    uv_tcp_init(conn->transport->loop, conn->tcp);
    conn->tcp->data = conn;
    conn->transport->open_handles++;
}

/* A request came back. True: the connection is dead, the caller must not touch it any more. */
static bool request_done(struct transport_conn *conn)
{
    conn->requests--;
    if (conn->state != CONN_DEAD)
        return false;
    if (conn->requests == 0)
        conn_free(conn);
    return true;
}

void conn_close(struct transport_conn *conn, int status)
{
    if (conn->state == CONN_DEAD)
        return;
    if (conn->state == CONN_RESOLVING)
        uv_cancel((uv_req_t *)&conn->resolve);
    conn->state = CONN_DEAD;
    drop_tcp(conn);
    if (conn->raft_request != NULL) {
        struct raft_uv_connect *request = conn->raft_request;
        conn->raft_request = NULL;
        conn->raft_cb(request, NULL, status);
    }
    if (conn->requests == 0)
        conn_free(conn);
}

/* The handshake is over: the library gets the stream, the rest goes. */
static void hand_over(struct transport_conn *conn)
{
    struct transport *transport = conn->transport;
    uv_stream_t *stream = (uv_stream_t *)conn->tcp;
    struct raft_uv_connect *request = conn->raft_request;
    raft_uv_connect_cb cb = conn->raft_cb;
    uint64_t peer = conn->peer;
    char address[REPLICA_ADDRESS_MAX];
    memcpy(address, conn->peer_address, sizeof address);
    uv_read_stop(stream);
    conn->tcp = NULL;
    conn->raft_request = NULL;
    conn->state = CONN_DEAD;
    if (conn->requests == 0)
        conn_free(conn);
    transport->open_handles--;
    if (request != NULL)
        cb(request, stream, 0);
    else
        transport->accept_cb(&transport->base, peer, address, stream);
}

struct term_write {
    uv_write_t request;
    struct transport_conn *conn;
    uint8_t bytes[TRANSPORT_TERM_BYTES];
};

static void on_term_written(uv_write_t *request, int status)
{
    struct term_write *write = request->data;
    struct transport_conn *conn = write->conn;
    mem_free(write);
    if (!request_done(conn) && status != 0)
        conn_close(conn, RAFT_NOCONNECTION);
}

void conn_send_term(struct transport_conn *conn, uint64_t sequence, uint64_t term)
{
    if (conn->tcp->write_queue_size > TRANSPORT_UNSENT_MAX) {
        conn_close(conn, RAFT_NOCONNECTION);
        return;
    }
    struct term_write *write = mem_alloc(sizeof *write);
    write->conn = conn;
    write->request.data = write;
    store_le64(write->bytes, sequence);
    store_le64(write->bytes + 8, term);
    uv_buf_t buf = uv_buf_init((char *)write->bytes, sizeof write->bytes);
    conn->requests++;
    if (uv_write(&write->request, (uv_stream_t *)conn->tcp, &buf, 1, on_term_written) != 0) {
        conn->requests--;
        mem_free(write);
        conn_close(conn, RAFT_NOCONNECTION);
    }
}

static void on_term_frame(struct transport_conn *conn)
{
    struct transport_hooks *hooks = &conn->transport->hooks;
    uint64_t sequence = load_le64(conn->in), term = load_le64(conn->in + 8);
    conn->got = 0;
    if (conn->incoming)
        conn_send_term(conn, sequence, hooks->current_term(hooks->arg));
    else
        hooks->on_term(hooks->arg, conn->peer, sequence, term);
}

static void begin_terms(struct transport_conn *conn)
{
    conn->state = CONN_TERMS;
    conn->got = 0;
    conn->want = TRANSPORT_TERM_BYTES;
}

static void on_answer(struct transport_conn *conn)
{
    uint8_t verdict = conn->in[5];
    if (load_le32(conn->in) != TRANSPORT_MAGIC) {
        log_warn("REPL", 3101, "The address of a member is answered by something else",
                 LOG_STR("address", conn->peer_address));
        conn_close(conn, RAFT_NOCONNECTION);
    } else if (verdict != VERDICT_WELCOME) {
        log_warn("REPL", 3102, "Refused by a member", LOG_STR("address", conn->peer_address),
                 LOG_STR("because", verdict <= VERDICT_OTHER_MEMBER ? verdicts[verdict] : "unknown"));
        conn_close(conn, RAFT_NOCONNECTION);
    } else if (conn->purpose == PURPOSE_RAFT) {
        hand_over(conn);
    } else {
        begin_terms(conn);
    }
}

static void on_welcome_written(uv_write_t *request, int status)
{
    struct transport_conn *conn = request->data;
    if (request_done(conn))
        return;
    if (status != 0 || conn->out[5] != VERDICT_WELCOME)
        conn_close(conn, RAFT_NOCONNECTION);
    else if (conn->purpose == PURPOSE_RAFT)
        hand_over(conn);
    else
        conn->deadline_ms = INT64_MAX;
}

static void send_handshake(struct transport_conn *conn, size_t len, uv_write_cb cb)
{
    uv_buf_t buf = uv_buf_init((char *)conn->out, (unsigned)len);
    conn->write.data = conn;
    conn->requests++;
    if (uv_write(&conn->write, (uv_stream_t *)conn->tcp, &buf, 1, cb) != 0) {
        conn->requests--;
        conn_close(conn, RAFT_NOCONNECTION);
    }
}

static enum transport_verdict judge(struct transport_conn *conn, size_t set_len)
{
    struct transport *transport = conn->transport;
    const char *set_name = (const char *)conn->in + TRANSPORT_HELLO_BYTES;
    if (conn->in[4] != TRANSPORT_VERSION)
        return VERDICT_OTHER_VERSION;
    if (set_len != strlen(transport->set_name) || memcmp(set_name, transport->set_name, set_len) != 0)
        return VERDICT_OTHER_SET;
    if (load_le64(conn->in + 16) != transport->id)
        return VERDICT_OTHER_MEMBER;
    return VERDICT_WELCOME;
}

/* The fixed part of a hello says how much follows. */
static void on_hello(struct transport_conn *conn)
{
    uint16_t set_len, address_len;
    memcpy(&set_len, conn->in + 6, sizeof set_len);
    memcpy(&address_len, conn->in + 24, sizeof address_len);
    conn->purpose = conn->in[5] == PURPOSE_TERM ? PURPOSE_TERM : PURPOSE_RAFT;
    if (load_le32(conn->in) != TRANSPORT_MAGIC || set_len >= REPLICA_SET_NAME_MAX || address_len == 0 ||
        address_len >= REPLICA_ADDRESS_MAX || (conn->in[5] != PURPOSE_TERM && conn->in[5] != PURPOSE_RAFT)) {
        conn_close(conn, RAFT_NOCONNECTION);
        return;
    }
    conn->want = TRANSPORT_HELLO_BYTES + (size_t)set_len + address_len;
    if (conn->got < conn->want)
        return;
    memcpy(conn->peer_address, conn->in + TRANSPORT_HELLO_BYTES + set_len, address_len);
    conn->peer_address[address_len] = '\0';
    conn->peer = load_le64(conn->in + 8);
    enum transport_verdict verdict = judge(conn, set_len);
    if (verdict != VERDICT_WELCOME)
        log_warn("REPL", 3103, "Refused a connection to this member", LOG_STR("from", conn->peer_address),
                 LOG_STR("because", verdicts[verdict]));
    memset(conn->out, 0, TRANSPORT_ANSWER_BYTES);
    store_le32(conn->out, TRANSPORT_MAGIC);
    conn->out[4] = TRANSPORT_VERSION;
    conn->out[5] = (uint8_t)verdict;
    store_le64(conn->out + 8, conn->transport->id);
    if (conn->purpose == PURPOSE_RAFT || verdict != VERDICT_WELCOME)
        uv_read_stop((uv_stream_t *)conn->tcp);
    else
        begin_terms(conn);
    send_handshake(conn, TRANSPORT_ANSWER_BYTES, on_welcome_written);
}

/* Exactly what is wanted: what comes after the handshake is the library's to read. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct transport_conn *conn = handle->data;
    (void)suggested;
    *buf = uv_buf_init((char *)conn->in + conn->got, (unsigned)(conn->want - conn->got));
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct transport_conn *conn = stream->data;
    (void)buf;
    if (count < 0) {
        conn_close(conn, RAFT_NOCONNECTION);
        return;
    }
    conn->got += (size_t)count;
    if (conn->got < conn->want)
        return;
    if (conn->state == CONN_TERMS)
        on_term_frame(conn);
    else if (conn->incoming)
        on_hello(conn);
    else
        on_answer(conn);
}

static void begin_handshake(struct transport_conn *conn, size_t want)
{
    conn->state = CONN_HANDSHAKE;
    conn->want = want;
    uv_tcp_nodelay(conn->tcp, 1);
    uv_tcp_keepalive(conn->tcp, 1, 5);
    uv_read_start((uv_stream_t *)conn->tcp, on_alloc, on_read);
}

void conn_accept(struct transport *transport)
{
    struct transport_conn *conn = conn_new(transport, true);
    open_tcp(conn);
    if (uv_accept((uv_stream_t *)&transport->listener, (uv_stream_t *)conn->tcp) != 0 ||
        transport->accepted > TRANSPORT_ACCEPTED_MAX) {
        conn_close(conn, RAFT_NOCONNECTION);
        return;
    }
    begin_handshake(conn, TRANSPORT_HELLO_BYTES);
}

static void on_hello_written(uv_write_t *request, int status)
{
    struct transport_conn *conn = request->data;
    if (!request_done(conn) && status != 0)
        conn_close(conn, RAFT_NOCONNECTION);
}

static void send_hello(struct transport_conn *conn)
{
    struct transport *transport = conn->transport;
    uint16_t set_len = (uint16_t)strlen(transport->set_name);
    uint16_t address_len = (uint16_t)strlen(transport->address);
    memset(conn->out, 0, TRANSPORT_HELLO_BYTES);
    store_le32(conn->out, TRANSPORT_MAGIC);
    conn->out[4] = TRANSPORT_VERSION;
    conn->out[5] = (uint8_t)conn->purpose;
    memcpy(conn->out + 6, &set_len, sizeof set_len);
    store_le64(conn->out + 8, transport->id);
    store_le64(conn->out + 16, conn->peer);
    memcpy(conn->out + 24, &address_len, sizeof address_len);
    memcpy(conn->out + TRANSPORT_HELLO_BYTES, transport->set_name, set_len);
    memcpy(conn->out + TRANSPORT_HELLO_BYTES + set_len, transport->address, address_len);
    begin_handshake(conn, TRANSPORT_ANSWER_BYTES);
    send_handshake(conn, TRANSPORT_HELLO_BYTES + (size_t)set_len + address_len, on_hello_written);
}

static void connect_next(struct transport_conn *conn);

static void on_connected(uv_connect_t *request, int status)
{
    struct transport_conn *conn = request->data;
    if (request_done(conn))
        return;
    if (status == 0) {
        send_hello(conn);
        return;
    }
    drop_tcp(conn);
    connect_next(conn);
}

static void connect_next(struct transport_conn *conn)
{
    conn->state = CONN_CONNECTING;
    while (conn->next_address != NULL) {
        const struct addrinfo *address = conn->next_address;
        conn->next_address = address->ai_next;
        open_tcp(conn);
        conn->connect.data = conn;
        conn->requests++;
        if (uv_tcp_connect(&conn->connect, conn->tcp, address->ai_addr, on_connected) == 0)
            return;
        conn->requests--;
        drop_tcp(conn);
    }
    conn_close(conn, RAFT_NOCONNECTION);
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
    struct transport_conn *conn = request->data;
    conn->addresses = addresses;
    if (request_done(conn))
        return;
    if (status != 0) {
        log_debug("REPL", 3104, "The name of a member cannot be resolved", LOG_STR("address", conn->peer_address),
                  LOG_STR("error", uv_strerror(status)));
        conn_close(conn, RAFT_NOCONNECTION);
        return;
    }
    conn->next_address = addresses;
    connect_next(conn);
}

struct transport_conn *conn_open(struct transport *transport, enum transport_purpose purpose, uint64_t peer,
                                 const char *address, struct raft_uv_connect *request, raft_uv_connect_cb cb)
{
    struct address parsed;
    char service[8];
    if (!address_parse(address, &parsed, NULL))
        return NULL;
    snprintf(service, sizeof service, "%u", (unsigned)parsed.raft_port);
    struct transport_conn *conn = conn_new(transport, false);
    conn->state = CONN_RESOLVING;
    conn->purpose = purpose;
    conn->peer = peer;
    snprintf(conn->peer_address, sizeof conn->peer_address, "%s", address);
    conn->resolve.data = conn;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    if (uv_getaddrinfo(transport->loop, &conn->resolve, on_resolved, parsed.host, service, &hints) != 0) {
        conn->state = CONN_DEAD;
        conn_free(conn);
        return NULL;
    }
    conn->requests++;
    conn->raft_request = request;
    conn->raft_cb = cb;
    if (request != NULL)
        request->cb = cb;
    return conn;
}
