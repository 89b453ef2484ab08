/* Runs the fuzz target over seeded random input, for builds without libFuzzer. The strings are made of pieces that
 * collation treats in ways of its own: marks, contractions, digits, punctuation, controls, bytes that are no UTF-8. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/random.h"
#include "tests/fuzz/collation/fuzz_collation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_ROUNDS = 20000, PIECES_MAX = 8, STRINGS = 3 };

static const char *const pieces[] = {
    "a",
    "A",
    "b",
    "e",
    "o",
    "z",
    "ch",
    "ll",
    "aa",
    "AE",
    "ss",
    " ",
    "-",
    "_",
    ".",
    "'",
    "$",
    "1",
    "2",
    "10",
    "007",
    "0",
    "\xc3\xa9",
    "e\xcc\x81",
    "\xc3\xb6",
    "o\xcc\x88",
    "\xc3\x9f",
    "\xc3\xa5",
    "\xc3\xa6",
    "i",
    "\xc4\xb1",
    "\xc4\xb0",
    "\xcc\x81",
    "\xcc\xa3",
    "\xcc\x81\xcc\xa3",
    "\xe0\xb9\x80\xe0\xb8\x81",
    "\xe0\xb8\x81",
    "\xed\x95\x9c",
    "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab",
    "\xe4\xb8\xad",
    "\xe3\x81\x8b",
    "\xe3\x82\xab",
    "\xef\xbd\xb6",
    "\xe3\x82\x9b",
    "\xd9\xa1",
    "\xe0\xa5\xa8",
    "\xf0\x9f\x98\x80",
    "\xf0\x9d\x90\x80",
    "\xc2\xad",
    "\xe2\x80\x8d",
    "\xe2\x80\x8b",
    "\x01",
    "\x7f",
    "\xef\xbf\xbd",
    "\xef\xbf\xbe",
    "\xef\xbf\xbf",
    "\xef\xbb\xbf",
    "\xe0\xbd\xb1",
    "\xe0\xbd\xb2",
    "\xe0\xbe\x81",
    "\xff",
    "\xc3",
    "\xe2\x82",
    "\xed\xa0\x80",
    "\xc0\x80",
    "\xf4\x90\x80\x80",
    "\x80",
};

static void random_text(struct prng *prng, struct buf *to)
{
    size_t at = to->len;
    buf_append_u8(to, 0);
    for (uint64_t n = prng_below(prng, PIECES_MAX + 1); n > 0; n--) {
        uint64_t choice = prng_below(prng, sizeof pieces / sizeof pieces[0] + 1);
        if (choice == sizeof pieces / sizeof pieces[0])
            buf_append_u8(to, 0);
        else
            buf_append(to, pieces[choice], strlen(pieces[choice]));
    }
    to->data[at] = (uint8_t)(to->len - at - 1);
}

/* Most differences are small ones: a copy of the string before with one byte or piece changed. */
static void similar_text(struct prng *prng, struct buf *to, size_t from)
{
    size_t at = to->len;
    uint8_t len = to->data[from];
    uint8_t copy[UINT8_MAX + 1];
    memcpy(copy, to->data + from, (size_t)len + 1);
    size_t cut = prng_below(prng, (uint64_t)len + 1);
    buf_append(to, copy, cut + 1);
    const char *piece = pieces[prng_below(prng, sizeof pieces / sizeof pieces[0])];
    if (prng_below(prng, 3) > 0)
        buf_append(to, piece, strlen(piece));
    size_t skip = cut + prng_below(prng, 3);
    if (skip < len)
        buf_append(to, copy + 1 + skip, len - skip);
    if (to->len - at - 1 > UINT8_MAX)
        to->len = at + 1 + UINT8_MAX;
    to->data[at] = (uint8_t)(to->len - at - 1);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : DEFAULT_ROUNDS;
    struct prng prng = {argc > 2 ? strtoull(argv[2], NULL, 10) : 1};
    for (long i = 0; i < rounds; i++) {
        struct buf data = BUF_INIT;
        buf_append_le32(&data, (uint32_t)prng_next(&prng));
        buf_append_u8(&data, (uint8_t)prng_next(&prng));
        size_t previous = data.len;
        random_text(&prng, &data);
        for (int n = 1; n < STRINGS; n++) {
            size_t at = data.len;
            if (prng_below(&prng, 3) == 0)
                random_text(&prng, &data);
            else
                similar_text(&prng, &data, previous);
            previous = at;
        }
        uint8_t *exact = mem_copy(data.data, data.len); /* so that the sanitizer sees one byte too far */
        (void)LLVMFuzzerTestOneInput(exact, data.len);
        mem_free(exact);
        buf_deinit(&data);
    }
    printf("%ld rounds\n", rounds);
    return 0;
}
