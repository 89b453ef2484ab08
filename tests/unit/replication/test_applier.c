#include "replication/applier.h"

#include "base/mem.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/replication/hash_fsm.h"

#include <string.h>

static struct hash_fsm fsm;

static bool add(struct applier *applier, uint64_t index, const uint8_t *data, size_t len, struct err *err)
{
    struct applier_entry raw = {.index = index, .data = data, .len = len};
    return applier_add(applier, &raw, NULL, NULL, err);
}

static void append_commands(struct applier *applier, uint64_t index, uint64_t first_id, unsigned count)
{
    struct buf bytes = BUF_INIT;
    entry_begin(&bytes, ENTRY_COMMANDS, 1, 1, index);
    for (unsigned i = 0; i < count; i++) {
        uint8_t *command = hash_fsm_command(first_id + i, 24);
        entry_add_command(&bytes, command, 24);
        mem_free(command);
    }
    entry_finish(&bytes, (uint16_t)count);
    assert_true(add(applier, index, bytes.data, bytes.len, NULL));
    buf_deinit(&bytes);
}

static void append_fragment(struct applier *applier, uint64_t index, uint64_t id, size_t len, uint32_t number)
{
    struct buf bytes = BUF_INIT;
    uint8_t *command = hash_fsm_command(id, len);
    entry_begin(&bytes, ENTRY_FRAGMENT, 1, 1, 1000 * id + number);
    uint32_t count = (uint32_t)((len + ENTRY_FRAGMENT_BYTES - 1) / ENTRY_FRAGMENT_BYTES);
    entry_add_fragment(&bytes, command, len, number, count);
    entry_finish(&bytes, 1);
    assert_true(add(applier, index, bytes.data, bytes.len, NULL));
    buf_deinit(&bytes);
    mem_free(command);
}

static void init(struct applier *applier)
{
    struct replica_fsm hooks;
    hash_fsm_open(&fsm, NULL);
    hooks = hash_fsm_hooks(&fsm);
    applier_init(applier, &hooks);
}

static void deinit(struct applier *applier)
{
    applier_deinit(applier);
    hash_fsm_close(&fsm);
}

static void applier_skips_what_the_state_contains(void **state)
{
    struct applier applier;
    (void)state;
    init(&applier);
    append_commands(&applier, 2, 10, 3);
    applier_commit(&applier);
    append_commands(&applier, 1, 5, 1);
    append_commands(&applier, 2, 10, 3);
    append_commands(&applier, 3, 20, 1);
    applier_commit(&applier);
    assert_int_equal(fsm.state.applied, 3);
    assert_int_equal(fsm.state.count, 4);
    assert_int_equal(fsm.state.times[10], 1);
    assert_int_equal(fsm.state.times[5], 0);
    deinit(&applier);
}

static void applier_group_entries_move_the_index(void **state)
{
    struct applier applier;
    (void)state;
    init(&applier);
    assert_true(add(&applier, 4, NULL, 0, NULL));
    applier_commit(&applier);
    assert_int_equal(fsm.state.applied, 4);
    applier_commit(&applier);
    assert_int_equal(applier.applied, 4);
    deinit(&applier);
}

static void applier_incomplete_fragments_hold_the_index_back(void **state)
{
    size_t len = 2 * ENTRY_FRAGMENT_BYTES + 5;
    struct applier applier;
    (void)state;
    init(&applier);
    append_commands(&applier, 1, 1, 1);
    append_fragment(&applier, 2, 7, len, 0);
    append_fragment(&applier, 3, 7, len, 1);
    applier_commit(&applier);
    assert_int_equal(fsm.state.applied, 1);
    append_fragment(&applier, 4, 7, len, 2);
    applier_commit(&applier);
    assert_int_equal(fsm.state.applied, 4);
    assert_int_equal(fsm.state.times[7], 1);
    deinit(&applier);
}

static void applier_fragments_ended_by_another_entry_dropped(void **state)
{
    size_t len = 2 * ENTRY_FRAGMENT_BYTES;
    struct applier applier;
    (void)state;
    init(&applier);
    append_fragment(&applier, 1, 7, len, 0);
    applier_commit(&applier);
    assert_int_equal(fsm.state.applied, 0);
    /* A barrier of the next leader, which only shows as an index. */
    assert_true(add(&applier, 2, NULL, 0, NULL));
    applier_commit(&applier);
    assert_int_equal(fsm.state.applied, 2);
    append_fragment(&applier, 3, 7, len, 1);
    applier_commit(&applier);
    assert_int_equal(fsm.state.applied, 3);
    assert_int_equal(fsm.state.times[7], 0);
    deinit(&applier);
}

static void applier_damaged_entry_refused(void **state)
{
    static const uint8_t garbage[32] = {1, 9};
    struct applier applier;
    struct err err;
    (void)state;
    init(&applier);
    assert_false(add(&applier, 1, garbage, sizeof garbage, &err));
    assert_non_null(strstr(err.msg, "unknown"));
    deinit(&applier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(applier_skips_what_the_state_contains),
        cmocka_unit_test(applier_group_entries_move_the_index),
        cmocka_unit_test(applier_incomplete_fragments_hold_the_index_back),
        cmocka_unit_test(applier_fragments_ended_by_another_entry_dropped),
        cmocka_unit_test(applier_damaged_entry_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
