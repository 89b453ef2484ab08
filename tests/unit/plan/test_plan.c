#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include "document/engine.h"
#include "node/node_internal.h"
#include "plan/cache.h"
#include "plan/scan.h"

#include <stdio.h>
#include <string.h>

struct asked {
    const char *filter;
    const char *sort; /* NULL: none */
    bool limited;
};

/* A plan made in a transaction of its own. */
struct planned {
    struct arena arena;
    struct store_txn *txn;
    const struct collection *coll;
    struct plan_request request;
    struct plan *plan;
    struct err err;
    bool ok;
};

static struct bdoc parse(struct arena *arena, const char *json)
{
    bson_error_t error;
    bson_t *doc = bson_new_from_json((const uint8_t *)json, -1, &error);
    if (doc == NULL)
        fail_msg("%s: %s", json, error.message);
    struct bdoc copy = {.data = arena_copy(arena, bson_get_data(doc), doc->len), .len = doc->len};
    bson_destroy(doc);
    return copy;
}

/* Begins; what is asked for besides goes into planned->request before planned_make. */
static void planned_begin(struct fixture *fixture, struct planned *planned, const struct asked *asked)
{
    struct filter *filter;
    struct sort_spec *sort;
    *planned = (struct planned){.request = {.limited = asked->limited}};
    arena_init(&planned->arena);
    assert_true(store_read_begin(fixture->store, &planned->txn, &planned->err));
    planned->coll = catalog_find(planned->txn, "t.c", 3);
    assert_true(filter_compile(&planned->arena, parse(&planned->arena, asked->filter), NULL, &filter, &planned->err));
    planned->request.filter = filter;
    planned->request.txn = planned->txn;
    if (asked->sort == NULL)
        return;
    assert_true(sort_spec_compile(&planned->arena, parse(&planned->arena, asked->sort), NULL, &sort, &planned->err));
    planned->request.sort = sort;
}

static void planned_make(struct planned *planned)
{
    planned->ok = plan_make(&planned->arena, planned->coll, &planned->request, &planned->plan, &planned->err);
}

static void planned_end(struct planned *planned)
{
    store_read_end(planned->txn);
    arena_deinit(&planned->arena);
}

/* The summary of the plan that is chosen in collection t.c. */
static void expect_plan(struct fixture *fixture, const struct asked *asked, const char *summary, bool sorted)
{
    struct planned planned;
    planned_begin(fixture, &planned, asked);
    planned_make(&planned);
    assert_true(planned.ok);
    const char *got = plan_summary(planned.plan, &planned.arena);
    if (strcmp(got, summary) != 0)
        fail_msg("%s instead of %s: %s", got, summary, asked->filter);
    if (asked->sort != NULL)
        assert_int_equal(planned.plan->sorted, sorted);
    planned_end(&planned);
}

/* Walks the plan to its end. */
static void walk_all(struct planned *planned, struct scan *scan, uint64_t *found_count)
{
    struct scan_options options = {.txn = planned->txn, .coll = planned->coll, .plan = planned->plan, .need_doc = true};
    bool found = true;
    assert_true(scan_open(scan, &options, &planned->err));
    for (*found_count = 0; found; *found_count += found)
        assert_true(scan_next(scan, &found, &planned->err));
}

static void create_indexes(struct fixture *fixture, const char *specs)
{
    char command[2000];
    snprintf(command, sizeof command, "{'createIndexes': 'c', 'indexes': [%s]}", specs);
    fixture_expect(fixture, command, "{'ok': 1.0}");
}

/* `doc` is a format of two numbers: i and i % modulus. */
static void fill(struct fixture *fixture, int count, int modulus)
{
    for (int i = 0; i < count;) {
        char command[8000];
        int at = snprintf(command, sizeof command, "{'insert': 'c', 'documents': [");
        for (int j = 0; j < 50 && i < count; j++, i++)
            at += snprintf(command + at, sizeof command - (size_t)at, "%s{'_id': %d, 'a': %d, 'b': %d, 'c': %d}",
                           j > 0 ? ", " : "", i, i % modulus, i, i / modulus);
        snprintf(command + at, sizeof command - (size_t)at, "]}");
        bson_destroy(fixture_run(fixture, command));
    }
}

static void planner_chooses_the_narrowest_index(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    create_indexes(&fixture, "{'key': {'a': 1}, 'name': 'a'}, {'key': {'a': 1, 'b': 1}, 'name': 'ab'},"
                             " {'key': {'u': 1}, 'name': 'u', 'unique': true},"
                             " {'key': {'s': 1}, 'name': 's', 'sparse': true}, {'key': {'h': 'hashed'}, 'name': 'h'}");
    static const struct {
        struct asked asked;
        const char *summary;
        bool sorted;
    } cases[] = {
        {{"{\"_id\": 5}", NULL, false}, "IDHACK", true},
        {{"{\"_id\": 5, \"a\": 1}", "{\"b\": 1}", false}, "IDHACK", true},
        {{"{\"_id\": {\"$gt\": 5}}", NULL, false}, "IXSCAN { _id: 1 }", true},
        {{"{}", NULL, false}, "COLLSCAN", false},
        {{"{\"z\": 1}", NULL, false}, "COLLSCAN", false},
        {{"{\"b\": 1}", NULL, false}, "COLLSCAN", false},
        {{"{\"a\": 1, \"b\": 2}", NULL, false}, "IXSCAN { a: 1, b: 1 }", true},
        {{"{\"a\": 1, \"u\": 2}", NULL, false}, "IXSCAN { u: 1 }", true},
        {{"{\"h\": 1}", NULL, false}, "IXSCAN { h: \"hashed\" }", true},
        {{"{\"h\": {\"$gt\": 1}}", NULL, false}, "COLLSCAN", false},
        {{"{\"s\": 1}", NULL, false}, "IXSCAN { s: 1 }", true},
        {{"{\"s\": null}", NULL, false}, "COLLSCAN", false},
        {{"{\"s\": {\"$ne\": null}}", NULL, false}, "IXSCAN { s: 1 }", true},
        {{"{\"s\": {\"$ne\": 4}}", NULL, false}, "COLLSCAN", false},
        {{"{\"s\": {\"$exists\": false}}", NULL, false}, "COLLSCAN", false},
        {{"{}", "{\"a\": 1}", true}, "IXSCAN { a: 1 }", true},
        {{"{}", "{\"a\": -1, \"b\": -1}", true}, "IXSCAN { a: 1, b: 1 }", true},
        {{"{}", "{\"a\": 1, \"b\": -1}", true}, "COLLSCAN", false},
        {{"{}", "{\"s\": 1}", true}, "COLLSCAN", false},
        {{"{\"a\": 5}", "{\"b\": -1}", false}, "IXSCAN { a: 1, b: 1 }", true},
        {{"{\"a\": {\"$gt\": 5}}", "{\"b\": 1}", false}, "IXSCAN { a: 1 }", false},
        {{"{\"a\": {\"$in\": []}}", NULL, false}, "EOF", true},
        {{"{\"$and\": [{\"a\": {\"$gt\": 5}}, {\"a\": {\"$lt\": 3}}]}", NULL, false}, "EOF", true},
        {{"{\"$or\": [{\"a\": 1}, {\"u\": 2}]}", NULL, false}, "IXSCAN { a: 1 }, IXSCAN { u: 1 }", false},
        {{"{\"$or\": [{\"a\": 1}, {\"z\": 2}]}", NULL, false}, "COLLSCAN", false},
        {{"{\"$or\": [{\"a\": 1}, {\"a\": {\"$gt\": 7}}]}", NULL, false}, "IXSCAN { a: 1 }", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_plan(&fixture, &cases[i].asked, cases[i].summary, cases[i].sorted);
    fixture_close(&fixture);
}

static void planner_sorts_by_a_multikey_index_only_when_all_of_it_is_walked(void **state)
{
    (void)state;
    struct fixture fixture;
    struct asked equality = {"{\"t\": 1}", NULL, false};
    struct asked order = {"{}", "{\"t\": 1}", true};
    struct asked range = {"{\"t\": {\"$gt\": 1}}", "{\"t\": 1}", true};
    fixture_open(&fixture);
    create_indexes(&fixture, "{'key': {'t': 1}, 'name': 't'}");
    expect_plan(&fixture, &range, "IXSCAN { t: 1 }", true);
    fixture_expect(&fixture, "{'insert': 'c', 'documents': [{'_id': 1, 't': [1, 2]}]}", "{'n': 1}");
    expect_plan(&fixture, &equality, "IXSCAN { t: 1 }", false);
    expect_plan(&fixture, &order, "IXSCAN { t: 1 }", true);
    expect_plan(&fixture, &range, "IXSCAN { t: 1 }", false);
    fixture_close(&fixture);
}

/* Neither the order of the indexes nor anything in the filter says that `b` is the better one. */
static void trial_finds_out_which_index_is_selective(void **state)
{
    (void)state;
    struct asked asked = {"{\"a\": 1, \"b\": {\"$lt\": 30}}", NULL, false};
    for (int order = 0; order < 2; order++) {
        struct fixture fixture;
        fixture_open(&fixture);
        create_indexes(&fixture, order == 0 ? "{'key': {'a': 1}, 'name': 'a'}, {'key': {'b': 1}, 'name': 'b'}"
                                            : "{'key': {'b': 1}, 'name': 'b'}, {'key': {'a': 1}, 'name': 'a'}");
        fill(&fixture, 1000, 2);
        expect_plan(&fixture, &asked, "IXSCAN { b: 1 }", true);
        fixture_close(&fixture);
    }
}

static void explain_keeps_the_rejected_plans(void **state)
{
    (void)state;
    struct fixture fixture;
    struct planned planned;
    struct asked asked = {"{\"a\": 1, \"b\": {\"$lt\": 30}}", NULL, false};
    fixture_open(&fixture);
    create_indexes(&fixture, "{'key': {'a': 1}, 'name': 'a'}, {'key': {'b': 1}, 'name': 'b'}");
    fill(&fixture, 100, 2);
    planned_begin(&fixture, &planned, &asked);
    planned.request.explain = true;
    planned_make(&planned);
    assert_true(planned.ok);
    assert_int_equal(planned.plan->rejected_count, 1);
    assert_string_equal(plan_index_name(planned.plan->rejected[0]), "a");
    assert_true(planned.plan->score > planned.plan->rejected[0]->score);
    assert_int_not_equal(planned.plan->shape_hash, 0);
    planned_end(&planned);
    fixture_close(&fixture);
}

/* ---- the cache ---- */

static bool plan_with_cache(struct fixture *fixture, struct plan_cache *cache, const char *filter, char *index)
{
    struct planned planned;
    struct asked asked = {filter, NULL, false};
    planned_begin(fixture, &planned, &asked);
    planned.request.cache = cache;
    planned_make(&planned);
    assert_true(planned.ok);
    bool cached = planned.plan->from_cache;
    *index = plan_index_name(planned.plan)[0];
    planned_end(&planned);
    return cached;
}

static void cache_remembers_by_shape_until_the_indexes_change(void **state)
{
    (void)state;
    struct fixture fixture;
    struct plan_cache *cache = plan_cache_new();
    char index;
    fixture_open(&fixture);
    create_indexes(&fixture, "{'key': {'a': 1}, 'name': 'a'}, {'key': {'b': 1}, 'name': 'b'}");
    fill(&fixture, 1000, 2);
    assert_false(plan_with_cache(&fixture, cache, "{\"a\": 1, \"b\": {\"$lt\": 30}}", &index));
    assert_int_equal(index, 'b');
    assert_true(plan_with_cache(&fixture, cache, "{\"a\": 0, \"b\": {\"$lt\": 900}}", &index));
    assert_int_equal(index, 'b');
    assert_false(plan_with_cache(&fixture, cache, "{\"a\": 0, \"b\": {\"$gt\": 900}}", &index));
    assert_int_equal(plan_cache_count(cache), 2);
    create_indexes(&fixture, "{'key': {'z': 1}, 'name': 'z'}");
    assert_false(plan_with_cache(&fixture, cache, "{\"a\": 1, \"b\": {\"$lt\": 30}}", &index));
    plan_cache_clear(cache, UINT32_MAX);
    assert_int_equal(plan_cache_count(cache), 2);
    plan_cache_free(cache);
    fixture_close(&fixture);
}

static void plan_cache_clear_forgets_what_plan_cache_stats_shows(void **state)
{
    (void)state;
    static const char stats[] =
        "{'aggregate': 'c', 'pipeline': [{'$planCacheStats': {}}, {'$count': 'n'}], 'cursor': {}}";
    struct fixture fixture;
    fixture_open(&fixture);
    create_indexes(&fixture, "{'key': {'a': 1}, 'name': 'a'}, {'key': {'b': 1}, 'name': 'b'}");
    fill(&fixture, 100, 2);
    bson_destroy(fixture_run(&fixture, "{'find': 'c', 'filter': {'a': 1, 'b': {'$lt': 30}}}"));
    fixture_expect(&fixture, stats, "{'cursor': {'firstBatch': [{'n': 1}], 'id': {'$numberLong': '0'}, 'ns': 't.c'}}");
    fixture_expect(&fixture, "{'planCacheClear': 'c'}", "{'ok': 1.0}");
    fixture_expect(&fixture, stats, "{'cursor': {'firstBatch': [], 'id': {'$numberLong': '0'}, 'ns': 't.c'}}");
    fixture_expect_error(&fixture, "{'planCacheClear': 'c', 'shape': 1}", 40415);
    fixture_close(&fixture);
}

static void cache_is_bounded_and_forgets_what_was_used_longest_ago(void **state)
{
    struct plan_cache *cache = plan_cache_new();
    struct plan_cache_value value = {.choice = 1};
    (void)state;
    for (uint32_t i = 0; i < PLAN_CACHE_ENTRIES_MAX + 10; i++) {
        uint32_t first = 0;
        plan_cache_put(cache, &i, sizeof i, &value);
        assert_true(plan_cache_get(cache, &first, sizeof first, 0, &value));
    }
    uint32_t second = 1;
    assert_int_equal(plan_cache_count(cache), PLAN_CACHE_ENTRIES_MAX);
    assert_false(plan_cache_get(cache, &second, sizeof second, 0, &value));
    plan_cache_free(cache);
}

/* What was good for one value is bad for another: the find begins again, and gives everything once. */
static void find_gives_up_a_remembered_plan_that_takes_too_many_steps(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    create_indexes(&fixture, "{'key': {'a': 1}, 'name': 'a'}, {'key': {'b': 1}, 'name': 'b'}");
    fill(&fixture, 3000, 2);
    struct plan_cache *cache = document_engine_plan_cache(fixture.host.engine);
    fixture_expect(
        &fixture,
        "{'find': 'c', 'filter': {'a': {'$gte': 1}, 'b': {'$gte': 2990}}, 'projection': {'_id': 1},"
        " 'sort': {'c': 1}, 'limit': 2}",
        "{'cursor': {'firstBatch': [{'_id': 2991}, {'_id': 2993}], 'id': {'$numberLong': '0'}, 'ns': 't.c'}}");
    assert_int_equal(plan_cache_count(cache), 1);
    /* Now `a` finds nothing at once, and `b` walks through all of them. */
    fixture_expect(&fixture,
                   "{'find': 'c', 'filter': {'a': {'$gte': 5}, 'b': {'$gte': 0}}, 'projection': {'_id': 1},"
                   " 'sort': {'c': 1}, 'limit': 2}",
                   "{'cursor': {'firstBatch': [], 'id': {'$numberLong': '0'}, 'ns': 't.c'}}");
    struct planned planned;
    struct asked asked = {"{\"a\": {\"$gte\": 5}, \"b\": {\"$gte\": 0}}", "{\"c\": 1}", true};
    planned_begin(&fixture, &planned, &asked);
    planned.request.cache = cache;
    planned.request.projection = NULL;
    planned_make(&planned);
    assert_string_equal(plan_index_name(planned.plan), "a");
    planned_end(&planned);
    fixture_close(&fixture);
}

/* ---- what plans can do ---- */

static void walk_jumps_over_gaps_of_a_compound_index(void **state)
{
    (void)state;
    struct fixture fixture;
    struct planned planned;
    struct scan scan;
    uint64_t found;
    struct asked asked = {"{\"a\": {\"$gte\": 0}, \"c\": 7}", NULL, false};
    fixture_open(&fixture);
    create_indexes(&fixture, "{'key': {'a': 1, 'c': 1}, 'name': 'ac'}");
    fill(&fixture, 1000, 10);
    planned_begin(&fixture, &planned, &asked);
    planned_make(&planned);
    assert_true(planned.ok);
    walk_all(&planned, &scan, &found);
    assert_int_equal(found, 10);
    assert_in_range(scan.keys_examined, 10, 31);
    scan_close(&scan);
    planned_end(&planned);
    fixture_close(&fixture);
}

static void union_and_merge_give_each_document_once(void **state)
{
    (void)state;
    static const struct {
        struct asked asked;
        enum plan_kind kind;
    } cases[] = {
        {{"{\"$or\": [{\"a\": 3}, {\"b\": {\"$lt\": 50}}]}", NULL, false}, PLAN_UNION},
        {{"{\"$or\": [{\"a\": 3}, {\"b\": {\"$in\": [1, 3, 13]}}]}", "{\"c\": 1}", true}, PLAN_MERGE},
        {{"{\"a\": {\"$in\": [3, 4]}}", "{\"c\": -1}", true}, PLAN_MERGE},
    };
    static const uint64_t wanted[] = {100 + 45, 100 + 1, 200};
    struct fixture fixture;
    fixture_open(&fixture);
    create_indexes(&fixture, "{'key': {'a': 1, 'c': 1}, 'name': 'ac'}, {'key': {'b': 1, 'c': 1}, 'name': 'bc'}");
    fill(&fixture, 1000, 10);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct planned planned;
        struct scan scan;
        uint64_t found;
        planned_begin(&fixture, &planned, &cases[i].asked);
        planned_make(&planned);
        assert_true(planned.ok);
        assert_int_equal(planned.plan->kind, cases[i].kind);
        walk_all(&planned, &scan, &found);
        assert_int_equal(found, wanted[i]);
        scan_close(&scan);
        planned_end(&planned);
    }
    fixture_close(&fixture);
}

static void index_alone_answers_counts_distincts_and_covered_projections(void **state)
{
    (void)state;
    struct fixture fixture;
    struct planned planned;
    struct scan scan;
    struct projection *projection;
    uint64_t found;
    struct asked all = {"{}", NULL, false};
    struct asked three = {"{\"a\": 3}", NULL, false};
    fixture_open(&fixture);
    create_indexes(&fixture, "{'key': {'a': 1, 'c': 1}, 'name': 'ac'}");
    fill(&fixture, 1000, 10);
    planned_begin(&fixture, &planned, &three);
    planned.request.count_only = true;
    planned_make(&planned);
    assert_true(planned.plan->keys_only);
    planned_end(&planned);

    planned_begin(&fixture, &planned, &all);
    planned.request.distinct = "a";
    planned_make(&planned);
    assert_int_equal(planned.plan->distinct_fields, 1);
    walk_all(&planned, &scan, &found);
    assert_int_equal(found, 10);
    assert_in_range(scan.keys_examined, 10, 11);
    scan_close(&scan);
    planned_end(&planned);

    planned_begin(&fixture, &planned, &three);
    assert_true(projection_compile(&planned.arena, parse(&planned.arena, "{\"a\": 1, \"c\": 1, \"_id\": 0}"),
                                   &(struct projection_options){.kind = PROJECTION_FIND}, &projection, &planned.err));
    planned.request.projection = projection;
    planned_make(&planned);
    assert_true(planned.plan->covered);
    walk_all(&planned, &scan, &found);
    assert_int_equal(found, 100);
    assert_int_equal(scan.docs_examined, 0);
    scan_close(&scan);
    planned_end(&planned);
    fixture_close(&fixture);
}

/* ---- hints ---- */

static void hint_that_cannot_serve_gets_its_code(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_set_filter_hooks(node_filter_hooks());
    fixture_open(&fixture);
    create_indexes(&fixture, "{'key': {'a': 1}, 'name': 'a'}, {'key': {'h': 1}, 'name': 'h', 'hidden': true},"
                             " {'key': {'p': 1}, 'name': 'p', 'partialFilterExpression': {'p': {'$gt': 5}}}");
    static const struct {
        const char *options;
        int code;
    } cases[] = {
        {"'hint': 'none'", 2},
        {"'hint': {'z': 1}", 2},
        {"'hint': 'h'", 2},
        {"'hint': {'h': 1}", 2},
        {"'hint': 'p'", 291},
        {"'min': {'a': 1}", 51173},
        {"'hint': 'a', 'min': {'b': 1}", 51174},
        {"'hint': 'a', 'min': {'a': 5}, 'max': {'a': 5}", 51175},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char command[200];
        snprintf(command, sizeof command, "{'find': 'c', 'filter': {'p': 3}, %s}", cases[i].options);
        fixture_expect_error(&fixture, command, cases[i].code);
    }
    fixture_close(&fixture);
    fixture_set_filter_hooks((struct store_filter_hooks){0});
}

static void partial_index_serves_queries_that_imply_its_filter(void **state)
{
    (void)state;
    static const struct {
        const char *partial;
        const char *filter;
        bool serves;
    } cases[] = {
        {"{'a': {'$gt': 5}}", "{\"a\": {\"$gt\": 7}}", true},
        {"{'a': {'$gt': 5}}", "{\"a\": 6}", true},
        {"{'a': {'$gt': 5}}", "{\"a\": {\"$gte\": 5}}", false},
        {"{'a': {'$gt': 5}}", "{\"a\": {\"$in\": [7, 9]}}", true},
        {"{'a': {'$gt': 5}}", "{\"a\": {\"$in\": [7, 3]}}", false},
        {"{'b': {'$exists': true}}", "{\"a\": 1, \"b\": 2}", true},
        {"{'b': {'$exists': true}}", "{\"a\": 1, \"b\": null}", false},
        {"{'b': {'$exists': true}}", "{\"a\": 1, \"b\": {\"$ne\": null}}", true},
        {"{'b': {'$exists': true}}", "{\"a\": 1, \"b\": {\"$ne\": 3}}", false},
        {"{'a': {'$type': 'number'}}", "{\"a\": {\"$lt\": 7}}", true},
        {"{'$or': [{'b': 1}, {'b': 2}]}", "{\"a\": 1, \"b\": 2}", true},
        {"{'$or': [{'b': 1}, {'b': 2}]}", "{\"a\": 1, \"b\": 3}", false},
        {"{'b': 1, 'c': 2}", "{\"a\": 1, \"c\": 2, \"b\": 1}", true},
        {"{'b': 1, 'c': 2}", "{\"a\": 1, \"c\": 2}", false},
        {"{'b': {'$lte': 9}}", "{\"a\": 1, \"$or\": [{\"b\": 3}, {\"b\": {\"$lt\": 5}}]}", true},
        {"{'b': {'$lte': 9}}", "{\"a\": 1, \"$or\": [{\"b\": 3}, {\"b\": \"x\"}]}", false},
    };
    fixture_set_filter_hooks(node_filter_hooks());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture fixture;
        char spec[300];
        struct asked asked = {cases[i].filter, NULL, false};
        fixture_open(&fixture);
        snprintf(spec, sizeof spec, "{'key': {'a': 1}, 'name': 'i', 'partialFilterExpression': %s}", cases[i].partial);
        create_indexes(&fixture, spec);
        expect_plan(&fixture, &asked, cases[i].serves ? "IXSCAN { a: 1 }" : "COLLSCAN", true);
        fixture_close(&fixture);
    }
    fixture_set_filter_hooks((struct store_filter_hooks){0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planner_chooses_the_narrowest_index),
        cmocka_unit_test(planner_sorts_by_a_multikey_index_only_when_all_of_it_is_walked),
        cmocka_unit_test(trial_finds_out_which_index_is_selective),
        cmocka_unit_test(explain_keeps_the_rejected_plans),
        cmocka_unit_test(cache_remembers_by_shape_until_the_indexes_change),
        cmocka_unit_test(plan_cache_clear_forgets_what_plan_cache_stats_shows),
        cmocka_unit_test(cache_is_bounded_and_forgets_what_was_used_longest_ago),
        cmocka_unit_test(find_gives_up_a_remembered_plan_that_takes_too_many_steps),
        cmocka_unit_test(walk_jumps_over_gaps_of_a_compound_index),
        cmocka_unit_test(union_and_merge_give_each_document_once),
        cmocka_unit_test(index_alone_answers_counts_distincts_and_covered_projections),
        cmocka_unit_test(hint_that_cannot_serve_gets_its_code),
        cmocka_unit_test(partial_index_serves_queries_that_imply_its_filter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
