#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include "base/clock.h"
#include "document/ttl.h"

#include <stdio.h>

enum {
    HOUR_MS = 3600 * 1000,
};

static struct document_ttl *ttl_of(struct fixture *fixture)
{
    return document_engine_ttl(fixture->host.engine);
}

static void pass(struct fixture *fixture)
{
    struct err err;
    if (!document_ttl_pass(ttl_of(fixture), &err))
        fail_msg("%s", err.msg);
}

/* Inserts the documents, with an old date for each @ and a coming one for each #. */
static void insert(struct fixture *fixture, const char *documents)
{
    char command[2048];
    char filled[1024];
    long long old_ms = clock_wall_ms() - HOUR_MS;
    long long coming_ms = clock_wall_ms() + HOUR_MS;
    size_t len = 0;
    for (const char *at = documents; *at != '\0'; at++) {
        if (*at == '@' || *at == '#')
            len += (size_t)snprintf(filled + len, sizeof filled - len, "{'$date': {'$numberLong': '%lld'}}",
                                    *at == '@' ? old_ms : coming_ms);
        else
            filled[len++] = *at;
    }
    filled[len] = '\0';
    snprintf(command, sizeof command, "{'insert': 'c', 'documents': [%s]}", filled);
    bson_t *reply = fixture_run(fixture, command);
    assert_true(fixture_i64(reply, "n") > 0);
    bson_destroy(reply);
}

static void make_index(struct fixture *fixture, const char *rest)
{
    char command[512];
    snprintf(command, sizeof command, "{'createIndexes': 'c', 'indexes': [{'name': 'i', %s}]}", rest);
    fixture_expect(fixture, command, "{'ok': 1.0}");
}

static void expect_ids(struct fixture *fixture, const char *ids)
{
    fixture_expect_batch(fixture, "{'find': 'c', 'projection': {'_id': 1}}", ids);
}

static void old_dates_expire_and_all_else_stays(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    make_index(&fixture, "'key': {'d': 1}, 'expireAfterSeconds': 60");
    insert(&fixture, "{'_id': 1, 'd': @}, {'_id': 2, 'd': #}, {'_id': 3, 'd': 'x'}, {'_id': 4}, {'_id': 5, 'd': null},"
                     " {'_id': 6, 'd': 0}, {'_id': 7, 'd': {'$numberDouble': 'NaN'}}, {'_id': 8, 'd': {'x': @}}");
    pass(&fixture);
    expect_ids(&fixture, "[{'_id': 2}, {'_id': 3}, {'_id': 4}, {'_id': 5}, {'_id': 6}, {'_id': 7}, {'_id': 8}]");
    struct document_ttl_counters counters;
    document_ttl_counters(ttl_of(&fixture), &counters);
    assert_int_equal(counters.deleted_documents, 1);
    assert_int_equal(counters.passes, 1);
    fixture_close(&fixture);
}

static void an_array_expires_with_its_earliest_date(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    make_index(&fixture, "'key': {'d': 1}, 'expireAfterSeconds': 60");
    insert(&fixture, "{'_id': 1, 'd': [#, @, @, 5]}, {'_id': 2, 'd': [#, 'x']}, {'_id': 3, 'd': []}");
    pass(&fixture);
    expect_ids(&fixture, "[{'_id': 2}, {'_id': 3}]");
    fixture_close(&fixture);
}

static void descending_and_partial_indexes_are_heeded(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    make_index(&fixture, "'key': {'d': -1}, 'expireAfterSeconds': 60");
    insert(&fixture, "{'_id': 1, 'd': @}, {'_id': 2, 'd': #}");
    pass(&fixture);
    expect_ids(&fixture, "[{'_id': 2}]");
    fixture_expect(&fixture, "{'drop': 'c'}", "{'ok': 1.0}");
    make_index(&fixture, "'key': {'d': 1}, 'expireAfterSeconds': 60, 'sparse': true");
    insert(&fixture, "{'_id': 3, 'd': @}, {'_id': 4}");
    pass(&fixture);
    expect_ids(&fixture, "[{'_id': 4}]");
    fixture_close(&fixture);
}

static void clustered_and_timeseries_expire_by_their_own_dates(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_expect(&fixture,
                   "{'create': 'c', 'clusteredIndex': {'key': {'_id': 1}, 'unique': true}, 'expireAfterSeconds': 60}",
                   "{'ok': 1.0}");
    insert(&fixture, "{'_id': @}, {'_id': 7}, {'_id': #}");
    pass(&fixture);
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 2}");
    fixture_expect(&fixture, "{'collMod': 'c', 'expireAfterSeconds': 'off'}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'drop': 'c'}", "{'ok': 1.0}");
    fixture_expect(&fixture, "{'create': 'c', 'timeseries': {'timeField': 't'}, 'expireAfterSeconds': 60}",
                   "{'ok': 1.0}");
    insert(&fixture, "{'_id': 1, 't': @}, {'_id': 1, 't': #}");
    pass(&fixture);
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 1}");
    fixture_close(&fixture);
}

static void much_goes_in_several_log_commands(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    make_index(&fixture, "'key': {'d': 1}, 'expireAfterSeconds': 60");
    for (int i = 0; i < TTL_BATCH_DOCS + 20; i++) {
        char doc[64];
        snprintf(doc, sizeof doc, "{'_id': %d, 'd': @}", i);
        insert(&fixture, doc);
    }
    unsigned before = fixture.history_count;
    pass(&fixture);
    assert_int_equal(fixture.history_count - before, 2);
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 0}");
    fixture_close(&fixture);
}

static void keep_for_ever(struct fixture *fixture)
{
    fixture_expect(fixture, "{'collMod': 'c', 'index': {'name': 'i', 'expireAfterSeconds': 100000000}}", "{'ok': 1.0}");
}

static void wait_for_the_second_look(struct fixture *fixture)
{
    fixture->on_check_leader = keep_for_ever;
}

/* The pass looks who leads at its beginning and before each batch. */
static void a_longer_time_holds_at_once_in_the_middle_of_a_pass(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    make_index(&fixture, "'key': {'d': 1}, 'expireAfterSeconds': 60");
    insert(&fixture, "{'_id': 1, 'd': @}, {'_id': 2, 'd': @}");
    fixture.on_check_leader = wait_for_the_second_look;
    pass(&fixture);
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 2}");
    fixture_close(&fixture);
}

static void a_follower_and_a_disabled_monitor_delete_nothing(void **state)
{
    (void)state;
    struct fixture fixture;
    struct err err;
    fixture_open(&fixture);
    make_index(&fixture, "'key': {'d': 1}, 'expireAfterSeconds': 60");
    insert(&fixture, "{'_id': 1, 'd': @}");
    fixture.not_leader = true;
    assert_false(document_ttl_pass(ttl_of(&fixture), &err));
    fixture.not_leader = false;
    document_ttl_set_enabled(ttl_of(&fixture), false);
    pass(&fixture);
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 1}");
    document_ttl_set_enabled(ttl_of(&fixture), true);
    pass(&fixture);
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 0}");
    fixture_close(&fixture);
}

static void a_busy_log_ends_the_pass_and_the_next_goes_on(void **state)
{
    (void)state;
    struct fixture fixture;
    struct err err;
    fixture_open(&fixture);
    make_index(&fixture, "'key': {'d': 1}, 'expireAfterSeconds': 60");
    insert(&fixture, "{'_id': 1, 'd': @}");
    fixture.busy = 1;
    assert_false(document_ttl_pass(ttl_of(&fixture), &err));
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 1}");
    pass(&fixture);
    fixture_expect(&fixture, "{'count': 'c'}", "{'n': 0}");
    fixture_close(&fixture);
}

static void the_thread_starts_sleeps_and_stops(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    document_ttl_start(ttl_of(&fixture));
    document_ttl_set_sleep_secs(ttl_of(&fixture), 100);
    document_ttl_stop(ttl_of(&fixture));
    document_ttl_stop(ttl_of(&fixture));
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_dates_expire_and_all_else_stays),
        cmocka_unit_test(an_array_expires_with_its_earliest_date),
        cmocka_unit_test(descending_and_partial_indexes_are_heeded),
        cmocka_unit_test(clustered_and_timeseries_expire_by_their_own_dates),
        cmocka_unit_test(much_goes_in_several_log_commands),
        cmocka_unit_test(a_longer_time_holds_at_once_in_the_middle_of_a_pass),
        cmocka_unit_test(a_follower_and_a_disabled_monitor_delete_nothing),
        cmocka_unit_test(a_busy_log_ends_the_pass_and_the_next_goes_on),
        cmocka_unit_test(the_thread_starts_sleeps_and_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
