/* The bytes of one message, counted by references so that several owners (a request, a send queue, a reply that is
 * forwarded) may keep them. The bytes are written by one owner before they are shared and not afterwards. */
#ifndef SHERD_WIRE_FRAME_H
#define SHERD_WIRE_FRAME_H

#include "base/buf.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire_frame {
    _Atomic uint32_t refs;
    uint32_t len;     /* of the message */
    uint8_t *data;    /* inside this allocation, or `outside` */
    uint8_t *outside; /* NULL, or bytes in an allocation of their own */
};

/* A part of an outgoing message. */
struct wire_piece {
    const void *data;
    size_t len;
    struct wire_frame *owner; /* whose bytes they are: a reference is kept until they are sent. NULL: they are copied */
};

/* A frame of `len` bytes, contents undefined, one reference, the caller's. `len` was bounded by the caller. */
struct wire_frame *wire_frame_new(uint32_t len);
/* A frame that will have `len` bytes but has room for the first `room` of them only: for a message whose announced
 * length isn't believed before its bytes come. Grow it up to `len` while it isn't shared. */
struct wire_frame *wire_frame_new_growing(uint32_t len, uint32_t room);
void wire_frame_grow(struct wire_frame *frame, uint32_t room);
/* Takes the buffer's bytes (one whole message); the buffer is empty afterwards. */
struct wire_frame *wire_frame_take(struct buf *buf);
struct wire_frame *wire_frame_ref(struct wire_frame *frame);
/* Accepts NULL. */
void wire_frame_unref(struct wire_frame *frame);
/* True when the caller's reference is the only one: the bytes may be changed in place. */
bool wire_frame_is_sole(const struct wire_frame *frame);

#endif
