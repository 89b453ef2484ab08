#include "rpc/outq.h"

#include "base/check.h"
#include "base/mem.h"

enum { SPARE_BYTES_MAX = 256 << 10 }; /* a gathering buffer that grew beyond is not kept */

static void chunk_free(struct outq_chunk *chunk)
{
    wire_frame_unref(chunk->owner);
    buf_deinit(&chunk->bytes);
    mem_free(chunk);
}

void outq_deinit(struct outq *queue)
{
    for (struct outq_chunk *chunk = queue->first; chunk != NULL;) {
        struct outq_chunk *next = chunk->next;
        chunk_free(chunk);
        chunk = next;
    }
    if (queue->spare != NULL)
        chunk_free(queue->spare);
    *queue = OUTQ_INIT;
}

static void link_chunk(struct outq *queue, struct outq_chunk *chunk)
{
    chunk->next = NULL;
    if (queue->last == NULL)
        queue->first = chunk;
    else
        queue->last->next = chunk;
    queue->last = chunk;
}

/* The chunk at the end that takes `len` more gathered bytes; a new one unless the last is fit. The chunks that are
 * being written may be all that there are, up to the last: appending to its buffer could move it. */
static struct outq_chunk *gathering_chunk(struct outq *queue, size_t len)
{
    struct outq_chunk *last = queue->last;
    if (last != NULL && last->owner == NULL && !queue->busy && last->bytes.len + len <= OUTQ_CHUNK_BYTES)
        return last;
    struct outq_chunk *chunk = queue->spare;
    if (chunk != NULL)
        queue->spare = NULL;
    else
        chunk = mem_alloc(sizeof *chunk);
    link_chunk(queue, chunk);
    queue->busy = false; /* what comes next goes into this new chunk */
    return chunk;
}

static void append_piece(struct outq *queue, const struct wire_piece *piece)
{
    queue->bytes += piece->len;
    if (piece->owner == NULL || piece->len < OUTQ_GATHER_BYTES) {
        buf_append(&gathering_chunk(queue, piece->len)->bytes, piece->data, piece->len);
        return;
    }
    struct outq_chunk *chunk = mem_alloc(sizeof *chunk);
    chunk->owner = wire_frame_ref(piece->owner);
    chunk->data = piece->data;
    chunk->len = piece->len;
    link_chunk(queue, chunk);
}

void outq_append(struct outq *queue, const struct wire_piece *pieces, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (pieces[i].len > 0)
            append_piece(queue, &pieces[i]);
}

void outq_append_frame(struct outq *queue, struct wire_frame *frame)
{
    struct wire_piece piece = {.data = frame->data, .len = frame->len, .owner = frame};
    append_piece(queue, &piece);
    wire_frame_unref(frame);
}

void outq_join(struct outq *queue, struct outq *from)
{
    CHECK(from->sent == 0 && !from->busy);
    for (struct outq_chunk *chunk = from->first; chunk != NULL;) {
        struct outq_chunk *next = chunk->next;
        link_chunk(queue, chunk);
        chunk = next;
    }
    queue->bytes += from->bytes;
    if (from->first != NULL)
        queue->busy = false;
    from->first = NULL;
    outq_deinit(from);
}

static void chunk_bytes(const struct outq_chunk *chunk, const uint8_t **data, size_t *len)
{
    *data = chunk->owner != NULL ? chunk->data : chunk->bytes.data;
    *len = chunk->owner != NULL ? chunk->len : chunk->bytes.len;
}

unsigned outq_peek(struct outq *queue, struct wire_piece out[OUTQ_IOV_MAX], size_t *bytes)
{
    unsigned count = 0;
    size_t skip = queue->sent;
    *bytes = 0;
    struct outq_chunk *chunk = queue->first;
    for (; chunk != NULL && count < OUTQ_IOV_MAX; chunk = chunk->next) {
        const uint8_t *data;
        size_t len;
        chunk_bytes(chunk, &data, &len);
        out[count++] = (struct wire_piece){.data = data + skip, .len = len - skip};
        *bytes += len - skip;
        skip = 0;
    }
    queue->busy = count > 0 && chunk == NULL;
    return count;
}

static void recycle(struct outq *queue, struct outq_chunk *chunk)
{
    if (chunk->owner != NULL || queue->spare != NULL || chunk->bytes.cap > SPARE_BYTES_MAX) {
        chunk_free(chunk);
        return;
    }
    buf_clear(&chunk->bytes);
    queue->spare = chunk;
}

void outq_consume(struct outq *queue, size_t bytes)
{
    CHECK(bytes <= queue->bytes);
    queue->bytes -= bytes;
    queue->sent += bytes;
    queue->busy = false;
    while (queue->first != NULL) {
        struct outq_chunk *chunk = queue->first;
        const uint8_t *data;
        size_t len;
        chunk_bytes(chunk, &data, &len);
        if (queue->sent < len)
            return;
        queue->sent -= len;
        queue->first = chunk->next;
        if (queue->first == NULL)
            queue->last = NULL;
        recycle(queue, chunk);
    }
}
