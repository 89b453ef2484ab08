/* The writing half of struct link. */
#include "base/check.h"
#include "base/clock.h"
#include "rpc/link_impl.h"

static void count_queued_locked(struct link *link, size_t before, uint64_t *position)
{
    *position = link->queued_end;
    link->queued_end += link->queue.bytes - before;
}

bool link_queue(struct link *link, const struct wire_piece *pieces, unsigned count, uint64_t *position)
{
    pthread_mutex_lock(&link->mutex);
    bool queued = !link->closed;
    if (queued) {
        size_t before = link->queue.bytes;
        outq_append(&link->queue, pieces, count);
        count_queued_locked(link, before, position);
    }
    pthread_mutex_unlock(&link->mutex);
    return queued;
}

bool link_queue_all(struct link *link, struct outq *from, uint64_t *position)
{
    pthread_mutex_lock(&link->mutex);
    bool queued = !link->closed;
    if (queued) {
        size_t before = link->queue.bytes;
        outq_join(&link->queue, from);
        count_queued_locked(link, before, position);
    }
    pthread_mutex_unlock(&link->mutex);
    return queued;
}

bool link_queue_frame(struct link *link, struct wire_frame *frame, uint64_t *position)
{
    pthread_mutex_lock(&link->mutex);
    bool queued = !link->closed;
    if (queued) {
        size_t before = link->queue.bytes;
        outq_append_frame(&link->queue, frame);
        count_queued_locked(link, before, position);
    }
    pthread_mutex_unlock(&link->mutex);
    if (!queued)
        wire_frame_unref(frame);
    return queued;
}

static void set_iov(nng_aio *aio, const struct wire_piece *pieces, unsigned count)
{
    nng_iov iov[OUTQ_IOV_MAX];
    for (unsigned i = 0; i < count; i++) {
        union {
            const void *from;
            void *to; /* nng doesn't write through it */
        } data = {.from = pieces[i].data};
        iov[i] = (nng_iov){.iov_buf = data.to, .iov_len = pieces[i].len};
    }
    CHECK(nng_aio_set_iov(aio, count, iov) == 0);
}

/* Tries to write at once, on this thread: 0 bytes when the socket is full or broken. The aio has no callback, so
 * nothing is woken; when the write didn't happen at once it is taken back, which nng does synchronously. A result other
 * than "taken back" is an error of the stream. */
static size_t write_quick(struct link *link, const struct wire_piece *pieces, unsigned count, bool *broken)
{
    nng_aio *aio = link->tx_quick;
    set_iov(aio, pieces, count);
    nng_stream_send(link->stream, aio);
    if (nng_aio_count(aio) == 0 && nng_aio_result(aio) == 0)
        nng_aio_abort(aio, NNG_ECANCELED);
    nng_aio_wait(aio);
    int result = nng_aio_result(aio);
    *broken = result != 0 && result != NNG_ECANCELED;
    return result == 0 ? nng_aio_count(aio) : 0;
}

/* Hands the next bytes to nng to be written when the socket takes them; `writing` stays set until link_on_slow_write.
 */
static void write_slow_locked(struct link *link)
{
    struct wire_piece pieces[OUTQ_IOV_MAX];
    size_t bytes;
    unsigned count = outq_peek(&link->queue, pieces, &bytes);
    set_iov(link->tx_slow, pieces, count);
    if (link->stuck_ms == 0)
        link->stuck_ms = clock_now_ms();
    link_ref(link);
    nng_stream_send(link->stream, link->tx_slow);
}

/* Writes until the queue is empty or the socket full. The caller has set `writing` and holds the mutex, which is given
 * up during each write, so that others queue meanwhile. */
static void write_all_locked(struct link *link)
{
    bool broken = false;
    while (!link->closed && link->queue.bytes > 0) {
        struct wire_piece pieces[OUTQ_IOV_MAX];
        size_t bytes;
        unsigned count = outq_peek(&link->queue, pieces, &bytes);
        link->submitted = link->queued_end - link->queue.bytes + bytes;
        pthread_mutex_unlock(&link->mutex);
        size_t done = write_quick(link, pieces, count, &broken);
        pthread_mutex_lock(&link->mutex);
        outq_consume(&link->queue, done);
        if (done > 0)
            continue;
        if (broken || link->closed)
            break;
        write_slow_locked(link);
        return;
    }
    link->writing = false;
    if (broken) {
        pthread_mutex_unlock(&link->mutex);
        link_close(link);
        pthread_mutex_lock(&link->mutex);
    }
}

void link_flush(struct link *link)
{
    if (link_delivering == link)
        return;
    link_ref(link); /* write_all gives the mutex up; the owner may let go meanwhile */
    pthread_mutex_lock(&link->mutex);
    if (!link->writing && !link->closed && link->queue.bytes > 0) {
        link->writing = true;
        write_all_locked(link);
    }
    pthread_mutex_unlock(&link->mutex);
    link_unref(link);
}

/* The slow write ended: go on with quick ones. Runs on nng's thread. */
void link_on_slow_write(void *arg)
{
    struct link *link = arg;
    int result = nng_aio_result(link->tx_slow);
    pthread_mutex_lock(&link->mutex);
    size_t done = result == 0 ? nng_aio_count(link->tx_slow) : 0;
    outq_consume(&link->queue, done);
    if (done > 0)
        atomic_store_explicit(&link->taken_ms, clock_now_ms(), memory_order_relaxed);
    link->stuck_ms = 0;
    if (result == 0)
        write_all_locked(link);
    else
        link->writing = false;
    pthread_mutex_unlock(&link->mutex);
    if (result != 0)
        link_close(link);
    link_unref(link);
}

bool link_was_sent(struct link *link, uint64_t position)
{
    pthread_mutex_lock(&link->mutex);
    bool sent = position < link->submitted;
    pthread_mutex_unlock(&link->mutex);
    return sent;
}

int64_t link_stuck_since_ms(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
    int64_t since_ms = link->stuck_ms;
    pthread_mutex_unlock(&link->mutex);
    return since_ms;
}

size_t link_queued_bytes(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
    size_t bytes = link->queue.bytes;
    pthread_mutex_unlock(&link->mutex);
    return bytes;
}
