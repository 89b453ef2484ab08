#include "replication/packer.h"

#include "base/mem.h"
#include "replication/entry.h"
#include "tests/unit/cmocka_all.h"

static unsigned finished[8];

static void on_done(void *arg, enum replica_outcome outcome, uint64_t index, const uint8_t *result, size_t len)
{
    (void)arg;
    (void)index;
    (void)result;
    (void)len;
    finished[outcome]++;
}

static void push(struct packer *packer, size_t len)
{
    proposal_list_push(&packer->pending, proposal_new(mem_alloc(len), len, on_done, NULL));
}

static unsigned length(const struct proposal_list *list)
{
    unsigned count = 0;
    for (const struct proposal *p = list->head; p != NULL; p = p->next)
        count++;
    return count;
}

/* Builds an entry and returns how many proposals it completes. */
static unsigned next(struct packer *packer, struct entry *entry, struct buf *bytes)
{
    struct proposal_list logged = {0};
    buf_clear(bytes);
    packer_next(packer, 5, bytes, &logged);
    assert_true(entry_parse(bytes->data, bytes->len, entry, NULL));
    unsigned count = length(&logged);
    proposal_list_finish(&logged, REPLICA_APPLIED);
    return count;
}

static void packer_small_commands_share_an_entry(void **state)
{
    struct packer packer = {.origin = 9};
    struct entry entry;
    struct buf bytes = BUF_INIT;
    (void)state;
    for (unsigned i = 0; i < 300; i++)
        push(&packer, 10);
    assert_int_equal(next(&packer, &entry, &bytes), PACKER_ENTRY_COMMANDS);
    assert_int_equal(entry.count, PACKER_ENTRY_COMMANDS);
    assert_int_equal(next(&packer, &entry, &bytes), 300 - PACKER_ENTRY_COMMANDS);
    assert_null(packer.pending.head);
    assert_int_equal(entry.sequence, 2);
    buf_deinit(&bytes);
}

static void packer_entry_bounded_in_bytes(void **state)
{
    struct packer packer = {.origin = 9};
    struct entry entry;
    struct buf bytes = BUF_INIT;
    (void)state;
    push(&packer, 40000);
    push(&packer, 40000);
    push(&packer, 500000);
    assert_int_equal(next(&packer, &entry, &bytes), 1);
    assert_int_equal(next(&packer, &entry, &bytes), 1);
    assert_int_equal(packer_next_bytes(&packer), 500000);
    assert_int_equal(next(&packer, &entry, &bytes), 1);
    assert_int_equal(packer_next_bytes(&packer), 0);
    buf_deinit(&bytes);
}

static void packer_large_command_cut_and_completed_by_the_last(void **state)
{
    struct packer packer = {.origin = 9};
    struct entry entry;
    struct buf bytes = BUF_INIT;
    (void)state;
    push(&packer, 3 * ENTRY_FRAGMENT_BYTES);
    push(&packer, 10);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(next(&packer, &entry, &bytes), i == 2);
        assert_int_equal(entry.kind, ENTRY_FRAGMENT);
        assert_int_equal(entry.fragment_number, i);
    }
    assert_int_equal(next(&packer, &entry, &bytes), 1);
    assert_int_equal(entry.kind, ENTRY_COMMANDS);
    buf_deinit(&bytes);
}

static void packer_restart_begins_with_the_first_fragment(void **state)
{
    struct packer packer = {.origin = 9};
    struct entry entry;
    struct buf bytes = BUF_INIT;
    (void)state;
    push(&packer, 2 * ENTRY_FRAGMENT_BYTES);
    assert_int_equal(next(&packer, &entry, &bytes), 0);
    packer_restart(&packer);
    assert_int_equal(next(&packer, &entry, &bytes), 0);
    assert_int_equal(entry.fragment_number, 0);
    proposal_list_finish(&packer.pending, REPLICA_NOT_LEADER);
    buf_deinit(&bytes);
}

static void packer_undo_gives_the_same_entry_again(void **state)
{
    struct packer packer = {.origin = 9};
    struct buf first = BUF_INIT, second = BUF_INIT;
    struct proposal_list logged = {0};
    (void)state;
    for (unsigned i = 0; i < 300; i++)
        push(&packer, 8 + i % 5);
    push(&packer, 2 * ENTRY_FRAGMENT_BYTES);
    while (packer.pending.head != NULL) {
        struct packer before = packer;
        packer_next(&packer, 5, &first, &logged);
        packer_undo(&packer, &before, &logged);
        packer_next(&packer, 5, &second, &logged);
        assert_int_equal(first.len, second.len);
        assert_memory_equal(first.data, second.data, first.len);
        buf_clear(&first);
        buf_clear(&second);
        proposal_list_finish(&logged, REPLICA_APPLIED);
    }
    buf_deinit(&first);
    buf_deinit(&second);
}

static void proposals_finished_once_each(void **state)
{
    struct packer packer = {0};
    struct proposal_list list = {0};
    (void)state;
    finished[REPLICA_BUSY] = 0;
    for (unsigned i = 0; i < 5; i++)
        push(&packer, 1);
    proposal_list_append(&list, &packer.pending);
    push(&packer, 1);
    proposal_list_append(&list, &packer.pending);
    assert_null(packer.pending.head);
    proposal_list_finish(&list, REPLICA_BUSY);
    assert_int_equal(finished[REPLICA_BUSY], 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packer_small_commands_share_an_entry),
        cmocka_unit_test(packer_entry_bounded_in_bytes),
        cmocka_unit_test(packer_large_command_cut_and_completed_by_the_last),
        cmocka_unit_test(packer_restart_begins_with_the_first_fragment),
        cmocka_unit_test(packer_undo_gives_the_same_entry_again),
        cmocka_unit_test(proposals_finished_once_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
