#include "bson/keysplit.h"

#include "base/random.h"
#include "bson/keyenc.h"
#include "tests/unit/bson/random_value.h"
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

/* Keys of three random values each: every component ends where the next was appended. */
static void keysplit_finds_the_ends_of_random_components(void **state)
{
    struct prng prng = {17};
    (void)state;
    for (int round = 0; round < 5000; round++) {
        struct buf key = BUF_INIT;
        uint32_t lens[3];
        bool descending[3];
        for (int i = 0; i < 3; i++) {
            bson_t *doc = random_value_new(&prng, 3);
            struct bval val = random_value_of(doc);
            size_t before = key.len;
            descending[i] = prng_below(&prng, 2) == 0;
            keyenc_append(&key, &val, descending[i]);
            lens[i] = (uint32_t)(key.len - before);
            bson_destroy(doc);
        }
        uint32_t at = 0;
        for (int i = 0; i < 3; i++) {
            assert_int_equal(keysplit_component(key.data + at, (uint32_t)key.len - at, descending[i]), lens[i]);
            at += lens[i];
        }
        buf_deinit(&key);
    }
}

static void keysplit_of_a_cut_key_is_zero(void **state)
{
    struct prng prng = {18};
    (void)state;
    for (int round = 0; round < 1000; round++) {
        struct buf key = BUF_INIT;
        bson_t *doc = random_value_new(&prng, 3);
        struct bval val = random_value_of(doc);
        keyenc_append(&key, &val, false);
        for (uint32_t len = 0; len < key.len; len++) {
            uint8_t *exact = malloc(len > 0 ? len : 1); /* so that a sanitizer sees a byte too many */
            memcpy(exact, key.data, len);
            assert_int_equal(keysplit_component(exact, len, false), 0);
            free(exact);
        }
        bson_destroy(doc);
        buf_deinit(&key);
    }
}

static void keysplit_of_nonsense_stays_within_the_bytes(void **state)
{
    struct prng prng = {19};
    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint32_t len = (uint32_t)prng_below(&prng, 40) + 1;
        uint8_t *bytes = malloc(len);
        for (uint32_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)prng_below(&prng, 256);
        assert_true(keysplit_component(bytes, len, prng_below(&prng, 2) == 0) <= len);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keysplit_finds_the_ends_of_random_components),
        cmocka_unit_test(keysplit_of_a_cut_key_is_zero),
        cmocka_unit_test(keysplit_of_nonsense_stays_within_the_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
