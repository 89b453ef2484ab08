/* Inside of struct link, for link.c (life and reading) and link_write.c. */
#ifndef SHERD_RPC_LINK_IMPL_H
#define SHERD_RPC_LINK_IMPL_H

#include "rpc/link.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    LINK_READ_BYTES = 64 << 10, /* read buffer; a frame's rest that is longer is read into the frame itself */
    LINK_NAME_MAX = 64,
};

struct link {
    _Atomic uint32_t refs; /* the owner's, one of reading, one of a write under way */
    pthread_mutex_t mutex; /* of: closed, paused, reading, writing, the queue and its positions */
    nng_stream *stream;
    struct link_hooks hooks;
    void *owner;
    char name[LINK_NAME_MAX];

    bool closed;         /* nothing is submitted any more */
    bool paused;         /* link_pause: no new read */
    bool reading;        /* a read is submitted, or its bytes are being delivered */
    bool writing;        /* some thread or the slow aio writes */
    struct outq queue;   /* to be written */
    uint64_t queued_end; /* stream position after the last queued byte */
    uint64_t submitted;  /* stream position up to which writes have begun */
    int64_t stuck_ms;    /* since when the slow aio waits; 0: it doesn't */

    nng_aio *rx;              /* callback on_read */
    nng_aio *tx_quick;        /* no callback: a write that the socket takes at once */
    nng_aio *tx_slow;         /* callback: one that has to wait */
    _Atomic int64_t heard_ms; /* clock_now_ms() of the last byte that came in; of the start before */
    _Atomic int64_t taken_ms; /* clock_now_ms() when bytes that had to wait were last taken; 0: never */
    uint32_t max_frame;       /* bytes */
    struct wire_frame *big;   /* a frame that is being read into its own memory; NULL: none */
    uint32_t big_len;         /* bytes of it that are there */
    uint32_t filled;          /* bytes in `buffer` */
    uint8_t buffer[LINK_READ_BYTES];
};

/* The link whose frames this thread is delivering. */
extern _Thread_local const struct link *link_delivering;

void link_on_slow_write(void *arg);

#endif
