/* Any bytes as a message: whatever parses lies inside the bytes, and building it again gives a message that parses
 * alike. */
#include "base/check.h"
#include "tests/fuzz/wire/fuzz_wire.h"
#include "wire/compress.h"
#include "wire/message.h"

static void check_inside(const uint8_t *part, size_t part_len, const uint8_t *data, size_t len)
{
    CHECK(part >= data && part_len <= len && part <= data + len - part_len);
}

static void check_views(const struct wire_msg *msg, const uint8_t *data, size_t len)
{
    check_inside(msg->body.data, msg->body.len, data, len);
    for (unsigned i = 0; i < msg->sequence_count; i++) {
        const struct wire_sequence *sequence = &msg->sequences[i];
        check_inside(sequence->data, sequence->len, data, len);
        uint32_t offset = 0;
        uint32_t count = 0;
        struct bdoc doc;
        for (; wire_sequence_next(sequence, &offset, &doc); count++) {
            CHECK(doc.len <= sequence->len);
            check_inside(doc.data, doc.len, sequence->data, sequence->len);
        }
        CHECK(count == sequence->count && offset == sequence->len);
    }
}

static void check_rebuilt(const struct wire_msg *msg)
{
    struct buf out = BUF_INIT;
    struct wire_msg again;
    size_t start = wire_msg_begin(&out, msg->header.request_id, msg->header.response_to, msg->flags);
    wire_msg_body(&out, msg->body);
    for (unsigned i = 0; i < msg->sequence_count; i++) {
        size_t at = wire_msg_sequence_begin(&out, msg->sequences[i].name);
        buf_append(&out, msg->sequences[i].data, msg->sequences[i].len);
        wire_msg_sequence_end(&out, at);
    }
    wire_msg_end(&out, start);
    CHECK(wire_msg_parse(out.data, out.len, WIRE_PARSE_CHECKED, &again, NULL));
    CHECK(again.sequence_count == msg->sequence_count && bdoc_same(again.body, msg->body));
    CHECK(again.flags == msg->flags && again.header.request_id == msg->header.request_id);
    buf_deinit(&out);
}

static void one_message(const uint8_t *data, size_t len)
{
    struct wire_msg checked;
    struct wire_msg trusted;
    bool is_trusted = wire_msg_parse(data, len, WIRE_PARSE_TRUSTED, &trusted, NULL);
    bool is_checked = wire_msg_parse(data, len, WIRE_PARSE_CHECKED, &checked, NULL);
    CHECK(is_trusted || !is_checked); /* checking only ever refuses more */
    if (is_trusted)
        check_views(&trusted, data, len);
    if (!is_checked)
        return;
    check_views(&checked, data, len);
    if (checked.header.opcode == WIRE_OP_MSG)
        check_rebuilt(&checked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    one_message(data, size);
    enum wire_compressor compressor;
    struct wire_frame *plain = wire_decompress(data, size, &compressor, NULL);
    if (plain != NULL)
        one_message(plain->data, plain->len);
    wire_frame_unref(plain);
    return 0;
}
