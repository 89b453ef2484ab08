/* Data: four bytes that choose options, one that chooses a locale, then three strings, each with a length byte. The
 * choices come to every valid specification and to many that contradict themselves. */
#include "tests/fuzz/collation/fuzz_collation.h"

#include "base/check.h"
#include "bson/keyenc.h"
#include "collation/collation.h"

#include <stdio.h>
#include <string.h>

enum { HEADER_BYTES = 5, STRINGS = 3 };

static const char *const locales[] = {
    "en",
    "en_US",
    "fr",
    "fr_CA",
    "de",
    "de@collation=phonebook",
    "sv",
    "da",
    "es",
    "es@collation=traditional",
    "tr",
    "th",
    "ja",
    "zh",
    "zh@collation=unihan",
    "ko",
    "ar",
    "vi",
    "hu",
    "cs",
    "bo",
    "my",
    "km",
    "he@collation=search",
    "en_US_POSIX",
    "lt",
    "hi",
    "si",
    "cy",
    "simple",
    "nowhere",
    "de@collation=nope",
    "",
};

struct text {
    const char *data;
    uint32_t len;
};

/* A digit of `*choice` in base `count`; 0 leaves the option out. */
static unsigned take(uint32_t *choice, unsigned count)
{
    unsigned digit = *choice % count;
    *choice /= count;
    return digit;
}

static void add_flag(bson_t *spec, const char *name, uint32_t *choice)
{
    unsigned digit = take(choice, 3);
    if (digit > 0)
        bson_append_bool(spec, name, -1, digit == 2);
}

static void add_word(bson_t *spec, const char *name, const char *const *words, unsigned count, uint32_t *choice)
{
    unsigned digit = take(choice, count + 1);
    if (digit > 0)
        bson_append_utf8(spec, name, -1, words[digit - 1], -1);
}

static void make_spec(const uint8_t *data, bson_t *spec)
{
    static const char *const case_first[] = {"off", "upper", "lower"};
    static const char *const alternate[] = {"non-ignorable", "shifted"};
    static const char *const max_variable[] = {"punct", "space"};
    uint32_t choice = load_le32(data);
    bson_append_utf8(spec, "locale", -1, locales[data[4] % (sizeof locales / sizeof locales[0])], -1);
    unsigned strength = take(&choice, 7);
    if (strength > 0)
        bson_append_int32(spec, "strength", -1, (int32_t)strength);
    add_flag(spec, "caseLevel", &choice);
    add_flag(spec, "numericOrdering", &choice);
    add_flag(spec, "normalization", &choice);
    add_flag(spec, "backwards", &choice);
    add_word(spec, "caseFirst", case_first, 3, &choice);
    add_word(spec, "alternate", alternate, 2, &choice);
    add_word(spec, "maxVariable", max_variable, 2, &choice);
}

static void read_texts(const uint8_t *data, size_t size, struct text texts[STRINGS])
{
    for (int i = 0; i < STRINGS; i++) {
        size_t len = size > 0 ? *data : 0;
        data += size > 0;
        size -= size > 0;
        len = len < size ? len : size;
        texts[i] = (struct text){(const char *)data, (uint32_t)len};
        data += len;
        size -= len;
    }
}

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

static int compare(const struct bval_order *order, struct text a, struct text b)
{
    return sign(order->compare_strings(order->arg, a.data, a.len, b.data, b.len));
}

static int compare_keys(const struct bval_order *order, struct text a, struct text b)
{
    struct buf x = BUF_INIT;
    struct buf y = BUF_INIT;
    order->append_key(order->arg, a.data, a.len, &x);
    order->append_key(order->arg, b.data, b.len, &y);
    int result = keyenc_compare(x.data, x.len, y.data, y.len);
    buf_deinit(&x);
    buf_deinit(&y);
    return sign(result);
}

/* Prints what was compared, so that a finding can be read. */
static void expect(bool good, const struct bval_order *order, struct text a, struct text b)
{
    if (good)
        return;
    const struct text both[] = {a, b};
    fprintf(stderr, "%s: compare %d, keys %d\n", order->name, compare(order, a, b), compare_keys(order, a, b));
    for (int i = 0; i < 2; i++) {
        for (uint32_t j = 0; j < both[i].len; j++)
            fprintf(stderr, "%02x ", (uint8_t)both[i].data[j]);
        fprintf(stderr, "\n");
    }
    CHECK(good);
}

static void check_order(const struct bval_order *order, const struct text texts[STRINGS])
{
    for (int i = 0; i < STRINGS; i++) {
        CHECK(compare(order, texts[i], texts[i]) == 0);
        struct text a = texts[i];
        struct text b = texts[(i + 1) % STRINGS];
        struct text c = texts[(i + 2) % STRINGS];
        int ab = compare(order, a, b);
        expect(ab == -compare(order, b, a), order, a, b);
        expect(ab == compare_keys(order, a, b), order, a, b);
        if (ab <= 0 && compare(order, b, c) <= 0)
            expect(compare(order, a, c) <= 0, order, a, c);
    }
}

/* The normal form opens as the same collation and is its own normal form. */
static void check_normal_form(struct collation *collation)
{
    bson_t normal = BSON_INITIALIZER;
    bson_t again = BSON_INITIALIZER;
    struct collation *same;
    struct err err;
    collation_normal_spec(collation, &normal);
    CHECK(collation_open(bdoc_of(&normal), &same, &err) && same == collation);
    collation_normal_spec(same, &again);
    CHECK(bdoc_same(bdoc_of(&normal), bdoc_of(&again)));
    collation_unref(same);
    bson_destroy(&normal);
    bson_destroy(&again);
}

/* The rest of the data as a specification of its own: whatever it is, an answer or an error. */
static void open_anything(const uint8_t *data, size_t size)
{
    struct collation *collation;
    struct err err = {0};
    if (!bdoc_validate(data, size, BDOC_MAX_DEPTH, &err))
        return;
    if (collation_open((struct bdoc){data, (uint32_t)size}, &collation, &err))
        collation_unref(collation);
    else
        CHECK(err.code != 0 && err.msg[0] != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct collation *collation;
    struct err err = {0};
    struct text texts[STRINGS];
    open_anything(data, size);
    if (size < HEADER_BYTES)
        return 0;
    bson_t spec = BSON_INITIALIZER;
    make_spec(data, &spec);
    read_texts(data + HEADER_BYTES, size - HEADER_BYTES, texts);
    if (collation_open(bdoc_of(&spec), &collation, &err) && collation != NULL) {
        check_order(collation_order(collation), texts);
        check_normal_form(collation);
        collation_unref(collation);
    }
    bson_destroy(&spec);
    return 0;
}
