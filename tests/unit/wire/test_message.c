#include "tests/unit/cmocka_all.h"

#include "base/mem.h"
#include "wire/message.h"

#include <string.h>

/* {<name>: <value>} */
static void doc_init(bson_t *doc, const char *name, int32_t value)
{
    bson_init(doc);
    BSON_APPEND_INT32(doc, name, value);
}

static bool parse(const struct buf *buf, struct wire_msg *out, struct err *err)
{
    return wire_msg_parse(buf->data, buf->len, WIRE_PARSE_CHECKED, out, err);
}

/* An insert with two documents in a kind-1 section. */
static void build_insert(struct buf *out, uint32_t flags)
{
    bson_t body;
    bson_t doc;
    doc_init(&body, "insert", 1);
    doc_init(&doc, "a", 2);
    size_t start = wire_msg_begin(out, 7, 8, flags);
    wire_msg_body(out, bdoc_of(&body));
    size_t at = wire_msg_sequence_begin(out, "documents");
    buf_append(out, bson_get_data(&doc), doc.len);
    buf_append(out, bson_get_data(&doc), doc.len);
    wire_msg_sequence_end(out, at);
    wire_msg_end(out, start);
    bson_destroy(&body);
    bson_destroy(&doc);
}

static void message_built_is_parsed(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    struct wire_msg msg;
    struct err err;
    struct bval val;
    build_insert(&buf, WIRE_MORE_TO_COME | WIRE_EXHAUST_ALLOWED);
    assert_true(parse(&buf, &msg, &err));
    assert_int_equal(msg.header.request_id, 7);
    assert_int_equal(msg.header.response_to, 8);
    assert_int_equal(msg.flags, WIRE_MORE_TO_COME | WIRE_EXHAUST_ALLOWED);
    assert_true(bdoc_find(msg.body, "insert", &val));
    assert_null(msg.query_ns);
    assert_null(wire_msg_sequence(&msg, "updates"));
    const struct wire_sequence *sequence = wire_msg_sequence(&msg, "documents");
    assert_non_null(sequence);
    assert_int_equal(sequence->count, 2);
    uint32_t offset = 0;
    struct bdoc doc;
    for (int i = 0; i < 2; i++) {
        assert_true(wire_sequence_next(sequence, &offset, &doc));
        assert_true(bdoc_find(doc, "a", &val));
        assert_int_equal(bval_i32(&val), 2);
    }
    assert_false(wire_sequence_next(sequence, &offset, &doc));
    buf_deinit(&buf);
}

static void message_checksum_is_verified(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    struct wire_msg msg;
    struct err err;
    build_insert(&buf, WIRE_CHECKSUM_PRESENT);
    assert_true(parse(&buf, &msg, &err));
    assert_int_equal(wire_msg_sequence(&msg, "documents")->count, 2);
    buf.data[30] ^= 1;
    assert_false(parse(&buf, &msg, &err));
    assert_int_equal(err.code, ERR_ProtocolError);
    buf_deinit(&buf);
}

/* The example of the specification's CRC: "123456789" is 0xe3069283; here one whole message against a value computed
 * with another implementation. */
static void message_checksum_is_crc32c(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    bson_t body;
    bson_init(&body);
    size_t start = wire_msg_begin(&buf, 0, 0, WIRE_CHECKSUM_PRESENT);
    wire_msg_body(&buf, bdoc_of(&body));
    wire_msg_end(&buf, start);
    assert_int_equal(buf.len, 30);
    assert_int_equal(load_le32(buf.data + 26), 0x2a09456a);
    bson_destroy(&body);
    buf_deinit(&buf);
}

static void message_every_truncation_is_refused(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    struct wire_msg msg;
    struct err err;
    build_insert(&buf, 0);
    for (size_t len = 0; len < buf.len; len++) {
        uint8_t *copy = mem_copy(buf.data, len + 1); /* exact size: ASan sees a read beyond */
        assert_false(wire_msg_parse(copy, len, WIRE_PARSE_CHECKED, &msg, &err));
        if (len >= WIRE_HEADER_BYTES) {
            store_le32(copy, (uint32_t)len);
            bool good = wire_msg_parse(copy, len, WIRE_PARSE_CHECKED, &msg, &err);
            /* After the body the message is complete without the sequence. */
            assert_int_equal(good, len == 20 + 1 + 17);
        }
        mem_free(copy);
    }
    buf_deinit(&buf);
}

static void message_unknown_required_flag_is_refused(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 32; bit++) {
        struct buf buf = BUF_INIT;
        struct wire_msg msg;
        struct err err;
        build_insert(&buf, 0);
        store_le32(buf.data + 16, 1U << bit);
        assert_int_equal(parse(&buf, &msg, &err), bit == 1 || bit >= 16);
        buf_deinit(&buf);
    }
}

static void message_length_is_bounded(void **state)
{
    (void)state;
    struct wire_header header;
    struct err err;
    uint8_t bytes[WIRE_HEADER_BYTES] = {0};
    static const uint32_t good[] = {16, 17, 48000000, WIRE_MAX_INTERNAL_BYTES};
    static const uint32_t bad[] = {0, 15, WIRE_MAX_INTERNAL_BYTES + 1, 0x7fffffff, 0x80000000, 0xffffffff};
    for (size_t i = 0; i < 4; i++) {
        store_le32(bytes, good[i]);
        assert_true(wire_header_parse(bytes, &header, &err));
    }
    for (size_t i = 0; i < 6; i++) {
        store_le32(bytes, bad[i]);
        assert_false(wire_header_parse(bytes, &header, &err));
        assert_int_equal(err.code, ERR_ProtocolError);
    }
}

static void message_legacy_opcodes_are_refused(void **state)
{
    (void)state;
    static const uint32_t opcodes[] = {0, 2001, 2002, 2005, 2006, 2007, 2010, 2011, 2012, 2014};
    for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; i++) {
        struct buf buf = BUF_INIT;
        struct wire_msg msg;
        struct err err;
        build_insert(&buf, 0);
        store_le32(buf.data + 12, opcodes[i]);
        assert_false(parse(&buf, &msg, &err));
        assert_int_equal(err.code, ERR_ProtocolError);
        buf_deinit(&buf);
    }
}

static void message_broken_document_is_invalid_bson(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    struct wire_msg msg;
    struct err err;
    build_insert(&buf, 0);
    buf.data[25] = 0x33; /* type of the first element */
    assert_false(parse(&buf, &msg, &err));
    assert_int_equal(err.code, ERR_InvalidBSON);
    assert_true(wire_msg_parse(buf.data, buf.len, WIRE_PARSE_TRUSTED, &msg, &err));
    buf_deinit(&buf);
}

static void append_section(struct buf *buf, const char *name, const bson_t *doc)
{
    size_t at = wire_msg_sequence_begin(buf, name);
    buf_append(buf, bson_get_data(doc), doc->len);
    wire_msg_sequence_end(buf, at);
}

static void message_sections_are_counted(void **state)
{
    (void)state;
    bson_t doc;
    doc_init(&doc, "a", 1);
    /* Names of the sections; NULL: a body. Whether the message is good. */
    static const struct {
        const char *sections[7];
        unsigned count;
        bool good;
    } cases[] = {
        {{NULL}, 1, true},
        {{"ops", NULL, "nsInfo"}, 3, true}, /* the body may come anywhere */
        {{NULL, NULL}, 2, false},
        {{"ops"}, 1, false},
        {{NULL, "ops", "ops"}, 3, false},
        {{NULL, "a", "b", "c", "d"}, 5, true},
        {{NULL, "a", "b", "c", "d", "e"}, 6, false},
        {{0}, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf buf = BUF_INIT;
        struct wire_msg msg;
        struct err err;
        size_t start = wire_msg_begin(&buf, 0, 0, 0);
        for (unsigned j = 0; j < cases[i].count; j++) {
            if (cases[i].sections[j] == NULL)
                wire_msg_body(&buf, bdoc_of(&doc));
            else
                append_section(&buf, cases[i].sections[j], &doc);
        }
        wire_msg_end(&buf, start);
        assert_int_equal(parse(&buf, &msg, &err), cases[i].good);
        buf_deinit(&buf);
    }
    bson_destroy(&doc);
}

static void message_empty_sequence_is_good(void **state)
{
    (void)state;
    bson_t doc;
    doc_init(&doc, "insert", 1);
    struct buf buf = BUF_INIT;
    struct wire_msg msg;
    struct err err;
    size_t start = wire_msg_begin(&buf, 0, 0, 0);
    wire_msg_body(&buf, bdoc_of(&doc));
    wire_msg_sequence_end(&buf, wire_msg_sequence_begin(&buf, "documents"));
    wire_msg_end(&buf, start);
    assert_true(parse(&buf, &msg, &err));
    assert_int_equal(wire_msg_sequence(&msg, "documents")->count, 0);
    buf_deinit(&buf);
    bson_destroy(&doc);
}

static void build_query(struct buf *out, const char *ns, const bson_t *query, const bson_t *fields)
{
    buf_append_le32(out, 0);
    buf_append_le32(out, 5);
    buf_append_le32(out, 0);
    buf_append_le32(out, WIRE_OP_QUERY);
    buf_append_le32(out, 4);
    buf_append(out, ns, strlen(ns) + 1);
    buf_append_le32(out, 0);
    buf_append_le32(out, UINT32_MAX);
    buf_append(out, bson_get_data(query), query->len);
    if (fields != NULL)
        buf_append(out, bson_get_data(fields), fields->len);
    store_le32(out->data, (uint32_t)out->len);
}

static void message_op_query_is_for_commands_only(void **state)
{
    (void)state;
    bson_t query;
    doc_init(&query, "isMaster", 1);
    static const struct {
        const char *ns;
        bool good;
    } cases[] = {{"admin.$cmd", true}, {"test.$cmd", true}, {"test.coll", false}, {".$cmd", false}, {"", false}};
    for (size_t i = 0; i < 5; i++) {
        for (int with_fields = 0; with_fields < 2; with_fields++) {
            struct buf buf = BUF_INIT;
            struct wire_msg msg;
            struct err err;
            build_query(&buf, cases[i].ns, &query, with_fields != 0 ? &query : NULL);
            assert_int_equal(parse(&buf, &msg, &err), cases[i].good);
            if (cases[i].good) {
                assert_string_equal(msg.query_ns, cases[i].ns);
                assert_true(bdoc_has(msg.body, "isMaster"));
                assert_int_equal(msg.header.request_id, 5);
            }
            buf_append_u8(&buf, 0); /* a byte too many */
            store_le32(buf.data, (uint32_t)buf.len);
            assert_false(parse(&buf, &msg, &err));
            buf_deinit(&buf);
        }
    }
    bson_destroy(&query);
}

static void message_op_reply_is_parsed(void **state)
{
    (void)state;
    bson_t doc;
    doc_init(&doc, "ok", 1);
    struct buf buf = BUF_INIT;
    struct wire_msg msg;
    struct err err;
    wire_reply_append(&buf, 9, bdoc_of(&doc));
    assert_true(parse(&buf, &msg, &err));
    assert_int_equal(msg.header.response_to, 9);
    assert_int_equal(msg.flags, 8);
    assert_true(bdoc_has(msg.body, "ok"));
    buf_deinit(&buf);
    bson_destroy(&doc);
}

static void message_frame_of_doc_is_a_message(void **state)
{
    (void)state;
    bson_t doc;
    doc_init(&doc, "ok", 1);
    struct wire_msg msg;
    struct err err;
    struct wire_frame *frame = wire_frame_of_doc(bdoc_of(&doc));
    wire_set_ids(frame->data, 3, 4);
    assert_true(wire_msg_parse(frame->data, frame->len, WIRE_PARSE_CHECKED, &msg, &err));
    assert_int_equal(msg.header.request_id, 3);
    assert_int_equal(msg.header.response_to, 4);
    assert_true(bdoc_same(msg.body, bdoc_of(&doc)));
    wire_frame_unref(frame);
    bson_destroy(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_built_is_parsed),
        cmocka_unit_test(message_checksum_is_verified),
        cmocka_unit_test(message_checksum_is_crc32c),
        cmocka_unit_test(message_every_truncation_is_refused),
        cmocka_unit_test(message_unknown_required_flag_is_refused),
        cmocka_unit_test(message_length_is_bounded),
        cmocka_unit_test(message_legacy_opcodes_are_refused),
        cmocka_unit_test(message_broken_document_is_invalid_bson),
        cmocka_unit_test(message_sections_are_counted),
        cmocka_unit_test(message_empty_sequence_is_good),
        cmocka_unit_test(message_op_query_is_for_commands_only),
        cmocka_unit_test(message_op_reply_is_parsed),
        cmocka_unit_test(message_frame_of_doc_is_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
