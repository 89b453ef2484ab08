/* Filters: any input compiles or is refused with a code. Of what compiles: testing twice gives the same, negation is
 * the opposite, $and and $or of a filter with itself are the filter, an equality that the filter is said to fix holds,
 * and bounds hold a key of every document that matches. */
#include "base/check.h"
#include "bson/keygen.h"
#include "query/bounds.h"
#include "tests/fuzz/query/fuzz.h"
#include "tests/fuzz/query/material.h"

#include <string.h>

struct tested {
    const struct filter *filter;
    bool ok; /* it could be evaluated */
    bool matched;
};

static struct tested test(const struct filter *filter, struct bdoc doc)
{
    struct tested result = {.filter = filter};
    struct filter_match match = {.array_index = -1};
    struct err err = {0};
    result.ok = filter_eval(filter, doc, &match, &result.matched, &err);
    if (!result.ok) {
        material_check_error(&err);
        CHECK(filter_can_fail(filter));
        return result;
    }
    CHECK(result.matched == filter_matches(filter, doc));
    CHECK(!result.matched || !filter_is_never(filter));
    CHECK(result.matched || !filter_is_empty(filter));
    return result;
}

/* {name: [part, part ...]} */
static const struct filter *combine(struct arena *arena, const struct material *m, const char *name, unsigned times)
{
    struct filter *filter;
    struct err err = {0};
    bson_t query = BSON_INITIALIZER;
    bson_t list;
    struct bval part = bval_from_doc(m->filter);
    BSON_APPEND_ARRAY_BEGIN(&query, name, &list);
    for (unsigned i = 0; i < times; i++)
        bval_append(&list, i == 0 ? "0" : "1", 1, &part);
    bson_append_array_end(&query, &list);
    struct bdoc copy = {arena_copy(arena, bson_get_data(&query), query.len), query.len};
    bson_destroy(&query);
    if (filter_compile(arena, copy, &m->env, &filter, &err))
        return filter;
    /* Deeper than may be by one level, or with twice as many predicates as may be. */
    material_check_error(&err);
    return NULL;
}

static void check_combinations(struct arena *arena, const struct material *m, const struct tested *results)
{
    const struct filter *negated = combine(arena, m, "$nor", 1);
    const struct filter *both = combine(arena, m, "$and", 2);
    const struct filter *either = combine(arena, m, "$or", 2);
    for (int i = 0; i < MATERIAL_DOCS; i++) {
        if (!results[i].ok)
            continue;
        CHECK(negated == NULL || test(negated, m->docs[i]).matched == !results[i].matched);
        CHECK(both == NULL || test(both, m->docs[i]).matched == results[i].matched);
        CHECK(either == NULL || test(either, m->docs[i]).matched == results[i].matched);
    }
}

static void check_equality(struct arena *arena, const struct material *m, const struct filter *filter,
                           const struct tested *results, const char *path)
{
    struct bval val;
    struct filter *equality;
    struct err err = {0};
    bson_t query = BSON_INITIALIZER;
    bson_t inner;
    if (!filter_equality(filter, path, &val)) {
        bson_destroy(&query);
        return;
    }
    BSON_APPEND_DOCUMENT_BEGIN(&query, path, &inner);
    bval_append(&inner, "$eq", -1, &val);
    bson_append_document_end(&query, &inner);
    CHECK(filter_compile(arena, bdoc_of(&query), &m->env, &equality, &err));
    for (int i = 0; i < MATERIAL_DOCS; i++)
        CHECK(!results[i].ok || !results[i].matched || filter_matches(equality, m->docs[i]));
    bson_destroy(&query);
}

struct key_search {
    const struct bounds *bounds;
    bool found;
};

static bool look_at_key(void *arg, const uint8_t *key, size_t len)
{
    struct key_search *search = arg;
    search->found = bounds_contains(search->bounds, key, (uint32_t)len);
    return !search->found;
}

/* A document that matches has a key inside the bounds, unless it can't be in such an index at all. */
static void check_bounds(struct arena *arena, const struct material *m, const struct filter *filter,
                         const struct tested *results, const char *pattern_json, const struct bval_order *order)
{
    struct keygen gen;
    struct bounds bounds;
    struct bounds_pattern pattern;
    struct err err = {0};
    bson_t key;
    CHECK(bson_init_from_json(&key, pattern_json, -1, NULL));
    CHECK(keygen_init(&gen, bdoc_of(&key), order, &err) && bounds_pattern_parse(bdoc_of(&key), &pattern, &err));
    pattern.order = order;
    for (uint32_t i = 0; i < pattern.field_count; i++)
        pattern.fields[i].arrays = UINT64_MAX;
    bounds_from_filter(arena, filter, &pattern, &bounds);
    for (int i = 0; i < MATERIAL_DOCS; i++) {
        struct key_search search = {.bounds = &bounds};
        bool multikey;
        if (!results[i].ok || !results[i].matched)
            continue;
        if (keygen_each_encoded(&gen, m->docs[i], look_at_key, &search, &multikey, &err))
            CHECK(search.found);
    }
    keygen_deinit(&gen);
    bson_destroy(&key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const patterns[] = {"{\"a\": 1}", "{\"a\": -1, \"b\": 1}", "{\"a.b\": 1, \"c\": -1}",
                                           "{\"a.0\": 1}"};
    struct arena arena;
    struct material m;
    struct filter *filter;
    struct tested results[MATERIAL_DOCS];
    struct err err = {0};
    arena_init(&arena);
    material_make(&arena, data, size, NULL, 0, &m);
    if (!filter_compile(&arena, m.filter, &m.env, &filter, &err)) {
        material_check_error(&err);
        arena_deinit(&arena);
        return 0;
    }
    for (int i = 0; i < MATERIAL_DOCS; i++)
        results[i] = test(filter, m.docs[i]);
    check_combinations(&arena, &m, results);
    check_equality(&arena, &m, filter, results, "a");
    check_equality(&arena, &m, filter, results, "_id");
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        check_bounds(&arena, &m, filter, results, patterns[i], m.env.order);
        check_bounds(&arena, &m, filter, results, patterns[i], NULL);
    }
    filter_release(filter);
    arena_deinit(&arena);
    return 0;
}
