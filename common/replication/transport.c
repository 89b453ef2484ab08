#include "replication/transport.h"

#include "base/clock.h"
#include "base/log.h"
#include "replication/address.h"
#include "replication/transport_conn.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

static struct transport *of(struct raft_uv_transport *base)
{
    return base->impl;
}

static int on_init(struct raft_uv_transport *base, raft_id id, const char *address)
{
    struct transport *transport = of(base);
    transport->id = id;
    snprintf(transport->address, sizeof transport->address, "%s", address);
    return 0;
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct transport *transport = listener->data;
    if (status == 0 && !transport->closing)
        conn_accept(transport);
}

static void on_sweep(uv_timer_t *timer)
{
    struct transport *transport = timer->data;
    int64_t now = clock_now_ms();
    struct transport_conn *next;
    for (struct transport_conn *conn = transport->conns; conn != NULL; conn = next) {
        next = conn->next;
        if (conn->state != CONN_TERMS && now > conn->deadline_ms)
            conn_close(conn, RAFT_NOCONNECTION);
    }
}

static int listen_failed(struct transport *transport, const char *host, uint16_t port, int rv)
{
    snprintf(transport->base.errmsg, sizeof transport->base.errmsg, "listen on %.100s port %u: %s", host,
             (unsigned)port, uv_strerror(rv));
    return RAFT_IOERR;
}

static int bind_any(struct transport *transport, uint16_t port)
{
    struct sockaddr_in6 any6;
    struct sockaddr_in any4;
    uv_ip6_addr("::", port, &any6);
    int rv = uv_tcp_bind(&transport->listener, (const struct sockaddr *)&any6, 0);
    if (rv == 0)
        return 0;
    uv_ip4_addr("0.0.0.0", port, &any4);
    return uv_tcp_bind(&transport->listener, (const struct sockaddr *)&any4, 0);
}

/* Blocks while the name is looked up; done once, at start. */
static int bind_host(struct transport *transport, uint16_t port)
{
    if (transport->bind_host[0] == '\0')
        return bind_any(transport, port);
    char service[8];
    snprintf(service, sizeof service, "%u", (unsigned)port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    uv_getaddrinfo_t request;
    int rv = uv_getaddrinfo(transport->loop, &request, NULL, transport->bind_host, service, &hints);
    if (rv != 0)
        return rv;
    rv = uv_tcp_bind(&transport->listener, request.addrinfo->ai_addr, 0);
    uv_freeaddrinfo(request.addrinfo);
    return rv;
}

static int on_listen(struct raft_uv_transport *base, raft_uv_accept_cb cb)
{
    struct transport *transport = of(base);
    struct address own;
    struct err err;
    transport->accept_cb = cb;
    if (!address_parse(transport->address, &own, &err)) {
        snprintf(base->errmsg, sizeof base->errmsg, "%.200s", err.msg);
        return RAFT_INVALID;
    }
    uv_tcp_init(transport->loop, &transport->listener);
    uv_timer_init(transport->loop, &transport->sweep);
    transport->listener.data = transport;
    transport->sweep.data = transport;
    transport->open_handles += 2;
    transport->listening = true;
    int rv = bind_host(transport, own.raft_port);
    if (rv == 0)
        rv = uv_listen((uv_stream_t *)&transport->listener, TRANSPORT_BACKLOG, on_connection);
    if (rv != 0)
        return listen_failed(transport, transport->bind_host[0] == '\0' ? "*" : transport->bind_host, own.raft_port,
                             rv);
    uv_timer_start(&transport->sweep, on_sweep, 1000, 1000);
    return 0;
}

static int on_connect(struct raft_uv_transport *base, struct raft_uv_connect *request, raft_id id, const char *address,
                      raft_uv_connect_cb cb)
{
    struct transport *transport = of(base);
    if (transport->closing)
        return RAFT_CANCELED;
    return conn_open(transport, PURPOSE_RAFT, id, address, request, cb) == NULL ? RAFT_NOCONNECTION : 0;
}

void transport_handle_closed(struct transport *transport)
{
    transport->open_handles--;
    if (transport->open_handles == 0 && transport->conns == NULL && transport->close_cb != NULL) {
        raft_uv_transport_close_cb cb = transport->close_cb;
        transport->close_cb = NULL;
        cb(&transport->base);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    transport_handle_closed(handle->data);
}

static void on_close(struct raft_uv_transport *base, raft_uv_transport_close_cb cb)
{
    struct transport *transport = of(base);
    transport->closing = true;
    struct transport_conn *next;
    for (struct transport_conn *conn = transport->conns; conn != NULL; conn = next) {
        next = conn->next;
        conn_close(conn, RAFT_CANCELED);
    }
    transport->close_cb = cb;
    if (!transport->listening) {
        transport->open_handles++;
        transport_handle_closed(transport);
        return;
    }
    transport->listening = false;
    uv_close((uv_handle_t *)&transport->listener, on_handle_closed);
    uv_close((uv_handle_t *)&transport->sweep, on_handle_closed);
}

void transport_init(struct transport *transport, uv_loop_t *loop, const char *set_name, const char *host,
                    const struct transport_hooks *hooks)
{
    memset(transport, 0, sizeof *transport);
    transport->loop = loop;
    transport->hooks = *hooks;
    snprintf(transport->set_name, sizeof transport->set_name, "%s", set_name);
    if (host != NULL)
        snprintf(transport->bind_host, sizeof transport->bind_host, "%s", host);
    transport->base = (struct raft_uv_transport){
        .version = 1,
        .impl = transport,
        .init = on_init,
        .listen = on_listen,
        .connect = on_connect,
        .close = on_close,
    };
}

void transport_ask_term(struct transport *transport, uint64_t peer, const char *address, uint64_t sequence,
                        uint64_t term)
{
    if (transport->closing || !transport->listening)
        return;
    for (struct transport_conn *conn = transport->conns; conn != NULL; conn = conn->next) {
        if (conn->incoming || conn->purpose != PURPOSE_TERM || conn->peer != peer || conn->state == CONN_DEAD)
            continue;
        if (conn->state == CONN_TERMS)
            conn_send_term(conn, sequence, term);
        return;
    }
    (void)conn_open(transport, PURPOSE_TERM, peer, address, NULL, NULL);
}
