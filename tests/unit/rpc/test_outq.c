#include "tests/unit/cmocka_all.h"

#include "base/mem.h"
#include "base/random.h"
#include "rpc/outq.h"

#include <string.h>

/* Writes up to `limit` bytes from the queue's front to `out`. */
static void write_some(struct outq *queue, struct buf *out, size_t limit)
{
    struct wire_piece pieces[OUTQ_IOV_MAX];
    size_t bytes;
    unsigned count = outq_peek(queue, pieces, &bytes);
    size_t done = 0;
    for (unsigned i = 0; i < count && done < limit; i++) {
        size_t part = pieces[i].len < limit - done ? pieces[i].len : limit - done;
        buf_append(out, pieces[i].data, part);
        done += part;
    }
    outq_consume(queue, done);
}

static void outq_random_writes_keep_all_bytes_in_order(void **state)
{
    (void)state;
    struct prng prng = {.state = 4};
    for (int round = 0; round < 50; round++) {
        struct outq queue = OUTQ_INIT;
        struct buf in = BUF_INIT;
        struct buf out = BUF_INIT;
        for (int step = 0; step < 200; step++) {
            static const size_t sizes[] = {1, 30, 300, 5000, OUTQ_GATHER_BYTES, 40000, 100000};
            size_t len = 1 + prng_below(&prng, sizes[prng_below(&prng, 7)]);
            struct wire_frame *frame = wire_frame_new((uint32_t)len);
            memset(frame->data, (int)prng_below(&prng, 256), len);
            buf_append(&in, frame->data, len);
            struct wire_piece piece = {frame->data, len, prng_below(&prng, 2) == 0 ? frame : NULL};
            if (prng_below(&prng, 4) == 0) {
                outq_append_frame(&queue, wire_frame_ref(frame));
            } else if (prng_below(&prng, 4) == 0) {
                struct outq other = OUTQ_INIT;
                outq_append(&other, &piece, 1);
                outq_join(&queue, &other);
            } else {
                outq_append(&queue, &piece, 1);
            }
            wire_frame_unref(frame);
            if (prng_below(&prng, 3) == 0)
                write_some(&queue, &out, prng_below(&prng, 60000));
        }
        while (queue.bytes > 0)
            write_some(&queue, &out, 1 + prng_below(&prng, 200000));
        assert_int_equal(in.len, out.len);
        assert_memory_equal(in.data, out.data, in.len);
        buf_deinit(&in);
        buf_deinit(&out);
        outq_deinit(&queue);
    }
}

static void outq_append_during_a_write_does_not_move_it(void **state)
{
    (void)state;
    struct outq queue = OUTQ_INIT;
    struct wire_piece pieces[OUTQ_IOV_MAX];
    size_t bytes;
    outq_append(&queue, &(struct wire_piece){.data = "hello", .len = 5}, 1);
    assert_int_equal(outq_peek(&queue, pieces, &bytes), 1);
    for (int i = 0; i < 10000; i++)
        outq_append(&queue, &(struct wire_piece){.data = "0123456789", .len = 10}, 1);
    assert_int_equal(bytes, 5);
    assert_memory_equal(pieces[0].data, "hello", 5); /* ASan would see a moved buffer */
    outq_consume(&queue, 5);
    assert_int_equal(queue.bytes, 100000);
    outq_deinit(&queue);
}

static void outq_small_pieces_leave_in_one_run(void **state)
{
    (void)state;
    struct outq queue = OUTQ_INIT;
    struct wire_piece pieces[OUTQ_IOV_MAX];
    size_t bytes;
    for (int i = 0; i < 100; i++)
        outq_append(&queue, &(struct wire_piece){.data = "0123456789", .len = 10}, 1);
    assert_int_equal(outq_peek(&queue, pieces, &bytes), 1);
    assert_int_equal(bytes, 1000);
    outq_consume(&queue, 1000);
    assert_int_equal(outq_peek(&queue, pieces, &bytes), 0);
    outq_deinit(&queue);
}

static void outq_large_owned_piece_is_not_copied(void **state)
{
    (void)state;
    struct outq queue = OUTQ_INIT;
    struct wire_frame *frame = wire_frame_new(OUTQ_GATHER_BYTES);
    memset(frame->data, 1, frame->len);
    struct wire_piece pieces[OUTQ_IOV_MAX];
    size_t bytes;
    outq_append(&queue, &(struct wire_piece){frame->data, frame->len, frame}, 1);
    assert_int_equal(outq_peek(&queue, pieces, &bytes), 1);
    assert_ptr_equal(pieces[0].data, frame->data);
    assert_false(wire_frame_is_sole(frame));
    outq_consume(&queue, bytes);
    assert_true(wire_frame_is_sole(frame));
    wire_frame_unref(frame);
    outq_deinit(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outq_random_writes_keep_all_bytes_in_order),
        cmocka_unit_test(outq_append_during_a_write_does_not_move_it),
        cmocka_unit_test(outq_small_pieces_leave_in_one_run),
        cmocka_unit_test(outq_large_owned_piece_is_not_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
