/* One nng byte stream that carries OP_MSG frames in both directions: reading and cutting, queueing and writing. The
 * client's peer and the server's connection both stand on it. Frames are delivered on nng's thread, one at a time.
 *
 * nng 1.5.2 rules that this file lives by: an operation submitted after nng_stream_close, or after the poller has seen
 * an error, may never end, so submissions and the close are ordered by the link's mutex and a close follows every
 * error; the stream is freed when neither operation is under way, the aios by nng's own reaper (never from their own
 * callback). */
#ifndef SHERD_RPC_LINK_H
#define SHERD_RPC_LINK_H

#include "rpc/outq.h"

#include <nng/nng.h>
#include <stdbool.h>
#include <stdint.h>

struct link;

/* The owner outlives the link until on_freed. */
struct link_hooks {
    /* A whole frame; takes its reference. False closes the link. On nng's thread, one at a time; frames that were read
     * before a close may still come after on_closed. */
    bool (*on_frame)(void *owner, struct wire_frame *frame);
    /* Exactly once, on nng's thread or inside link_close. */
    void (*on_closed)(void *owner);
    /* The last call from this link, on any thread. */
    void (*on_freed)(void *owner);
    /* NULL, or called on nng's thread after on_frame calls, when reading goes on elsewhere and the link has let go of
     * owner: a place to do what on_frame has put off (thread-local). */
    void (*after_read)(void);
};

/* Takes the stream. One reference, the caller's. Nothing is read before link_start. */
struct link *link_new(nng_stream *stream, const struct link_hooks *hooks, void *owner, uint32_t max_frame);
void link_start(struct link *link);
struct link *link_ref(struct link *link);
/* The last one frees the link, the stream must have been closed (link_close). */
void link_unref(struct link *link);

/* Queues one message; false when the link is closed (nothing is queued). *position: where its first byte lies in the
 * stream of bytes, for link_was_sent. Call link_flush afterwards. */
bool link_queue(struct link *link, const struct wire_piece *pieces, unsigned count, uint64_t *position);
/* The same with a whole frame; takes the reference in either case. */
bool link_queue_frame(struct link *link, struct wire_frame *frame, uint64_t *position);
/* The same with all that a queue holds; the queue is empty afterwards if true. */
bool link_queue_all(struct link *link, struct outq *from, uint64_t *position);
/* Writes what is queued unless another thread does so already. Never blocks. Inside on_frame of this link it does
 * nothing: what is queued there leaves in one write when the frames at hand are through. */
void link_flush(struct link *link);
/* Whether the write that holds the byte at `position` has begun. */
bool link_was_sent(struct link *link, uint64_t position);

/* Whether this thread is inside on_frame of the link. */
bool link_is_delivering(const struct link *link);

/* Any thread, any number of times. Blocks for moments only. The first call tells on_closed. Not under a lock that
 * on_closed takes. */
void link_close(struct link *link);
/* Frames longer than that close the link. Only from on_frame. */
void link_set_max_frame(struct link *link, uint32_t max_frame);
/* Stops and starts reading; a frame that is in the buffer already may still be delivered after a pause. Any thread. */
void link_pause(struct link *link);
void link_resume(struct link *link);

/* clock_now_ms() of the last byte that came in; of the start before the first. */
int64_t link_heard_ms(const struct link *link);
/* clock_now_ms() of the last sign of life: a byte that came in, or bytes that had to wait for room in a full socket and
 * then left. Bytes that the socket takes at once only went into our own kernel: they prove nothing. */
int64_t link_alive_ms(const struct link *link);
/* clock_now_ms() since when queued bytes wait without progress; 0: nothing waits. */
int64_t link_stuck_since_ms(struct link *link);
size_t link_queued_bytes(struct link *link);
/* "127.0.0.1:50002" */
const char *link_peer_name(const struct link *link);

#endif
