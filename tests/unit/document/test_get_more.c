#include "tests/unit/cmocka_all.h"
#include "tests/unit/document/fixture.h"

#include <stdio.h>

/* A capped collection with two documents and a tailable cursor that has given both. */
static int64_t open_tail(struct fixture *fixture, const char *options)
{
    char find[256];
    bson_destroy(fixture_run(fixture, "{'create': 'c', 'capped': true, 'size': 100000, 'max': 3}"));
    bson_destroy(fixture_run(fixture, "{'insert': 'c', 'documents': [{'_id': 1}, {'_id': 2}]}"));
    snprintf(find, sizeof find, "{'find': 'c', 'tailable': true%s}", options);
    bson_t *reply = fixture_run(fixture, find);
    int64_t id = fixture_i64(reply, "cursor.id");
    assert_int_not_equal(id, 0);
    bson_destroy(reply);
    return id;
}

static const char *get_more(int64_t id, int await_ms)
{
    static char text[256];
    snprintf(text, sizeof text,
             "{'getMore': {'$numberLong': '%lld'}, 'collection': 'c', '$sherdAwaitMs': {'$numberLong': '%d'}}",
             (long long)id, await_ms);
    return text;
}

static void tailable_cursor_gives_what_was_inserted_since(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_open(&fixture);
    int64_t id = open_tail(&fixture, "");
    fixture_expect_batch(&fixture, get_more(id, 0), "[]");
    bson_destroy(fixture_run(&fixture, "{'insert': 'c', 'documents': [{'_id': 3}]}"));
    fixture_expect_batch(&fixture, get_more(id, 0), "[{'_id': 3}]");
    fixture_expect_batch(&fixture, get_more(id, 0), "[]");
    fixture_close(&fixture);
}

static void tailable_cursor_does_not_go_by_a_hinted_index(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_open(&fixture);
    int64_t id = open_tail(&fixture, ", 'hint': {'_id': 1}");
    bson_destroy(fixture_run(&fixture, "{'insert': 'c', 'documents': [{'_id': 0}]}"));
    fixture_expect_batch(&fixture, get_more(id, 0), "[{'_id': 0}]");
    fixture_close(&fixture);
}

static void tailable_cursor_passes_over_documents_that_do_not_match(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_open(&fixture);
    int64_t id = open_tail(&fixture, ", 'filter': {'x': 1}");
    bson_destroy(fixture_run(&fixture, "{'insert': 'c', 'documents': [{'_id': 3, 'x': 2}]}"));
    fixture_expect_batch(&fixture, get_more(id, 0), "[]");
    bson_destroy(fixture_run(&fixture, "{'insert': 'c', 'documents': [{'_id': 4, 'x': 1}]}"));
    fixture_expect_batch(&fixture, get_more(id, 0), "[{'_id': 4, 'x': 1}]");
    fixture_close(&fixture);
}

static void tailable_cursor_whose_place_was_overwritten_fails_with_136(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_open(&fixture);
    int64_t id = open_tail(&fixture, "");
    bson_destroy(
        fixture_run(&fixture, "{'insert': 'c', 'documents': [{'_id': 3}, {'_id': 4}, {'_id': 5}, {'_id': 6}]}"));
    fixture_expect_error(&fixture, get_more(id, 0), 136);
    fixture_expect_error(&fixture, get_more(id, 0), 43);
    fixture_close(&fixture);
}

static void tailable_cursor_on_an_empty_collection_is_closed_at_once(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_open(&fixture);
    bson_destroy(fixture_run(&fixture, "{'create': 'c', 'capped': true, 'size': 100000}"));
    bson_t *reply = fixture_run(&fixture, "{'find': 'c', 'tailable': true}");
    assert_int_equal(fixture_i64(reply, "cursor.id"), 0);
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void tailable_options_are_checked(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_open(&fixture);
    bson_destroy(fixture_run(&fixture, "{'insert': 'p', 'documents': [{'_id': 1}]}"));
    fixture_expect_error(&fixture, "{'find': 'p', 'tailable': true}", 2);
    fixture_expect_error(&fixture, "{'find': 'p', 'awaitData': true}", 9);
    fixture_expect_error(&fixture, "{'find': 'p', 'tailable': true, 'sort': {'a': 1}}", 2);
    fixture_expect_error(&fixture, "{'find': 'p', 'tailable': true, 'singleBatch': true}", 9);
    fixture_close(&fixture);
}

static void awaiting_get_more_is_woken_by_an_insert(void **state)
{
    struct fixture fixture;
    struct fixture_call waiting;
    struct fixture_call insert;
    (void)state;
    fixture_open(&fixture);
    int64_t id = open_tail(&fixture, ", 'awaitData': true");
    fixture.hold = true;
    fixture_start(&fixture, &insert, "{'insert': 'c', 'documents': [{'_id': 3}]}");
    fixture_start(&fixture, &waiting, get_more(id, 60000));
    assert_false(waiting.done);
    fixture_apply(&fixture);
    assert_true(waiting.done);
    assert_int_equal(fixture_i64(waiting.reply, "cursor.nextBatch.0._id"), 3);
    assert_int_equal(fixture_i64(waiting.reply, "cursor.id"), id);
    bson_destroy(waiting.reply);
    bson_destroy(insert.reply);
    fixture_close(&fixture);
}

static void awaiting_get_more_ends_with_an_empty_batch_in_time(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_open(&fixture);
    int64_t id = open_tail(&fixture, ", 'awaitData': true");
    fixture_expect_batch(&fixture, get_more(id, 20), "[]");
    fixture_expect_batch(&fixture, get_more(id, 0), "[]");
    fixture_close(&fixture);
}

static void awaiting_get_more_ends_when_it_is_killed(void **state)
{
    struct fixture fixture;
    struct fixture_call waiting;
    struct fixture_call insert;
    (void)state;
    fixture_open(&fixture);
    int64_t id = open_tail(&fixture, ", 'awaitData': true");
    fixture.ops = op_registry_new();
    fixture.hold = true; /* keeps the fixture from running timers */
    fixture_start(&fixture, &insert, "{'insert': 'other', 'documents': [{'_id': 3}]}");
    fixture_start(&fixture, &waiting, get_more(id, 60000));
    assert_true(op_kill(fixture.ops, 2)); /* the second request that the registry saw */
    fixture_drain(&fixture);
    assert_true(waiting.done);
    assert_int_equal(fixture_i64(waiting.reply, "code"), 11601);
    bson_destroy(waiting.reply);
    fixture_apply(&fixture);
    assert_true(insert.done);
    bson_destroy(insert.reply);
    fixture_expect_error(&fixture, get_more(id, 0), 43);
    fixture.hold = false;
    assert_int_equal(op_registry_count(fixture.ops), 0);
    fixture_close(&fixture);
    op_registry_free(fixture.ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tailable_cursor_gives_what_was_inserted_since),
        cmocka_unit_test(tailable_cursor_does_not_go_by_a_hinted_index),
        cmocka_unit_test(tailable_cursor_passes_over_documents_that_do_not_match),
        cmocka_unit_test(tailable_cursor_whose_place_was_overwritten_fails_with_136),
        cmocka_unit_test(tailable_cursor_on_an_empty_collection_is_closed_at_once),
        cmocka_unit_test(tailable_options_are_checked),
        cmocka_unit_test(awaiting_get_more_is_woken_by_an_insert),
        cmocka_unit_test(awaiting_get_more_ends_with_an_empty_batch_in_time),
        cmocka_unit_test(awaiting_get_more_ends_when_it_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
