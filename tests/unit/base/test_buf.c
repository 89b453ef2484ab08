#include "base/buf.h"

#include "base/mem.h"
#include "tests/unit/cmocka_all.h"

static void buf_append_grows_and_keeps_what_was_there(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    for (uint32_t i = 0; i < 100000; i++)
        buf_append_le32(&buf, i);
    assert_int_equal(buf.len, 400000);
    for (uint32_t i = 0; i < 100000; i++)
        assert_int_equal(load_le32(buf.data + 4 * (size_t)i), i);
    buf_deinit(&buf);
}

static void buf_big_endian_orders_like_the_number(void **state)
{
    (void)state;
    uint8_t low[8];
    uint8_t high[8];
    store_be64(low, 0xff);
    store_be64(high, 0x100);
    assert_true(memcmp(low, high, 8) < 0);
    assert_int_equal(load_be64(high), 0x100);
    store_be32(low, 0x01020304);
    assert_int_equal(low[0], 1);
    assert_int_equal(load_be32(low), 0x01020304);
}

static void buf_reserve_of_nothing_is_a_place_all_the_same(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    assert_non_null(buf_reserve(&buf, 0));
    buf_deinit(&buf);
}

static void buf_take_moves_the_bytes(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    buf_append(&buf, "abc", 3);
    size_t len;
    uint8_t *bytes = buf_take(&buf, &len);
    assert_int_equal(len, 3);
    assert_memory_equal(bytes, "abc", 3);
    assert_null(buf.data);
    mem_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buf_append_grows_and_keeps_what_was_there),
        cmocka_unit_test(buf_big_endian_orders_like_the_number),
        cmocka_unit_test(buf_reserve_of_nothing_is_a_place_all_the_same),
        cmocka_unit_test(buf_take_moves_the_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
