#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include "command/context.h"
#include "document/cursor.h"
#include "document/cursors.h"

static struct document_cursor *make(size_t list_bytes)
{
    bson_t body = BSON_INITIALIZER;
    struct wire_msg msg;
    struct err err;
    BSON_APPEND_INT32(&body, "find", 1);
    struct wire_frame *frame = wire_frame_of_doc(bdoc_of(&body));
    assert_true(wire_msg_parse(frame->data, frame->len, WIRE_PARSE_CHECKED, &msg, &err));
    struct command_ctx *ctx = command_ctx_new(frame, &msg);
    struct document_cursor *cursor = document_cursor_new(ctx, "t.c");
    buf_reserve(&cursor->list, list_bytes);
    command_ctx_free(ctx);
    wire_frame_unref(frame);
    bson_destroy(&body);
    return cursor;
}

static void cursors_are_used_by_one_at_a_time(void **state)
{
    (void)state;
    struct document_cursors *cursors = document_cursors_new();
    struct document_cursor *taken;
    struct err err;
    int64_t id;
    assert_true(document_cursors_add(cursors, make(1), &id, &err));
    assert_true(document_cursors_take(cursors, id, &taken, &err));
    assert_false(document_cursors_take(cursors, id, &taken, &err));
    assert_int_equal(err.code, CURSOR_IN_USE);
    document_cursors_give_back(cursors, taken, false);
    assert_true(document_cursors_take(cursors, id, &taken, &err));
    /* Killed while in use: it ends with its use. */
    assert_true(document_cursors_kill(cursors, id));
    assert_false(document_cursors_kill(cursors, id));
    document_cursors_give_back(cursors, taken, false);
    assert_false(document_cursors_take(cursors, id, &taken, &err));
    assert_int_equal(err.code, ERR_CursorNotFound);
    assert_int_equal(document_cursors_count(cursors), 0);
    document_cursors_free(cursors);
}

static void cursors_that_grow_are_bounded_too(void **state)
{
    (void)state;
    struct document_cursors *cursors = document_cursors_new();
    struct document_cursor *one;
    struct document_cursor *two;
    struct err err;
    int64_t ids[2];
    for (int i = 0; i < 2; i++)
        assert_true(document_cursors_add(cursors, make(1), &ids[i], &err));
    assert_true(document_cursors_take(cursors, ids[0], &one, &err));
    assert_true(document_cursors_take(cursors, ids[1], &two, &err));
    buf_reserve(&one->list, DOCUMENT_CURSORS_MAX_BYTES / 4 * 3);
    assert_true(document_cursors_may_keep(cursors, one, &err));
    document_cursors_give_back(cursors, one, false);
    buf_reserve(&two->list, DOCUMENT_CURSORS_MAX_BYTES / 4 * 3);
    assert_false(document_cursors_may_keep(cursors, two, &err));
    assert_int_equal(err.code, ERR_ExceededMemoryLimit);
    document_cursors_give_back(cursors, two, true);
    document_cursors_free(cursors);
}

static void cursors_are_bounded_by_number_and_bytes(void **state)
{
    (void)state;
    struct document_cursors *cursors = document_cursors_new();
    struct err err;
    int64_t id = 0;
    for (int i = 0; i < 4; i++)
        assert_true(document_cursors_add(cursors, make(120 << 20), &id, &err));
    struct document_cursor *large = make(120 << 20);
    assert_false(document_cursors_add(cursors, large, &id, &err));
    assert_int_equal(err.code, ERR_ExceededMemoryLimit);
    assert_true(document_cursors_kill(cursors, id));
    assert_true(document_cursors_add(cursors, large, &id, &err));
    document_cursors_free(cursors);
    cursors = document_cursors_new();
    for (int i = 0; i < DOCUMENT_CURSORS_MAX; i++)
        assert_true(document_cursors_add(cursors, make(1), &id, &err));
    struct document_cursor *last = make(1);
    assert_false(document_cursors_add(cursors, last, &id, &err));
    document_cursor_free(last);
    document_cursors_expire(cursors);
    assert_int_equal(document_cursors_count(cursors), DOCUMENT_CURSORS_MAX);
    document_cursors_free(cursors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cursors_are_used_by_one_at_a_time),
        cmocka_unit_test(cursors_that_grow_are_bounded_too),
        cmocka_unit_test(cursors_are_bounded_by_number_and_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
