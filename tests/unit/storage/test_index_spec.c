#include "tests/unit/storage/storage_test.h"

#include "base/mem.h"
#include "collation/collation.h"
#include "storage/snapshot.h"

#include <stdio.h>
#include <string.h>

static void assert_normal(struct fixture *f, const char *given, const char *expected)
{
    bson_t *spec = json_doc(given);
    bson_t *wanted = json_doc(expected);
    bson_t normal = BSON_INITIALIZER;
    if (!index_spec_normalise(f->store, bdoc_of(spec), (struct bdoc){0}, &normal, &f->err))
        fail_msg("%s: %s", given, f->err.msg);
    if (!bdoc_same(bdoc_of(&normal), bdoc_of(wanted)))
        fail_msg("%s became %s", given, bson_as_relaxed_extended_json(&normal, NULL));
    bson_destroy(&normal);
    bson_destroy(spec);
    bson_destroy(wanted);
}

static void assert_refused(struct fixture *f, const char *given, int32_t code)
{
    bson_t *spec = json_doc(given);
    bson_t normal = BSON_INITIALIZER;
    if (index_spec_normalise(f->store, bdoc_of(spec), (struct bdoc){0}, &normal, &f->err))
        fail_msg("%s was accepted", given);
    if (f->err.code != code)
        fail_msg("%s: code %d, not %d: %s", given, f->err.code, code, f->err.msg);
    bson_destroy(&normal);
    bson_destroy(spec);
}

static void index_spec_normal_form_has_a_fixed_order(void **state)
{
    struct fixture *f = *state;
    assert_normal(
        f, "{\"unique\": 1, \"key\": {\"a\": 1, \"b.c\": -1}, \"sparse\": true, \"background\": true}",
        "{\"v\": 2, \"key\": {\"a\": 1, \"b.c\": -1}, \"name\": \"a_1_b.c_-1\", \"unique\": true, \"sparse\": true}");
    assert_normal(f, "{\"name\": \"n\", \"key\": {\"a\": \"hashed\"}, \"unique\": false, \"v\": 1, \"hidden\": true}",
                  "{\"v\": 1, \"key\": {\"a\": \"hashed\"}, \"name\": \"n\", \"hidden\": true}");
    assert_normal(f, "{\"name\": \"own\", \"key\": {\"_id\": 1.0}}",
                  "{\"v\": 2, \"key\": {\"_id\": 1}, \"name\": \"_id_\"}");
    assert_normal(f, "{\"key\": {\"a\": 1.5}, \"expireAfterSeconds\": 60, \"collation\": {\"locale\": \"simple\"}}",
                  "{\"v\": 2, \"key\": {\"a\": 1.5}, \"name\": \"a_1.5\", \"expireAfterSeconds\": 60}");
}

static void index_spec_refusals_have_mongodbs_codes(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *spec;
        int32_t code;
    } cases[] = {
        {"{\"name\": \"n\"}", ERR_FailedToParse},
        {"{\"key\": 5}", ERR_TypeMismatch},
        {"{\"key\": {}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": 0}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": true}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": \"text\"}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": \"2dsphere\"}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": \"nonsense\"}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": \"\"}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": 1}, \"name\": \"_id_\"}", ERR_BadValue},
        {"{\"key\": {\"a\": 1}, \"hidden\": 1}", ERR_TypeMismatch},
        {"{\"key\": {\"_id\": 1}, \"hidden\": true}", ERR_BadValue},
        {"{\"key\": {\"a\": 1}, \"unique\": true, \"prepareUnique\": true}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": 1}, \"weights\": {\"a\": 1}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": 1}, \"clustered\": true, \"unique\": true}", ERR_InvalidIndexSpecificationOption},
        {"{\"key\": {\"a.$b\": 1}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a..b\": 1}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a.\": 1}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"\": 1}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": 1, \"a\": -1}}", ERR_BadValue},
        {"{\"key\": {\"a\": \"hashed\", \"b\": \"hashed\"}}", 31303},
        {"{\"key\": {\"a\": \"hashed\"}, \"unique\": true}", 16764},
        {"{\"key\": {\"_id\": -1}}", ERR_BadValue},
        {"{\"key\": {\"_id\": 1}, \"sparse\": true}", ERR_InvalidIndexSpecificationOption},
        {"{\"key\": {\"a\": 1}, \"nonsense\": 1}", ERR_InvalidIndexSpecificationOption},
        {"{\"key\": {\"a\": 1}, \"unique\": \"yes\"}", ERR_TypeMismatch},
        {"{\"key\": {\"a\": 1}, \"name\": 5}", ERR_TypeMismatch},
        {"{\"key\": {\"a\": 1}, \"name\": \"\"}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": 1}, \"name\": \"*\"}", ERR_BadValue},
        {"{\"key\": {\"a\": 1}, \"v\": 0}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": 1}, \"v\": 3}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": 1}, \"v\": 1.5}", ERR_BadValue},
        {"{\"key\": {\"a\": 1}, \"expireAfterSeconds\": -1}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": 1}, \"expireAfterSeconds\": \"x\"}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": 1, \"b\": 1}, \"expireAfterSeconds\": 1}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": 1}, \"collation\": {\"locale\": \"nowhere\"}}", ERR_BadValue},
        {"{\"key\": {\"a\": 1}, \"collation\": {}}", ERR_BadValue},
        {"{\"key\": {\"a\": 1}, \"collation\": {\"locale\": \"de\"}, \"v\": 1}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a\": 1}, \"partialFilterExpression\": 5}", ERR_TypeMismatch},
        {"{\"key\": {\"a\": 1}, \"partialFilterExpression\": {}}", ERR_CannotCreateIndex},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(f, cases[i].spec, cases[i].code);
}

static void index_spec_of_wildcards_is_refused_with_mongodbs_codes(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *spec;
        int32_t code;
    } cases[] = {
        {"{\"key\": {\"$**\": \"hashed\"}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"$**\": \"wildcard\"}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"$**\": 0}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a.$**.b\": 1}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a.$**.$**\": 1}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"$**\": 1}, \"unique\": true}", ERR_CannotCreateIndex},
        {"{\"key\": {\"$**\": 1}, \"sparse\": true}", ERR_CannotCreateIndex},
        {"{\"key\": {\"$**\": 1}, \"v\": 1}", ERR_CannotCreateIndex},
        {"{\"key\": {\"$**\": 1}, \"expireAfterSeconds\": 60}", ERR_CannotCreateIndex},
        {"{\"key\": {\"$**\": 1, \"a\": 1}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a.$**\": 1, \"b\": \"hashed\"}}", ERR_CannotCreateIndex},
        {"{\"key\": {\"a.$**\": 1, \"b.$**\": 1}}", 7246201},
        {"{\"key\": {\"a.$**\": 1, \"a\": 1}}", 7246204},
        {"{\"key\": {\"a.b.c\": 1, \"a.b.$**\": 1}}", 7246204},
        {"{\"key\": {\"$**\": 1}, \"wildcardProjection\": {}}", ERR_FailedToParse},
        {"{\"key\": {\"$**\": 1}, \"wildcardProjection\": {\"a\": 1, \"b\": 0}}", 31254},
        {"{\"key\": {\"$**\": 1}, \"wildcardProjection\": {\"a\": 0, \"b\": 1}}", 31253},
        {"{\"key\": {\"$**\": 1}, \"wildcardProjection\": {\"a\": 1, \"b\": \"x\"}}", 51271},
        {"{\"key\": {\"$**\": 1}, \"wildcardProjection\": \"a\"}", ERR_TypeMismatch},
        {"{\"key\": {\"a\": 1}, \"wildcardProjection\": {\"a\": 1}}", ERR_BadValue},
        {"{\"key\": {\"a.$**\": 1}, \"wildcardProjection\": {\"a\": 1}}", ERR_FailedToParse},
        {"{\"key\": {\"$**\": 1, \"c\": 1}, \"wildcardProjection\": {\"a.b\": 1, \"a.b.c\": 1}}", 7246200},
        {"{\"key\": {\"$**\": 1, \"c\": 1}, \"wildcardProjection\": {\"c\": 1}}", 7246208},
        {"{\"key\": {\"$**\": 1, \"c\": 1}, \"wildcardProjection\": {\"a\": 0}}", 7246209},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(f, cases[i].spec, cases[i].code);
}

static void index_spec_of_33_fields_is_refused(void **state)
{
    struct fixture *f = *state;
    bson_t spec = BSON_INITIALIZER;
    bson_t key;
    bson_t normal = BSON_INITIALIZER;
    BSON_APPEND_DOCUMENT_BEGIN(&spec, "key", &key);
    for (int i = 0; i < CATALOG_INDEX_FIELDS_MAX + 1; i++) {
        char name[3] = {'f', (char)('0' + i), 0};
        BSON_APPEND_INT32(&key, name, 1);
    }
    bson_append_document_end(&spec, &key);
    assert_false(index_spec_normalise(f->store, bdoc_of(&spec), (struct bdoc){0}, &normal, &f->err));
    assert_int_equal(f->err.code, 13103);
    bson_destroy(&normal);
    bson_destroy(&spec);
}

static void index_spec_again_exists_and_conflicts_are_85_and_86(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1}}"));
    bson_t *same = json_doc("{\"key\": {\"a\": 1.0}, \"name\": \"a_1\"}");
    uint32_t id;
    bool exists = false;
    assert_true(catalog_create_index(f->txn, f->coll, bdoc_of(same), &id, &exists, &f->err));
    assert_true(exists);
    assert_int_equal(id, fixture_index(f, "a_1")->id);
    bson_destroy(same);
    assert_false(fixture_add_index(f, "{\"key\": {\"a\": 1}, \"name\": \"other\"}"));
    assert_int_equal(f->err.code, ERR_IndexOptionsConflict);
    assert_false(fixture_add_index(f, "{\"key\": {\"a\": 1}, \"expireAfterSeconds\": 5}"));
    assert_int_equal(f->err.code, ERR_IndexOptionsConflict);
    assert_false(fixture_add_index(f, "{\"key\": {\"b\": 1}, \"name\": \"a_1\"}"));
    assert_int_equal(f->err.code, ERR_IndexKeySpecsConflict);
    assert_false(fixture_add_index(f, "{\"key\": {\"a\": 1}, \"unique\": true}"));
    assert_int_equal(f->err.code, ERR_IndexKeySpecsConflict);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1}, \"unique\": true, \"name\": \"u\"}"));
    bson_t *id_spec = json_doc("{\"key\": {\"_id\": 1}}");
    assert_true(catalog_create_index(f->txn, f->coll, bdoc_of(id_spec), &id, &exists, &f->err));
    assert_true(exists);
    bson_destroy(id_spec);
}

/* Changes the text `from` to `to`, of the same length, in the stored form of f->coll. */
static void patch_catalog(struct fixture *f, const char *from, const char *to)
{
    uint8_t key[CATALOG_KEY_BYTES];
    MDB_val value;
    catalog_key(key, CATALOG_KEY_COLLECTION, f->coll->id);
    assert_true(env_get(f->txn, STORE_DB_CATALOG, key, sizeof key, &value));
    uint8_t *copy = mem_copy(value.mv_data, value.mv_size);
    size_t len = value.mv_size;
    uint8_t *at = memmem(copy, len, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    env_put(f->txn, STORE_DB_CATALOG, key, sizeof key, copy, len);
    mem_free(copy);
}

static void index_of_another_icu_keeps_the_store_closed(void **state)
{
    struct fixture *f = *state;
    char other[32];
    struct store *store;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1}, \"collation\": {\"locale\": \"de\"}}"));
    assert_non_null(fixture_index(f, "a_1")->order);
    snprintf(other, sizeof other, "%s", collation_version());
    memset(other, '0', strlen(other));
    patch_catalog(f, collation_version(), other);
    fixture_commit(f);
    store_write_abort(f->txn);
    f->txn = NULL;
    assert_true(store_checkpoint(f->store, NULL, &f->err));
    store_close(f->store);
    f->store = NULL;
    struct store_options options = test_options(f->dir);
    options.create = false;
    assert_false(store_open(&options, &store, &f->err));
    assert_int_equal(f->err.code, 161);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        CASE(index_spec_normal_form_has_a_fixed_order),
        CASE(index_spec_refusals_have_mongodbs_codes),
        CASE(index_spec_of_wildcards_is_refused_with_mongodbs_codes),
        CASE(index_spec_of_33_fields_is_refused),
        CASE(index_of_another_icu_keeps_the_store_closed),
        CASE(index_spec_again_exists_and_conflicts_are_85_and_86),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
