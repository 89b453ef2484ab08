#include "base/map.h"

#include "base/random.h"
#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <string.h>

static void map_put_get_remove_agree_with_an_array(void **state)
{
    (void)state;
    enum { KEYS = 500 };
    static int values[KEYS];
    bool present[KEYS] = {false};
    struct map map = MAP_INIT;
    struct prng prng = {.state = 7};
    for (int round = 0; round < 20000; round++) {
        size_t i = prng_below(&prng, KEYS);
        char key[16];
        size_t len = (size_t)snprintf(key, sizeof key, "k%zu", i);
        if (prng_below(&prng, 2) == 0) {
            assert_ptr_equal(map_put(&map, key, len, &values[i]), present[i] ? &values[i] : NULL);
            present[i] = true;
        } else {
            assert_ptr_equal(map_remove(&map, key, len), present[i] ? &values[i] : NULL);
            present[i] = false;
        }
        assert_ptr_equal(map_get(&map, key, len), present[i] ? &values[i] : NULL);
    }
    size_t count = 0;
    for (struct map_entry *entry = map_next(&map, NULL); entry != NULL; entry = map_next(&map, entry))
        count++;
    assert_int_equal(count, map.count);
    map_deinit(&map);
}

static void map_keys_may_hold_zero_bytes(void **state)
{
    (void)state;
    struct map map = MAP_INIT;
    int a;
    int b;
    map_put(&map, "x\0a", 3, &a);
    map_put(&map, "x\0b", 3, &b);
    map_put(&map, "", 0, &a);
    assert_ptr_equal(map_get(&map, "x\0a", 3), &a);
    assert_ptr_equal(map_get(&map, "x\0b", 3), &b);
    assert_ptr_equal(map_get(&map, "", 0), &a);
    assert_null(map_get(&map, "x", 1));
    map_deinit(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map_put_get_remove_agree_with_an_array),
        cmocka_unit_test(map_keys_may_hold_zero_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
