#include "wire/frame.h"

#include "base/check.h"
#include "base/mem.h"

struct wire_frame *wire_frame_new(uint32_t len)
{
    /* Not zeroed: whoever makes it writes all of it. */
    struct wire_frame *frame = mem_realloc(NULL, sizeof *frame + len);
    atomic_init(&frame->refs, 1);
    frame->len = len;
    frame->data = (uint8_t *)(frame + 1);
    frame->outside = NULL;
    return frame;
}

struct wire_frame *wire_frame_new_growing(uint32_t len, uint32_t room)
{
    struct wire_frame *frame = mem_alloc(sizeof *frame);
    atomic_init(&frame->refs, 1);
    frame->len = len;
    wire_frame_grow(frame, room);
    return frame;
}

void wire_frame_grow(struct wire_frame *frame, uint32_t room)
{
    CHECK(room <= frame->len && (frame->outside != NULL || frame->data == NULL));
    frame->outside = mem_realloc(frame->outside, room);
    frame->data = frame->outside;
}

struct wire_frame *wire_frame_take(struct buf *buf)
{
    struct wire_frame *frame = mem_alloc(sizeof *frame);
    atomic_init(&frame->refs, 1);
    size_t len;
    frame->outside = buf_take(buf, &len);
    frame->data = frame->outside;
    CHECK(len <= UINT32_MAX);
    frame->len = (uint32_t)len;
    return frame;
}

struct wire_frame *wire_frame_ref(struct wire_frame *frame)
{
    uint32_t before = atomic_fetch_add_explicit(&frame->refs, 1, memory_order_relaxed);
    CHECK(before > 0);
    return frame;
}

void wire_frame_unref(struct wire_frame *frame)
{
    if (frame == NULL)
        return;
    uint32_t before = atomic_fetch_sub_explicit(&frame->refs, 1, memory_order_acq_rel);
    CHECK(before > 0);
    if (before > 1)
        return;
    mem_free(frame->outside);
    mem_free(frame);
}

bool wire_frame_is_sole(const struct wire_frame *frame)
{
    return atomic_load_explicit(&frame->refs, memory_order_acquire) == 1;
}
