/* How strings compare, and that every use of the order, keys and hashes too, says the same. */
#include "collation/collation.h"

#include "base/mem.h"
#include "base/thread.h"
#include "bson/hash.h"
#include "bson/keyenc.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

enum { THREADS = 4, ROUNDS = 300, LONG_BYTES = 100000 };

static struct collation *open_json(const char *json)
{
    bson_error_t error;
    struct collation *collation = NULL;
    struct err err = {0};
    bson_t *spec = bson_new_from_json((const uint8_t *)json, -1, &error);
    if (spec == NULL || !collation_open(bdoc_of(spec), &collation, &err))
        fail_msg("%s: %s%s", json, spec == NULL ? error.message : "", err.msg);
    bson_destroy(spec);
    return collation;
}

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

/* Checks comparison, its mirror, key bytes and hashes of two strings of given lengths. */
static void expect_order_n(const struct bval_order *order, const char *a, uint32_t a_len, const char *b, uint32_t b_len,
                           int wanted)
{
    bson_t doc = BSON_INITIALIZER;
    struct bval x;
    struct bval y;
    struct buf x_key = BUF_INIT;
    struct buf y_key = BUF_INIT;
    bson_append_utf8(&doc, "x", 1, a, (int)a_len);
    bson_append_utf8(&doc, "y", 1, b, (int)b_len);
    bdoc_find(bdoc_of(&doc), "x", &x);
    bdoc_find(bdoc_of(&doc), "y", &y);
    keyenc_append_ordered(&x_key, &x, false, order);
    keyenc_append_ordered(&y_key, &y, false, order);
    int got = sign(bval_compare_ordered(&x, &y, order));
    if (got != wanted)
        fail_msg("'%s' against '%s' in %s: %d", a, b, order->name, got);
    assert_int_equal(sign(bval_compare_ordered(&y, &x, order)), -wanted);
    assert_int_equal(sign(keyenc_compare(x_key.data, x_key.len, y_key.data, y_key.len)), wanted);
    assert_int_equal(bval_hash_ordered(&x, order) == bval_hash_ordered(&y, order), wanted == 0);
    buf_deinit(&x_key);
    buf_deinit(&y_key);
    bson_destroy(&doc);
}

static void expect_order(const char *spec, const char *a, const char *b, int wanted)
{
    struct collation *collation = open_json(spec);
    expect_order_n(collation_order(collation), a, (uint32_t)strlen(a), b, (uint32_t)strlen(b), wanted);
    collation_unref(collation);
}

static void collation_strength_says_what_differs(void **state)
{
    (void)state;
    expect_order("{\"locale\": \"en\", \"strength\": 1}", "resume", "R\xc3\xa9sum\xc3\xa9", 0);
    expect_order("{\"locale\": \"en\", \"strength\": 2}", "resume", "RESUME", 0);
    expect_order("{\"locale\": \"en\", \"strength\": 2}", "resume", "r\xc3\xa9sum\xc3\xa9", -1);
    expect_order("{\"locale\": \"en\"}", "a", "A", -1);
    expect_order("{\"locale\": \"en\"}", "A", "b", -1);
    expect_order("{\"locale\": \"en\", \"strength\": 1, \"caseLevel\": true}", "a", "A", -1);
    expect_order("{\"locale\": \"en\", \"strength\": 1, \"caseLevel\": true}", "a", "\xc3\xa1", 0);
    expect_order("{\"locale\": \"en\", \"caseFirst\": \"upper\"}", "a", "A", 1);
    expect_order("{\"locale\": \"en\", \"strength\": 3}", "a\xc2\xad-", "a-", 0); /* a soft hyphen is ignored ... */
    expect_order("{\"locale\": \"en\", \"strength\": 5}", "a\xc2\xad-", "a-", 1); /* ... but for the last strength */
}

static void collation_locale_decides(void **state)
{
    (void)state;
    expect_order("{\"locale\": \"de\"}", "\xc3\xa4", "z", -1);
    expect_order("{\"locale\": \"sv\"}", "\xc3\xa4", "z", 1);
    expect_order("{\"locale\": \"de\", \"strength\": 1}",
                 "Stra\xc3\x9f"
                 "e",
                 "strasse", 0);
    expect_order("{\"locale\": \"de\"}", "\xc3\xa4", "ae", -1); /* as "a" */
    expect_order("{\"locale\": \"de@collation=phonebook\", \"strength\": 1}", "\xc3\xa4", "ae", 0);
    expect_order("{\"locale\": \"es\"}", "cz", "ch", 1);
    expect_order("{\"locale\": \"es@collation=traditional\"}", "cz", "ch", -1);
    expect_order("{\"locale\": \"tr\", \"strength\": 1}", "i", "I", 1); /* I is the capital of the dotless one */
    expect_order("{\"locale\": \"tr\", \"strength\": 1}", "\xc4\xb1", "I", 0);
    expect_order("{\"locale\": \"tr\", \"strength\": 1}", "i", "\xc4\xb0", 0);
    expect_order("{\"locale\": \"fr\"}", "cot\xc3\xa9", "c\xc3\xb4te", -1);
    expect_order("{\"locale\": \"fr_CA\"}", "cot\xc3\xa9", "c\xc3\xb4te", 1); /* the last accent counts first */
    expect_order("{\"locale\": \"da\"}", "aa", "z", 1);
}

static void collation_options_change_the_order(void **state)
{
    (void)state;
    expect_order("{\"locale\": \"en\"}", "a10", "a9", -1);
    expect_order("{\"locale\": \"en\", \"numericOrdering\": true}", "a10", "a9", 1);
    expect_order("{\"locale\": \"en\", \"numericOrdering\": true}", "a010", "a10", 0);
    expect_order("{\"locale\": \"ko\", \"numericOrdering\": true}", "2\xe0\xa5\xa8", "2\xef\xbf\xbd", 1);
    expect_order("{\"locale\": \"en\", \"strength\": 3}", "black-bird", "blackbird", -1);
    expect_order("{\"locale\": \"en\", \"strength\": 3, \"alternate\": \"shifted\"}", "black-bird", "blackbird", 0);
    expect_order("{\"locale\": \"en\", \"strength\": 4, \"alternate\": \"shifted\"}", "black-bird", "blackbird", -1);
    expect_order("{\"locale\": \"en\", \"alternate\": \"shifted\", \"maxVariable\": \"space\"}", "a-b", "ab", -1);
    expect_order("{\"locale\": \"en\", \"alternate\": \"shifted\", \"maxVariable\": \"space\"}", "a b", "ab", 0);
    expect_order("{\"locale\": \"en\", \"normalization\": true, \"strength\": 2}", "a\xcc\xa3\xcc\x81",
                 "a\xcc\x81\xcc\xa3", 0);
}

static void collation_takes_any_bytes(void **state)
{
    (void)state;
    struct collation *collation = open_json("{\"locale\": \"en\", \"strength\": 5}");
    const struct bval_order *order = collation_order(collation);
    expect_order_n(order, "", 0, "a", 1, -1);
    expect_order_n(order, "", 0, "", 0, 0);
    expect_order_n(order, "a\0b", 3, "a\0c", 3, -1);
    expect_order_n(order, "a\0", 2, "a", 1, 1); /* a NUL is ignored until the last strength */
    collation_unref(collation);
    collation = open_json("{\"locale\": \"en\"}");
    order = collation_order(collation);
    expect_order_n(order, "a\0b", 3, "ab", 2, 0);
    /* Not UTF-8: each damaged character counts as U+FFFD. */
    assert_int_equal(sign(order->compare_strings(order->arg, "a\xff", 2, "a\xef\xbf\xbd", 4)), 0);
    struct buf key = BUF_INIT;
    order->append_key(order->arg, "a\xff", 2, &key);
    size_t middle = key.len;
    order->append_key(order->arg, "a\xef\xbf\xbd", 4, &key);
    assert_int_equal(keyenc_compare(key.data, middle, key.data + middle, key.len - middle), 0);
    buf_deinit(&key);
    collation_unref(collation);
}

static void collation_of_a_long_string_goes_over_the_heap(void **state)
{
    (void)state;
    struct collation *collation = open_json("{\"locale\": \"en\", \"strength\": 2}");
    char *a = mem_alloc(LONG_BYTES + 1);
    char *b = mem_alloc(LONG_BYTES + 1);
    memset(a, 'x', LONG_BYTES);
    memset(b, 'X', LONG_BYTES);
    expect_order_n(collation_order(collation), a, LONG_BYTES, b, LONG_BYTES, 0);
    b[LONG_BYTES - 1] = 'y';
    expect_order_n(collation_order(collation), a, LONG_BYTES, b, LONG_BYTES, -1);
    mem_free(a);
    mem_free(b);
    collation_unref(collation);
}

/* Strings inside of documents and arrays, and symbols; names of fields and code stay simple. */
static void collation_is_applied_at_every_depth(void **state)
{
    (void)state;
    struct collation *collation = open_json("{\"locale\": \"en\", \"strength\": 2}");
    const struct bval_order *order = collation_order(collation);
    bson_t *doc =
        BCON_NEW("a", "{", "v", "[", "X", "]", "}", "b", "{", "v", "[", "x", "]", "}", "c", "{", "V", "[", "x", "]",
                 "}", "code", BCON_CODE("X"), "code2", BCON_CODE("x"), "s", BCON_SYMBOL("X"), "t", BCON_UTF8("x"));
    struct bval a;
    struct bval b;
    static const struct {
        const char *a;
        const char *b;
        bool equal;
    } cases[] = {{"a", "b", true}, {"a", "c", false}, {"code", "code2", false}, {"s", "t", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf key = BUF_INIT;
        bdoc_find(bdoc_of(doc), cases[i].a, &a);
        bdoc_find(bdoc_of(doc), cases[i].b, &b);
        keyenc_append_ordered(&key, &a, true, order);
        size_t middle = key.len;
        keyenc_append_ordered(&key, &b, true, order);
        int keys = keyenc_compare(key.data, middle, key.data + middle, key.len - middle);
        assert_int_equal(bval_equal_ordered(&a, &b, order), cases[i].equal);
        assert_int_equal(keys == 0, cases[i].equal);
        assert_int_equal(bval_hash_ordered(&a, order) == bval_hash_ordered(&b, order), cases[i].equal);
        buf_deinit(&key);
    }
    bson_destroy(doc);
    collation_unref(collation);
}

static void collation_kept_by_an_arena_outlives_its_reference(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    struct collation *collation = open_json("{\"locale\": \"hu\", \"strength\": 2}");
    const struct bval_order *order = collation_order(collation);
    collation_keep(collation, &arena);
    collation_keep(NULL, &arena);
    collation_unref(collation);
    expect_order_n(order, "a", 1, "A", 1, 0);
    arena_deinit(&arena);
}

/* Opens and drops many collations, more than are kept, while others compare with theirs. Returns NULL when all was
 * well: cmocka's assertions work in the main thread only. */
static void *open_and_compare(void *arg)
{
    static char failed;
    static const char *const locales[] = {"en", "de", "fr", "sv", "pt", "es", "tr", "hu", "cs", "pl", "fi", "it"};
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        bson_t spec = BSON_INITIALIZER;
        struct collation *collation;
        struct err err;
        unsigned choice = (i * 7 + seed * 13) % (12 * 5 * 2);
        BSON_APPEND_UTF8(&spec, "locale", locales[choice % 12]);
        BSON_APPEND_INT32(&spec, "strength", (int32_t)(choice / 12 % 5 + 1));
        BSON_APPEND_BOOL(&spec, "numericOrdering", choice / 60 != 0);
        bool ok = collation_open(bdoc_of(&spec), &collation, &err);
        bson_destroy(&spec);
        if (!ok)
            return &failed;
        struct collation *again = collation_ref(collation);
        const struct bval_order *order = collation_order(again);
        collation_unref(collation);
        ok = order->compare_strings(order->arg, "ab", 2, "b", 1) < 0;
        collation_unref(again);
        if (!ok)
            return &failed;
    }
    return NULL;
}

static void collation_table_serves_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        thread_start(&threads[i], "collate", open_and_compare, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *failure;
        assert_int_equal(pthread_join(threads[i], &failure), 0);
        assert_null(failure);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collation_strength_says_what_differs),
        cmocka_unit_test(collation_locale_decides),
        cmocka_unit_test(collation_options_change_the_order),
        cmocka_unit_test(collation_takes_any_bytes),
        cmocka_unit_test(collation_of_a_long_string_goes_over_the_heap),
        cmocka_unit_test(collation_is_applied_at_every_depth),
        cmocka_unit_test(collation_kept_by_an_arena_outlives_its_reference),
        cmocka_unit_test(collation_table_serves_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
