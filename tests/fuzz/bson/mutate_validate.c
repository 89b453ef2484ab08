/* Runs the fuzz target over seeded mutations of random documents and of their JSON, for builds without libFuzzer. */
#include "base/mem.h"
#include "base/random.h"
#include "bson/extjson.h"
#include "tests/fuzz/bson/fuzz_validate.h"
#include "tests/unit/bson/random_value.h"

#include <stdio.h>
#include <stdlib.h>

enum { DEFAULT_ROUNDS = 6000, MUTATIONS_MAX = 4 };

static void mutate(struct prng *prng, uint8_t *bytes, size_t *len)
{
    size_t at = prng_below(prng, *len);
    switch (prng_below(prng, 5)) {
    case 0:
        bytes[at] = (uint8_t)prng_next(prng);
        break;
    case 1:
        bytes[at] ^= (uint8_t)(1u << prng_below(prng, 8));
        break;
    case 2: /* plausible types, lengths and braces */
        bytes[at] = (uint8_t) "\0\1\3\4\5\xff\x7f\x0f\x0c{}[]\":"[prng_below(prng, 15)];
        break;
    case 3:
        if (*len >= 8 && at + 4 <= *len)
            store_le32(bytes + at, (uint32_t)prng_below(prng, 2 * *len));
        break;
    default:
        *len = 1 + at;
        if (prng_below(prng, 2) && *len >= 5) { /* a cut document with its length put right */
            store_le32(bytes, (uint32_t)*len);
            bytes[*len - 1] = 0;
        }
    }
}

static void run_once(struct prng *prng, const uint8_t *data, size_t len)
{
    /* A copy of exact size, so that the sanitizer sees one byte too far. */
    uint8_t *bytes = mem_copy(data, len);
    for (uint64_t n = prng_below(prng, MUTATIONS_MAX); n > 0; n--)
        mutate(prng, bytes, &len);
    uint8_t *exact = mem_copy(bytes, len);
    (void)LLVMFuzzerTestOneInput(exact, len);
    mem_free(exact);
    mem_free(bytes);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : DEFAULT_ROUNDS;
    struct prng prng = {argc > 2 ? strtoull(argv[2], NULL, 10) : 1};
    for (long i = 0; i < rounds; i++) {
        bson_t *doc = random_value_new(&prng, 4);
        struct buf text = BUF_INIT;
        extjson_print(&text, bdoc_of(doc), EXTJSON_CANONICAL);
        run_once(&prng, bson_get_data(doc), doc->len);
        run_once(&prng, text.data, text.len);
        buf_deinit(&text);
        bson_destroy(doc);
    }
    printf("%ld rounds\n", rounds);
    return 0;
}
