#include "tests/unit/storage/storage_test.h"

#include "storage/counters.h"
#include "storage/index_build.h"

#include <stdio.h>
#include <string.h>

static void uuid_of(uint8_t out[UUID_BYTES], int number)
{
    memset(out, 0, UUID_BYTES);
    out[0] = (uint8_t)number;
    out[15] = (uint8_t)(number >> 8);
}

static bool create(struct fixture *f, const char *ns, int number)
{
    uint8_t uuid[UUID_BYTES];
    uuid_of(uuid, number);
    return catalog_create(f->txn, ns, strlen(ns), uuid, bdoc_empty(), &f->err);
}

static const struct collection *find(struct store_txn *txn, const char *ns)
{
    return catalog_find(txn, ns, strlen(ns));
}

static void catalog_create_makes_a_collection_with_its_id_index(void **state)
{
    struct fixture *f = *state;
    bson_t *options = json_doc("{\"validator\": {\"a\": 1}}");
    uint8_t uuid[UUID_BYTES];
    uuid_of(uuid, 1);
    assert_true(catalog_create(f->txn, "db.a.b", 6, uuid, bdoc_of(options), &f->err));
    const struct collection *coll = find(f->txn, "db.a.b");
    assert_non_null(coll);
    assert_string_equal(coll->name, "a.b");
    assert_int_equal(coll->db_len, 2);
    assert_memory_equal(coll->uuid, uuid, UUID_BYTES);
    assert_true(bdoc_same(coll->options, bdoc_of(options)));
    assert_int_equal(coll->index_count, 1);
    assert_true(coll->indexes[0]->is_id && coll->indexes[0]->unique);
    assert_int_equal(coll->indexes[0]->state, INDEX_READY);
    assert_string_equal(coll->indexes[0]->name, "_id_");
    assert_ptr_equal(catalog_find_uuid(f->txn, uuid), coll);
    assert_ptr_equal(catalog_find_id(f->txn, coll->id), coll);
    bson_destroy(options);
}

static void catalog_create_of_an_existing_namespace_is_48(void **state)
{
    struct fixture *f = *state;
    assert_true(create(f, "db.c", 1));
    assert_false(create(f, "db.c", 2));
    assert_int_equal(f->err.code, ERR_NamespaceExists);
    assert_false(create(f, "db.d", 1));
    assert_int_equal(f->err.code, ERR_CollectionUUIDMismatch);
}

static void catalog_check_ns_refuses_bad_names_with_73(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"db",    "db.",   ".c",     "db..c", "db.c.", "db.$c",
                                      "d b.c", "d/b.c", "a\\b.c", "a$.c",  ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(catalog_check_ns(bad[i], strlen(bad[i]), &f->err));
        assert_int_equal(f->err.code, ERR_InvalidNamespace);
    }
    char text[CATALOG_NS_MAX + 2];
    memset(text, 'x', sizeof text);
    text[2] = '.';
    assert_true(catalog_check_ns(text, CATALOG_NS_MAX, &f->err));
    assert_false(catalog_check_ns(text, CATALOG_NS_MAX + 1, &f->err));
    text[2] = 'x';
    text[63] = '.';
    assert_true(catalog_check_ns(text, 70, &f->err));
    text[63] = 'x';
    text[64] = '.';
    assert_false(catalog_check_ns(text, 70, &f->err));
    assert_false(catalog_check_ns("db.a\0b", 6, &f->err));
}

static void catalog_walks_give_names_in_order(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"b.x", "a-b.z", "a.y", "a.x", "ab.x", "c.x"};
    for (int i = 0; i < 6; i++)
        assert_true(create(f, names[i], i + 1));
    size_t position = 0;
    assert_string_equal(catalog_next(f->txn, "a", 1, &position)->ns, "a.x");
    assert_string_equal(catalog_next(f->txn, "a", 1, &position)->ns, "a.y");
    assert_null(catalog_next(f->txn, "a", 1, &position));
    position = 0;
    int count = 0;
    while (catalog_next(f->txn, NULL, 0, &position) != NULL)
        count++;
    assert_int_equal(count, 6);
    static const char *const dbs[] = {"a", "a-b", "ab", "b", "c"};
    const struct collection *coll = NULL;
    for (int i = 0; i < 5; i++) {
        coll = catalog_next_db(f->txn, coll);
        assert_non_null(coll);
        assert_int_equal(coll->db_len, strlen(dbs[i]));
        assert_memory_equal(coll->ns, dbs[i], coll->db_len);
    }
    assert_null(catalog_next_db(f->txn, coll));
}

static void catalog_readers_see_the_version_of_their_transaction(void **state)
{
    struct fixture *f = *state;
    assert_true(create(f, "db.a", 1));
    fixture_commit(f);
    struct store_txn *old;
    struct store_txn *late; /* as old, but looks at the catalog only after the change */
    assert_true(store_read_begin(f->store, &old, &f->err));
    assert_true(store_read_begin(f->store, &late, &f->err));
    fixture_begin(f);
    assert_true(create(f, "db.b", 2));
    assert_null(find(old, "db.b")); /* first use of the catalog by this reader */
    catalog_drop(f->txn, find(f->txn, "db.a"));
    fixture_commit(f);
    struct store_txn *fresh;
    assert_true(store_read_begin(f->store, &fresh, &f->err));
    for (int i = 0; i < 3; i++) { /* more versions than are kept at hand */
        char ns[32];
        snprintf(ns, sizeof ns, "more.c%d", i);
        fixture_begin(f);
        assert_true(create(f, ns, 10 + i));
        fixture_commit(f);
    }
    assert_non_null(find(late, "db.a"));
    assert_null(find(late, "db.b"));
    store_read_end(late);
    assert_non_null(find(old, "db.a"));
    assert_null(find(old, "db.b"));
    assert_null(find(fresh, "db.a"));
    assert_non_null(find(fresh, "db.b"));
    assert_true(catalog_version(fresh) > catalog_version(old));
    struct catalog_snapshot *kept = catalog_snapshot_ref(old);
    const struct collection *coll = find(old, "db.a");
    store_read_end(old);
    store_read_end(fresh);
    assert_string_equal(coll->ns, "db.a"); /* held by the snapshot */
    catalog_snapshot_unref(kept);
}

static void catalog_abort_forgets_the_change(void **state)
{
    struct fixture *f = *state;
    assert_true(create(f, "db.a", 1));
    store_write_abort(f->txn);
    fixture_begin(f);
    assert_null(find(f->txn, "db.a"));
    assert_true(create(f, "db.a", 1));
    fixture_commit(f);
    fixture_begin(f);
    assert_non_null(find(f->txn, "db.a"));
}

static void catalog_survives_a_restart(void **state)
{
    struct fixture *f = *state;
    assert_true(create(f, "db.c", 1));
    fixture_find(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a.b\": -1, \"c\": \"hashed\"}, \"sparse\": true}"));
    fixture_commit(f);
    assert_true(store_checkpoint(f->store, NULL, &f->err));
    fixture_reopen(f);
    const struct index_def *index = fixture_index(f, "a.b_-1_c_hashed");
    assert_true(index->sparse && index->hashed && !index->unique);
    assert_int_equal(index->field_count, 2);
    assert_true(index->fields[0].descending && index->fields[0].dotted && index->fields[1].hashed);
}

static void catalog_rename_keeps_uuid_and_documents(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_insert(f, "{\"_id\": 1}"));
    assert_true(create(f, "db.taken", 9));
    fixture_find(f);
    assert_false(catalog_rename(f->txn, f->coll, "db.taken", 8, &f->err));
    assert_int_equal(f->err.code, ERR_NamespaceExists);
    assert_true(catalog_rename(f->txn, f->coll, "other.name", 10, &f->err));
    assert_null(find(f->txn, "db.c"));
    const struct collection *coll = find(f->txn, "other.name");
    assert_non_null(coll);
    struct counter counter;
    counter_collection(f->txn, coll, &counter);
    assert_int_equal(counter.docs, 1);
}

static void catalog_drop_erases_in_steps(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1}}"));
    for (int i = 0; i < 50; i++) {
        char json[64];
        snprintf(json, sizeof json, "{\"_id\": %d, \"a\": %d}", i, i);
        assert_true(fixture_insert(f, json));
    }
    struct counter delta = {.docs = 1};
    counter_range_add(f->txn, f->coll, "r", 1, &delta);
    assert_false(catalog_erase_pending(f->txn));
    struct collection gone = {.id = f->coll->id};
    catalog_drop(f->txn, f->coll);
    assert_null(find(f->txn, "db.c"));
    assert_true(create(f, "db.c", 77)); /* the name is free at once */
    fixture_find(f);
    assert_true(fixture_insert(f, "{\"_id\": 1}"));
    int steps = 1;
    while (catalog_erase_step(f->txn, 30))
        steps++;
    assert_in_range(steps, 6, 7); /* 150 keys, counters, three items on the list */
    assert_false(catalog_erase_pending(f->txn));
    fixture_commit(f);
    fixture_begin(f);
    assert_valid(f);
    struct counter counter;
    assert_false(counter_range(f->txn, &gone, "r", 1, &counter));
    counter_collection(f->txn, &gone, &counter);
    assert_int_equal(counter.docs, 0);
    fixture_find(f);
    counter_collection(f->txn, f->coll, &counter);
    assert_int_equal(counter.docs, 1);
}

static void catalog_drop_index_leaves_the_others(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_add_index(f, "{\"key\": {\"a\": 1}}"));
    assert_true(fixture_add_index(f, "{\"key\": {\"b\": 1}}"));
    assert_true(fixture_insert(f, "{\"_id\": 1, \"a\": 1, \"b\": 1}"));
    assert_false(catalog_drop_index(f->txn, f->coll, f->coll->indexes[0], &f->err));
    assert_int_equal(f->err.code, ERR_InvalidOptions);
    assert_true(catalog_drop_index(f->txn, f->coll, fixture_index(f, "a_1"), &f->err));
    fixture_find(f);
    assert_int_equal(f->coll->index_count, 2);
    assert_null(collection_find_index(f->coll, "a_1"));
    catalog_erase_step(f->txn, 100);
    assert_valid(f);
}

static void catalog_refuses_a_65th_index(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    for (int i = 1; i < CATALOG_INDEXES_MAX; i++) {
        char json[64];
        snprintf(json, sizeof json, "{\"key\": {\"f%d\": 1}}", i);
        assert_true(fixture_add_index(f, json));
    }
    assert_false(fixture_add_index(f, "{\"key\": {\"more\": 1}}"));
    assert_int_equal(f->err.code, ERR_CannotCreateIndex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        CASE(catalog_create_makes_a_collection_with_its_id_index),
        CASE(catalog_create_of_an_existing_namespace_is_48),
        CASE(catalog_check_ns_refuses_bad_names_with_73),
        CASE(catalog_walks_give_names_in_order),
        CASE(catalog_readers_see_the_version_of_their_transaction),
        CASE(catalog_abort_forgets_the_change),
        CASE(catalog_survives_a_restart),
        CASE(catalog_rename_keeps_uuid_and_documents),
        CASE(catalog_drop_erases_in_steps),
        CASE(catalog_drop_index_leaves_the_others),
        CASE(catalog_refuses_a_65th_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
