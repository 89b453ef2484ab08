/* Nanoseconds per comparison of two strings and per sort key, beside ICU's bare calls on the same collator and text in
 * UTF-16 (ucol_strcoll, ucol_getSortKey), which need no conversion; and per opening of a specification. */
#include "base/buf.h"
#include "base/check.h"
#include "bson/keyenc.h"
#include "collation/collation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unicode/ucol.h>
#include <unicode/ustring.h>

enum { DEFAULT_ROUNDS = 20000, UNITS_MAX = 256, KEY_MAX = 2048 };

static const char *const names[] = {
    "Anderson, Margaret",   "anderson, margaret",
    "Andersson, Margareta", "M\xc3\xbcller, J\xc3\xbcrgen",
    "Muller, Jurgen",       "\xc3\x85ngstr\xc3\xb6m",
    "item-000123",          "item-000124",
    "ITEM-000124",          "c\xc3\xb4te",
    "cot\xc3\xa9",          "coat",
    "The quick brown fox",  "The quick brown dog",
    "Zo\xc3\xab",           "zoe",
};

enum { NAMES = sizeof names / sizeof names[0] };

struct text {
    uint32_t len;
    UChar units[UNITS_MAX];
    int32_t count;
};

static struct text texts[NAMES];

/* CPU time of this thread: other programs don't count. */
static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double compare_ours(const struct bval_order *order, long rounds, long *sum)
{
    double start = cpu_ns();
    for (long i = 0; i < rounds; i++)
        for (int a = 0; a < NAMES; a++)
            for (int b = 0; b < NAMES; b++)
                *sum += order->compare_strings(order->arg, names[a], texts[a].len, names[b], texts[b].len);
    return (cpu_ns() - start) / ((double)rounds * NAMES * NAMES);
}

static double compare_bare(const UCollator *icu, long rounds, long *sum)
{
    double start = cpu_ns();
    for (long i = 0; i < rounds; i++)
        for (int a = 0; a < NAMES; a++)
            for (int b = 0; b < NAMES; b++)
                *sum += ucol_strcoll(icu, texts[a].units, texts[a].count, texts[b].units, texts[b].count);
    return (cpu_ns() - start) / ((double)rounds * NAMES * NAMES);
}

static double key_ours(const struct bval_order *order, long rounds)
{
    struct buf key = BUF_INIT;
    double start = cpu_ns();
    for (long i = 0; i < rounds; i++) {
        for (int a = 0; a < NAMES; a++) {
            buf_clear(&key);
            order->append_key(order->arg, names[a], texts[a].len, &key);
        }
    }
    double end = cpu_ns();
    buf_deinit(&key);
    return (end - start) / ((double)rounds * NAMES);
}

/* As it stands in an index or a sort: escaped, behind a type byte. */
static double key_encoded(const struct bval_order *order, long rounds)
{
    struct buf key = BUF_INIT;
    bson_t doc = BSON_INITIALIZER;
    for (int a = 0; a < NAMES; a++)
        BSON_APPEND_UTF8(&doc, "x", names[a]);
    double start = cpu_ns();
    for (long i = 0; i < rounds; i++) {
        struct biter iter;
        struct belem elem;
        biter_init(&iter, bdoc_of(&doc));
        while (biter_next(&iter, &elem)) {
            buf_clear(&key);
            keyenc_append_ordered(&key, &elem.val, false, order);
        }
    }
    double end = cpu_ns();
    buf_deinit(&key);
    bson_destroy(&doc);
    return (end - start) / ((double)rounds * NAMES);
}

static double key_bare(const UCollator *icu, long rounds)
{
    uint8_t key[KEY_MAX];
    double start = cpu_ns();
    for (long i = 0; i < rounds; i++)
        for (int a = 0; a < NAMES; a++)
            CHECK(ucol_getSortKey(icu, texts[a].units, texts[a].count, key, KEY_MAX) > 0);
    return (cpu_ns() - start) / ((double)rounds * NAMES);
}

static double open_again(struct bdoc spec, long rounds)
{
    struct err err;
    double start = cpu_ns();
    for (long i = 0; i < rounds; i++) {
        struct collation *collation;
        CHECK(collation_open(spec, &collation, &err));
        collation_unref(collation);
    }
    return (cpu_ns() - start) / (double)rounds;
}

static void measure(const char *json, UColAttribute attribute, UColAttributeValue value, long rounds)
{
    bson_error_t error;
    struct collation *collation;
    struct err err;
    struct bval locale;
    uint32_t len;
    UErrorCode status = U_ZERO_ERROR;
    long sum = 0;
    bson_t *spec = bson_new_from_json((const uint8_t *)json, -1, &error);
    CHECK(spec != NULL && collation_open(bdoc_of(spec), &collation, &err));
    CHECK(bdoc_find(bdoc_of(spec), "locale", &locale));
    UCollator *icu = ucol_open(bval_str(&locale, &len), &status);
    ucol_setAttribute(icu, attribute, value, &status);
    CHECK(U_SUCCESS(status));
    const struct bval_order *order = collation_order(collation);
    double ours = compare_ours(order, rounds, &sum);
    double bare = compare_bare(icu, rounds, &sum);
    printf("%-44s %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f\n", json, ours, bare, key_ours(order, rounds),
           key_encoded(order, rounds), key_bare(icu, rounds), open_again(bdoc_of(spec), rounds * 10));
    CHECK(sum != LONG_MAX);
    ucol_close(icu);
    collation_unref(collation);
    bson_destroy(spec);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : DEFAULT_ROUNDS;
    for (int i = 0; i < NAMES; i++) {
        UErrorCode status = U_ZERO_ERROR;
        texts[i].len = (uint32_t)strlen(names[i]);
        u_strFromUTF8(texts[i].units, UNITS_MAX, &texts[i].count, names[i], (int32_t)texts[i].len, &status);
        CHECK(U_SUCCESS(status));
    }
    printf("%-44s %8s %8s %8s %8s %8s %8s\n", "ns per", "compare", "bare", "key", "encoded", "bare", "open");
    measure("{\"locale\": \"en\"}", UCOL_STRENGTH, UCOL_TERTIARY, rounds);
    measure("{\"locale\": \"en\", \"strength\": 2}", UCOL_STRENGTH, UCOL_SECONDARY, rounds);
    measure("{\"locale\": \"sv\", \"strength\": 1}", UCOL_STRENGTH, UCOL_PRIMARY, rounds);
    measure("{\"locale\": \"en\", \"numericOrdering\": true}", UCOL_NUMERIC_COLLATION, UCOL_ON, rounds);
    measure("{\"locale\": \"en\", \"alternate\": \"shifted\"}", UCOL_ALTERNATE_HANDLING, UCOL_SHIFTED, rounds);
    measure("{\"locale\": \"en\", \"strength\": 5}", UCOL_STRENGTH, UCOL_IDENTICAL, rounds);
    return 0;
}
