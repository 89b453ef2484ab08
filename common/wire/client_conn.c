/* One connection of the client server: bytes in, bytes out, its end. */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/client_server_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void on_mail(struct loop_mail *mail);

void client_conn_open(struct client_server *server, int fd, const char *peer, bool refusing)
{
    struct client_conn *conn = mem_alloc(sizeof *conn);
    conn->server = server;
    conn->id = atomic_fetch_add(&server->next_id, 1) + 1;
    conn->fd = fd;
    conn->refusing = refusing;
    conn->active_ms = clock_now_ms();
    conn->mail.run = on_mail;
    snprintf(conn->peer, sizeof conn->peer, "%s", peer);
    pthread_mutex_init(&conn->mutex, NULL);
    conn->next = server->conns;
    if (conn->next != NULL)
        conn->next->prev = conn;
    server->conns = conn;
    if (refusing)
        server->refusing++;
    else
        atomic_fetch_add(&server->conn_count, 1);
    if (!refusing && server->options.on_open != NULL)
        server->options.on_open(server->options.arg, conn);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = conn};
    if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        client_conn_close(conn);
}

static void conn_free(struct client_conn *conn)
{
    struct client_server *server = conn->server;
    close(conn->fd); /* leaves the epoll set with it */
    if (!conn->refusing && server->options.on_close != NULL)
        server->options.on_close(server->options.arg, conn);
    if (conn->prev != NULL)
        conn->prev->next = conn->next;
    else
        server->conns = conn->next;
    if (conn->next != NULL)
        conn->next->prev = conn->prev;
    if (conn->refusing)
        server->refusing--;
    else
        atomic_fetch_sub(&server->conn_count, 1);
    wire_frame_unref(conn->frame);
    wire_frame_unref(conn->rest);
    wire_frame_unref(conn->out);
    pthread_mutex_destroy(&conn->mutex);
    mem_free(conn);
}

void client_conn_close(struct client_conn *conn)
{
    atomic_store(&conn->gone, true);
    pthread_mutex_lock(&conn->mutex);
    conn->closing = true;
    if (conn->out != NULL) { /* the request has ended, its reply will never leave */
        wire_frame_unref(conn->out);
        conn->out = NULL;
        conn->busy = false;
    }
    bool busy = conn->busy;
    bool wait = busy || conn->mailed;
    pthread_mutex_unlock(&conn->mutex);
    if (busy)
        shutdown(conn->fd, SHUT_RDWR); /* the client needn't wait for the request's end */
    if (!wait)
        conn_free(conn);
}

/* Asks the loop to look at the connection. */
static void mail_locked(struct client_conn *conn)
{
    if (conn->mailed)
        return;
    conn->mailed = true;
    loop_post(conn->server->loop, &conn->mail);
}

/* Writes what the socket takes of the frame from *at on. False when it is broken. The socket is written to until it is
 * full, else the edge-triggered set would not tell when it has room again. */
static bool write_some(struct client_conn *conn, const struct wire_frame *frame, uint32_t *at)
{
    uint32_t start = *at;
    bool good = true;
    while (*at < frame->len) {
        ssize_t sent = send(conn->fd, frame->data + *at, frame->len - *at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            good = errno == EAGAIN;
            break;
        }
        *at += (uint32_t)sent;
    }
    atomic_fetch_add_explicit(&conn->server->bytes_out, *at - start, memory_order_relaxed);
    return good;
}

/* The request under way is through, and with it the connection's turn. The rest is the loop's business: reading on,
 * closing. */
static void finish_locked(struct client_conn *conn, bool broken)
{
    conn->busy = false;
    if (broken)
        conn->close_after = true;
    if (conn->close_after || conn->closing || conn->readable || conn->rest != NULL || atomic_load(&conn->gone))
        mail_locked(conn);
}

void client_conn_end_request(struct client_conn *conn, struct wire_frame *reply, bool close_after)
{
    uint32_t at = 0;
    bool broken = false;
    /* Without the mutex: the connection is busy, so nobody else writes or closes the socket, and the loop must not have
     * to wait for a thread that may be put aside in the middle of a write. */
    if (reply != NULL) {
        pthread_mutex_lock(&conn->mutex);
        conn->writable = false;
        pthread_mutex_unlock(&conn->mutex);
        broken = !write_some(conn, reply, &at);
    }
    pthread_mutex_lock(&conn->mutex);
    CHECK(conn->busy && conn->out == NULL);
    conn->active_ms = clock_now_ms();
    conn->close_after = conn->close_after || close_after;
    if (reply == NULL || broken || at == reply->len || conn->closing) {
        finish_locked(conn, broken);
    } else { /* the loop goes on when there is room */
        conn->out = reply;
        conn->out_len = at;
        reply = NULL;
        if (conn->writable) /* there was, before the loop could know of `out` */
            mail_locked(conn);
    }
    pthread_mutex_unlock(&conn->mutex);
    wire_frame_unref(reply); /* nothing of the connection may be touched any more */
}

/* Goes on with the reply that the socket didn't take whole. */
static void write_out_locked(struct client_conn *conn)
{
    uint32_t before = conn->out_len;
    bool broken = !write_some(conn, conn->out, &conn->out_len);
    if (conn->out_len > before)
        conn->active_ms = clock_now_ms();
    if (!broken && conn->out_len < conn->out->len)
        return;
    wire_frame_unref(conn->out);
    conn->out = NULL;
    finish_locked(conn, broken);
}

/* A whole message is there. */
static void take_message(struct client_conn *conn, struct wire_frame *frame)
{
    pthread_mutex_lock(&conn->mutex);
    conn->busy = true;
    conn->active_ms = clock_now_ms();
    pthread_mutex_unlock(&conn->mutex);
    atomic_fetch_add_explicit(&conn->server->requests, 1, memory_order_relaxed);
    client_request_submit(conn, frame);
}

/* Puts the first bytes of a message into a frame once its header is complete. False: a bad header. */
static bool begin_frame(struct client_conn *conn, const uint8_t *header)
{
    struct wire_header parsed;
    struct err err;
    bool good = wire_header_parse(header, &parsed, &err);
    if (good && parsed.length > WIRE_MAX_MESSAGE_BYTES)
        good = err_set(&err, ERR_ProtocolError, "message length %u is more than %d", parsed.length,
                       WIRE_MAX_MESSAGE_BYTES);
    if (!good) {
        log_info("NETWORK", 4001, "Bad message from client", LOG_STR("peer", conn->peer), LOG_STR("error", err.msg));
        return false;
    }
    bool believed = parsed.length <= CLIENT_BELIEVED_BYTES;
    conn->frame_room = believed ? parsed.length : CLIENT_BELIEVED_BYTES;
    conn->frame = believed ? wire_frame_new(parsed.length) : wire_frame_new_growing(parsed.length, conn->frame_room);
    memcpy(conn->frame->data, header, WIRE_HEADER_BYTES);
    conn->frame_len = WIRE_HEADER_BYTES;
    return true;
}

/* Makes room for more of the message: twice of what is there, so that memory goes with the bytes that came. */
static void make_room(struct client_conn *conn)
{
    if (conn->frame_len < conn->frame_room || conn->frame_room == conn->frame->len)
        return;
    conn->frame_room = conn->frame_room < conn->frame->len / 2 ? conn->frame_room * 2 : conn->frame->len;
    wire_frame_grow(conn->frame, conn->frame_room);
}

/* Adds some bytes to the message that is coming in; *used: how many. False: a bad header. */
static bool feed_some(struct client_conn *conn, const uint8_t *data, uint32_t len, uint32_t *used)
{
    *used = 0;
    if (conn->frame == NULL) {
        uint32_t part = WIRE_HEADER_BYTES - conn->header_len;
        if (part > len)
            part = len;
        memcpy(conn->header + conn->header_len, data, part);
        conn->header_len += part;
        *used = part;
        if (conn->header_len < WIRE_HEADER_BYTES)
            return true;
        if (!begin_frame(conn, conn->header))
            return false;
        conn->header_len = 0;
    }
    make_room(conn);
    uint32_t part = conn->frame_room - conn->frame_len;
    if (part > len - *used)
        part = len - *used;
    memcpy(conn->frame->data + conn->frame_len, data + *used, part);
    conn->frame_len += part;
    *used += part;
    return true;
}

static bool is_whole(const struct client_conn *conn)
{
    return conn->frame != NULL && conn->frame_len == conn->frame->len;
}

/* Adds bytes up to the message's end; *used: how many. False: a bad header. */
static bool feed(struct client_conn *conn, const uint8_t *data, uint32_t len, uint32_t *used)
{
    *used = 0;
    while (!is_whole(conn) && *used < len) {
        uint32_t some;
        if (!feed_some(conn, data + *used, len - *used, &some))
            return false;
        *used += some;
    }
    return true;
}

static void submit_whole(struct client_conn *conn)
{
    struct wire_frame *frame = conn->frame;
    conn->frame = NULL;
    conn->frame_len = 0;
    take_message(conn, frame);
}

/* Takes the next message from what was read too much. True: done for now (a message was handed on, or the bytes are bad
 * and the connection is closed). */
static bool take_rest(struct client_conn *conn)
{
    if (conn->rest == NULL)
        return false;
    uint32_t used;
    bool good = feed(conn, conn->rest->data + conn->rest_at, conn->rest->len - conn->rest_at, &used);
    conn->rest_at += used;
    if (conn->rest_at == conn->rest->len) {
        wire_frame_unref(conn->rest);
        conn->rest = NULL;
        conn->rest_at = 0;
    }
    if (!good)
        client_conn_close(conn);
    else if (is_whole(conn))
        submit_whole(conn);
    else
        return false;
    return true;
}

/* One read: into a big message's own memory, else into the loop's buffer. Returns what recv does. */
static ssize_t read_once(struct client_conn *conn, bool *direct, size_t *asked)
{
    if (conn->frame != NULL)
        make_room(conn);
    *direct = conn->frame != NULL && conn->frame_room - conn->frame_len >= CLIENT_READ_BYTES;
    uint8_t *to = *direct ? conn->frame->data + conn->frame_len : conn->server->buffer;
    *asked = *direct ? conn->frame_room - conn->frame_len : CLIENT_READ_BYTES;
    ssize_t got;
    do {
        got = recv(conn->fd, to, *asked, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got > 0)
        atomic_fetch_add_explicit(&conn->server->bytes_in, (uint64_t)got, memory_order_relaxed);
    return got;
}

/* Digests what read_once has put into the loop's buffer. False: bad bytes. */
static bool digest(struct client_conn *conn, uint32_t got)
{
    const uint8_t *data = conn->server->buffer;
    uint32_t used;
    if (!feed(conn, data, got, &used))
        return false;
    if (used < got) {
        conn->rest = wire_frame_new(got - used);
        memcpy(conn->rest->data, data + used, got - used);
        conn->rest_at = 0;
    }
    return true;
}

static void mark_progress(struct client_conn *conn)
{
    pthread_mutex_lock(&conn->mutex);
    conn->active_ms = clock_now_ms();
    pthread_mutex_unlock(&conn->mutex);
}

/* Whether the socket may have bytes that no further edge announces. */
static void set_readable(struct client_conn *conn, bool readable)
{
    pthread_mutex_lock(&conn->mutex);
    conn->readable = readable;
    pthread_mutex_unlock(&conn->mutex);
}

/* Reads until a message is whole or the socket empty. Only while the connection is idle. */
static void read_on(struct client_conn *conn)
{
    while (!take_rest(conn)) {
        set_readable(conn, false); /* before the read: an edge that comes after it counts */
        bool direct;
        size_t asked;
        ssize_t got = read_once(conn, &direct, &asked);
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0) {
            client_conn_close(conn);
            return;
        }
        mark_progress(conn);
        if (direct) {
            conn->frame_len += (uint32_t)got;
        } else if (!digest(conn, (uint32_t)got)) {
            client_conn_close(conn);
            return;
        }
        if (!is_whole(conn))
            continue;
        /* A short read has emptied the socket, new bytes make a new edge; otherwise there may be more without one. */
        if ((size_t)got == asked)
            set_readable(conn, true);
        submit_whole(conn);
        return;
    }
}

/* What is to be done now, decided under the mutex, done without. */
enum next_step { STEP_NONE, STEP_READ, STEP_CLOSE };

static enum next_step next_step_locked(struct client_conn *conn, bool readable, bool writable)
{
    conn->readable = conn->readable || readable;
    conn->writable = conn->writable || writable;
    if (conn->out != NULL && conn->writable && !conn->closing) {
        conn->writable = false;
        write_out_locked(conn);
    }
    if (conn->busy)
        return STEP_NONE;
    if (conn->closing || conn->close_after)
        return STEP_CLOSE;
    /* The end of the stream may have come together with the last bytes, without an edge of its own. */
    bool read = conn->readable || conn->rest != NULL || atomic_load(&conn->gone);
    return read ? STEP_READ : STEP_NONE;
}

static void take_step(struct client_conn *conn, enum next_step step)
{
    if (step == STEP_CLOSE)
        client_conn_close(conn);
    else if (step == STEP_READ)
        read_on(conn);
}

void client_conn_on_events(struct client_conn *conn, uint32_t events)
{
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        atomic_store(&conn->gone, true);
    pthread_mutex_lock(&conn->mutex);
    enum next_step step =
        next_step_locked(conn, (events & ~(uint32_t)EPOLLOUT) != 0, (events & ~(uint32_t)EPOLLIN) != 0);
    pthread_mutex_unlock(&conn->mutex);
    take_step(conn, step);
}

static void on_mail(struct loop_mail *mail)
{
    struct client_conn *conn = (struct client_conn *)((char *)mail - offsetof(struct client_conn, mail));
    pthread_mutex_lock(&conn->mutex);
    conn->mailed = false;
    enum next_step step = next_step_locked(conn, false, false);
    pthread_mutex_unlock(&conn->mutex);
    take_step(conn, step);
}

/* Whether a time limit has passed, or the server's end has come for it. */
static bool is_expired_locked(const struct client_conn *conn, int64_t now_ms)
{
    const struct client_server *server = conn->server;
    const struct client_server_options *options = &server->options;
    int64_t quiet_ms = now_ms - conn->active_ms;
    bool is_working = conn->busy && conn->out == NULL;
    bool in_message = conn->frame != NULL || conn->header_len > 0 || conn->out != NULL;
    if (server->force_ms != 0)
        return now_ms >= server->force_ms || !conn->busy;
    if (is_working)
        return false;
    if (in_message)
        return quiet_ms > options->message_timeout_ms;
    if (conn->refusing)
        return quiet_ms > CLIENT_REFUSING_MS;
    return options->idle_timeout_ms > 0 && quiet_ms > options->idle_timeout_ms;
}

void client_conn_check_time(struct client_conn *conn, int64_t now_ms)
{
    pthread_mutex_lock(&conn->mutex);
    bool is_expired = is_expired_locked(conn, now_ms);
    pthread_mutex_unlock(&conn->mutex);
    if (is_expired)
        client_conn_close(conn);
}

uint64_t client_conn_id(const struct client_conn *conn)
{
    return conn->id;
}

const char *client_conn_peer(const struct client_conn *conn)
{
    return conn->peer;
}

bool client_conn_is_closed(const struct client_conn *conn)
{
    return atomic_load(&conn->gone);
}

void client_conn_set_data(struct client_conn *conn, void *data)
{
    conn->data = data;
}

void *client_conn_data(const struct client_conn *conn)
{
    return conn->data;
}
