#include "tests/unit/cmocka_all.h"

#include "base/thread.h"
#include "wire/frame.h"

#include <string.h>

static void frame_last_reference_frees_it(void **state)
{
    (void)state;
    struct wire_frame *frame = wire_frame_new(100);
    memset(frame->data, 1, 100);
    assert_int_equal(frame->len, 100);
    assert_true(wire_frame_is_sole(frame));
    wire_frame_ref(frame);
    assert_false(wire_frame_is_sole(frame));
    wire_frame_unref(frame);
    assert_true(wire_frame_is_sole(frame));
    wire_frame_unref(frame);
    wire_frame_unref(NULL);
}

static void frame_take_moves_the_buffer(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    buf_append(&buf, "hello", 5);
    const uint8_t *bytes = buf.data;
    struct wire_frame *frame = wire_frame_take(&buf);
    assert_ptr_equal(frame->data, bytes);
    assert_int_equal(frame->len, 5);
    assert_null(buf.data);
    wire_frame_unref(frame);
}

static void frame_grows_and_keeps_its_bytes(void **state)
{
    (void)state;
    struct wire_frame *frame = wire_frame_new_growing(1000, 10);
    assert_int_equal(frame->len, 1000);
    memset(frame->data, 7, 10);
    wire_frame_grow(frame, 1000);
    memset(frame->data + 10, 8, 990);
    assert_int_equal(frame->data[9], 7);
    wire_frame_unref(frame);
}

static void *ref_and_unref(void *arg)
{
    for (int i = 0; i < 10000; i++) {
        wire_frame_ref(arg);
        wire_frame_unref(arg);
    }
    return NULL;
}

static void frame_is_counted_by_many_threads(void **state)
{
    (void)state;
    struct wire_frame *frame = wire_frame_new(1);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        thread_start(&threads[i], "ref", ref_and_unref, frame);
    for (int i = 0; i < 4; i++)
        thread_join(threads[i]);
    assert_true(wire_frame_is_sole(frame));
    wire_frame_unref(frame);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frame_last_reference_frees_it),
        cmocka_unit_test(frame_take_moves_the_buffer),
        cmocka_unit_test(frame_grows_and_keeps_its_bytes),
        cmocka_unit_test(frame_is_counted_by_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
