/* Bytes that wait to be written to a stream, in order. Small pieces are gathered in buffers so that many messages leave
 * in one write; a large piece that has an owner is written from where it lies. Not thread-safe: whoever has it locks.
 */
#ifndef SHERD_RPC_OUTQ_H
#define SHERD_RPC_OUTQ_H

#include "base/buf.h"
#include "wire/frame.h"

enum {
    OUTQ_IOV_MAX = 8,            /* nng 1.5.2 takes no more in one write */
    OUTQ_GATHER_BYTES = 8 << 10, /* smaller pieces are copied even when they have an owner */
    OUTQ_CHUNK_BYTES = 64 << 10, /* a gathering buffer is closed beyond this */
};

/* Bytes in a row: gathered (owner NULL) or somebody's. */
struct outq_chunk {
    struct outq_chunk *next;
    struct wire_frame *owner; /* a reference; NULL: the bytes are in `bytes` */
    struct buf bytes;
    const uint8_t *data; /* of the owner's chunk */
    size_t len;          /* of the owner's chunk */
};

struct outq {
    struct outq_chunk *first;
    struct outq_chunk *last;  /* NULL when empty */
    struct outq_chunk *spare; /* one empty gathering chunk, kept to save an allocation per write */
    size_t sent;              /* bytes of `first` that are written */
    size_t bytes;             /* all that is not written */
    bool busy;                /* the chunks at the front are being written: no byte may be gathered into them */
};

#define OUTQ_INIT ((struct outq){0})

void outq_deinit(struct outq *queue);
/* Copies or refers to the pieces; see struct wire_piece. */
void outq_append(struct outq *queue, const struct wire_piece *pieces, unsigned count);
/* Appends a whole frame; takes the reference. */
void outq_append_frame(struct outq *queue, struct wire_frame *frame);
/* Moves all chunks of `from` to the end of `queue`. */
void outq_join(struct outq *queue, struct outq *from);
/* The next bytes to write, at most OUTQ_IOV_MAX runs; returns how many. They stay valid until outq_consume, whatever is
 * appended meanwhile. */
unsigned outq_peek(struct outq *queue, struct wire_piece out[OUTQ_IOV_MAX], size_t *bytes);
/* The first `bytes` were written (0 is allowed); ends the peek. */
void outq_consume(struct outq *queue, size_t bytes);

#endif
