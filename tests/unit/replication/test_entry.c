#include "replication/entry.h"

#include "base/mem.h"
#include "base/random.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

static void build_commands(struct buf *out, unsigned count, unsigned len)
{
    uint8_t *command = mem_alloc(len + count);
    entry_begin(out, ENTRY_COMMANDS, 7, 0x1122334455667788, 3);
    for (unsigned i = 0; i < count; i++) {
        memset(command, (int)i, len + i);
        entry_add_command(out, command, len + i);
    }
    entry_finish(out, (uint16_t)count);
    mem_free(command);
}

static void build_fragment(struct buf *out, const uint8_t *command, size_t len, uint32_t number, uint32_t count,
                           uint64_t sequence)
{
    buf_clear(out);
    entry_begin(out, ENTRY_FRAGMENT, 7, 99, sequence);
    entry_add_fragment(out, command, len, number, count);
    entry_finish(out, 1);
}

static void entry_commands_come_back_in_order(void **state)
{
    struct buf bytes = BUF_INIT;
    struct entry entry;
    const uint8_t *command;
    size_t len, offset = 0;
    unsigned count = 0;
    (void)state;
    build_commands(&bytes, 5, 3);
    assert_int_equal(bytes.len % 8, 0);
    assert_true(entry_parse(bytes.data, bytes.len, &entry, NULL));
    assert_int_equal(entry.kind, ENTRY_COMMANDS);
    assert_int_equal(entry.term, 7);
    assert_int_equal(entry.origin, 0x1122334455667788);
    assert_int_equal(entry.sequence, 3);
    while (entry_next_command(&entry, &offset, &command, &len)) {
        assert_int_equal(len, 3 + count);
        assert_int_equal(command[0], count);
        count++;
    }
    assert_int_equal(count, 5);
    buf_deinit(&bytes);
}

static void entry_cut_anywhere_refused(void **state)
{
    struct buf bytes = BUF_INIT;
    struct entry entry;
    struct err err;
    (void)state;
    build_commands(&bytes, 4, 5);
    for (size_t len = 0; len + 8 <= bytes.len; len++) {
        uint8_t *copy = mem_copy(bytes.data, len == 0 ? 1 : len); /* so that a read past it shows */
        assert_false(entry_parse(copy, len, &entry, &err));
        mem_free(copy);
    }
    buf_deinit(&bytes);
}

static void entry_newer_version_refused_with_its_number(void **state)
{
    struct buf bytes = BUF_INIT;
    struct entry entry;
    struct err err;
    (void)state;
    build_commands(&bytes, 1, 8);
    bytes.data[0] = 2;
    assert_false(entry_parse(bytes.data, bytes.len, &entry, &err));
    assert_int_equal(err.code, ERR_UnsupportedFormat);
    assert_non_null(strstr(err.msg, "version 2"));
    buf_deinit(&bytes);
}

static void walk(const struct entry *entry)
{
    const uint8_t *command;
    size_t len, offset = 0;
    uint64_t sum = 0;
    if (entry->kind == ENTRY_FRAGMENT) {
        for (size_t i = 0; i < entry->payload_len; i++)
            sum += entry->payload[i];
    } else {
        while (entry_next_command(entry, &offset, &command, &len))
            sum += command[0] + command[len - 1];
    }
    assert_true(sum != UINT64_MAX);
}

/* Whatever the bytes: an error, or lengths that stay inside. The address sanitizer is the judge. */
static void entry_mutated_bytes_stay_inside(void **state)
{
    struct prng prng = {.state = 4711};
    uint8_t command[64] = {1};
    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        struct buf bytes = BUF_INIT;
        struct entry entry;
        if (round % 2 == 0)
            build_commands(&bytes, 1 + (unsigned)prng_below(&prng, 6), 1 + (unsigned)prng_below(&prng, 20));
        else
            build_fragment(&bytes, command, sizeof command, 0, 2, 1);
        for (uint64_t changes = 1 + prng_below(&prng, 4); changes > 0; changes--)
            bytes.data[prng_below(&prng, bytes.len)] = (uint8_t)prng_next(&prng);
        size_t len = bytes.len - prng_below(&prng, bytes.len < 12 ? bytes.len : 12);
        uint8_t *copy = mem_copy(bytes.data, len);
        if (entry_parse(copy, len, &entry, NULL))
            walk(&entry);
        mem_free(copy);
        buf_deinit(&bytes);
    }
}

static uint8_t *large_command(size_t len)
{
    uint8_t *command = mem_alloc(len);
    for (size_t i = 0; i < len; i++)
        command[i] = (uint8_t)(i * 31 + (i >> 12));
    return command;
}

static bool add(struct entry_assembly *assembly, const struct buf *bytes, uint64_t index)
{
    struct entry entry;
    assert_true(entry_parse(bytes->data, bytes->len, &entry, NULL));
    return entry_assembly_add(assembly, &entry, index);
}

static void entry_fragments_make_the_command(void **state)
{
    size_t len = 2 * ENTRY_FRAGMENT_BYTES + 100;
    uint8_t *command = large_command(len);
    struct entry_assembly assembly = {0};
    struct buf bytes = BUF_INIT;
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        build_fragment(&bytes, command, len, i, 3, 50 + i);
        assert_int_equal(add(&assembly, &bytes, 10 + i), i == 2);
    }
    assert_int_equal(assembly.bytes.len, len);
    assert_memory_equal(assembly.bytes.data, command, len);
    entry_assembly_reset(&assembly);
    buf_deinit(&bytes);
    mem_free(command);
}

static void entry_fragments_with_a_gap_dropped(void **state)
{
    size_t len = 2 * ENTRY_FRAGMENT_BYTES;
    uint8_t *command = large_command(len);
    struct entry_assembly assembly = {0};
    struct buf bytes = BUF_INIT;
    (void)state;
    build_fragment(&bytes, command, len, 0, 2, 50);
    assert_false(add(&assembly, &bytes, 10));
    build_fragment(&bytes, command, len, 1, 2, 51);
    assert_false(add(&assembly, &bytes, 12)); /* entry 11 was something else */
    assert_int_equal(assembly.first_index, 0);
    build_fragment(&bytes, command, len, 0, 2, 60);
    assert_false(add(&assembly, &bytes, 13));
    build_fragment(&bytes, command, len, 1, 2, 51); /* of the command before */
    assert_false(add(&assembly, &bytes, 14));
    assert_int_equal(assembly.first_index, 0);
    entry_assembly_reset(&assembly);
    buf_deinit(&bytes);
    mem_free(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entry_commands_come_back_in_order),
        cmocka_unit_test(entry_cut_anywhere_refused),
        cmocka_unit_test(entry_newer_version_refused_with_its_number),
        cmocka_unit_test(entry_mutated_bytes_stay_inside),
        cmocka_unit_test(entry_fragments_make_the_command),
        cmocka_unit_test(entry_fragments_with_a_gap_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
