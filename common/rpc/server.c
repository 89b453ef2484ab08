#include "rpc/server.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "rpc/protocol.h"
#include "rpc/server_impl.h"

#include <stdio.h>
#include <string.h>

enum {
    TICK_MS = 1000,
    CLOSE_BATCH = 64, /* connections closed per look at the list */
};

bool server_add_conn(struct rpc_server *server, struct rpc_conn *conn)
{
    pthread_mutex_lock(&server->mutex);
    server->links++;
    server->memory++;
    conn->listed = !server->stopping && server->conn_count < server->options.max_conns;
    bool listed = conn->listed;
    if (listed) {
        conn->next = server->conns;
        if (conn->next != NULL)
            conn->next->prev = conn;
        server->conns = conn;
        server->conn_count++;
    }
    pthread_mutex_unlock(&server->mutex);
    return listed;
}

static void unlist_locked(struct rpc_server *server, struct rpc_conn *conn)
{
    if (conn->prev != NULL)
        conn->prev->next = conn->next;
    else
        server->conns = conn->next;
    if (conn->next != NULL)
        conn->next->prev = conn->prev;
    server->conn_count--;
    conn->listed = false;
}

void server_remove_conn(struct rpc_server *server, struct rpc_conn *conn)
{
    pthread_mutex_lock(&server->mutex);
    if (conn->listed)
        unlist_locked(server, conn);
    pthread_mutex_unlock(&server->mutex);
}

/* The signal under the mutex: whoever waits frees the server. */
static void count_down(struct rpc_server *server, unsigned *counter)
{
    pthread_mutex_lock(&server->mutex);
    if (--*counter == 0)
        pthread_cond_broadcast(&server->quiet);
    pthread_mutex_unlock(&server->mutex);
}

void server_link_gone(struct rpc_server *server)
{
    count_down(server, &server->links);
}

void server_memory_gone(struct rpc_server *server)
{
    count_down(server, &server->memory);
}

void server_job_begins(struct rpc_server *server)
{
    pthread_mutex_lock(&server->mutex);
    server->memory++;
    pthread_mutex_unlock(&server->mutex);
}

/* A connection came in, or accepting failed. On nng's thread, one at a time. */
static void on_accept(void *arg)
{
    struct rpc_server *server = arg;
    int result = nng_aio_result(server->accept);
    if (result == 0) {
        atomic_fetch_add(&server->accepted, 1);
        server_conn_open(server, nng_aio_get_output(server->accept, 0));
    } else if (result != NNG_ECLOSED && result != NNG_ECANCELED) {
        log_warn("NETWORK", 4201, "Cannot accept a connection", LOG_STR("error", nng_strerror(result)));
    }
    pthread_mutex_lock(&server->mutex);
    if (server->stopping)
        ;
    else if (result == 0)
        nng_stream_listener_accept(server->listener, server->accept);
    else
        server->accept_failed = true; /* out of descriptors, say: not at once again */
    pthread_mutex_unlock(&server->mutex);
}

/* Links of up to CLOSE_BATCH connections that should be closed, with a reference to each. */
static unsigned pick_links(struct rpc_server *server, int64_t now_ms, bool all, struct link *out[CLOSE_BATCH])
{
    unsigned count = 0;
    pthread_mutex_lock(&server->mutex);
    for (struct rpc_conn *conn = server->conns; conn != NULL && count < CLOSE_BATCH; conn = conn->next) {
        if (!all && !server_conn_is_dead(conn, now_ms))
            continue;
        struct link *link = server_conn_link(conn);
        if (link != NULL)
            out[count++] = link;
    }
    pthread_mutex_unlock(&server->mutex);
    return count;
}

/* Closes them without a lock; a closed connection leaves the list. */
static void close_conns(struct rpc_server *server, int64_t now_ms, bool all)
{
    struct link *picked[CLOSE_BATCH];
    unsigned count;
    do {
        count = pick_links(server, now_ms, all, picked);
        for (unsigned i = 0; i < count; i++) {
            link_close(picked[i]);
            link_unref(picked[i]);
        }
    } while (count == CLOSE_BATCH);
}

/* The other side of a connection that isn't read gets no answer to its pings; it must not take us for dead. */
static void beat_paused(struct rpc_server *server)
{
    unsigned count = 0;
    pthread_mutex_lock(&server->mutex);
    struct link **links = mem_alloc_array(server->conn_count + 1, sizeof *links);
    for (struct rpc_conn *conn = server->conns; conn != NULL; conn = conn->next) {
        struct link *link = server_conn_is_paused(conn) ? server_conn_link(conn) : NULL;
        if (link != NULL)
            links[count++] = link;
    }
    pthread_mutex_unlock(&server->mutex);
    for (unsigned i = 0; i < count; i++) {
        server_conn_beat(links[i]);
        link_unref(links[i]);
    }
    mem_free(links);
}

static int64_t server_tick(void *arg, int64_t now_ms)
{
    struct rpc_server *server = arg;
    close_conns(server, now_ms, false);
    beat_paused(server);
    pthread_mutex_lock(&server->mutex);
    if (server->accept_failed && !server->stopping) {
        server->accept_failed = false;
        nng_stream_listener_accept(server->listener, server->accept);
    }
    pthread_mutex_unlock(&server->mutex);
    return now_ms + TICK_MS;
}

static bool server_listen(struct rpc_server *server, const char *bind, struct err *err)
{
    char url[128];
    bool is_v6 = strchr(bind, ':') != NULL;
    snprintf(url, sizeof url, "tcp://%s%s%s:%u", is_v6 ? "[" : "", bind, is_v6 ? "]" : "", server->options.port);
    int rc = nng_stream_listener_alloc(&server->listener, url);
    if (rc != 0)
        return err_set(err, ERR_BadValue, "cannot use the address %s: %s", url, nng_strerror(rc));
    rc = nng_stream_listener_listen(server->listener);
    if (rc != 0)
        return err_set(err, ERR_HostUnreachable, "cannot listen on %s: %s", url, nng_strerror(rc));
    int port = server->options.port;
    if (port == 0)
        rc = nng_stream_listener_get_int(server->listener, NNG_OPT_TCP_BOUND_PORT, &port);
    if (rc != 0)
        return err_set(err, ERR_InternalError, "cannot find the port of %s: %s", url, nng_strerror(rc));
    server->port = (uint16_t)port;
    return true;
}

static void fill_defaults(struct rpc_server_options *options)
{
    if (options->max_conns == 0)
        options->max_conns = RPC_SERVER_MAX_CONNS;
    if (options->max_requests_per_conn == 0)
        options->max_requests_per_conn = RPC_SERVER_MAX_REQUESTS;
    if (options->max_bytes_per_conn == 0)
        options->max_bytes_per_conn = RPC_SERVER_MAX_BYTES;
}

static void server_destroy(struct rpc_server *server)
{
    if (server->listener != NULL)
        nng_stream_listener_free(server->listener);
    nng_aio_free(server->accept);
    pthread_cond_destroy(&server->quiet);
    pthread_mutex_destroy(&server->mutex);
    mem_free(server);
}

bool rpc_server_start(const struct rpc_server_options *options, struct rpc_server **out, struct err *err)
{
    struct rpc_server *server = mem_alloc(sizeof *server);
    server->options = *options;
    fill_defaults(&server->options);
    pthread_mutex_init(&server->mutex, NULL);
    thread_cond_init(&server->quiet);
    CHECK(nng_aio_alloc(&server->accept, on_accept, server) == 0);
    if (!server_listen(server, options->bind != NULL ? options->bind : "127.0.0.1", err)) {
        server_destroy(server);
        return false;
    }
    *out = server; /* before the first request can come */
    server->ticker = ticker_start("rpc-server", server_tick, server);
    pthread_mutex_lock(&server->mutex);
    nng_stream_listener_accept(server->listener, server->accept);
    pthread_mutex_unlock(&server->mutex);
    return true;
}

uint16_t rpc_server_port(const struct rpc_server *server)
{
    return server->port;
}

void rpc_server_stop(struct rpc_server *server)
{
    pthread_mutex_lock(&server->mutex);
    bool first = !server->stopping;
    server->stopping = true;
    pthread_mutex_unlock(&server->mutex);
    if (!first)
        return;
    ticker_stop(server->ticker);
    nng_stream_listener_close(server->listener);
    nng_aio_stop(server->accept); /* waits for on_accept */
    close_conns(server, 0, true);
    pthread_mutex_lock(&server->mutex);
    while (server->links > 0)
        pthread_cond_wait(&server->quiet, &server->mutex);
    pthread_mutex_unlock(&server->mutex);
}

void rpc_server_free(struct rpc_server *server)
{
    if (server == NULL)
        return;
    pthread_mutex_lock(&server->mutex);
    CHECK(server->stopping);
    while (server->memory > 0)
        pthread_cond_wait(&server->quiet, &server->mutex);
    pthread_mutex_unlock(&server->mutex);
    server_destroy(server);
}

void rpc_server_stats_get(struct rpc_server *server, struct rpc_server_stats *out)
{
    pthread_mutex_lock(&server->mutex);
    out->conns = server->conn_count;
    pthread_mutex_unlock(&server->mutex);
    out->requests = atomic_load(&server->requests);
    out->accepted = atomic_load(&server->accepted);
    out->handled = atomic_load(&server->handled);
    out->refused = atomic_load(&server->refused);
}
