#include "tests/unit/cmocka_all.h"

#include "base/mem.h"
#include "base/random.h"
#include "wire/compress.h"
#include "wire/message.h"

#include <string.h>

static const enum wire_compressor all[] = {WIRE_COMPRESSOR_SNAPPY, WIRE_COMPRESSOR_ZLIB, WIRE_COMPRESSOR_ZSTD};

static struct wire_frame *message_of(size_t text_len)
{
    char *text = mem_alloc(text_len + 1);
    memset(text, 'x', text_len);
    bson_t doc;
    bson_init(&doc);
    BSON_APPEND_UTF8(&doc, "text", text);
    struct wire_frame *frame = wire_frame_of_doc(bdoc_of(&doc));
    wire_set_ids(frame->data, 11, 12);
    bson_destroy(&doc);
    mem_free(text);
    return frame;
}

static void compress_and_back_is_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        for (size_t len = 200; len < 3000000; len *= 11) {
            struct wire_frame *plain = message_of(len);
            struct wire_frame *small = wire_compress(plain, all[i]);
            assert_non_null(small);
            assert_true(small->len < plain->len);
            enum wire_compressor used;
            struct err err;
            struct wire_frame *back = wire_decompress(small->data, small->len, &used, &err);
            assert_non_null(back);
            assert_int_equal(used, all[i]);
            assert_int_equal(back->len, plain->len);
            assert_memory_equal(back->data, plain->data, plain->len);
            wire_frame_unref(back);
            wire_frame_unref(small);
            wire_frame_unref(plain);
        }
    }
}

static void compress_what_would_not_shrink_is_left(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct wire_frame *plain = message_of(1);
        assert_null(wire_compress(plain, all[i]));
        wire_frame_unref(plain);
    }
    struct wire_frame *plain = message_of(1000);
    assert_null(wire_compress(plain, WIRE_COMPRESSOR_NOOP));
    wire_frame_unref(plain);
}

/* Announces `size` for what `small` holds; true when it is taken. */
static bool takes_size(const struct wire_frame *small, uint32_t size)
{
    uint8_t *copy = mem_copy(small->data, small->len);
    enum wire_compressor used;
    struct err err;
    store_le32(copy + 20, size);
    struct wire_frame *back = wire_decompress(copy, small->len, &used, &err);
    mem_free(copy);
    if (back == NULL)
        assert_int_equal(err.code, ERR_ProtocolError);
    bool good = back != NULL;
    wire_frame_unref(back);
    return good;
}

static void decompress_size_must_come_out_exactly(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct wire_frame *plain = message_of(5000);
        struct wire_frame *small = wire_compress(plain, all[i]);
        uint32_t size = plain->len - WIRE_HEADER_BYTES;
        assert_true(takes_size(small, size));
        assert_false(takes_size(small, size - 1));
        assert_false(takes_size(small, size + 1));
        assert_false(takes_size(small, 0));
        assert_false(takes_size(small, WIRE_MAX_MESSAGE_BYTES));
        assert_false(takes_size(small, UINT32_MAX));
        wire_frame_unref(small);
        wire_frame_unref(plain);
    }
}

static void decompress_broken_bytes_are_refused(void **state)
{
    (void)state;
    struct prng prng = {.state = 1};
    for (size_t i = 0; i < 3; i++) {
        struct wire_frame *plain = message_of(3000);
        struct wire_frame *small = wire_compress(plain, all[i]);
        for (int round = 0; round < 500; round++) {
            uint32_t len = 16 + (uint32_t)prng_below(&prng, small->len - 15);
            uint8_t *copy = mem_copy(small->data, len);
            for (int flips = 0; flips < 3; flips++)
                copy[prng_below(&prng, len)] ^= (uint8_t)(1 << prng_below(&prng, 8));
            enum wire_compressor used;
            struct wire_frame *back = wire_decompress(copy, len, &used, NULL);
            wire_frame_unref(back); /* the sanitizers judge */
            mem_free(copy);
        }
        wire_frame_unref(small);
        wire_frame_unref(plain);
    }
}

static void decompress_nested_and_unknown_are_refused(void **state)
{
    (void)state;
    struct wire_frame *plain = message_of(3000);
    struct wire_frame *small = wire_compress(plain, WIRE_COMPRESSOR_ZLIB);
    enum wire_compressor used;
    struct err err;
    store_le32(small->data + 16, WIRE_OP_COMPRESSED);
    assert_null(wire_decompress(small->data, small->len, &used, &err));
    store_le32(small->data + 16, WIRE_OP_MSG);
    small->data[24] = 77;
    assert_null(wire_decompress(small->data, small->len, &used, &err));
    assert_null(wire_decompress(small->data, 20, &used, &err));
    wire_frame_unref(small);
    wire_frame_unref(plain);
}

static void compressor_negotiation_keeps_the_clients_order(void **state)
{
    (void)state;
    static const struct {
        const char *offer;
        const char *reply;
    } cases[] = {
        {"{\"compression\": [\"zstd\", \"lz4\", \"zlib\", \"zstd\"]}", "{\"compression\": [\"zstd\", \"zlib\"]}"},
        {"{\"compression\": [\"snappy\"]}", "{\"compression\": [\"snappy\"]}"},
        {"{\"compression\": [\"noop\", 5]}", "{}"},
        {"{\"compression\": []}", "{}"},
        {"{\"compression\": \"zlib\"}", "{}"},
        {"{}", "{}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bson_t *offer = bson_new_from_json((const uint8_t *)cases[i].offer, -1, NULL);
        bson_t *expected = bson_new_from_json((const uint8_t *)cases[i].reply, -1, NULL);
        bson_t reply;
        bson_init(&reply);
        wire_compression_negotiate(bdoc_of(offer), &reply);
        assert_true(bson_equal(&reply, expected));
        bson_destroy(&reply);
        bson_destroy(offer);
        bson_destroy(expected);
    }
}

static void compressor_names_are_known(void **state)
{
    (void)state;
    assert_int_equal(wire_compressor_parse("zlib"), WIRE_COMPRESSOR_ZLIB);
    assert_int_equal(wire_compressor_parse("zstd"), WIRE_COMPRESSOR_ZSTD);
    assert_int_equal(wire_compressor_parse("snappy"), WIRE_COMPRESSOR_SNAPPY);
    assert_int_equal(wire_compressor_parse("lz4"), -1);
    assert_string_equal(wire_compressor_name(WIRE_COMPRESSOR_ZSTD), "zstd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compress_and_back_is_the_same),
        cmocka_unit_test(compress_what_would_not_shrink_is_left),
        cmocka_unit_test(decompress_size_must_come_out_exactly),
        cmocka_unit_test(decompress_broken_bytes_are_refused),
        cmocka_unit_test(decompress_nested_and_unknown_are_refused),
        cmocka_unit_test(compressor_negotiation_keeps_the_clients_order),
        cmocka_unit_test(compressor_names_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
