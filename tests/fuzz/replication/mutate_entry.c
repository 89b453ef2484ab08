/* Runs the fuzzer's function over mutations of valid entries, for builds without libFuzzer: a bounded, repeatable test.
 */
#include "base/random.h"
#include "replication/entry.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    ROUNDS = 50000,
};

static void add_entry(struct buf *input, struct prng *prng, uint64_t sequence)
{
    uint8_t command[64] = {0};
    struct buf entry = BUF_INIT;
    uint32_t number = (uint32_t)prng_below(prng, 3);
    if (prng_below(prng, 2) == 0) {
        entry_begin(&entry, ENTRY_COMMANDS, 1, 1, sequence);
        entry_add_command(&entry, command, 1 + prng_below(prng, sizeof command));
        entry_add_command(&entry, command, 1 + prng_below(prng, sizeof command));
        entry_finish(&entry, 2);
    } else {
        entry_begin(&entry, ENTRY_FRAGMENT, 1, 1, number);
        entry_add_fragment(&entry, command, sizeof command, number, 3);
        entry_finish(&entry, 1);
    }
    buf_append_u8(input, (uint8_t)entry.len);
    buf_append_u8(input, (uint8_t)(entry.len >> 8));
    buf_append(input, entry.data, entry.len);
    buf_deinit(&entry);
}

int main(void)
{
    struct prng prng = {.state = 20261130};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct buf input = BUF_INIT;
        for (uint64_t entries = 1 + prng_below(&prng, 5), i = 0; i < entries; i++)
            add_entry(&input, &prng, i);
        for (uint64_t changes = prng_below(&prng, 5); changes > 0; changes--)
            input.data[prng_below(&prng, input.len)] = (uint8_t)prng_next(&prng);
        LLVMFuzzerTestOneInput(input.data, input.len);
        buf_deinit(&input);
    }
    printf("%d rounds\n", ROUNDS);
    return 0;
}
