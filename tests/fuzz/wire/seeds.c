#include "tests/fuzz/wire/fuzz_wire.h"

#include "base/mem.h"
#include "wire/compress.h"
#include "wire/message.h"

static void random_doc(struct prng *prng, bson_t *doc)
{
    bson_init(doc);
    BSON_APPEND_INT64(doc, "_id", (int64_t)prng_below(prng, 1000));
    if (prng_below(prng, 2) == 0) {
        bson_t child;
        BSON_APPEND_DOCUMENT_BEGIN(doc, "sub", &child);
        BSON_APPEND_DOUBLE(&child, "x", 1.5);
        BSON_APPEND_UTF8(&child, "text", "some text");
        bson_append_document_end(doc, &child);
    }
}

static void command_body(struct prng *prng, bson_t *body)
{
    bson_init(body);
    BSON_APPEND_UTF8(body, "insert", "collection");
    if (prng_below(prng, 3) == 0) {
        bson_t array;
        BSON_APPEND_ARRAY_BEGIN(body, "documents", &array);
        for (int i = 0; i < 3; i++) {
            static const char *const keys[] = {"0", "1", "2"};
            bson_t doc;
            random_doc(prng, &doc);
            BSON_APPEND_DOCUMENT(&array, keys[i], &doc);
            bson_destroy(&doc);
        }
        bson_append_array_end(body, &array);
    }
    BSON_APPEND_BOOL(body, "ordered", true);
    if (prng_below(prng, 2) == 0)
        BSON_APPEND_INT32(body, "maxTimeMS", (int32_t)prng_below(prng, 100000));
    BSON_APPEND_UTF8(body, "$db", "test");
}

static void op_msg(struct prng *prng, struct buf *out)
{
    bson_t body;
    command_body(prng, &body);
    size_t start =
        wire_msg_begin(out, (uint32_t)prng_next(prng), 0, prng_below(prng, 4) == 0 ? WIRE_CHECKSUM_PRESENT : 0);
    wire_msg_body(out, bdoc_of(&body));
    if (!bdoc_has(bdoc_of(&body), "documents")) {
        size_t at = wire_msg_sequence_begin(out, "documents");
        for (uint64_t i = prng_below(prng, 5); i > 0; i--) {
            bson_t doc;
            random_doc(prng, &doc);
            buf_append(out, bson_get_data(&doc), doc.len);
            bson_destroy(&doc);
        }
        wire_msg_sequence_end(out, at);
    }
    wire_msg_end(out, start);
    bson_destroy(&body);
}

static void op_query(struct prng *prng, struct buf *out)
{
    bson_t body;
    command_body(prng, &body);
    buf_append_le32(out, 0);
    buf_append_le32(out, 1);
    buf_append_le32(out, 0);
    buf_append_le32(out, WIRE_OP_QUERY);
    buf_append_le32(out, 4);
    buf_append(out, "admin.$cmd", sizeof "admin.$cmd");
    buf_append_le32(out, 0);
    buf_append_le32(out, UINT32_MAX);
    buf_append(out, bson_get_data(&body), body.len);
    store_le32(out->data, (uint32_t)out->len);
    bson_destroy(&body);
}

struct wire_frame *seed_message(struct prng *prng)
{
    struct buf out = BUF_INIT;
    bson_t doc;
    switch (prng_below(prng, 6)) {
    case 0:
        op_query(prng, &out);
        break;
    case 1:
        random_doc(prng, &doc);
        wire_reply_append(&out, 1, bdoc_of(&doc));
        bson_destroy(&doc);
        break;
    default:
        op_msg(prng, &out);
        break;
    }
    struct wire_frame *frame = wire_frame_take(&out);
    if (prng_below(prng, 4) != 0)
        return frame;
    struct wire_frame *small = wire_compress(frame, (enum wire_compressor)(1 + prng_below(prng, 3)));
    if (small == NULL)
        return frame;
    wire_frame_unref(frame);
    return small;
}

void seed_mutate(struct prng *prng, uint8_t *bytes, size_t *len)
{
    size_t at = prng_below(prng, *len);
    switch (prng_below(prng, 6)) {
    case 0:
        bytes[at] = (uint8_t)prng_next(prng);
        break;
    case 1:
        bytes[at] ^= (uint8_t)(1u << prng_below(prng, 8));
        break;
    case 2: /* a header field */
        if (*len >= 20)
            store_le32(bytes + 4 * prng_below(prng, 5), (uint32_t)prng_next(prng));
        break;
    case 3: /* a length, or what may be one */
        if (at + 4 <= *len)
            store_le32(bytes + at, (uint32_t)prng_below(prng, 2 * *len));
        break;
    default: /* cut, mostly with the length put right so that parsing goes on */
        *len = 1 + at;
        if (*len >= 16 && prng_below(prng, 4) != 0)
            store_le32(bytes, (uint32_t)*len);
        break;
    }
}
