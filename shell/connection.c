#include "shell/connection.h"

#include "base/clock.h"
#include "base/mem.h"
#include "shell/interrupt.h"
#include "wire/message.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    MESSAGE_OVERHEAD = 1024, /* room in a message beside what the command and its documents take */
    WAIT_STEP_MS = 200,      /* Ctrl-C may reach another of the engine's threads, so a wait looks now and then */
};

struct connection {
    struct uri uri;
    int fd;              /* -1: not connected */
    uint32_t request_id; /* of the last request */
    char address[URI_MAX_TEXT + 16];
    struct buf out; /* the request */
    struct buf in;  /* the reply */
};

struct connection *connection_new(const struct uri *uri)
{
    struct connection *conn = mem_alloc(sizeof *conn);
    conn->uri = *uri;
    conn->fd = -1;
    snprintf(conn->address, sizeof conn->address, "%s:%s", uri->hosts[0].name, uri->hosts[0].port);
    return conn;
}

static void disconnect(struct connection *conn)
{
    if (conn->fd >= 0)
        close(conn->fd);
    conn->fd = -1;
}

void connection_free(struct connection *conn)
{
    if (conn == NULL)
        return;
    disconnect(conn);
    buf_deinit(&conn->out);
    buf_deinit(&conn->in);
    mem_free(conn);
}

const char *connection_address(const struct connection *conn)
{
    return conn->address;
}

/* --- the socket ----------------------------------------------------------------------------------------------------
 */

/* Waits until the socket is ready, the deadline has passed or Ctrl-C was pressed. */
static bool wait_ready(struct connection *conn, short events, int64_t deadline_ms, struct err *err)
{
    for (;;) {
        if (interrupt_pending())
            return err_set(err, ERR_Interrupted, "interrupted");
        struct pollfd poll_fd = {.fd = conn->fd, .events = events};
        int64_t left_ms = deadline_remaining_ms(deadline_ms);
        int ready = poll(&poll_fd, 1, (int)(left_ms < WAIT_STEP_MS ? left_ms : WAIT_STEP_MS));
        if (ready > 0)
            return true;
        if (ready == 0 && deadline_passed(deadline_ms))
            return err_set(err, ERR_NetworkTimeout, "%s does not answer", conn->address);
        if (ready < 0 && errno != EINTR)
            return err_set_errno(err, ERR_SocketException, errno, "waiting for %s", conn->address);
    }
}

static bool send_all(struct connection *conn, struct err *err)
{
    size_t sent = 0;
    while (sent < conn->out.len) {
        ssize_t n = send(conn->fd, conn->out.data + sent, conn->out.len - sent, MSG_NOSIGNAL);
        if (n >= 0) {
            sent += (size_t)n;
        } else if (errno == EAGAIN || errno == EINTR) {
            if (!wait_ready(conn, POLLOUT, DEADLINE_NEVER, err))
                return false;
        } else {
            return err_set_errno(err, ERR_SocketException, errno, "sending to %s", conn->address);
        }
    }
    return true;
}

/* Reads exactly `len` bytes behind what is in `in`. */
static bool receive(struct connection *conn, size_t len, int64_t deadline_ms, struct err *err)
{
    size_t wanted = conn->in.len + len;
    (void)buf_reserve(&conn->in, len);
    while (conn->in.len < wanted) {
        ssize_t n = recv(conn->fd, conn->in.data + conn->in.len, wanted - conn->in.len, 0);
        if (n > 0) {
            conn->in.len += (size_t)n;
        } else if (n == 0) {
            return err_set(err, ERR_SocketException, "%s has closed the connection", conn->address);
        } else if (errno == EAGAIN || errno == EINTR) {
            if (!wait_ready(conn, POLLIN, deadline_ms, err))
                return false;
        } else {
            return err_set_errno(err, ERR_SocketException, errno, "receiving from %s", conn->address);
        }
    }
    return true;
}

static bool exchange(struct connection *conn, int64_t deadline_ms, struct bdoc *reply, struct err *err)
{
    struct wire_header header;
    struct wire_msg msg;
    conn->in.len = 0;
    if (!send_all(conn, err) || !receive(conn, WIRE_HEADER_BYTES, deadline_ms, err) ||
        !wire_header_parse(conn->in.data, &header, err) ||
        !receive(conn, header.length - WIRE_HEADER_BYTES, deadline_ms, err) ||
        !wire_msg_parse(conn->in.data, conn->in.len, WIRE_PARSE_CHECKED, &msg, err))
        return false;
    if (msg.header.response_to != conn->request_id)
        return err_set(err, ERR_ProtocolError, "%s has answered another request", conn->address);
    *reply = msg.body;
    return true;
}

/* --- connecting ------------------------------------------------------------------------------------------------------
 */

static bool connect_address(struct connection *conn, const struct addrinfo *address, int64_t deadline_ms,
                            struct err *err)
{
    conn->fd = socket(address->ai_family, address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address->ai_protocol);
    if (conn->fd < 0)
        return err_set_errno(err, ERR_SocketException, errno, "socket");
    int error = 0;
    if (connect(conn->fd, address->ai_addr, address->ai_addrlen) != 0)
        error = errno;
    if (error == EINPROGRESS) {
        if (!wait_ready(conn, POLLOUT, deadline_ms, err)) {
            disconnect(conn);
            return false;
        }
        socklen_t size = sizeof error;
        getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error != 0) {
        disconnect(conn);
        return err_set_errno(err, ERR_HostUnreachable, error, "connecting to %s", conn->address);
    }
    int on = 1;
    setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return true;
}

static bool connect_host(struct connection *conn, const struct uri_host *host, int64_t deadline_ms, struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list;
    snprintf(conn->address, sizeof conn->address, "%s:%s", host->name, host->port);
    int error = getaddrinfo(host->name, host->port, &hints, &list);
    if (error != 0)
        return err_set(err, ERR_HostNotFound, "%s: %s", conn->address, gai_strerror(error));
    bool ok = false;
    for (const struct addrinfo *at = list; at != NULL && !ok; at = at->ai_next)
        ok = connect_address(conn, at, deadline_ms, err);
    freeaddrinfo(list);
    return ok;
}

static void build_request(struct connection *conn, const char *database, struct bdoc command,
                          const struct connection_sequence *sequence)
{
    bson_t body;
    bson_init(&body);
    struct biter iter;
    struct belem elem;
    biter_init(&iter, command);
    while (biter_next(&iter, &elem)) {
        if (strcmp(elem.key, "$db") != 0)
            bval_append(&body, elem.key, (int)elem.key_len, &elem.val);
    }
    bson_append_utf8(&body, "$db", -1, database, -1);
    buf_clear(&conn->out);
    size_t start = wire_msg_begin(&conn->out, ++conn->request_id, 0, 0);
    wire_msg_body(&conn->out, bdoc_of(&body));
    if (sequence != NULL) {
        size_t at = wire_msg_sequence_begin(&conn->out, sequence->name);
        buf_append(&conn->out, sequence->data, sequence->len);
        wire_msg_sequence_end(&conn->out, at);
    }
    wire_msg_end(&conn->out, start);
    bson_destroy(&body);
}

static bool shake_hands(struct connection *conn, int64_t deadline_ms, struct err *err)
{
    bson_t *hello =
        BCON_NEW("hello", BCON_INT32(1), "client", "{", "application", "{", "name", "sherd", "}", "driver", "{", "name",
                 "sherd shell", "version", SHERD_VERSION, "}", "os", "{", "type", "Linux", "}", "}");
    build_request(conn, "admin", bdoc_of(hello), NULL);
    bson_destroy(hello);
    struct bdoc reply;
    struct bval ok;
    if (!exchange(conn, deadline_ms, &reply, err))
        return false;
    if (!bdoc_find(reply, "ok", &ok) || !bval_truthy(&ok))
        return err_set(err, ERR_ProtocolError, "%s refuses the handshake", conn->address);
    return true;
}

bool connection_ensure(struct connection *conn, struct err *err)
{
    if (conn->fd >= 0)
        return true;
    for (size_t i = 0; i < conn->uri.host_count; i++) {
        int64_t deadline_ms = deadline_after_ms(conn->uri.connect_timeout_ms);
        if (!connect_host(conn, &conn->uri.hosts[i], deadline_ms, err))
            continue;
        if (shake_hands(conn, deadline_ms, err))
            return true;
        disconnect(conn);
    }
    return false;
}

/* A connection that the other side has closed in the meantime (a restarted router) is replaced before anything is sent.
 */
static void drop_if_closed(struct connection *conn)
{
    char byte;
    if (conn->fd < 0)
        return;
    ssize_t n = recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n >= 0 || (errno != EAGAIN && errno != EINTR))
        disconnect(conn);
}

bool connection_run(struct connection *conn, const char *database, struct bdoc command,
                    const struct connection_sequence *sequence, struct bdoc *reply, struct err *err)
{
    if (command.len + (sequence != NULL ? sequence->len : 0) > WIRE_MAX_MESSAGE_BYTES - MESSAGE_OVERHEAD)
        return err_set(err, ERR_BSONObjectTooLarge, "the command is larger than a message may be (%d bytes)",
                       WIRE_MAX_MESSAGE_BYTES);
    drop_if_closed(conn);
    if (!connection_ensure(conn, err))
        return false;
    build_request(conn, database, command, sequence);
    if (exchange(conn, DEADLINE_NEVER, reply, err))
        return true;
    disconnect(conn);
    return false;
}
