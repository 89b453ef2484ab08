#include "rpc/link.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "rpc/link_impl.h"
#include "wire/message.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

_Thread_local const struct link *link_delivering;

static void on_read(void *arg);

/* "address:port" of the other side; "?" when nng can't say. */
static void fill_name(struct link *link)
{
    nng_sockaddr address;
    char text[INET6_ADDRSTRLEN];
    snprintf(link->name, sizeof link->name, "?");
    if (nng_stream_get_addr(link->stream, NNG_OPT_REMADDR, &address) != 0)
        return;
    if (address.s_family == NNG_AF_INET && inet_ntop(AF_INET, &address.s_in.sa_addr, text, sizeof text) != NULL)
        snprintf(link->name, sizeof link->name, "%s:%u", text, ntohs(address.s_in.sa_port));
    else if (address.s_family == NNG_AF_INET6 && inet_ntop(AF_INET6, address.s_in6.sa_addr, text, sizeof text) != NULL)
        snprintf(link->name, sizeof link->name, "[%s]:%u", text, ntohs(address.s_in6.sa_port));
}

struct link *link_new(nng_stream *stream, const struct link_hooks *hooks, void *owner, uint32_t max_frame)
{
    CHECK(max_frame >= WIRE_HEADER_BYTES);
    struct link *link = mem_alloc(sizeof *link);
    atomic_init(&link->refs, 1);
    pthread_mutex_init(&link->mutex, NULL);
    link->stream = stream;
    link->hooks = *hooks;
    link->owner = owner;
    link->max_frame = max_frame;
    atomic_init(&link->heard_ms, clock_now_ms());
    atomic_init(&link->taken_ms, 0);
    CHECK(nng_aio_alloc(&link->rx, on_read, link) == 0);
    CHECK(nng_aio_alloc(&link->tx_quick, NULL, NULL) == 0);
    CHECK(nng_aio_alloc(&link->tx_slow, link_on_slow_write, link) == 0);
    nng_stream_set_bool(stream, NNG_OPT_TCP_NODELAY, true);
    fill_name(link);
    return link;
}

struct link *link_ref(struct link *link)
{
    atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
    return link;
}

void link_unref(struct link *link)
{
    if (atomic_fetch_sub_explicit(&link->refs, 1, memory_order_acq_rel) > 1)
        return;
    CHECK(link->closed);
    nng_aio_reap(link->rx);
    nng_aio_reap(link->tx_quick);
    nng_aio_reap(link->tx_slow);
    nng_stream_free(link->stream);
    wire_frame_unref(link->big);
    outq_deinit(&link->queue);
    pthread_mutex_destroy(&link->mutex);
    void (*on_freed)(void *owner) = link->hooks.on_freed;
    void *owner = link->owner;
    mem_free(link);
    on_freed(owner);
}

/* Where the next bytes go: into the big frame, or behind what the buffer holds. */
static void read_submit_locked(struct link *link)
{
    nng_iov iov = {.iov_buf = link->buffer + link->filled, .iov_len = sizeof link->buffer - link->filled};
    if (link->big != NULL)
        iov = (nng_iov){.iov_buf = link->big->data + link->big_len, .iov_len = link->big->len - link->big_len};
    CHECK(nng_aio_set_iov(link->rx, 1, &iov) == 0);
    nng_stream_recv(link->stream, link->rx);
}

/* Begins a read unless one is under way, reading is paused or the link closed. The reading reference moves along. */
static void read_next(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
    bool submit = !link->closed && !link->paused && !link->reading;
    if (submit) {
        link->reading = true;
        link_ref(link);
        read_submit_locked(link);
    }
    pthread_mutex_unlock(&link->mutex);
}

void link_start(struct link *link)
{
    read_next(link);
}

/* Makes the frame that starts at `data` its own memory, `have` bytes of it being there. */
static void begin_big(struct link *link, const uint8_t *data, uint32_t have, uint32_t length)
{
    link->big = wire_frame_new(length);
    memcpy(link->big->data, data, have);
    link->big_len = have;
}

/* Cuts the buffer into frames and delivers them. False when a frame's length is out of bounds or the owner wants to
 * close. */
static bool deliver_buffer(struct link *link)
{
    uint32_t at = 0;
    while (link->filled - at >= WIRE_HEADER_BYTES) {
        struct wire_header header;
        if (!wire_header_parse(link->buffer + at, &header, NULL) || header.length > link->max_frame)
            return false;
        uint32_t have = link->filled - at;
        if (header.length > have) {
            if (header.length <= sizeof link->buffer - at)
                break; /* fits behind: wait for the rest */
            begin_big(link, link->buffer + at, have, header.length);
            at = link->filled;
            break;
        }
        struct wire_frame *frame = wire_frame_new(header.length);
        memcpy(frame->data, link->buffer + at, header.length);
        at += header.length;
        if (!link->hooks.on_frame(link->owner, frame))
            return false;
    }
    if (at > 0)
        memmove(link->buffer, link->buffer + at, link->filled - at);
    link->filled -= at;
    return true;
}

static bool deliver(struct link *link, uint32_t count)
{
    if (link->big == NULL) {
        link->filled += count;
        return deliver_buffer(link);
    }
    link->big_len += count;
    if (link->big_len < link->big->len)
        return true;
    struct wire_frame *frame = link->big;
    link->big = NULL;
    link->big_len = 0;
    return link->hooks.on_frame(link->owner, frame);
}

/* The read ended. Runs on nng's thread; one at a time for a link. */
static void on_read(void *arg)
{
    struct link *link = arg;
    bool good = nng_aio_result(link->rx) == 0;
    if (good) {
        atomic_store_explicit(&link->heard_ms, clock_now_ms(), memory_order_relaxed);
        link_delivering = link;
        good = deliver(link, (uint32_t)nng_aio_count(link->rx));
        link_delivering = NULL;
        link_flush(link);
    }
    pthread_mutex_lock(&link->mutex);
    link->reading = false;
    pthread_mutex_unlock(&link->mutex);
    if (good)
        read_next(link);
    else
        link_close(link);
    void (*after_read)(void) = link->hooks.after_read;
    link_unref(link);
    if (after_read != NULL)
        after_read();
}

bool link_is_delivering(const struct link *link)
{
    return link_delivering == link;
}

void link_close(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
    bool first = !link->closed;
    link->closed = true;
    pthread_mutex_unlock(&link->mutex);
    if (!first)
        return;
    nng_stream_close(link->stream);
    link->hooks.on_closed(link->owner);
}

void link_set_max_frame(struct link *link, uint32_t max_frame)
{
    link->max_frame = max_frame;
}

void link_pause(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
    link->paused = true;
    pthread_mutex_unlock(&link->mutex);
}

void link_resume(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
    link->paused = false;
    pthread_mutex_unlock(&link->mutex);
    read_next(link);
}

int64_t link_heard_ms(const struct link *link)
{
    return atomic_load_explicit(&link->heard_ms, memory_order_relaxed);
}

int64_t link_alive_ms(const struct link *link)
{
    int64_t heard_ms = link_heard_ms(link);
    int64_t taken_ms = atomic_load_explicit(&link->taken_ms, memory_order_relaxed);
    return taken_ms > heard_ms ? taken_ms : heard_ms;
}

const char *link_peer_name(const struct link *link)
{
    return link->name;
}
