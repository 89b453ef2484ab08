#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static void update_operators_replacement_and_upsert_report_their_counts(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'a': 1}, {'_id': 2, 'a': 1}]}", "{'n': 2}");
    fixture_expect(&fixture,
                   "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$inc': {'a': 5}}}, {'q': {'a': 6}, 'u': "
                   "{'$set': {'a': 6}}},"
                   " {'q': {'_id': 3}, 'u': {'$set': {'a': 9}}, 'upsert': true}, {'q': {}, 'u': {'$set': {'m': 1}}, "
                   "'multi': true}]}",
                   "{'n': 6, 'nModified': 4, 'upserted': [{'index': 2, '_id': 3}]}");
    fixture_expect_batch(&fixture, "{'find': 'c'}",
                         "[{'_id': 1, 'a': 6, 'm': 1}, {'_id': 2, 'a': 1, 'm': 1}, {'_id': 3, 'a': 9, 'm': 1}]");
    fixture_close(&fixture);
}

static void update_later_statement_sees_earlier_ones(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture,
                   "{'update': 'c', 'updates': [{'q': {'k': 1}, 'u': {'$set': {'x': 1}}, 'upsert': true},"
                   " {'q': {'x': 1}, 'u': {'$set': {'x': 2}}}, {'q': {'x': 2}, 'u': {'$set': {'y': 3}}}]}",
                   "{'n': 3, 'nModified': 2}");
    fixture_close(&fixture);
}

static bson_t *run_two(struct fixture *fixture, const char *ordered)
{
    char command[300];
    snprintf(command, sizeof command,
             "{'update': 'c', 'ordered': %s, 'updates': [{'q': {'_id': 1}, 'u': {'$inc': {'a': 1}}},"
             " {'q': {'_id': 2}, 'u': {'$inc': {'a': 1}}}]}",
             ordered);
    return fixture_run(fixture, command);
}

static void update_ordered_batch_stops_at_an_error(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'a': 'text'}, {'_id': 2, 'a': 1}]}", "{'n': 2}");
    bson_t *reply = run_two(&fixture, "true");
    assert_int_equal(fixture_i64(reply, "n"), 0);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.code"), 14);
    bson_destroy(reply);
    reply = run_two(&fixture, "false");
    assert_int_equal(fixture_i64(reply, "n"), 1);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.index"), 0);
    bson_destroy(reply);
    fixture_close(&fixture);
}

static void update_by_id_in_any_spelling_shares_a_log_entry(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture,
                   "{'insert': 'c', 'documents': [{'_id': 1, 'k': 1}, {'_id': 2, 'k': 1}, {'_id': 3, 'k': 1}]}",
                   "{'n': 3}");
    unsigned before = fixture.history_count;
    fixture_expect(&fixture,
                   "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'a': 1}}},"
                   " {'q': {'_id': {'$eq': 2}}, 'u': {'$set': {'a': 1}}},"
                   " {'q': {'$and': [{'k': 1}, {'_id': {'$eq': 3}}]}, 'u': {'$set': {'a': 1}}},"
                   " {'q': {'_id': 3, 'k': {'$eq': 2}}, 'u': {'$set': {'a': 2}}}]}",
                   "{'n': 3, 'nModified': 3}");
    assert_int_equal(fixture.history_count, before + 1);
    fixture_expect(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': {'$eq': 9}}, 'u': {'$set': {'a': 1}}}]}",
                   "{'n': 0}");
    assert_int_equal(fixture.history_count, before + 1);
    fixture_close(&fixture);
}

static void update_that_matches_nothing_takes_a_round_and_no_log_entry(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1}]}", "{'n': 1}");
    unsigned before = fixture.history_count;
    fixture_expect(&fixture, "{'update': 'c', 'updates': [{'q': {'zz': 1}, 'u': {'$set': {'a': 1}}}]}",
                   "{'n': 0, 'nModified': 0}");
    fixture_expect(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': 9}, 'u': {'$set': {'a': 1}}}]}", "{'n': 0}");
    fixture_expect(&fixture, "{'delete': 'c', 'deletes': [{'q': {'_id': 9}, 'limit': 1}]}", "{'n': 0}");
    assert_int_equal(fixture.history_count, before);
    assert_int_equal(fixture.barriers, 3);
    fixture_close(&fixture);
}

/* 1500 documents {_id, n}, both counting from 0. */
static void insert_many(struct fixture *fixture)
{
    for (int part = 0; part < 3; part++) {
        bson_t command = BSON_INITIALIZER;
        bson_t array;
        BSON_APPEND_UTF8(&command, "insert", "c");
        BSON_APPEND_ARRAY_BEGIN(&command, "documents", &array);
        for (int i = 0; i < 500; i++) {
            bson_t doc;
            char key[16];
            snprintf(key, sizeof key, "%d", i);
            BSON_APPEND_DOCUMENT_BEGIN(&array, key, &doc);
            BSON_APPEND_INT32(&doc, "_id", part * 500 + i);
            BSON_APPEND_INT32(&doc, "n", part * 500 + i);
            bson_append_document_end(&array, &doc);
        }
        bson_append_array_end(&command, &array);
        BSON_APPEND_UTF8(&command, "$db", "t");
        bson_destroy(fixture_run_bson(fixture, &command));
        bson_destroy(&command);
    }
}

static void update_multi_of_many_documents_touches_each_once(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'n': 1}, 'name': 'n_1'}]}", "{'ok': 1.0}");
    insert_many(&fixture);
    /* The update moves each document ahead in the very index that finds them. */
    fixture_expect(
        &fixture, "{'update': 'c', 'updates': [{'q': {'n': {'$gte': 0}}, 'u': {'$inc': {'n': 10000}}, 'multi': true}]}",
        "{'n': 1500, 'nModified': 1500}");
    fixture_expect(&fixture, "{'count': 'c', 'query': {'n': {'$gte': 10000, '$lt': 11500}}}", "{'n': 1500}");
    fixture_expect(&fixture, "{'delete': 'c', 'deletes': [{'q': {'n': {'$lt': 11000}}, 'limit': 0}]}", "{'n': 1000}");
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 500}");
    fixture_close(&fixture);
}

/* What was begun must not be answered with a code that makes the router send the whole statement again. */
static void update_multi_that_has_begun_waits_for_a_busy_log(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    insert_many(&fixture);
    fixture.busy = 3;
    fixture.busy_after = 1;
    fixture_expect(&fixture, "{'update': 'c', 'updates': [{'q': {}, 'u': {'$inc': {'n': 10000}}, 'multi': true}]}",
                   "{'n': 1500, 'nModified': 1500}");
    assert_int_equal(fixture.busy, 0);
    fixture_expect(&fixture, "{'count': 'c', 'query': {'n': {'$gte': 10000, '$lt': 11500}}}", "{'n': 1500}");
    fixture_close(&fixture);
}

static void update_multi_cut_short_is_not_called_unexecuted(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    insert_many(&fixture);
    fixture.lead_left = 2;
    bson_t *reply =
        fixture_run(&fixture, "{'update': 'c', 'updates': [{'q': {}, 'u': {'$inc': {'n': 10000}}, 'multi': true}]}");
    assert_int_equal(fixture_i64(reply, "n"), 500);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.index"), 0);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.code"), 11602);
    bson_destroy(reply);
    fixture_close(&fixture);
}

/* The map is never filled: that would end the process, and each one that replays the log. */
static void update_multi_stops_when_space_runs_out(void **state)
{
    (void)state;
    struct fixture fixture;
    char *pad = mem_alloc(90001);
    memset(pad, 'x', 90000);
    fixture_open_small(&fixture, 96 << 20);
    insert_many(&fixture);
    char *command =
        mem_printf("{'update': 'c', 'updates': [{'q': {}, 'u': {'$set': {'pad': '%s'}}, 'multi': true}]}", pad);
    bson_t *reply = fixture_run(&fixture, command);
    assert_int_equal(fixture_i64(reply, "writeErrors.0.code"), ERR_OutOfDiskSpace);
    bson_destroy(reply);
    fixture_expect(&fixture, "{'delete': 'c', 'deletes': [{'q': {'n': {'$lt': 10}}, 'limit': 0}]}", "{'n': 10}");
    mem_free(command);
    mem_free(pad);
    fixture_close(&fixture);
}

/* Many requests are in the log before the first is applied. */
static void find_and_modify_poppers_take_different_documents(void **state)
{
    (void)state;
    struct fixture fixture;
    enum { POPPERS = 64 };
    struct fixture_call calls[POPPERS];
    bool taken[POPPERS] = {false};
    const char *commands[] = {"{'findAndModify': 'q', 'query': {'s': 0}, 'update': {'$set': {'s': 1}}}",
                              "{'findAndModify': 'q', 'query': {'s': 1}, 'sort': {'_id': -1}, 'remove': true}"};
    fixture_open(&fixture);
    for (int i = 0; i < POPPERS; i++) {
        char command[100];
        snprintf(command, sizeof command, "{'insert': 'q', 'documents': [{'_id': %d, 's': 0}]}", i);
        fixture_expect(&fixture, command, "{'n': 1}");
    }
    for (int way = 0; way < 2; way++) {
        fixture.hold = true;
        for (int i = 0; i < POPPERS; i++)
            fixture_start(&fixture, &calls[i], commands[way]);
        unsigned rounds = fixture_apply(&fixture);
        if (way == 0)
            assert_int_equal(rounds, 1);
        for (int i = 0; i < POPPERS; i++) {
            assert_true(calls[i].done);
            int64_t id = fixture_i64(calls[i].reply, "value._id");
            assert_in_range(id, 0, POPPERS - 1);
            assert_int_equal(taken[id], way == 1);
            taken[id] = way == 0;
            bson_destroy(calls[i].reply);
        }
        fixture.hold = false;
    }
    fixture_expect(&fixture, "{'count': 'q'}", "{'n': 0}");
    fixture_close(&fixture);
}

static void update_race_on_one_document_is_redone(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call calls[8];
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'k': 'x', 'n': 0}]}", "{'n': 1}");
    fixture.hold = true;
    /* All are on the same document: increments all count, a compare-and-set wins once. */
    for (int i = 0; i < 4; i++)
        fixture_start(&fixture, &calls[i], "{'update': 'c', 'updates': [{'q': {'k': 'x'}, 'u': {'$inc': {'n': 1}}}]}");
    for (int i = 4; i < 8; i++)
        fixture_start(&fixture, &calls[i],
                      "{'update': 'c', 'updates': [{'q': {'k': 'x', 'won': null}, 'u': {'$set': {'won': 1}}}]}");
    fixture_apply(&fixture);
    int64_t winners = 0;
    for (int i = 0; i < 8; i++) {
        assert_true(calls[i].done);
        winners += i < 4 ? 0 : fixture_i64(calls[i].reply, "n");
        bson_destroy(calls[i].reply);
    }
    fixture.hold = false;
    assert_int_equal(winners, 1);
    fixture_expect_batch(&fixture, "{'find': 'c'}", "[{'_id': 1, 'k': 'x', 'n': 4, 'won': 1}]");
    fixture_close(&fixture);
}

static void upsert_race_makes_one_document(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call calls[16];
    fixture_open(&fixture);
    fixture.hold = true;
    for (int i = 0; i < 16; i++)
        fixture_start(&fixture, &calls[i],
                      "{'update': 'c', 'updates': [{'q': {'k': 1}, 'u': {'$inc': {'n': 1}}, 'upsert': true}]}");
    fixture_apply(&fixture);
    for (int i = 0; i < 16; i++) {
        assert_true(calls[i].done);
        assert_int_equal(fixture_i64(calls[i].reply, "n"), 1);
        bson_destroy(calls[i].reply);
    }
    fixture.hold = false;
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 1}");
    fixture_expect(&fixture, "{'count': 'c', 'query': {'n': 16}}", "{'n': 1}");
    fixture_close(&fixture);
}

static void upsert_meets_unique_index_and_becomes_an_update(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call call;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'k': 1}, 'name': 'k_1', 'unique': true}]}",
                   "{'ok': 1.0}");
    fixture.hold = true;
    fixture_start(&fixture, &call, "{'insert': 'c', 'documents': [{'_id': 1, 'k': 7}]}");
    struct fixture_call upsert;
    fixture_start(&fixture, &upsert,
                  "{'update': 'c', 'updates': [{'q': {'k': 7}, 'u': {'$set': {'u': 1}}, 'upsert': true}]}");
    fixture_apply(&fixture);
    assert_int_equal(fixture_i64(upsert.reply, "nModified"), 1);
    bson_destroy(call.reply);
    bson_destroy(upsert.reply);
    fixture.hold = false;
    fixture_expect_batch(&fixture, "{'find': 'c'}", "[{'_id': 1, 'k': 7, 'u': 1}]");
    fixture_close(&fixture);
}

static void update_by_leader_evaluation_checks_the_document_again(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call calls[3];
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'n': 1}]}", "{'n': 1}");
    fixture.hold = true;
    for (int i = 0; i < 3; i++)
        fixture_start(
            &fixture, &calls[i],
            "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': [{'$set': {'n': {'$multiply': ['$n', 2]}}}]}]}");
    fixture_apply(&fixture);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fixture_i64(calls[i].reply, "nModified"), 1);
        bson_destroy(calls[i].reply);
    }
    fixture.hold = false;
    fixture_expect_batch(&fixture, "{'find': 'c'}", "[{'_id': 1, 'n': 8}]");
    fixture_close(&fixture);
}

/* A document that another write changes between the leader's look and apply still matches: it is one of them. */
static void multi_write_by_leader_evaluation_misses_no_changed_document(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call calls[4];
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'k': 'ab'}, {'_id': 2, 'k': 'ac'}]}",
                   "{'n': 2}");
    fixture.hold = true;
    fixture_start(&fixture, &calls[0], "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'x': 1}}}]}");
    fixture_start(&fixture, &calls[1],
                  "{'update': 'c', 'updates': [{'q': {}, 'u': [{'$set': {'n': {'$add': [{'$ifNull': ['$n', 0]}, "
                  "1]}}}], 'multi': true}]}");
    fixture_apply(&fixture);
    assert_int_equal(fixture_i64(calls[1].reply, "nModified"), 2);
    fixture.hold = false;
    fixture_expect_batch(&fixture, "{'find': 'c'}",
                         "[{'_id': 1, 'k': 'ab', 'x': 1, 'n': 1}, {'_id': 2, 'k': 'ac', 'n': 1}]");
    fixture.hold = true;
    fixture_start(&fixture, &calls[2], "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'x': 2}}}]}");
    fixture_start(&fixture, &calls[3], "{'delete': 'c', 'deletes': [{'q': {'k': {'$regex': '^a'}}, 'limit': 0}]}");
    fixture_apply(&fixture);
    assert_int_equal(fixture_i64(calls[3].reply, "n"), 2);
    for (int i = 0; i < 4; i++)
        bson_destroy(calls[i].reply);
    fixture.hold = false;
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 0}");
    fixture_close(&fixture);
}

static void write_on_a_follower_is_refused_unexecuted(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture.not_leader = true;
    fixture_expect_error(&fixture, "{'insert': 'c', 'documents': [{'_id': 1}]}", 10107);
    fixture_expect_error(&fixture, "{'update': 'c', 'updates': [{'q': {'a': 1}, 'u': {'$set': {'b': 1}}}]}", 10107);
    fixture_expect_error(&fixture, "{'findAndModify': 'c', 'query': {}, 'remove': true}", 10107);
    fixture_close(&fixture);
}

static void find_and_modify_answers_old_new_and_projected_documents(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'a': 1}, {'_id': 2, 'a': 2}]}", "{'n': 2}");
    fixture_expect(&fixture, "{'findAndModify': 'c', 'query': {'_id': 1}, 'update': {'$inc': {'a': 1}}}",
                   "{'value': {'_id': 1, 'a': 1}, 'lastErrorObject': {'n': 1, 'updatedExisting': true}}");
    fixture_expect(&fixture,
                   "{'findAndModify': 'c', 'sort': {'a': -1, '_id': -1}, 'update': {'$inc': {'a': 1}}, 'new': true, "
                   "'fields': {'_id': 0}}",
                   "{'value': {'a': 3}}");
    fixture_expect(&fixture, "{'findAndModify': 'c', 'query': {'_id': 9}, 'update': {'$set': {'z': 1}}}",
                   "{'value': null, 'lastErrorObject': {'n': 0, 'updatedExisting': false}}");
    fixture_expect(
        &fixture,
        "{'findAndModify': 'c', 'query': {'_id': 9}, 'update': {'$set': {'z': 1}}, 'upsert': true, 'new': true}",
        "{'value': {'_id': 9, 'z': 1}, 'lastErrorObject': {'n': 1, 'updatedExisting': false, 'upserted': 9}}");
    fixture_expect(&fixture, "{'findAndModify': 'c', 'query': {'_id': 9}, 'remove': true}",
                   "{'value': {'_id': 9, 'z': 1}}");
    fixture_expect_error(&fixture, "{'findAndModify': 'c', 'query': {}}", 9);
    fixture_expect_error(&fixture, "{'findAndModify': 'c', 'query': {}, 'remove': true, 'new': true}", 9);
    fixture_expect_error(&fixture, "{'findAndModify': 'c', 'query': {'_id': 1}, 'update': {'$set': {'_id': 5}}}", 66);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(update_operators_replacement_and_upsert_report_their_counts),
        cmocka_unit_test(update_later_statement_sees_earlier_ones),
        cmocka_unit_test(update_ordered_batch_stops_at_an_error),
        cmocka_unit_test(update_by_id_in_any_spelling_shares_a_log_entry),
        cmocka_unit_test(update_that_matches_nothing_takes_a_round_and_no_log_entry),
        cmocka_unit_test(update_multi_of_many_documents_touches_each_once),
        cmocka_unit_test(update_multi_that_has_begun_waits_for_a_busy_log),
        cmocka_unit_test(update_multi_cut_short_is_not_called_unexecuted),
        cmocka_unit_test(update_multi_stops_when_space_runs_out),
        cmocka_unit_test(find_and_modify_poppers_take_different_documents),
        cmocka_unit_test(update_race_on_one_document_is_redone),
        cmocka_unit_test(upsert_race_makes_one_document),
        cmocka_unit_test(upsert_meets_unique_index_and_becomes_an_update),
        cmocka_unit_test(update_by_leader_evaluation_checks_the_document_again),
        cmocka_unit_test(multi_write_by_leader_evaluation_misses_no_changed_document),
        cmocka_unit_test(write_on_a_follower_is_refused_unexecuted),
        cmocka_unit_test(find_and_modify_answers_old_new_and_projected_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
