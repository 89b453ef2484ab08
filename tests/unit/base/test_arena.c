#include "base/arena.h"

#include "tests/unit/cmocka_all.h"

#include <stdalign.h>
#include <string.h>

static void arena_alloc_gives_zeroed_aligned_memory(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    for (size_t size = 1; size < 3000; size += 7) {
        unsigned char *memory = arena_alloc(&arena, size);
        assert_int_equal((uintptr_t)memory % alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 0xff, size);
    }
    arena_deinit(&arena);
}

static void arena_alloc_larger_than_a_block_works(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    char *large = arena_alloc(&arena, 5 << 20);
    char *small = arena_alloc(&arena, 1);
    large[(5 << 20) - 1] = 1;
    *small = 1;
    assert_true(arena.used_bytes >= (5 << 20) + 1);
    arena_deinit(&arena);
    assert_int_equal(arena.used_bytes, 0);
}

static void arena_printf_and_copy_end_with_nul(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    assert_string_equal(arena_printf(&arena, "%s-%d", "a", 7), "a-7");
    assert_string_equal(arena_copy_str(&arena, "abcdef", 3), "abc");
    arena_deinit(&arena);
}

static void arena_in_callers_storage_goes_to_the_heap_when_full(void **state)
{
    alignas(max_align_t) unsigned char storage[512];
    struct arena arena;
    (void)state;
    arena_init_in(&arena, storage, sizeof storage);
    for (int round = 0; round < 3; round++) {
        unsigned char *small = arena_alloc(&arena, 64);
        assert_true(round > 0 || (small > storage && small < storage + sizeof storage));
        memset(arena_alloc(&arena, 100000), 1, 100000);
        memset(small, 2, 64);
        arena_reset(&arena);
    }
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_alloc_gives_zeroed_aligned_memory),
        cmocka_unit_test(arena_alloc_larger_than_a_block_works),
        cmocka_unit_test(arena_printf_and_copy_end_with_nul),
        cmocka_unit_test(arena_in_callers_storage_goes_to_the_heap_when_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
