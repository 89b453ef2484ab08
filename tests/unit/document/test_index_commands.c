/* createIndexes, dropIndexes, collMod's index and $indexStats on one member. */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include "base/clock.h"
#include "command/ops.h"
#include "document/ddl.h"
#include "document/index_usage.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void create_indexes_refusals_have_mongodbs_codes(void **state)
{
    (void)state;
    struct fixture fixture;
    static const struct {
        const char *command;
        int code;
    } cases[] = {
        {"{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}}]}", 9},
        {"{'createIndexes': 'c', 'indexes': [{'name': 'a'}]}", 9},
        {"{'createIndexes': 'c', 'indexes': [5]}", 14},
        {"{'createIndexes': 'c', 'indexes': 5}", 14},
        {"{'createIndexes': 'c'}", 40414},
        {"{'createIndexes': 'c', 'indexes': [], 'nonsense': 1}", 40415},
        {"{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a'}], 'commitQuorum': []}", 14},
        {"{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a'}], 'commitQuorum': -1}", 9},
        {"{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a', 'collation': {'locale': 'xx'}}]}", 2},
        {"{'createIndexes': 'c', 'indexes': [{'key': {'a': 'text'}, 'name': 'a'}]}", 67},
        {"{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a'}, {'key': {'a': 1}, 'name': 'a'}]}", 68},
        {"{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a'}, {'key': {'a': 1}, 'name': 'b'}]}", 85},
        {"{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a'}, {'key': {'b': 1}, 'name': 'a'}]}", 86},
    };
    fixture_open(&fixture);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        fixture_expect_error(&fixture, cases[i].command, cases[i].code);
    /* None of them has made the collection. */
    fixture_expect_batch(&fixture, "{'listCollections': 1, 'nameOnly': true}", "[]");
    fixture_expect(&fixture,
                   "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a', 'nonsense': 1}], 'commitQuorum': "
                   "'majority', 'ignoreUnknownIndexOptions': true}",
                   "{'numIndexesAfter': 2}");
    fixture_close(&fixture);
}

static void indexes_on_one_key_may_differ_in_collation_filter_and_uniqueness(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture,
                   "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'plain'}, {'key': {'a': 1}, 'name': "
                   "'unique', 'unique': true}, {'key': {'a': 1}, 'name': 'sparse', 'sparse': true}, {'key': {'a': 1}, "
                   "'name': 'de', 'collation': {'locale': 'de'}}]}",
                   "{'numIndexesAfter': 5}");
    fixture_expect_error(&fixture, "{'dropIndexes': 'c', 'index': {'a': 1}}", 181);
    fixture_expect(&fixture, "{'dropIndexes': 'c', 'index': ['plain', 'unique', 'de']}", "{'nIndexesWas': 5}");
    fixture_expect(&fixture, "{'dropIndexes': 'c', 'index': {'a': 1}}", "{'nIndexesWas': 2}");
    fixture_expect_error(&fixture, "{'dropIndexes': 'c', 'index': {'a': 1}}", 27);
    fixture_expect_error(&fixture, "{'dropIndexes': 'c', 'index': {'_id': 1}}", 72);
    fixture_expect(&fixture, "{'dropIndexes': 'c', 'index': '*'}",
                   "{'nIndexesWas': 1, 'msg': 'non-_id indexes dropped for collection'}");
    fixture_close(&fixture);
}

static void index_inherits_the_collections_collation(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'create': 'c', 'collation': {'locale': 'en', 'strength': 1}}", "{'ok': 1.0}");
    fixture_expect(&fixture,
                   "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'own', 'unique': true}, {'key': {'b': "
                   "1}, 'name': 'simple', 'unique': true, 'collation': {'locale': 'simple'}}]}",
                   "{'numIndexesAfter': 3}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 'A', 'a': 'x', 'b': 'x'}]}", "{'n': 1}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 'a', 'a': 1, 'b': 1}]}", "{'n': 0}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'a': 'X', 'b': 1}]}", "{'n': 0}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'a': 1, 'b': 'X'}]}", "{'n': 1}");
    fixture_expect_error(
        &fixture,
        "{'createIndexes': 'c', 'indexes': [{'key': {'_id': 1}, 'name': '_id_', 'collation': {'locale': 'fr'}}]}", 2);
    fixture_expect(&fixture, "{'validate': 'c'}", "{'valid': true}");
    fixture_close(&fixture);
}

static void wildcard_index_answers_by_any_path(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'$**': 1}, 'name': 'w'}]}",
                   "{'numIndexesAfter': 2}");
    fixture_expect(&fixture,
                   "{'insert': 'c', 'documents': [{'_id': 1, 'a': {'b': 5}}, {'_id': 2, 'a': {'b': [5, 6]}}, {'_id': "
                   "3, 'x': 5}]}",
                   "{'n': 3}");
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'a.b': 5}, 'projection': {'_id': 1}, 'hint': 'w'}",
                         "[{'_id': 1}, {'_id': 2}]");
    fixture_expect(&fixture, "{'validate': 'c'}", "{'valid': true}");
    fixture_close(&fixture);
}

static void coll_mod_index_refusals_have_mongodbs_codes(void **state)
{
    (void)state;
    struct fixture fixture;
    static const struct {
        const char *index;
        int code;
    } cases[] = {
        {"{'hidden': true}", 72},
        {"{'name': 'a_1', 'keyPattern': {'a': 1}, 'hidden': true}", 72},
        {"{'name': 'a_1'}", 72},
        {"{'name': 'nope', 'hidden': true}", 27},
        {"{'keyPattern': {'z': 1}, 'hidden': true}", 27},
        {"{'keyPattern': {'b': 1}, 'hidden': true}", 181},
        {"{'name': 5, 'hidden': true}", 14},
        {"{'name': 'a_1', 'nonsense': 1}", 40415},
        {"{'name': 'a_1', 'expireAfterSeconds': -1}", 72},
        {"{'name': 'a_1', 'expireAfterSeconds': 3000000000}", 72},
        {"{'name': 'a_1', 'expireAfterSeconds': 'x'}", 14},
        {"{'name': '_id_', 'expireAfterSeconds': 1}", 72},
        {"{'name': 'cd', 'expireAfterSeconds': 1}", 72},
        {"{'name': '_id_', 'hidden': true}", 2},
        {"{'name': 'a_1', 'unique': false}", 2},
        {"{'name': 'a_1', 'unique': true}", 72},
    };
    fixture_open(&fixture);
    fixture_expect(
        &fixture,
        "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}, {'key': {'b': 1}, 'name': "
        "'b_1'}, {'key': {'b': 1}, 'name': 'b_s', 'sparse': true}, {'key': {'c': 1, 'd': 1}, 'name': 'cd'}]}",
        "{'numIndexesAfter': 5}");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char command[200];
        snprintf(command, sizeof command, "{'collMod': 'c', 'index': %s}", cases[i].index);
        fixture_expect_error(&fixture, command, cases[i].code);
    }
    fixture_close(&fixture);
}

static void coll_mod_turns_an_index_unique_when_there_are_no_duplicates(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}]}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'a': 1}, {'_id': 2, 'a': 1}]}", "{'n': 2}");
    fixture_expect(&fixture, "{'collMod': 'c', 'index': {'name': 'a_1', 'prepareUnique': true}}",
                   "{'prepareUnique_old': false, 'prepareUnique_new': true}");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 3, 'a': 1}]}", "{'n': 0}");
    fixture_expect(&fixture, "{'update': 'c', 'updates': [{'q': {'_id': 1}, 'u': {'$set': {'b': 1}}}]}",
                   "{'nModified': 1}");
    fixture_expect(&fixture, "{'collMod': 'c', 'index': {'name': 'a_1', 'unique': true}}",
                   "{'code': 359, 'violations': [{'ids': [1, 2]}]}");
    fixture_expect(&fixture, "{'delete': 'c', 'deletes': [{'q': {'_id': 2}, 'limit': 1}]}", "{'n': 1}");
    fixture_expect(&fixture, "{'collMod': 'c', 'index': {'name': 'a_1', 'unique': true}}", "{'unique_new': true}");
    fixture_expect_batch(&fixture, "{'listIndexes': 'c'}",
                         "[{'v': 2, 'key': {'_id': 1}, 'name': '_id_'}, {'v': 2, 'key': {'a': 1}, 'name': 'a_1', "
                         "'unique': true}]");
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 3, 'a': 1}]}", "{'n': 0}");
    fixture_close(&fixture);
}

static void index_usage_counts_operations(void **state)
{
    (void)state;
    struct index_usage *usage = index_usage_new();
    int64_t since_ms = 0;
    assert_int_equal(index_usage_get(usage, 7, &since_ms), 0);
    assert_true(since_ms > 0);
    for (uint32_t id = 1; id <= 1000; id++)
        for (uint32_t n = 0; n < id % 5; n++)
            index_usage_note(usage, id);
    for (uint32_t id = 1; id <= 1000; id++)
        assert_int_equal(index_usage_get(usage, id, &since_ms), id % 5);
    int64_t unused_since_ms = 0;
    assert_int_equal(index_usage_get(usage, 2000, &unused_since_ms), 0);
    assert_int_equal(unused_since_ms, since_ms);
    index_usage_free(usage);
}

static void index_stats_leave_explains_out(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 'a': 1}]}", "{'n': 1}");
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}]}",
                   "{'numIndexesAfter': 2}");
    fixture_expect(&fixture, "{'explain': {'find': 'c', 'filter': {'a': 1}}}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'explain': {'update': 'c', 'updates': [{'q': {'a': 1}, 'u': {'$set': {'b': 1}}}]}}",
                   "{'ok': 1.0}");
    const char *ops = "{'aggregate': 'c', 'pipeline': [{'$indexStats': {}}, {'$match': {'name': 'a_1'}}, {'$project': "
                      "{'_id': 0, 'ops': '$accesses.ops'}}], 'cursor': {}}";
    fixture_expect_batch(&fixture, ops, "[{'ops': 0}]");
    fixture_expect_batch(&fixture, "{'find': 'c', 'filter': {'a': 1}}", "[{'_id': 1, 'a': 1}]");
    fixture_expect_batch(&fixture, ops, "[{'ops': 1}]");
    fixture_close(&fixture);
}

/* An error's details are bounded: what is too much is left out, not all. */
static void conversion_that_fails_tells_of_long_ids_what_it_can(void **state)
{
    enum { ID_CHARS = 600, DOCS = 10 };
    (void)state;
    struct fixture fixture;
    char id[ID_CHARS + 1];
    char command[ID_CHARS + 128];
    bson_iter_t iter;
    fixture_open(&fixture);
    memset(id, 'x', ID_CHARS);
    id[ID_CHARS] = '\0';
    for (int i = 0; i < DOCS; i++) {
        id[0] = (char)('a' + i);
        snprintf(command, sizeof command, "{'insert': 'c', 'documents': [{'_id': '%s', 'a': 1}]}", id);
        fixture_expect(&fixture, command, "{'n': 1}");
    }
    fixture_expect(&fixture,
                   "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a', 'prepareUnique': true}]}",
                   "{'ok': 1.0}");
    bson_t *reply = fixture_run(&fixture, "{'collMod': 'c', 'index': {'name': 'a', 'unique': true}}");
    assert_int_equal(fixture_i64(reply, "code"), 359);
    assert_true(bson_iter_init_find(&iter, reply, "violations"));
    bson_destroy(reply);
    fixture_close(&fixture);
}

/* ---- builds through the log ---- */

static void insert_many(struct fixture *fixture, int count)
{
    for (int done = 0; done < count; done += 1000) {
        bson_t command = BSON_INITIALIZER;
        bson_t array;
        BSON_APPEND_UTF8(&command, "insert", "big");
        BSON_APPEND_ARRAY_BEGIN(&command, "documents", &array);
        for (int i = done; i < done + 1000; i++) {
            bson_t doc;
            char key[16];
            snprintf(key, sizeof key, "%d", i - done);
            BSON_APPEND_DOCUMENT_BEGIN(&array, key, &doc);
            BSON_APPEND_INT32(&doc, "_id", i);
            BSON_APPEND_INT32(&doc, "a", i);
            BSON_APPEND_INT32(&doc, "twice", i / 2);
            bson_append_document_end(&array, &doc);
        }
        bson_append_array_end(&command, &array);
        BSON_APPEND_UTF8(&command, "$db", "t");
        bson_destroy(fixture_run_bson(fixture, &command));
        bson_destroy(&command);
    }
}

static void assert_only_id(struct fixture *fixture)
{
    fixture_expect_batch(fixture, "{'listIndexes': 'big'}", "[{'v': 2, 'key': {'_id': 1}, 'name': '_id_'}]");
    fixture_expect(fixture, "{'validate': 'big'}", "{'valid': true, 'nIndexes': 1}");
}

static const char two_indexes[] = "{'createIndexes': 'big', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}, {'key': "
                                  "{'twice': 1}, 'name': 'twice_1', 'unique': true}]}";

static void build_that_fails_on_its_second_index_leaves_none(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    insert_many(&fixture, 3000);
    fixture_expect_error(&fixture, two_indexes, 11000);
    assert_only_id(&fixture);
    fixture_close(&fixture);
}

static void build_whose_one_index_is_dropped_leaves_none(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call build;
    struct fixture_call drop;
    fixture_open(&fixture);
    insert_many(&fixture, 3000);
    fixture.hold = true;
    fixture_start(&fixture, &build, two_indexes);
    fixture_start(&fixture, &drop, "{'dropIndexes': 'big', 'index': 'twice_1'}");
    fixture_apply(&fixture);
    fixture.hold = false;
    assert_true(build.done && drop.done);
    assert_int_equal(fixture_i64(build.reply, "code"), 276);
    bson_destroy(build.reply);
    bson_destroy(drop.reply);
    assert_only_id(&fixture);
    fixture_close(&fixture);
}

/* The other one's build fails: who waits for it has to be told, however often it has named the index. */
static void one_who_names_an_index_under_construction_often_waits_for_it(void **state)
{
    enum { TIMES = 70 };
    static const char twice[] = "{'key': {'twice': 1}, 'name': 'twice_1', 'unique': true}, ";
    (void)state;
    struct fixture fixture;
    struct fixture_call build;
    struct fixture_call other;
    char command[TIMES * sizeof twice + 128] = "{'createIndexes': 'big', 'indexes': [";
    for (int i = 0; i < TIMES; i++)
        strcat(command, twice);
    strcat(command, "{'key': {'b': 1}, 'name': 'b_1'}]}");
    fixture_open(&fixture);
    insert_many(&fixture, 3000);
    fixture.hold = true;
    fixture_start(&fixture, &build, two_indexes);
    fixture_start(&fixture, &other, command);
    fixture_apply(&fixture);
    fixture.hold = false;
    assert_true(build.done && other.done);
    assert_int_equal(fixture_i64(build.reply, "code"), 11000);
    assert_int_equal(fixture_i64(other.reply, "code"), 276);
    bson_destroy(build.reply);
    bson_destroy(other.reply);
    fixture_close(&fixture);
}

/* The leader is lost right after the indexes came into being; the next one takes up both, or neither. */
static void build_of_a_former_leader_stays_all_or_nothing(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call build;
    fixture_open(&fixture);
    insert_many(&fixture, 3000);
    fixture.hold = true;
    fixture_start(&fixture, &build, two_indexes);
    fixture.hold = false;
    fixture.not_leader = true;
    fixture_apply(&fixture);
    assert_true(build.done);
    assert_int_equal(fixture_i64(build.reply, "code"), 10107);
    bson_destroy(build.reply);
    fixture.not_leader = false;
    document_engine_tick(fixture.host.engine);
    document_engine_tick(fixture.host.engine);
    fixture_drain(&fixture);
    assert_only_id(&fixture);
    fixture_close(&fixture);
}

static void list_indexes_tells_of_builds_when_asked(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture, "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}]}", "{'ok': 1.0}");
    fixture_expect_batch(&fixture, "{'listIndexes': 'c', 'includeIndexBuildInfo': true}",
                         "[{'spec': {'v': 2, 'key': {'_id': 1}, 'name': '_id_'}}, {'spec': {'v': 2, 'key': {'a': 1}, "
                         "'name': 'a_1'}}]");
    fixture_close(&fixture);
}

static void build_that_is_killed_leaves_none(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call build;
    fixture_open(&fixture);
    fixture.ops = op_registry_new();
    insert_many(&fixture, 3000);
    fixture.hold = true;
    fixture_start(&fixture, &build, two_indexes);
    op_kill_all(fixture.ops, ERR_Interrupted);
    fixture_apply(&fixture);
    fixture.hold = false;
    assert_true(build.done);
    assert_int_equal(fixture_i64(build.reply, "code"), ERR_Interrupted);
    bson_destroy(build.reply);
    assert_only_id(&fixture);
    op_registry_free(fixture.ops);
    fixture.ops = NULL;
    fixture_close(&fixture);
}

static void build_without_time_left_ends_and_leaves_none(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture_call build;
    fixture_open(&fixture);
    insert_many(&fixture, 3000);
    fixture.hold = true;
    fixture_start(&fixture, &build,
                  "{'createIndexes': 'big', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}], 'maxTimeMS': 1}");
    clock_sleep_ms(5);
    fixture_apply(&fixture);
    fixture.hold = false;
    assert_true(build.done);
    assert_int_equal(fixture_i64(build.reply, "code"), ERR_MaxTimeMSExpired);
    bson_destroy(build.reply);
    assert_only_id(&fixture);
    fixture_close(&fixture);
}

/* In a process of its own, since it ends: the status it ends with, 0 when the command was applied or refused. */
static int status_after_applying(uint8_t kind, const struct buf *payload)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct fixture fixture;
        struct err err;
        fixture_open(&fixture);
        bool applied = fixture_apply_command(&fixture, kind, payload->data, payload->len, &err);
        _exit(applied ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

/* The members with the leader's ICU have the index: one that refused it would go on without. */
static void an_index_of_another_icu_in_the_log_stops_the_member(void **state)
{
    enum { STORE_STOPS = 70 };
    static const uint8_t uuid[16] = {1};
    (void)state;
    struct buf payload = BUF_INIT;
    const char *json = "{\"0\": {\"name\": \"i\", \"key\": {\"s\": 1}, \"collation\": {\"locale\": \"de\", "
                       "\"version\": \"0.0\"}}}";
    bson_t *specs = bson_new_from_json((const uint8_t *)json, -1, NULL);
    struct create_indexes_header header = {.ns = "t.c", .create_uuid = uuid, .specs = bdoc_of(specs)};
    create_indexes_header_encode(&payload, &header);
    assert_int_equal(status_after_applying(DOCUMENT_KIND_CREATE_INDEXES, &payload), STORE_STOPS);
    buf_deinit(&payload);
    bson_destroy(specs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create_indexes_refusals_have_mongodbs_codes),
        cmocka_unit_test(indexes_on_one_key_may_differ_in_collation_filter_and_uniqueness),
        cmocka_unit_test(index_inherits_the_collections_collation),
        cmocka_unit_test(wildcard_index_answers_by_any_path),
        cmocka_unit_test(coll_mod_index_refusals_have_mongodbs_codes),
        cmocka_unit_test(coll_mod_turns_an_index_unique_when_there_are_no_duplicates),
        cmocka_unit_test(index_usage_counts_operations),
        cmocka_unit_test(index_stats_leave_explains_out),
        cmocka_unit_test(build_that_fails_on_its_second_index_leaves_none),
        cmocka_unit_test(conversion_that_fails_tells_of_long_ids_what_it_can),
        cmocka_unit_test(build_whose_one_index_is_dropped_leaves_none),
        cmocka_unit_test(one_who_names_an_index_under_construction_often_waits_for_it),
        cmocka_unit_test(build_of_a_former_leader_stays_all_or_nothing),
        cmocka_unit_test(list_indexes_tells_of_builds_when_asked),
        cmocka_unit_test(build_that_is_killed_leaves_none),
        cmocka_unit_test(build_without_time_left_ends_and_leaves_none),
        cmocka_unit_test(an_index_of_another_icu_in_the_log_stops_the_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
