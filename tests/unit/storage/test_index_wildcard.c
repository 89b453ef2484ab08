/* Keys of wildcard indexes, by cases. Expected keys are [path, value] (with the other fields around), in order. */
#include "tests/unit/storage/storage_test.h"

#include "bson/keyenc.h"
#include "storage/index_keys.h"

#include <string.h>

static void assert_wildcard(struct fixture *f, const char *index_name, const char *doc_json, const char *expected_json)
{
    bson_t *doc = json_doc(doc_json);
    bson_t *expected = json_doc(expected_json);
    struct index_keys keys = {0};
    if (!index_keys_generate(fixture_index(f, index_name), bdoc_of(doc), &keys, &f->err))
        fail_msg("%s: %s", doc_json, f->err.msg);
    if (keys.count != bdoc_count(bdoc_of(expected)))
        fail_msg("%s: %zu keys, not %u", doc_json, keys.count, bdoc_count(bdoc_of(expected)));
    struct biter iter;
    struct belem elem;
    struct buf wanted = BUF_INIT;
    biter_init(&iter, bdoc_of(expected));
    for (size_t i = 0; biter_next(&iter, &elem); i++) {
        buf_clear(&wanted);
        keyenc_append_doc_key(&wanted, bval_doc(&elem.val), 0);
        if (wanted.len != keys.keys[i].len ||
            memcmp(wanted.data, keys.bytes.data + keys.keys[i].offset, wanted.len) != 0)
            fail_msg("%s: key %zu differs", doc_json, i);
    }
    buf_deinit(&wanted);
    index_keys_deinit(&keys);
    bson_destroy(doc);
    bson_destroy(expected);
}

static void add(struct fixture *f, const char *spec)
{
    if (!fixture_add_index(f, spec))
        fail_msg("%s: %s", spec, f->err.msg);
}

static void wildcard_keys_are_path_and_value_of_every_scalar(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    add(f, "{\"key\": {\"$**\": 1}, \"name\": \"w\"}");
    assert_wildcard(f, "w", "{\"_id\": 1, \"b\": {\"c\": \"x\", \"d\": null}, \"a\": 5}",
                    "{\"0\": [\"a\", 5], \"1\": [\"b.c\", \"x\"], \"2\": [\"b.d\", null]}");
    assert_wildcard(f, "w", "{\"_id\": 1}", "{}");
    assert_wildcard(f, "w", "{\"a\": {}, \"b\": {\"c\": {}}}", "{\"0\": [\"a\", {}], \"1\": [\"b.c\", {}]}");
}

static void wildcard_keys_of_arrays_stand_under_the_arrays_path(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    add(f, "{\"key\": {\"$**\": 1}, \"name\": \"w\"}");
    assert_wildcard(f, "w", "{\"a\": [2, 1, 2]}", "{\"0\": [\"a\", 1], \"1\": [\"a\", 2]}");
    assert_wildcard(f, "w", "{\"a\": []}", "{\"0\": [\"a\", {\"$undefined\": true}]}");
    assert_wildcard(f, "w", "{\"a\": [{\"b\": 1}, 7, {\"b\": 2}, [3, 4]]}",
                    "{\"0\": [\"a\", 7], \"1\": [\"a\", [3, 4]], \"2\": [\"a.b\", 1], \"3\": [\"a.b\", 2]}");
    assert_wildcard(f, "w", "{\"a\": [[], {}]}", "{\"0\": [\"a\", {}], \"1\": [\"a\", []]}");
    assert_true(fixture_insert(f, "{\"_id\": 1, \"a\": [1]}"));
    assert_true(fixture_index(f, "w")->multikey);
}

static void wildcard_root_limits_the_paths(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    add(f, "{\"key\": {\"a.b.$**\": 1}, \"name\": \"w\"}");
    assert_wildcard(f, "w", "{\"a\": {\"b\": {\"c\": 1, \"d\": 2}, \"bc\": 3}, \"x\": 1}",
                    "{\"0\": [\"a.b.c\", 1], \"1\": [\"a.b.d\", 2]}");
    assert_wildcard(f, "w", "{\"a\": {\"b\": 5}}", "{\"0\": [\"a.b\", 5]}");
    assert_wildcard(f, "w", "{\"a\": [{\"b\": 1}, 2, {\"b\": [3]}]}", "{\"0\": [\"a.b\", 1], \"1\": [\"a.b\", 3]}");
    assert_wildcard(f, "w", "{\"a\": 5}", "{}");
    const struct index_def *index = fixture_index(f, "w");
    assert_true(index_wildcard_covers(index, "a.b", 3));
    assert_true(index_wildcard_covers(index, "a.b.c", 5));
    assert_false(index_wildcard_covers(index, "a", 1));
    assert_false(index_wildcard_covers(index, "a.bc", 4));
    assert_false(index_wildcard_covers(index, "a.b.0", 5));
}

static void wildcard_projection_includes_or_excludes(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    add(f, "{\"key\": {\"$**\": 1}, \"name\": \"in\", \"wildcardProjection\": {\"_id\": 1, \"a.x\": 1}}");
    add(f, "{\"key\": {\"$**\": 1}, \"name\": \"out\", \"wildcardProjection\": {\"a.x\": 0}}");
    add(f, "{\"key\": {\"$**\": 1}, \"name\": \"nested\", \"wildcardProjection\": {\"a\": {\"x\": 1}}}");
    add(f, "{\"key\": {\"$**\": 1}, \"name\": \"id\", \"wildcardProjection\": {\"_id\": 1, \"a\": 0}}");
    const char *doc = "{\"_id\": 7, \"a\": {\"x\": 1, \"y\": 2}, \"b\": 3}";
    assert_wildcard(f, "in", doc, "{\"0\": [\"_id\", 7], \"1\": [\"a.x\", 1]}");
    assert_wildcard(f, "out", doc, "{\"0\": [\"a.y\", 2], \"1\": [\"b\", 3]}");
    assert_wildcard(f, "nested", doc, "{\"0\": [\"a.x\", 1]}");
    assert_wildcard(f, "id", doc, "{\"0\": [\"_id\", 7], \"1\": [\"b\", 3]}");
    assert_true(index_wildcard_covers(fixture_index(f, "out"), "b", 1));
    assert_false(index_wildcard_covers(fixture_index(f, "out"), "a", 1));
    assert_false(index_wildcard_covers(fixture_index(f, "out"), "_id", 3));
}

static void wildcard_compound_has_one_key_for_each_document_besides(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    add(f, "{\"key\": {\"t\": 1, \"m.$**\": 1, \"z\": 1}, \"name\": \"w\"}");
    assert_wildcard(f, "w", "{\"t\": 1, \"m\": {\"a\": 5}, \"z\": 9}",
                    "{\"0\": [1, {\"$minKey\": 1}, {\"$minKey\": 1}, 9], \"1\": [1, \"m.a\", 5, 9]}");
    assert_wildcard(f, "w", "{\"t\": 1}", "{\"0\": [1, {\"$minKey\": 1}, {\"$minKey\": 1}, null]}");
    bson_t *doc = json_doc("{\"t\": [1], \"m\": {\"a\": 5}}");
    struct index_keys keys = {0};
    assert_false(index_keys_generate(fixture_index(f, "w"), bdoc_of(doc), &keys, &f->err));
    assert_int_equal(f->err.code, 7246301);
    index_keys_deinit(&keys);
    bson_destroy(doc);
}

static void wildcard_names_with_dots_are_passed_over(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    add(f, "{\"key\": {\"$**\": 1}, \"name\": \"w\"}");
    assert_wildcard(f, "w", "{\"a.b\": {\"c\": 1}, \"d\": 2}", "{\"0\": [\"d\", 2]}");
}

/* {"": {a: 5}} has no field "a". */
static void wildcard_paths_keep_names_without_letters(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    add(f, "{\"key\": {\"$**\": 1}, \"name\": \"w\"}");
    assert_wildcard(f, "w", "{\"\": {\"a\": 5}}", "{\"0\": [\".a\", 5]}");
    assert_wildcard(f, "w", "{\"\": {\"\": 5}}", "{\"0\": [\".\", 5]}");
    assert_wildcard(f, "w", "{\"\": 5, \"a\": {\"\": 6}}", "{\"0\": [\"\", 5], \"1\": [\"a.\", 6]}");
}

static void wildcard_index_survives_changes_and_a_reopen(void **state)
{
    struct fixture *f = *state;
    fixture_make_collection(f);
    assert_true(fixture_insert(f, "{\"_id\": 1, \"a\": {\"b\": [1, {\"c\": 2}]}}"));
    add(f, "{\"key\": {\"$**\": 1}, \"name\": \"w\"}");
    fixture_replace(f, 1, "{\"_id\": 1, \"a\": {\"b\": [1.0, {\"d\": 2}]}, \"n\": null}");
    assert_true(fixture_insert(f, "{\"_id\": 2, \"a\": 5}"));
    fixture_erase(f, 2);
    assert_valid(f);
    assert_int_equal(count_entries(f->txn, fixture_index(f, "w")), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        CASE(wildcard_keys_are_path_and_value_of_every_scalar),
        CASE(wildcard_keys_of_arrays_stand_under_the_arrays_path),
        CASE(wildcard_root_limits_the_paths),
        CASE(wildcard_projection_includes_or_excludes),
        CASE(wildcard_compound_has_one_key_for_each_document_besides),
        CASE(wildcard_names_with_dots_are_passed_over),
        CASE(wildcard_paths_keep_names_without_letters),
        CASE(wildcard_index_survives_changes_and_a_reopen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
