#include "base/crc32c.h"

#include "tests/unit/cmocka_all.h"

#include <string.h>

static void crc32c_known_vectors_match(void **state)
{
    (void)state;
    /* RFC 3720, appendix B.4. */
    uint8_t bytes[32];
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(crc32c(0, bytes, 32), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++)
        bytes[i] = i;
    assert_int_equal(crc32c(0, bytes, 32), 0x46dd794e);
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
}

static void crc32c_in_parts_equals_the_whole(void **state)
{
    (void)state;
    uint8_t bytes[1000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7);
    uint32_t whole = crc32c(0, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut += 13)
        assert_int_equal(crc32c(crc32c(0, bytes, cut), bytes + cut, sizeof bytes - cut), whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32c_known_vectors_match),
        cmocka_unit_test(crc32c_in_parts_equals_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
