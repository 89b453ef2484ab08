/* The byte stream under client and server, with both ends in this process. */
#include "tests/unit/cmocka_all.h"

#include "base/clock.h"
#include "base/thread.h"
#include "rpc/link.h"
#include "wire/message.h"

#include <stdatomic.h>
#include <string.h>

struct end {
    struct link *link;
    atomic_uint frames;
    atomic_ullong bytes;
    atomic_uint out_of_order;
    atomic_bool closed;
    atomic_bool freed;
};

static bool on_frame(void *owner, struct wire_frame *frame)
{
    struct end *end = owner;
    if (load_le32(frame->data + 4) != atomic_load(&end->frames))
        atomic_fetch_add(&end->out_of_order, 1);
    atomic_fetch_add(&end->bytes, frame->len);
    atomic_fetch_add(&end->frames, 1);
    wire_frame_unref(frame);
    return true;
}

static void on_closed(void *owner)
{
    struct end *end = owner;
    atomic_store(&end->closed, true);
}

static void on_freed(void *owner)
{
    struct end *end = owner;
    atomic_store(&end->freed, true);
}

static const struct link_hooks hooks = {on_frame, on_closed, on_freed, NULL};

/* Two linked ends over loopback. */
static void connect_ends(struct end *a, struct end *b)
{
    nng_stream_listener *listener;
    nng_stream_dialer *dialer;
    nng_aio *accepted;
    nng_aio *dialed;
    int port;
    char url[64];
    assert_int_equal(nng_aio_alloc(&accepted, NULL, NULL), 0);
    assert_int_equal(nng_aio_alloc(&dialed, NULL, NULL), 0);
    assert_int_equal(nng_stream_listener_alloc(&listener, "tcp://127.0.0.1:0"), 0);
    assert_int_equal(nng_stream_listener_listen(listener), 0);
    assert_int_equal(nng_stream_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port), 0);
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port);
    nng_stream_listener_accept(listener, accepted);
    assert_int_equal(nng_stream_dialer_alloc(&dialer, url), 0);
    nng_stream_dialer_dial(dialer, dialed);
    nng_aio_wait(dialed);
    nng_aio_wait(accepted);
    assert_int_equal(nng_aio_result(dialed), 0);
    assert_int_equal(nng_aio_result(accepted), 0);
    *a = (struct end){0};
    *b = (struct end){0};
    a->link = link_new(nng_aio_get_output(dialed, 0), &hooks, a, WIRE_MAX_MESSAGE_BYTES);
    b->link = link_new(nng_aio_get_output(accepted, 0), &hooks, b, WIRE_MAX_MESSAGE_BYTES);
    nng_stream_dialer_free(dialer);
    nng_stream_listener_close(listener);
    nng_stream_listener_free(listener);
    nng_aio_free(accepted);
    nng_aio_free(dialed);
}

static void end_both(struct end *a, struct end *b)
{
    link_close(a->link);
    link_unref(a->link);
    link_close(b->link);
    link_unref(b->link);
    for (int i = 0; i < 5000 && !(atomic_load(&a->freed) && atomic_load(&b->freed)); i++)
        clock_sleep_ms(1);
    assert_true(atomic_load(&a->freed) && atomic_load(&b->freed));
    assert_true(atomic_load(&a->closed) && atomic_load(&b->closed));
}

static struct wire_frame *frame_of(uint32_t number, uint32_t len)
{
    struct wire_frame *frame = wire_frame_new(len);
    memset(frame->data, (int)number, len);
    store_le32(frame->data, len);
    store_le32(frame->data + 4, number);
    return frame;
}

static void wait_frames(struct end *end, unsigned count)
{
    for (int i = 0; i < 20000 && atomic_load(&end->frames) < count; i++)
        clock_sleep_ms(1);
    assert_int_equal(atomic_load(&end->frames), count);
    assert_int_equal(atomic_load(&end->out_of_order), 0);
}

static void link_frames_of_all_sizes_arrive_in_order(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {16, 17, 300, 4096, 65535, 65536, 65537, 1 << 20, 5 << 20};
    struct end a;
    struct end b;
    connect_ends(&a, &b);
    link_start(a.link);
    link_start(b.link);
    uint32_t number = 0;
    uint64_t total = 0;
    for (int round = 0; round < 6; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            uint64_t position;
            assert_true(link_queue_frame(a.link, frame_of(number++, sizes[i]), &position));
            assert_int_equal(position, total);
            total += sizes[i];
            if (round % 2 == 0)
                link_flush(a.link);
        }
        link_flush(a.link);
    }
    wait_frames(&b, number);
    assert_int_equal(atomic_load(&b.bytes), total);
    assert_true(link_was_sent(a.link, total - 1));
    assert_int_equal(link_queued_bytes(a.link), 0);
    end_both(&a, &b);
}

static void link_paused_reading_holds_the_sender_back(void **state)
{
    (void)state;
    struct end a;
    struct end b;
    connect_ends(&a, &b);
    link_start(a.link);
    link_pause(b.link);
    link_start(b.link);
    enum { FRAMES = 64, BYTES = 1 << 20 };
    uint64_t position = 0;
    for (uint32_t i = 0; i < FRAMES; i++)
        assert_true(link_queue_frame(a.link, frame_of(i, BYTES), &position));
    link_flush(a.link);
    clock_sleep_ms(100);
    assert_int_equal(atomic_load(&b.frames), 0);
    assert_true(link_queued_bytes(a.link) > 0);
    assert_true(link_stuck_since_ms(a.link) > 0);
    assert_false(link_was_sent(a.link, position));
    link_resume(b.link);
    wait_frames(&b, FRAMES);
    assert_int_equal(link_stuck_since_ms(a.link), 0);
    end_both(&a, &b);
}

static void link_close_with_writes_pending_frees_everything(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct end a;
        struct end b;
        connect_ends(&a, &b);
        link_start(a.link);
        uint64_t position = 0;
        for (uint32_t i = 0; i < 20; i++)
            assert_true(link_queue_frame(a.link, frame_of(i, 1 << 20), &position));
        link_flush(a.link);
        if (round % 2 == 0)
            link_start(b.link);
        end_both(round % 4 < 2 ? &a : &b, round % 4 < 2 ? &b : &a);
        (void)position;
    }
}

static void link_queue_after_close_is_refused(void **state)
{
    (void)state;
    struct end a;
    struct end b;
    connect_ends(&a, &b);
    link_close(a.link);
    uint64_t position;
    assert_false(link_queue_frame(a.link, frame_of(1, 100), &position));
    assert_false(link_queue(a.link, &(struct wire_piece){.data = "x", .len = 1}, 1, &position));
    end_both(&a, &b);
}

static void link_frame_over_the_limit_closes(void **state)
{
    (void)state;
    struct end a;
    struct end b;
    connect_ends(&a, &b);
    link_set_max_frame(b.link, 1000);
    link_start(a.link);
    link_start(b.link);
    uint64_t position;
    link_queue_frame(a.link, frame_of(0, 1000), &position);
    link_queue_frame(a.link, frame_of(1, 1001), &position);
    link_flush(a.link);
    for (int i = 0; i < 5000 && !(atomic_load(&a.closed) && atomic_load(&b.closed)); i++)
        clock_sleep_ms(1);
    assert_true(atomic_load(&b.closed));
    assert_true(atomic_load(&a.closed));
    assert_int_equal(atomic_load(&b.frames), 1);
    end_both(&a, &b);
}

struct sender {
    struct link *link;
    uint64_t bytes;
};

static void *send_many(void *arg)
{
    struct sender *sender = arg;
    for (int i = 0; i < 2000; i++) {
        uint64_t position;
        uint32_t len = 100 + (uint32_t)(i * 37 % 3000);
        struct wire_frame *frame = frame_of(0, len);
        assert_true(link_queue_frame(sender->link, frame, &position));
        link_flush(sender->link);
        sender->bytes += len;
    }
    return NULL;
}

static void link_many_threads_write_whole_frames(void **state)
{
    (void)state;
    struct end a;
    struct end b;
    connect_ends(&a, &b);
    link_start(a.link);
    link_start(b.link);
    struct sender senders[4];
    pthread_t threads[4];
    uint64_t total = 0;
    for (int i = 0; i < 4; i++) {
        senders[i] = (struct sender){.link = a.link};
        thread_start(&threads[i], "send", send_many, &senders[i]);
    }
    for (int i = 0; i < 4; i++) {
        thread_join(threads[i]);
        total += senders[i].bytes;
    }
    for (int i = 0; i < 20000 && atomic_load(&b.frames) < 8000; i++)
        clock_sleep_ms(1);
    assert_int_equal(atomic_load(&b.frames), 8000);
    assert_int_equal(atomic_load(&b.bytes), total);
    end_both(&a, &b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(link_frames_of_all_sizes_arrive_in_order),
        cmocka_unit_test(link_paused_reading_holds_the_sender_back),
        cmocka_unit_test(link_close_with_writes_pending_frees_everything),
        cmocka_unit_test(link_queue_after_close_is_refused),
        cmocka_unit_test(link_frame_over_the_limit_closes),
        cmocka_unit_test(link_many_threads_write_whole_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
