/* Values that go through a key and its marks come back byte for byte. */
#include "bson/keyenc.h"
#include "bson/keytypes.h"
#include "random_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct entry {
    struct buf key;
    struct buf types;
    uint32_t types_len;
};

static void make_entry(struct entry *entry, const struct bval *values, uint32_t count, uint64_t descending)
{
    struct keytypes types;
    *entry = (struct entry){0};
    keytypes_begin(&types, &entry->types);
    for (uint32_t i = 0; i < count; i++) {
        keyenc_append(&entry->key, &values[i], (descending >> i & 1) != 0);
        keytypes_add(&types, &values[i], NULL);
    }
    entry->types_len = keytypes_end(&types);
}

static void free_entry(struct entry *entry)
{
    buf_deinit(&entry->key);
    buf_deinit(&entry->types);
}

static bool has_scope(struct bdoc doc)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (biter_next(&iter, &elem)) {
        if (elem.val.type == BT_CODE_WITH_SCOPE)
            return true;
        if ((elem.val.type == BT_DOCUMENT || elem.val.type == BT_ARRAY) && has_scope(bval_doc(&elem.val)))
            return true;
    }
    return false;
}

/* The fields of `doc` as components of one key, and back. */
static void round_trip(struct bdoc doc, uint64_t descending)
{
    struct bval values[64];
    const char *names[64];
    uint32_t count = 0;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, doc);
    while (count < 64 && biter_next(&iter, &elem)) {
        names[count] = elem.key;
        values[count++] = elem.val;
    }
    struct entry entry;
    struct keytypes_reader reader;
    bson_t out = BSON_INITIALIZER;
    make_entry(&entry, values, count, descending);
    bool kept = keytypes_reader_init(&reader, entry.key.data, (uint32_t)entry.key.len, entry.types.data,
                                     entry.types_len);
    assert_int_equal(kept, !has_scope(doc));
    for (uint32_t i = 0; kept && i < count; i++) {
        bool missing;
        assert_true(keytypes_take(&reader, (descending >> i & 1) != 0, names[i], &out, &missing));
        assert_false(missing);
    }
    if (kept) {
        assert_ptr_equal(reader.key, reader.key_end);
        assert_true(bdoc_same(bdoc_of(&out), doc));
    }
    bson_destroy(&out);
    free_entry(&entry);
}

static void keytypes_random_values_come_back(void **state)
{
    (void)state;
    struct prng prng = {20261130};
    for (int i = 0; i < 20000; i++) {
        bson_t doc = BSON_INITIALIZER;
        static const char *const names[] = {"a", "b", "c", "d"};
        for (int n = 0; n <= i % 4; n++) {
            if (i % 3 == 0)
                random_number_append(&prng, &doc, names[n]);
            else
                random_value_append(&prng, &doc, names[n], 3);
        }
        round_trip(bdoc_of(&doc), (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15));
        bson_destroy(&doc);
    }
}

static void keytypes_default_types_take_no_bytes(void **state)
{
    (void)state;
    bson_t doc = BSON_INITIALIZER;
    BSON_APPEND_INT32(&doc, "a", 7);
    BSON_APPEND_UTF8(&doc, "b", "text");
    BSON_APPEND_NULL(&doc, "c");
    struct bval values[3];
    bdoc_find(bdoc_of(&doc), "a", &values[0]);
    bdoc_find(bdoc_of(&doc), "b", &values[1]);
    bdoc_find(bdoc_of(&doc), "c", &values[2]);
    struct entry entry;
    make_entry(&entry, values, 3, 0);
    assert_int_equal(entry.types_len, 0);
    free_entry(&entry);
    bson_destroy(&doc);
}

static void keytypes_missing_is_not_null(void **state)
{
    (void)state;
    struct entry entry;
    struct keytypes_reader reader;
    bool missing = false;
    bson_t out = BSON_INITIALIZER;
    make_entry(&entry, &BVAL_MISSING, 1, 0);
    assert_true(keytypes_reader_init(&reader, entry.key.data, (uint32_t)entry.key.len, entry.types.data,
                                     entry.types_len));
    assert_true(keytypes_take(&reader, false, "a", &out, &missing));
    assert_true(missing);
    assert_true(bson_empty(&out));
    bson_destroy(&out);
    free_entry(&entry);
}

static int compare_nothing(const void *arg, const char *a, uint32_t a_len, const char *b, uint32_t b_len)
{
    (void)arg, (void)a, (void)b;
    return (a_len > b_len) - (a_len < b_len);
}

static void append_length(const void *arg, const char *text, uint32_t len, struct buf *out)
{
    (void)arg, (void)text;
    buf_append_u8(out, (uint8_t)len);
}

static void keytypes_collated_string_is_lost(void **state)
{
    (void)state;
    const struct bval_order order = {.compare_strings = compare_nothing, .append_key = append_length, .name = "len"};
    bson_t doc = BSON_INITIALIZER;
    bson_t child;
    BSON_APPEND_DOCUMENT_BEGIN(&doc, "a", &child);
    BSON_APPEND_UTF8(&child, "b", "text");
    bson_append_document_end(&doc, &child);
    struct bval val;
    bdoc_find(bdoc_of(&doc), "a", &val);
    struct keytypes types;
    struct keytypes_reader reader;
    struct buf bytes = BUF_INIT;
    keytypes_begin(&types, &bytes);
    keytypes_add(&types, &val, &order);
    uint32_t len = keytypes_end(&types);
    assert_false(keytypes_reader_init(&reader, (const uint8_t *)"", 0, bytes.data, len));
    buf_deinit(&bytes);
    bson_destroy(&doc);
}

/* Bytes of any kind are refused or read, never read beyond their end (the sanitizer watches). */
static void keytypes_damaged_bytes_are_refused(void **state)
{
    (void)state;
    struct prng prng = {5};
    for (int i = 0; i < 5000; i++) {
        bson_t *doc = random_value_new(&prng, 3);
        struct bval val = random_value_of(doc);
        struct entry entry;
        make_entry(&entry, &val, 1, 0);
        uint32_t cut = (uint32_t)prng_below(&prng, (uint32_t)entry.key.len + 1);
        uint8_t *bytes = malloc(cut + 1u);
        memcpy(bytes, entry.key.data, cut);
        if (cut > 0)
            bytes[prng_below(&prng, cut)] ^= (uint8_t)(1u << prng_below(&prng, 8));
        struct keytypes_reader reader;
        bson_t out = BSON_INITIALIZER;
        bool missing;
        if (keytypes_reader_init(&reader, bytes, cut, entry.types.data, entry.types_len))
            (void)!keytypes_take(&reader, false, "a", &out, &missing);
        bson_destroy(&out);
        free(bytes);
        free_entry(&entry);
        bson_destroy(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keytypes_random_values_come_back),  cmocka_unit_test(keytypes_default_types_take_no_bytes),
        cmocka_unit_test(keytypes_missing_is_not_null),      cmocka_unit_test(keytypes_collated_string_is_lost),
        cmocka_unit_test(keytypes_damaged_bytes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
