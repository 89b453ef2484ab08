#include "support.h"

#include "routerd/command_env.h"
#include "routerd/target.h"

struct fixture {
    struct arena arena;
    struct routing_table *table;
};

static int set_up(void **state)
{
    struct fixture *fixture = test_calloc(1, sizeof *fixture);
    arena_init(&fixture->arena);
    fixture->table = support_table(&fixture->arena);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    routing_table_unref(fixture->table);
    arena_deinit(&fixture->arena);
    test_free(fixture);
    return 0;
}

static struct target target_of(struct fixture *fixture, const char *filter, const char *collation)
{
    struct target target;
    struct err err;
    char body[128];
    struct expr_env env;
    struct target_query query = {.filter = json_doc(&fixture->arena, filter), .env = &env};
    snprintf(body, sizeof body, "{\"collation\": %s}", collation ? collation : "{\"locale\": \"simple\"}");
    assert_true(command_env_init(&fixture->arena, json_doc(&fixture->arena, body), NULL, &env, &err));
    assert_true(target_filter(&fixture->arena, fixture->table, &query, &target, &err));
    return target;
}

/* "s0", "s1", "s0 s1" ... */
static void expect_shards(struct fixture *fixture, const char *filter, const char *shards, bool point)
{
    char text[64] = "";
    struct target target = target_of(fixture, filter, NULL);
    for (size_t i = 0; i < target.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 routing_table_shard_name(fixture->table, target.list[i].shard));
    assert_string_equal(text, shards);
    assert_int_equal(target.point, point);
}

static void target_equality_goes_to_one_shard(void **state)
{
    expect_shards(*state, "{\"a\": 5}", "s0", true);
    expect_shards(*state, "{\"a\": 10}", "s1", true);
    expect_shards(*state, "{\"a\": {\"$eq\": 19.5}}", "s1", true);
    expect_shards(*state, "{\"a\": 20}", "s0", true);
    expect_shards(*state, "{\"$and\": [{\"b\": 1}, {\"a\": 15}]}", "s1", true);
    expect_shards(*state, "{\"a\": null}", "s0", true);
}

static void target_range_goes_to_its_owners(void **state)
{
    expect_shards(*state, "{\"a\": {\"$gte\": 10, \"$lt\": 20}}", "s1", false);
    expect_shards(*state, "{\"a\": {\"$gte\": 9, \"$lt\": 20}}", "s0 s1", false);
    expect_shards(*state, "{\"a\": {\"$lt\": 3}}", "s0", false);
    expect_shards(*state, "{\"a\": {\"$in\": [1, 2, 30]}}", "s0", false);
    expect_shards(*state, "{\"$or\": [{\"a\": 12}, {\"a\": 13}]}", "s1", false);
}

static void target_without_key_goes_everywhere(void **state)
{
    expect_shards(*state, "{}", "s0 s1", false);
    expect_shards(*state, "{\"b\": 1}", "s0 s1", false);
    expect_shards(*state, "{\"$or\": [{\"a\": 12}, {\"b\": 13}]}", "s0 s1", false);
}

static void target_impossible_filter_goes_nowhere(void **state)
{
    expect_shards(*state, "{\"a\": {\"$in\": []}}", "", false);
}

static void target_collation_keeps_from_targeting(void **state)
{
    struct target target = target_of(*state, "{\"a\": \"x\"}", "{\"locale\": \"de\"}");
    assert_in_range(target.count, 1, 2);
    assert_false(target.point);
    assert_int_equal(target.why, TARGET_COLLATION);
    target = target_of(*state, "{\"a\": \"x\"}", "{\"locale\": \"simple\"}");
    assert_int_equal(target.count, 1);
    assert_true(target.point);
    assert_int_equal(target.why, TARGET_BY_KEY);
}

static void target_collation_concerns_strings_only(void **state)
{
    struct target target = target_of(*state, "{\"a\": 15}", "{\"locale\": \"de\"}");
    assert_int_equal(target.count, 1);
    assert_true(target.point);
    target = target_of(*state, "{\"a\": {\"$gt\": 11, \"$lt\": 12}, \"b\": \"x\"}", "{\"locale\": \"de\"}");
    assert_int_equal(target.count, 1);
}

static void target_tells_why(void **state)
{
    struct target target = target_of(*state, "{\"b\": 15}", NULL);
    assert_int_equal(target.why, TARGET_NO_PREDICATE);
    target = target_of(*state, "{\"a\": {\"$lt\": 3}}", NULL);
    assert_int_equal(target.why, TARGET_BY_RANGE);
    target = target_of(*state, "{\"a\": {\"$in\": []}}", NULL);
    assert_int_equal(target.why, TARGET_NOTHING);
}

static void target_ranges_of_a_shard_stay_inside_what_it_owns(void **state)
{
    struct fixture *fixture = *state;
    struct target target = target_of(fixture, "{\"a\": {\"$gt\": 5, \"$lt\": 25}}", NULL);
    assert_int_equal(target.count, 2);
    for (size_t i = 0; i < target.count; i++) {
        struct range_set *owned =
            routing_table_shard_ranges(fixture->table, routing_table_shard_name(fixture->table, target.list[i].shard));
        for (size_t k = 0; k < target.list[i].range_count; k++)
            assert_true(range_set_covers(owned, target.list[i].ranges[k]));
        range_set_free(owned);
    }
}

/* {$or: [{a: {$in: [...]}}, {a: {$in: [...]}}]} names more values than a request may carry ranges. */
static void target_more_values_than_a_request_takes_go_to_all_owners(void **state)
{
    enum { VALUES = OP_VERSION_MAX_RANGES * 3 / 4 };
    struct fixture *fixture = *state;
    struct buf text = BUF_INIT;
    for (int list = 0; list < 2; list++) {
        const char *head = list ? "]}}, {\"a\": {\"$in\": [0" : "{\"$or\": [{\"a\": {\"$in\": [0";
        buf_append(&text, head, strlen(head));
        for (int i = 0; i < VALUES; i++) {
            const char *value = arena_printf(&fixture->arena, ", %d", 1000 + 2 * (list * VALUES + i));
            buf_append(&text, value, strlen(value));
        }
    }
    buf_append(&text, "]}}]}", sizeof "]}}]}");
    struct target target = target_of(fixture, (const char *)text.data, NULL);
    buf_deinit(&text);
    assert_true(target.count > 0);
    for (size_t i = 0; i < target.count; i++)
        assert_in_range(target.list[i].range_count, 1, OP_VERSION_MAX_RANGES);
}

static void target_bad_filter_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    struct target target;
    struct err err;
    struct target_query query = {.filter = json_doc(&fixture->arena, "{\"a\": {\"$nonsense\": 1}}")};
    assert_false(target_filter(&fixture->arena, fixture->table, &query, &target, &err));
    assert_int_equal(err.code, ERR_BadValue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(target_equality_goes_to_one_shard, set_up, tear_down),
        cmocka_unit_test_setup_teardown(target_range_goes_to_its_owners, set_up, tear_down),
        cmocka_unit_test_setup_teardown(target_without_key_goes_everywhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(target_impossible_filter_goes_nowhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(target_collation_keeps_from_targeting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(target_collation_concerns_strings_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(target_tells_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(target_ranges_of_a_shard_stay_inside_what_it_owns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(target_more_values_than_a_request_takes_go_to_all_owners, set_up, tear_down),
        cmocka_unit_test_setup_teardown(target_bad_filter_is_an_error, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
