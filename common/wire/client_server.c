#include "wire/client_server.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "wire/client_server_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,
    EVENT_BATCH = 64,
    ACCEPT_BATCH = 64, /* then others have their turn */
    CHECK_MS = 500,    /* between looks at the time limits */
};

static bool parse_address(const char *bind, uint16_t port, struct sockaddr_storage *out, socklen_t *len)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, bind, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        *len = sizeof *v4;
        return true;
    }
    if (inet_pton(AF_INET6, bind, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        *len = sizeof *v6;
        return true;
    }
    return false;
}

static void format_address(const struct sockaddr_storage *address, char out[CLIENT_PEER_MAX])
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
        inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
        snprintf(out, CLIENT_PEER_MAX, "[%.45s]:%u", text, ntohs(v6->sin6_port));
    } else {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
        snprintf(out, CLIENT_PEER_MAX, "%.45s:%u", text, ntohs(v4->sin_port));
    }
}

static bool server_listen(struct client_server *server, const char *bind_to, struct err *err)
{
    struct sockaddr_storage address;
    socklen_t len;
    if (!parse_address(bind_to, server->options.port, &address, &len))
        return err_set(err, ERR_BadValue, "'%s' is no IP address to listen on", bind_to);
    server->listener = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (server->listener < 0)
        return err_set_errno(err, ERR_InternalError, errno, "cannot make a socket");
    int on = 1;
    setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(server->listener, (struct sockaddr *)&address, len) != 0 || listen(server->listener, BACKLOG) != 0)
        return err_set_errno(err, ERR_HostUnreachable, errno, "cannot listen on %s port %u", bind_to,
                             server->options.port);
    if (getsockname(server->listener, (struct sockaddr *)&address, &len) != 0)
        return err_set_errno(err, ERR_InternalError, errno, "cannot find the port");
    server->port = address.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&address)->sin6_port)
                                                 : ntohs(((struct sockaddr_in *)&address)->sin_port);
    return true;
}

/* Out of descriptors: gives the spare one up so that the caller at the door is told rather than left waiting. */
static void refuse_one(struct client_server *server)
{
    close(server->spare);
    int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    atomic_fetch_add(&server->refused, 1);
    log_warn("NETWORK", 4002, "Out of file descriptors, connection refused", LOG_NO_ATTRS);
}

static void take_connection(struct client_server *server, int fd, const struct sockaddr_storage *address)
{
    char peer[CLIENT_PEER_MAX];
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    format_address(address, peer);
    atomic_fetch_add(&server->accepted, 1);
    bool full = atomic_load(&server->conn_count) >= server->options.max_conns;
    if (full) {
        atomic_fetch_add(&server->refused, 1);
        log_warn("NETWORK", 4003, "Too many connections, refused", LOG_STR("peer", peer),
                 LOG_I64("limit", server->options.max_conns));
    }
    if (full && server->refusing >= CLIENT_REFUSING_MAX)
        close(fd);
    else
        client_conn_open(server, fd, peer, full);
}

static void accept_some(struct client_server *server)
{
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        struct sockaddr_storage address = {0};
        socklen_t len = sizeof address;
        int fd = accept4(server->listener, (struct sockaddr *)&address, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            take_connection(server, fd, &address);
        else if (errno == EMFILE || errno == ENFILE)
            refuse_one(server);
        else if (errno != ECONNABORTED && errno != EINTR)
            return; /* nobody at the door */
    }
}

/* Our epoll set has events. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct client_server *server = poll->data;
    struct epoll_event batch[EVENT_BATCH];
    int count = epoll_wait(server->epoll, batch, EVENT_BATCH, 0);
    for (int i = 0; i < count; i++) {
        if (batch[i].data.ptr != NULL)
            client_conn_on_events(batch[i].data.ptr, batch[i].events);
        else if (server->listener >= 0)
            accept_some(server);
    }
}

static void on_check(void *arg)
{
    struct client_server *server = arg;
    int64_t now_ms = clock_now_ms();
    for (struct client_conn *conn = server->conns; conn != NULL;) {
        struct client_conn *next = conn->next;
        client_conn_check_time(conn, now_ms);
        conn = next;
    }
    if (server->force_ms != 0 && server->conns == NULL)
        loop_stop(server->loop);
}

static void on_stop(struct loop_mail *mail)
{
    struct client_server *server = (struct client_server *)((char *)mail - offsetof(struct client_server, stop_mail));
    server->force_ms = clock_now_ms() + server->grace_ms + 1;
    close(server->listener);
    server->listener = -1;
    loop_timer_free(server->timer);
    server->timer = loop_timer_new(server->loop, 0, 5, on_check, server);
}

static void *loop_thread(void *arg)
{
    struct client_server *server = arg;
    loop_run(server->loop);
    return NULL;
}

static bool server_open(struct client_server *server, const char *bind_to, struct err *err)
{
    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (server->epoll < 0 || server->spare < 0)
        return err_set_errno(err, ERR_InternalError, errno, "cannot make an epoll set");
    if (!server_listen(server, bind_to, err))
        return false;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, server->listener, &event) != 0)
        return err_set_errno(err, ERR_InternalError, errno, "cannot watch the listening socket");
    return true;
}

static void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void server_destroy(struct client_server *server)
{
    close_if_open(server->listener);
    close_if_open(server->epoll);
    close_if_open(server->spare);
    mem_free(server);
}

bool client_server_start(const struct client_server_options *options, struct client_server **out, struct err *err)
{
    CHECK(options->pool != NULL && options->handle != NULL && options->max_conns > 0);
    struct client_server *server = mem_alloc(sizeof *server);
    server->options = *options;
    server->listener = -1;
    if (options->message_timeout_ms == 0)
        server->options.message_timeout_ms = CLIENT_SERVER_MESSAGE_TIMEOUT_MS;
    if (!server_open(server, options->bind != NULL ? options->bind : "127.0.0.1", err)) {
        server_destroy(server);
        return false;
    }
    *out = server; /* before the first request can come */
    server->loop = loop_new();
    server->stop_mail.run = on_stop;
    CHECK(uv_poll_init(loop_uv(server->loop), &server->poll, server->epoll) == 0);
    server->poll.data = server;
    CHECK(uv_poll_start(&server->poll, UV_READABLE, on_poll) == 0);
    server->timer = loop_timer_new(server->loop, CHECK_MS, CHECK_MS, on_check, server);
    thread_start(&server->thread, "net", loop_thread, server);
    return true;
}

uint16_t client_server_port(const struct client_server *server)
{
    return server->port;
}

void client_server_stop(struct client_server *server, int64_t grace_ms)
{
    if (server->stopped)
        return;
    server->stopped = true;
    server->grace_ms = grace_ms;
    loop_post(server->loop, &server->stop_mail);
    thread_join(server->thread);
    loop_timer_free(server->timer);
    uv_poll_stop(&server->poll);
    uv_close((uv_handle_t *)&server->poll, NULL);
    loop_free(server->loop);
}

void client_server_free(struct client_server *server)
{
    if (server == NULL)
        return;
    CHECK(server->stopped);
    server_destroy(server);
}

void client_server_stats_get(const struct client_server *server, struct client_server_stats *out)
{
    out->conns = atomic_load(&server->conn_count);
    out->accepted = atomic_load(&server->accepted);
    out->refused = atomic_load(&server->refused);
    out->requests = atomic_load(&server->requests);
    out->bytes_in = atomic_load(&server->bytes_in);
    out->bytes_out = atomic_load(&server->bytes_out);
}
