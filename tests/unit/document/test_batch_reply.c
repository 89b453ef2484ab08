#include "tests/unit/cmocka_all.h"

#include "document/batch_reply.h"
#include "document/engine.h"
#include "wire/message.h"

#include <string.h>

static struct bdoc numbered(bson_t *storage, int number)
{
    bson_init(storage);
    BSON_APPEND_INT32(storage, "n", number);
    return bdoc_of(storage);
}

static void batch_reply_is_a_well_formed_message(void **state)
{
    (void)state;
    struct batch_reply reply;
    struct wire_msg msg;
    struct err err;
    bson_t doc;
    struct bval cursor;
    struct bval val;
    batch_reply_begin(&reply, false);
    for (int i = 0; i < 120; i++) {
        assert_true(batch_reply_add(&reply, numbered(&doc, i)));
        batch_reply_add_sort_key(&reply, "key", 3);
        bson_destroy(&doc);
    }
    struct wire_frame *frame = batch_reply_end(&reply, 77, "db.c");
    assert_true(wire_msg_parse(frame->data, frame->len, WIRE_PARSE_CHECKED, &msg, &err));
    assert_true(bdoc_find(msg.body, "cursor", &cursor));
    assert_true(bdoc_find(bval_doc(&cursor), "id", &val));
    assert_int_equal(bval_i64(&val), 77);
    assert_true(bdoc_find(bval_doc(&cursor), "ns", &val));
    assert_true(bval_is_str(&val, "db.c"));
    assert_true(bdoc_find(bval_doc(&cursor), "nextBatch", &val));
    assert_int_equal(bdoc_count(bval_doc(&val)), 120);
    assert_true(bdoc_has(bval_doc(&val), "119"));
    assert_true(bdoc_find(bval_doc(&cursor), "sortKeys", &val));
    assert_int_equal(bdoc_count(bval_doc(&val)), 120);
    wire_frame_unref(frame);
}

static void batch_reply_takes_back_what_does_not_fit(void **state)
{
    (void)state;
    struct batch_reply reply;
    struct wire_msg msg;
    struct err err;
    bson_t doc = BSON_INITIALIZER;
    char *big = bson_malloc0(9 << 20);
    memset(big, 'x', (9 << 20) - 1);
    BSON_APPEND_UTF8(&doc, "s", big);
    batch_reply_begin(&reply, true);
    assert_true(batch_reply_add(&reply, bdoc_of(&doc)));
    assert_false(batch_reply_add(&reply, bdoc_of(&doc)));
    size_t opened_at = batch_reply_open(&reply);
    buf_append(&reply.bytes, bson_get_data(&doc), doc.len);
    assert_false(batch_reply_close(&reply, opened_at));
    assert_int_equal(reply.count, 1);
    struct wire_frame *frame = batch_reply_end(&reply, 0, "db.c");
    assert_true(wire_msg_parse(frame->data, frame->len, WIRE_PARSE_CHECKED, &msg, &err));
    wire_frame_unref(frame);
    bson_destroy(&doc);
    bson_free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_reply_is_a_well_formed_message),
        cmocka_unit_test(batch_reply_takes_back_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
