#include "query/sorter.h"

#include "base/buf.h"
#include "base/interrupt.h"
#include "base/random.h"
#include "base/temp_space.h"
#include "query/sort_runs.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return (*x > *y) - (*x < *y);
}

struct sorted {
    uint64_t count; /* items added */
    uint64_t range; /* of the keys */
    struct sorter_options options;
    struct sorter_stats stats; /* out */
};

/* Adds random keys (with ties) and compares what comes out with a sort of the numbers; the low half of each holds the
 * order of arrival. */
static void check_sorted(struct prng *prng, struct sorted *sorted)
{
    uint64_t *wanted = calloc(sorted->count + 1, sizeof *wanted);
    struct sorter *sorter = sorter_new(&sorted->options);
    struct sort_item item;
    struct err err = {0};
    bool found;
    assert_non_null(wanted);
    for (uint64_t i = 0; i < sorted->count; i++) {
        uint8_t key[8];
        uint64_t number = prng_below(prng, sorted->range);
        uint8_t doc[5] = {5, 0, 0, 0, 0};
        wanted[i] = number << 32 | i;
        store_be64(key, number);
        if (!sorter_add(sorter, key, sizeof key, (struct bdoc){doc, i % 2 ? 5 : 0}, i, &err))
            fail_msg("%d %s", err.code, err.msg);
    }
    qsort(wanted, sorted->count, sizeof *wanted, compare_numbers);
    if (!sorter_finish(sorter, &err))
        fail_msg("%d %s", err.code, err.msg);
    uint64_t limit = sorted->options.limit;
    uint64_t count = limit > 0 && limit < sorted->count ? limit : sorted->count;
    assert_int_equal(sorter_count(sorter), count);
    for (uint64_t i = 0; i < count; i++) {
        assert_true(sorter_next(sorter, &item, &found, &err) && found);
        assert_int_equal(item.tag, wanted[i] & UINT32_MAX);
        assert_int_equal(load_be64(item.key), wanted[i] >> 32);
        assert_int_equal(item.doc.len, item.tag % 2 ? 5 : 0);
    }
    assert_true(sorter_next(sorter, &item, &found, &err));
    assert_false(found);
    sorter_stats_get(sorter, &sorted->stats);
    sorter_free(sorter);
    free(wanted);
}

/* Top-k gives the same as a whole sort cut off, ties in order of arrival. */
static void sorter_with_limit_keeps_the_first_k_stably(void **state)
{
    struct prng prng = {42};
    (void)state;
    for (int round = 0; round < 50; round++) {
        struct sorted sorted = {.count = prng_below(&prng, 300) + 1, .range = 50};
        sorted.options.limit = prng_below(&prng, 40);
        sorted.options.memory_limit_bytes = SORT_MEMORY_LIMIT_BYTES;
        check_sorted(&prng, &sorted);
    }
}

/* Keys of a few letters and of every length: long runs agree in their first bytes, some keys begin others, some are
 * equal. */
static void sorter_orders_keys_that_share_long_beginnings(void **state)
{
    enum { KEYS = 6000 };
    struct prng prng = {7};
    struct err err;
    struct buf before = BUF_INIT;
    uint64_t before_tag = 0;
    struct sort_item item;
    bool found = true;
    uint64_t count = 0;
    (void)state;
    struct sorter *sorter = sorter_new(&(struct sorter_options){.memory_limit_bytes = SORT_MEMORY_LIMIT_BYTES});
    for (uint64_t i = 0; i < KEYS; i++) {
        uint8_t key[120];
        size_t len = 40 * prng_below(&prng, 3);
        memset(key, 'p', sizeof key);
        for (size_t more = prng_below(&prng, 40); more > 0; more--)
            key[len++] = prng_below(&prng, 8) == 0 ? (uint8_t)prng_below(&prng, 3) : 'p';
        assert_true(sorter_add(sorter, key, len, (struct bdoc){0}, i, &err));
    }
    assert_true(sorter_finish(sorter, &err));
    while (sorter_next(sorter, &item, &found, &err) && found) {
        size_t common = item.key_len < before.len ? item.key_len : before.len;
        int order = common > 0 ? memcmp(before.data, item.key, common) : 0;
        if (order == 0)
            order = before.len < item.key_len ? -1 : before.len > item.key_len;
        assert_true(count == 0 || order < 0 || (order == 0 && before_tag < item.tag));
        buf_clear(&before);
        buf_append(&before, item.key, item.key_len);
        before_tag = item.tag;
        count++;
    }
    assert_int_equal(count, KEYS);
    buf_deinit(&before);
    sorter_free(sorter);
}

static void sorter_beyond_its_memory_fails_with_292(void **state)
{
    struct err err = {0};
    struct sorter *sorter = sorter_new(&(struct sorter_options){.memory_limit_bytes = 10000});
    char key[100] = {0};
    int added = 0;
    (void)state;
    while (added < 1000 && sorter_add(sorter, key, sizeof key, (struct bdoc){0}, 0, &err))
        added++;
    assert_in_range(added, 10, 100);
    assert_int_equal(err.code, 292);
    sorter_free(sorter);
}

static void sorter_hands_documents_back(void **state)
{
    struct arena arena;
    struct err err;
    struct sort_item item;
    bool found;
    (void)state;
    arena_init(&arena);
    struct sorter *sorter = sorter_new(&(struct sorter_options){.memory_limit_bytes = SORT_MEMORY_LIMIT_BYTES});
    assert_true(sorter_add(sorter, "b", 1, json_doc(&arena, "{'x': 2}"), 2, &err));
    assert_true(sorter_add(sorter, "a", 1, json_doc(&arena, "{'x': 1}"), 1, &err));
    assert_true(sorter_finish(sorter, &err));
    assert_true(sorter_next(sorter, &item, &found, &err) && found);
    json_assert_same(&arena, item.doc, "{'x': 1}", "first");
    assert_true(sorter_next(sorter, &item, &found, &err) && found);
    assert_memory_equal(item.key, "b", 1);
    assert_true(sorter_next(sorter, &item, &found, &err));
    assert_false(found);
    sorter_free(sorter);
    arena_deinit(&arena);
}

/* ---- on the disk ---- */

static struct temp_space *space_of(char dir[], int64_t max_bytes)
{
    struct temp_space *space;
    struct err err;
    assert_non_null(mkdtemp(dir));
    assert_true(temp_space_open(dir, max_bytes, &space, &err));
    return space;
}

static void sorter_beyond_its_memory_merges_runs_from_disk(void **state)
{
    struct prng prng = {7};
    char dir[] = "/tmp/sherd-sorter-XXXXXX";
    struct temp_space *space = space_of(dir, TEMP_SPACE_DEFAULT_BYTES);
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct sorted sorted = {.count = 1 + prng_below(&prng, 20000), .range = 1 + prng_below(&prng, 5000)};
        sorted.options.limit = round % 2 ? prng_below(&prng, sorted.count * 2) : 0;
        sorted.options.memory_limit_bytes = 20000 + prng_below(&prng, 100000);
        sorted.options.space = space;
        check_sorted(&prng, &sorted);
        assert_int_equal(temp_space_used_bytes(space), 0);
    }
    temp_space_close(space);
    rmdir(dir);
}

static void sorter_with_many_runs_merges_in_passes(void **state)
{
    struct prng prng = {9};
    char dir[] = "/tmp/sherd-sorter-XXXXXX";
    struct temp_space *space = space_of(dir, TEMP_SPACE_DEFAULT_BYTES);
    struct sorted sorted = {.count = 30000, .range = 1000};
    (void)state;
    sorted.options.memory_limit_bytes = 5000;
    sorted.options.space = space;
    check_sorted(&prng, &sorted);
    assert_true(sorted.stats.runs > SORT_MERGE_WAYS + 1);
    temp_space_close(space);
    rmdir(dir);
}

static void sorter_on_a_full_space_fails_with_14031(void **state)
{
    char dir[] = "/tmp/sherd-sorter-XXXXXX";
    struct temp_space *space = space_of(dir, 20000);
    struct sorter *sorter = sorter_new(&(struct sorter_options){.memory_limit_bytes = 5000, .space = space});
    struct err err = {0};
    char key[100] = {0};
    int added = 0;
    (void)state;
    while (added < 1000 && sorter_add(sorter, key, sizeof key, (struct bdoc){0}, 0, &err))
        added++;
    assert_in_range(added, 50, 500);
    assert_int_equal(err.code, 14031);
    sorter_free(sorter);
    assert_int_equal(temp_space_used_bytes(space), 0);
    temp_space_close(space);
    rmdir(dir);
}

/* A killed operation leaves a sort in any of its phases; nothing is freed twice. */
static void sorter_ends_when_its_operation_is_killed(void **state)
{
    struct interrupt interrupt = {.deadline_ms = INT64_MAX};
    struct err err = {0};
    (void)state;
    struct sorter *sorter = sorter_new(&(struct sorter_options){.memory_limit_bytes = SORT_MEMORY_LIMIT_BYTES});
    for (uint32_t i = 0; i < 50000; i++) {
        uint8_t key[4];
        store_be32(key, i * 2654435761u);
        assert_true(sorter_add(sorter, key, sizeof key, (struct bdoc){0}, i, &err));
    }
    struct interrupt *before = interrupt_enter(&interrupt);
    interrupt_kill(&interrupt, ERR_Interrupted);
    assert_false(sorter_finish(sorter, &err));
    assert_int_equal(err.code, 11601);
    interrupt_enter(before);
    sorter_free(sorter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorter_with_limit_keeps_the_first_k_stably),
        cmocka_unit_test(sorter_orders_keys_that_share_long_beginnings),
        cmocka_unit_test(sorter_beyond_its_memory_fails_with_292),
        cmocka_unit_test(sorter_hands_documents_back),
        cmocka_unit_test(sorter_beyond_its_memory_merges_runs_from_disk),
        cmocka_unit_test(sorter_with_many_runs_merges_in_passes),
        cmocka_unit_test(sorter_on_a_full_space_fails_with_14031),
        cmocka_unit_test(sorter_ends_when_its_operation_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
