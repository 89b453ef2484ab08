#include "query/bounds.h"

#include "base/random.h"
#include "bson/hash.h"
#include "bson/keyenc.h"
#include "bson/keygen.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/expr/json.h"

#include <string.h>

static void derive(struct arena *arena, const char *filter_text, const char *key, bool multikey, bool shard_key,
                   struct bounds *out)
{
    struct filter *filter;
    struct bounds_pattern pattern;
    struct err err = {0};
    if (!filter_compile(arena, json_doc(arena, filter_text), NULL, &filter, &err) ||
        !bounds_pattern_parse(json_doc(arena, key), &pattern, &err))
        fail_msg("%s: %s", filter_text, err.msg);
    for (uint32_t i = 0; multikey && i < pattern.field_count; i++)
        pattern.fields[i].arrays = ~UINT64_C(0);
    pattern.shard_key = shard_key;
    bounds_from_filter(arena, filter, &pattern, out);
}

/* Does the key of these values lie inside? */
static bool has_key(struct arena *arena, const struct bounds *bounds, const char *key, const char *values)
{
    struct buf bytes = BUF_INIT;
    keyenc_append_doc_key(&bytes, json_doc(arena, values), keyenc_descending(json_doc(arena, key)));
    bool inside = bounds_contains(bounds, bytes.data, (uint32_t)bytes.len);
    buf_deinit(&bytes);
    return inside;
}

static void bounds_of_equality_and_range_are_exact(void **state)
{
    struct arena arena;
    struct bounds b;
    (void)state;
    arena_init(&arena);
    derive(&arena, "{'a': 5, 'b': {'$gt': 1, '$lte': 3}}", "{'a': 1, 'b': -1}", false, false, &b);
    assert_true(b.exact);
    assert_false(b.all);
    assert_false(b.points);
    assert_int_equal(b.interval_count, 1);
    assert_int_equal(b.fixed_fields, 1);
    assert_int_equal(b.used_fields, 2);
    assert_true(has_key(&arena, &b, "{'a': 1, 'b': -1}", "{'a': 5, 'b': 3}"));
    assert_true(has_key(&arena, &b, "{'a': 1, 'b': -1}", "{'a': 5.0, 'b': 1.5}"));
    assert_false(has_key(&arena, &b, "{'a': 1, 'b': -1}", "{'a': 5, 'b': 1}"));
    assert_false(has_key(&arena, &b, "{'a': 1, 'b': -1}", "{'a': 5, 'b': 'x'}"));
    assert_false(has_key(&arena, &b, "{'a': 1, 'b': -1}", "{'a': 6, 'b': 3}"));
    arena_deinit(&arena);
}

static void bounds_without_a_predicate_on_the_first_field_are_all(void **state)
{
    struct arena arena;
    struct bounds b;
    (void)state;
    arena_init(&arena);
    derive(&arena, "{'b': 5}", "{'a': 1, 'b': 1}", false, false, &b);
    assert_true(b.all);
    assert_false(b.exact);
    derive(&arena, "{}", "{'a': 1}", false, false, &b);
    assert_true(b.all);
    assert_true(b.exact);
    derive(&arena, "{'$or': [{'a': 1}, {'b': 2}]}", "{'a': 1}", false, false, &b);
    assert_true(b.all);
    arena_deinit(&arena);
}

static void bounds_of_a_shard_key_are_points_and_unions(void **state)
{
    struct arena arena;
    struct bounds b;
    (void)state;
    arena_init(&arena);
    derive(&arena, "{'$and': [{'x': 7}, {'a': {'$in': [3, 1]}}]}", "{'a': 1}", false, true, &b);
    assert_true(b.points);
    assert_int_equal(b.interval_count, 2);
    derive(&arena, "{'$or': [{'a': 1}, {'a': {'$gte': 5}}]}", "{'a': 1, 'b': 1}", false, true, &b);
    assert_int_equal(b.interval_count, 2);
    assert_false(b.points);
    derive(&arena, "{'a': null}", "{'a': 1}", false, true, &b);
    assert_true(b.points);
    assert_true(has_key(&arena, &b, "{'a': 1}", "{'a': null}"));
    derive(&arena, "{'a': [1]}", "{'a': 1}", false, true, &b);
    assert_true(b.all);
    derive(&arena, "{'a': {'$in': []}}", "{'a': 1}", false, true, &b);
    assert_int_equal(b.interval_count, 0);
    derive(&arena, "{'a': {'b': 3}}", "{'a.b': 1}", false, true, &b);
    assert_true(b.points);
    assert_true(has_key(&arena, &b, "{'a.b': 1}", "{'': 3}"));
    arena_deinit(&arena);
}

static void bounds_of_a_hashed_field_are_the_hash_of_equal_values(void **state)
{
    struct arena arena;
    struct bounds b;
    struct buf key = BUF_INIT;
    (void)state;
    arena_init(&arena);
    struct bval five = json_val(&arena, "5");
    derive(&arena, "{'a': 5.0}", "{'a': 'hashed'}", false, true, &b);
    keyenc_append_i64(&key, bval_hash(&five), false);
    assert_true(b.points);
    assert_true(bounds_contains(&b, key.data, (uint32_t)key.len));
    derive(&arena, "{'a': {'$gt': 5}}", "{'a': 'hashed'}", false, true, &b);
    assert_true(b.all);
    buf_deinit(&key);
    arena_deinit(&arena);
}

static void bounds_of_a_multikey_index_are_not_intersected(void **state)
{
    struct arena arena;
    struct bounds b;
    (void)state;
    arena_init(&arena);
    derive(&arena, "{'a': {'$gt': 1, '$lt': 3}}", "{'a': 1}", true, false, &b);
    assert_false(b.exact);
    bool low_open = has_key(&arena, &b, "{'a': 1}", "{'a': -5}");
    bool high_open = has_key(&arena, &b, "{'a': 1}", "{'a': 9}");
    assert_true(low_open || high_open);
    derive(&arena, "{'a': {'$elemMatch': {'$gt': 1, '$lt': 3}}}", "{'a': 1}", true, false, &b);
    assert_false(has_key(&arena, &b, "{'a': 1}", "{'a': -5}"));
    assert_false(has_key(&arena, &b, "{'a': 1}", "{'a': 9}"));
    arena_deinit(&arena);
}

static void bounds_of_a_very_long_in_list_are_one_interval(void **state)
{
    struct arena arena;
    struct bounds b;
    struct buf text = BUF_INIT;
    (void)state;
    arena_init(&arena);
    buf_append(&text, "{'a': {'$in': [0", 16);
    for (int i = 1; i <= BOUNDS_MAX_INTERVALS; i++) {
        const char *number = arena_printf(&arena, ", %d", i);
        buf_append(&text, number, strlen(number));
    }
    buf_append(&text, "]}}", 4);
    derive(&arena, (const char *)text.data, "{'a': -1}", false, true, &b);
    assert_int_equal(b.interval_count, 1);
    assert_false(b.exact);
    assert_false(b.points);
    assert_true(has_key(&arena, &b, "{'a': -1}", "{'a': 4096}"));
    assert_true(has_key(&arena, &b, "{'a': -1}", "{'a': 0}"));
    assert_false(has_key(&arena, &b, "{'a': -1}", "{'a': 4097}"));
    assert_false(has_key(&arena, &b, "{'a': -1}", "{'a': -1}"));
    buf_deinit(&text);
    arena_deinit(&arena);
}

/* The other predicates still say where to look: a router sends a write by the key in them. */
static void bounds_of_a_very_long_or_come_from_the_other_predicates(void **state)
{
    struct arena arena;
    struct bounds b;
    struct buf text = BUF_INIT;
    (void)state;
    arena_init(&arena);
    buf_append(&text, "{'a': 7, '$or': [{'x': 0}", 25);
    for (int i = 1; i <= 300; i++) {
        const char *branch = arena_printf(&arena, ", {'x': %d}", i);
        buf_append(&text, branch, strlen(branch));
    }
    buf_append(&text, "]}", 3);
    derive(&arena, (const char *)text.data, "{'a': 1}", false, true, &b);
    assert_false(b.all);
    assert_true(b.points);
    assert_false(b.exact);
    assert_int_equal(b.interval_count, 1);
    assert_true(has_key(&arena, &b, "{'a': 1}", "{'a': 7}"));
    assert_false(has_key(&arena, &b, "{'a': 1}", "{'a': 8}"));
    buf_deinit(&text);
    arena_deinit(&arena);
}

/* They were multiplied out one within the other, as deep as the filter is long. */
static void bounds_of_very_many_ors_take_little_memory(void **state)
{
    enum { ORS = 3000, ARENA_MAX_BYTES = 32 * 1024 * 1024 };
    struct arena arena;
    struct bounds b;
    struct buf text = BUF_INIT;
    (void)state;
    arena_init(&arena);
    buf_append(&text, "{'a': 7, '$and': [{'x': 0}", 26);
    for (int i = 1; i <= ORS; i++) {
        const char *one = arena_printf(&arena, ", {'$or': [{'x': %d}, {'y': %d}]}", i, i);
        buf_append(&text, one, strlen(one));
    }
    buf_append(&text, "]}", 3);
    derive(&arena, (const char *)text.data, "{'a': 1}", false, true, &b);
    assert_in_range(arena.used_bytes, 1, ARENA_MAX_BYTES);
    assert_int_equal(b.interval_count, 1);
    assert_true(has_key(&arena, &b, "{'a': 1}", "{'a': 7}"));
    assert_false(has_key(&arena, &b, "{'a': 1}", "{'a': 8}"));
    buf_deinit(&text);
    arena_deinit(&arena);
}

static void bounds_overlap_a_chunk_range(void **state)
{
    struct arena arena;
    struct bounds b;
    (void)state;
    arena_init(&arena);
    struct buf low = BUF_INIT;
    struct buf high = BUF_INIT;
    derive(&arena, "{'a': {'$gte': 5, '$lt': 10}}", "{'a': 1}", false, true, &b);
    keyenc_append_bound(&low, json_doc(&arena, "{'a': 10}"));
    assert_false(bounds_overlaps(&b, low.data, (uint32_t)low.len, NULL, 0));
    keyenc_append_bound(&high, json_doc(&arena, "{'a': 5}"));
    assert_false(bounds_overlaps(&b, (const uint8_t *)"", 0, high.data, (uint32_t)high.len));
    assert_true(bounds_overlaps(&b, high.data, (uint32_t)high.len, low.data, (uint32_t)low.len));
    buf_deinit(&low);
    buf_deinit(&high);
    arena_deinit(&arena);
}

/* Random parts of filters and documents over few values, so that they meet. */
static const char *const values[] = {"1",
                                     "2",
                                     "2.5",
                                     "'a'",
                                     "'ab'",
                                     "null",
                                     "true",
                                     "[]",
                                     "[1, 2]",
                                     "{'x': 1}",
                                     "{'$numberLong': '3'}",
                                     "{'$minKey': 1}",
                                     "{'$numberDouble': 'NaN'}",
                                     "[[1], 'a']",
                                     "{'$maxKey': 1}"};
static const char *const operators[] = {"$eq", "$gt", "$gte", "$lt", "$lte", "$in", "$elemMatch", "$regex", "$ne"};

static const char *pick_value(struct prng *prng, size_t limit)
{
    return values[prng_below(prng, limit)];
}

static const char *make_predicate(struct arena *arena, struct prng *prng, const char *field)
{
    const char *op = operators[prng_below(prng, sizeof operators / sizeof *operators)];
    size_t all = sizeof values / sizeof *values;
    if (strcmp(op, "$in") == 0)
        return arena_printf(arena, "'%s': {'$in': [%s, %s]}", field, pick_value(prng, all), pick_value(prng, all));
    if (strcmp(op, "$elemMatch") == 0)
        return arena_printf(arena, "'%s': {'$elemMatch': {'$gte': %s, '$lt': %s}}", field, pick_value(prng, 5),
                            pick_value(prng, 5));
    if (strcmp(op, "$regex") == 0)
        return arena_printf(arena, "'%s': {'$regex': '^%s'}", field, prng_below(prng, 2) == 0 ? "a" : "ab?");
    if (prng_below(prng, 3) == 0)
        return arena_printf(arena, "'%s': {'$gte': %s, '%s': %s}", field, pick_value(prng, 5), op,
                            pick_value(prng, all));
    return arena_printf(arena, "'%s': {'%s': %s}", field, op, pick_value(prng, all));
}

static const char *make_filter(struct arena *arena, struct prng *prng)
{
    const char *a = make_predicate(arena, prng, "a");
    const char *b = make_predicate(arena, prng, "b");
    switch (prng_below(prng, 4)) {
    case 0:
        return arena_printf(arena, "{%s}", a);
    case 1:
        return arena_printf(arena, "{%s, %s}", a, b);
    case 2:
        return arena_printf(arena, "{'$or': [{%s}, {%s, %s}]}", a, make_predicate(arena, prng, "a"), b);
    default:
        return arena_printf(arena, "{'$and': [{%s}, {%s}], %s}", a, make_predicate(arena, prng, "a"), b);
    }
}

struct hit {
    const struct bounds *bounds;
    bool inside;
};

static bool look(void *arg, const uint8_t *key, size_t len)
{
    struct hit *hit = arg;
    hit->inside = hit->inside || bounds_contains(hit->bounds, key, (uint32_t)len);
    return true;
}

/* One filter, one document: a match must have a key inside; an exact interval must hold matches only. */
static void check_pair(struct arena *arena, const char *filter_text, const char *doc_text, const char *pattern_text)
{
    struct keygen gen;
    struct err err;
    struct filter *filter;
    struct bounds bounds;
    struct bounds_pattern pattern;
    bool multikey = false;
    struct bdoc doc = json_doc(arena, doc_text);
    assert_true(keygen_init(&gen, json_doc(arena, pattern_text), NULL, &err));
    struct hit none = {.bounds = &bounds};
    bounds = (struct bounds){0};
    bool indexable = keygen_each_encoded(&gen, doc, look, &none, &multikey, &err);
    if (indexable && filter_compile(arena, json_doc(arena, filter_text), NULL, &filter, &err)) {
        assert_true(bounds_pattern_parse(json_doc(arena, pattern_text), &pattern, &err));
        for (uint32_t i = 0; multikey && i < pattern.field_count; i++)
            pattern.fields[i].arrays = ~UINT64_C(0);
        bounds_from_filter(arena, filter, &pattern, &bounds);
        struct hit hit = {.bounds = &bounds};
        assert_true(keygen_each_encoded(&gen, doc, look, &hit, &multikey, &err));
        bool matches = filter_matches(filter, doc);
        if (matches && !hit.inside)
            fail_msg("%s matches %s but no key of %s lies in its bounds", filter_text, doc_text, pattern_text);
        if (hit.inside && bounds.exact && !matches)
            fail_msg("bounds of %s over %s are said to be exact but hold %s", filter_text, pattern_text, doc_text);
    }
    keygen_deinit(&gen);
}

static void bounds_hold_every_matching_document(void **state)
{
    static const char *const patterns[] = {"{'a': 1}", "{'a': -1}", "{'a': 1, 'b': -1}", "{'a': -1, 'b': 1}"};
    struct prng prng = {7};
    (void)state;
    for (int i = 0; i < 6000; i++) {
        struct arena arena;
        arena_init(&arena);
        const char *filter = make_filter(&arena, &prng);
        size_t all = sizeof values / sizeof *values;
        const char *doc = prng_below(&prng, 8) == 0 ? "{'b': 2}"
                                                    : arena_printf(&arena, "{'a': %s, 'b': %s}", pick_value(&prng, all),
                                                                   pick_value(&prng, all));
        check_pair(&arena, filter, doc, patterns[prng_below(&prng, 4)]);
        arena_deinit(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_of_equality_and_range_are_exact),
        cmocka_unit_test(bounds_without_a_predicate_on_the_first_field_are_all),
        cmocka_unit_test(bounds_of_a_shard_key_are_points_and_unions),
        cmocka_unit_test(bounds_of_a_hashed_field_are_the_hash_of_equal_values),
        cmocka_unit_test(bounds_of_a_multikey_index_are_not_intersected),
        cmocka_unit_test(bounds_of_a_very_long_in_list_are_one_interval),
        cmocka_unit_test(bounds_of_a_very_long_or_come_from_the_other_predicates),
        cmocka_unit_test(bounds_of_very_many_ors_take_little_memory),
        cmocka_unit_test(bounds_overlap_a_chunk_range),
        cmocka_unit_test(bounds_hold_every_matching_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
