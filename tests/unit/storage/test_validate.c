/* Damage that validate must see. The damage is done below the record functions. */
#include "tests/unit/storage/storage_test.h"

#include "storage/entries.h"
#include "storage/pieces.h"
#include "storage/validate.h"

#include <string.h>

static void assert_complains(struct fixture *f, const char *about)
{
    bson_t report = BSON_INITIALIZER;
    fixture_find(f);
    assert_false(collection_validate(f->txn, f->coll, &report));
    char *text = bson_as_relaxed_extended_json(&report, NULL);
    if (strstr(text, about) == NULL || strstr(text, "\"valid\" : false") == NULL)
        fail_msg("%s", text);
    bson_free(text);
    bson_destroy(&report);
}

static void fill(struct fixture *f)
{
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1}}"));
    assert_true(fixture_insert(f, "{\"_id\": 1, \"a\": 1}"));
    assert_true(fixture_insert(f, "{\"_id\": 2, \"a\": 2}"));
    assert_valid(f);
}

/* The encoded key of {a: number}. */
static void key_of(struct fixture *f, const char *json, struct index_keys *keys)
{
    bson_t *doc = json_doc(json);
    assert_true(index_keys_generate(fixture_index(f, "a_1"), bdoc_of(doc), keys, &f->err));
    bson_destroy(doc);
}

static void validate_sees_a_missing_entry(void **state)
{
    struct fixture *f = *state;
    fill(f);
    struct index_keys keys = {0};
    key_of(f, "{\"a\": 1}", &keys);
    assert_true(entry_delete(f->txn, fixture_index(f, "a_1")->id, keys.bytes.data, keys.keys[0].len, 1));
    assert_complains(f, "record 1 has no entry in index a_1");
    index_keys_deinit(&keys);
}

static void validate_sees_an_entry_too_many(void **state)
{
    struct fixture *f = *state;
    fill(f);
    struct index_keys keys = {0};
    key_of(f, "{\"a\": 5}", &keys);
    struct entry_key entry = {.key = keys.bytes.data, .key_len = keys.keys[0].len};
    entry_put(f->txn, fixture_index(f, "a_1")->id, &entry, 1);
    assert_complains(f, "index a_1 has an entry that record 1 doesn't have");
    index_keys_deinit(&keys);
}

static void validate_sees_a_lost_document(void **state)
{
    struct fixture *f = *state;
    fill(f);
    pieces_erase(f->txn, f->coll->id, 2, 10);
    assert_complains(f, "index _id_ has an entry that record 2 doesn't have");
    assert_complains(f, "the collection counts 2 documents");
}

static void validate_sees_a_malformed_document(void **state)
{
    struct fixture *f = *state;
    fill(f);
    static const uint8_t bad[] = {12, 0, 0, 0, 0x99, 'a', 0, 1, 0, 0, 0, 0};
    pieces_write(f->txn, f->coll->id, 2, (struct bdoc){bad, sizeof bad}, 10);
    assert_complains(f, "record 2: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        CASE(validate_sees_a_missing_entry),
        CASE(validate_sees_an_entry_too_many),
        CASE(validate_sees_a_lost_document),
        CASE(validate_sees_a_malformed_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
