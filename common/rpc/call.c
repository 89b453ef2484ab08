#include "rpc/client_impl.h"

#include "base/check.h"
#include "base/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PIECES_MAX = 64,    /* of one message, headers included */
    HEADER_BYTES = 21,  /* message header, flags, kind of the body section */
    SECTION_BYTES = 64, /* kind, size and name of a sequence */
};

void rpc_waiter_init(struct rpc_waiter *waiter)
{
    waiter->started = 0;
    atomic_init(&waiter->finished, 0);
}

/* Sleeps while *word == value, until the deadline. */
static void futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t deadline_ms)
{
    struct timespec until = {.tv_sec = deadline_ms / 1000, .tv_nsec = deadline_ms % 1000 * 1000000};
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, deadline_ms == DEADLINE_NEVER ? NULL : &until, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

void rpc_waiter_wait_all(struct rpc_waiter *waiter)
{
    uint32_t finished;
    while ((finished = atomic_load_explicit(&waiter->finished, memory_order_acquire)) != waiter->started)
        futex_wait(&waiter->finished, finished, DEADLINE_NEVER);
}

uint32_t rpc_waiter_wait_any(struct rpc_waiter *waiter, uint32_t seen, int64_t deadline_ms)
{
    uint32_t finished;
    while ((finished = atomic_load_explicit(&waiter->finished, memory_order_acquire)) <= seen &&
           finished != waiter->started && !deadline_passed(deadline_ms))
        futex_wait(&waiter->finished, finished, deadline_ms);
    return finished;
}

void call_fail(struct rpc_call *call, enum rpc_outcome outcome, int32_t code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(call->err_text, sizeof call->err_text, format, args);
    va_end(args);
    call->outcome = outcome;
    call->err_code = code;
}

void call_complete(struct rpc_call *call)
{
    struct rpc_waiter *waiter = call->waiter;
    void (*done)(struct rpc_call * call) = call->done;
    atomic_store_explicit(&call->state, CALL_OVER, memory_order_release);
    if (done != NULL) {
        done(call);
    } else if (waiter != NULL) {
        /* The waiter may be gone once the count is up; waking an address that nobody sleeps on does no harm. */
        atomic_fetch_add_explicit(&waiter->finished, 1, memory_order_release);
        syscall(SYS_futex, &waiter->finished, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}

void call_complete_list(struct rpc_call *over)
{
    while (over != NULL) {
        struct rpc_call *next = over->next;
        call_complete(over);
        over = next;
    }
}

void rpc_call_init(struct rpc_call *call, struct rpc_client *client, int64_t deadline_ms)
{
    *call = (struct rpc_call){.client = client, .deadline_ms = deadline_ms};
}

/* The message being put together: pieces, and the bytes that only exist here. */
struct assembly {
    struct wire_piece pieces[PIECES_MAX];
    unsigned count;
    size_t bytes;
    uint8_t header[HEADER_BYTES];
    uint8_t sections[WIRE_MAX_SEQUENCES][SECTION_BYTES];
};

static bool add_piece(struct assembly *to, struct wire_piece piece)
{
    if (to->count == PIECES_MAX)
        return false;
    to->pieces[to->count++] = piece;
    to->bytes += piece.len;
    return true;
}

static bool add_pieces(struct assembly *to, const struct wire_piece *pieces, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (!add_piece(to, pieces[i]))
            return false;
    return true;
}

static bool add_sequence(struct assembly *to, uint8_t section[SECTION_BYTES], const struct rpc_sequence *sequence)
{
    size_t name_len = strlen(sequence->name) + 1;
    CHECK(name_len <= SECTION_BYTES - 5);
    size_t size = 4 + name_len;
    for (unsigned i = 0; i < sequence->piece_count; i++)
        size += sequence->pieces[i].len;
    if (size > WIRE_MAX_INTERNAL_BYTES)
        return false;
    section[0] = 1;
    store_le32(section + 1, (uint32_t)size);
    memcpy(section + 5, sequence->name, name_len);
    return add_piece(to, (struct wire_piece){.data = section, .len = 5 + name_len}) &&
           add_pieces(to, sequence->pieces, sequence->piece_count);
}

/* False when the message is too large or in too many pieces. */
static bool assemble(struct assembly *to, uint32_t request_id, const struct rpc_body *body)
{
    CHECK(body->sequence_count <= WIRE_MAX_SEQUENCES);
    to->count = 0;
    to->bytes = 0;
    add_piece(to, (struct wire_piece){.data = to->header, .len = HEADER_BYTES});
    struct wire_piece whole = {.data = body->body.data, .len = body->body.len};
    bool fits =
        body->body_pieces != NULL ? add_pieces(to, body->body_pieces, body->body_piece_count) : add_piece(to, whole);
    for (unsigned i = 0; i < body->sequence_count && fits; i++)
        fits = add_sequence(to, to->sections[i], &body->sequences[i]);
    if (!fits || to->bytes > WIRE_MAX_INTERNAL_BYTES)
        return false;
    memset(to->header, 0, sizeof to->header);
    store_le32(to->header, (uint32_t)to->bytes);
    store_le32(to->header + 4, request_id);
    store_le32(to->header + 12, WIRE_OP_MSG);
    store_le32(to->header + 16, body->no_reply ? WIRE_MORE_TO_COME : 0);
    return true;
}

static uint32_t next_request_id(struct rpc_client *client)
{
    uint32_t id;
    do {
        id = atomic_fetch_add_explicit(&client->next_request_id, 1, memory_order_relaxed);
    } while (id == 0); /* 0 stands for "no request" */
    return id;
}

void rpc_call_start(struct rpc_call *call, const char *address, const struct rpc_body *body)
{
    CHECK(call->state == CALL_NEW && (call->waiter == NULL || call->done == NULL));
    if (call->waiter != NULL)
        call->waiter->started++;
    struct rpc_client *client = call->client;
    int64_t latest_ms = deadline_after_ms(RPC_MAX_WAIT_MS);
    if (call->deadline_ms > latest_ms)
        call->deadline_ms = latest_ms;
    call->request_id = next_request_id(client);
    call->no_reply = body->no_reply;
    struct assembly message;
    struct rpc_peer *peer = client_peer(client, address);
    bool started = false;
    if (peer == NULL) {
        call_fail(call, RPC_NOT_SENT, ERR_HostNotFound, "cannot use the address '%s'", address);
    } else if (!assemble(&message, call->request_id, body)) {
        call_fail(call, RPC_NOT_SENT, ERR_BSONObjectTooLarge, "the request is larger than %d bytes",
                  WIRE_MAX_INTERNAL_BYTES);
    } else {
        atomic_fetch_add_explicit(&client->requests, 1, memory_order_relaxed);
        call->peer = peer;
        started = peer_start_call(peer, call, message.pieces, message.count);
    }
    if (!started)
        call_complete(call);
}

void rpc_call_cancel(struct rpc_call *call)
{
    bool sent;
    if (call->state == CALL_NEW)
        return;
    if (call->peer != NULL && peer_withdraw_call(call->peer, call, &sent)) {
        call_fail(call, sent ? RPC_UNKNOWN : RPC_NOT_SENT, ERR_Interrupted, "the call to %s was cancelled",
                  call->peer->address);
        call_complete(call);
        return;
    }
    while (!rpc_call_is_over(call)) /* another thread is at its last steps */
        sched_yield();
}

bool rpc_call_is_over(const struct rpc_call *call)
{
    return atomic_load_explicit(&call->state, memory_order_acquire) == CALL_OVER;
}

void rpc_call_deinit(struct rpc_call *call)
{
    CHECK(call->state == CALL_NEW || call->state == CALL_OVER);
    wire_frame_unref(call->frame);
    call->frame = NULL;
}

struct wire_frame *rpc_call_take_reply(struct rpc_call *call)
{
    struct wire_frame *frame = call->frame;
    call->frame = NULL;
    return frame;
}

bool rpc_call_check(const struct rpc_call *call, struct err *err)
{
    CHECK(rpc_call_is_over(call));
    if (call->outcome == RPC_REPLY)
        return true;
    return err_set(err, call->err_code, "%s", call->err_text);
}

bool rpc_call_run(struct rpc_call *call, struct rpc_client *client, const char *address, struct bdoc body,
                  int64_t deadline_ms, struct err *err)
{
    struct rpc_waiter waiter;
    rpc_waiter_init(&waiter);
    rpc_call_init(call, client, deadline_ms);
    call->waiter = &waiter;
    rpc_call_start(call, address, &(struct rpc_body){.body = body});
    rpc_waiter_wait_all(&waiter);
    call->waiter = NULL;
    return rpc_call_check(call, err);
}
