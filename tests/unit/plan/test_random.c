/* Random documents in collections that differ in their indexes only, and random queries: every collection must give the
 * same answer as the one without an index, whatever plan it takes. Deterministic by seed; SHERD_PLAN_SEEDS=n runs more
 * seeds, SHERD_PLAN_SEED=s only one. */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"
#include "tests/unit/plan/random_query.h"

#include "base/mem.h"
#include "bson/extjson.h"
#include "bson/keyenc.h"
#include "bson/value.h"
#include "node/node_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEEDS = 3,
    DOCUMENTS = 120,
    QUERIES = 150,
    CHANGES = 20, /* documents changed now and then, between queries */
    ANSWER_MAX = 2 * DOCUMENTS,
};

/* The collection c<i> has index i; c0 has none, and the last one has them all. */
static const char *const indexes[] = {
    NULL,
    "{\"key\": {\"a\": 1}, \"name\": \"i\"}",
    "{\"key\": {\"a\": -1, \"b\": 1}, \"name\": \"i\"}",
    "{\"key\": {\"b\": 1, \"a\": 1, \"_id\": 1}, \"name\": \"i\"}",
    "{\"key\": {\"a.c\": 1}, \"name\": \"i\"}",
    "{\"key\": {\"a.c\": 1, \"a.e\": -1}, \"name\": \"i\"}",
    "{\"key\": {\"d\": 1}, \"name\": \"i\", \"sparse\": true}",
    "{\"key\": {\"d\": 1, \"b\": -1}, \"name\": \"i\", \"sparse\": true}",
    "{\"key\": {\"a\": \"hashed\"}, \"name\": \"i\"}",
    "{\"key\": {\"b\": 1, \"d\": \"hashed\"}, \"name\": \"i\"}",
    "{\"key\": {\"a\": 1, \"d\": 1}, \"name\": \"i\", \"partialFilterExpression\": {\"a\": {\"$gt\": 1}}}",
    "{\"key\": {\"d\": 1}, \"name\": \"i\", \"partialFilterExpression\": {\"$or\": [{\"b\": {\"$exists\": true}}, "
    "{\"a\": {\"$lte\": 2}}]}}",
    "{\"key\": {\"$**\": 1}, \"name\": \"i\"}",
    "{\"key\": {\"b\": 1, \"a.$**\": -1}, \"name\": \"i\"}",
    "{\"key\": {\"a\": 1}, \"name\": \"i\", \"collation\": {\"locale\": \"en\", \"strength\": 2}}",
    "{\"key\": {\"a.0\": 1}, \"name\": \"i\"}",
    "{\"key\": {\"d\": 1, \"a\": 1, \"_id\": -1}, \"name\": \"i\"}",
    "{\"key\": {\"a\": 1, \"a.c\": 1}, \"name\": \"i\"}",
};

enum { INDEXES = sizeof indexes / sizeof indexes[0], COLLECTIONS = INDEXES + 1 };

struct answer {
    char *items[ANSWER_MAX]; /* canonical text of the documents */
    size_t count;
};

/* The document layer's fixture parses by libbson, which takes {$type: ...} for binary data. */
static bson_t *run(struct fixture *fixture, const char *command)
{
    bson_t parsed;
    struct err err;
    if (!extjson_parse(command, strlen(command), &parsed, &err))
        fail_msg("%s: %s", err.msg, command);
    BSON_APPEND_UTF8(&parsed, "$db", "t");
    bson_t *reply = fixture_run_bson(fixture, &parsed);
    bson_destroy(&parsed);
    return reply;
}

static void answer_clear(struct answer *answer)
{
    for (size_t i = 0; i < answer->count; i++)
        bson_free(answer->items[i]);
    answer->count = 0;
}

static int compare_texts(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

/* Fields by name: a covered plan gives them in the index's order. */
static char *canonical(struct bdoc doc)
{
    static const char *const names[] = {"_id", "a", "b", "d"};
    bson_t sorted = BSON_INITIALIZER;
    struct bval val;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (bdoc_find(doc, names[i], &val))
            bval_append(&sorted, names[i], -1, &val);
    assert_int_equal(bdoc_count(doc), bdoc_count(bdoc_of(&sorted)));
    char *text = bson_as_canonical_extended_json(&sorted, NULL);
    bson_destroy(&sorted);
    return text;
}

static void take_batch(struct answer *answer, const bson_t *reply, const char *command)
{
    struct bval cursor;
    struct bval batch;
    struct biter iter;
    struct belem elem;
    if (!bdoc_find(bdoc_of(reply), "cursor", &cursor)) {
        char *json = bson_as_relaxed_extended_json(reply, NULL);
        fail_msg("%s\n%s", json, command);
    }
    if (!bdoc_find(bval_doc(&cursor), "firstBatch", &batch))
        assert_true(bdoc_find(bval_doc(&cursor), "nextBatch", &batch));
    biter_init(&iter, bval_doc(&batch));
    while (biter_next(&iter, &elem)) {
        if (answer->count == ANSWER_MAX)
            fail_msg("more documents than there are: %s", command);
        answer->items[answer->count++] = canonical(bval_doc(&elem.val));
    }
}

/* All documents of a find, over as many batches as it takes. */
static void run_find(struct fixture *fixture, const char *command, int coll, int batch_size, struct answer *answer)
{
    answer_clear(answer);
    bson_t *reply = run(fixture, command);
    take_batch(answer, reply, command);
    int64_t id = fixture_i64(reply, "cursor.id");
    bson_destroy(reply);
    while (id != 0) {
        char more[160];
        snprintf(more, sizeof more,
                 "{\"getMore\": {\"$numberLong\": \"%lld\"}, \"collection\": \"c%d\", \"batchSize\": %d}",
                 (long long)id, coll, batch_size);
        reply = run(fixture, more);
        take_batch(answer, reply, command);
        id = fixture_i64(reply, "cursor.id");
        bson_destroy(reply);
    }
}

static void explain_difference(const struct answer *a, const struct answer *b)
{
    size_t i = 0;
    size_t j = 0;
    while (i < a->count || j < b->count) {
        int order = i == a->count ? 1 : j == b->count ? -1 : strcmp(a->items[i], b->items[j]);
        if (order < 0)
            print_message("too much: %s\n", a->items[i]);
        if (order > 0)
            print_message("missing:  %s\n", b->items[j]);
        i += order <= 0;
        j += order >= 0;
    }
}

static void expect_same(struct answer *got, struct answer *wanted, bool ordered, const char *command)
{
    bool same = got->count == wanted->count;
    for (size_t i = 0; same && ordered && i < got->count; i++)
        same = strcmp(got->items[i], wanted->items[i]) == 0;
    if (same && ordered)
        return;
    qsort(got->items, got->count, sizeof(char *), compare_texts);
    qsort(wanted->items, wanted->count, sizeof(char *), compare_texts);
    bool same_set = got->count == wanted->count;
    for (size_t i = 0; same_set && i < got->count; i++)
        same_set = strcmp(got->items[i], wanted->items[i]) == 0;
    if (same_set && !ordered)
        return;
    explain_difference(got, wanted);
    fail_msg("%zu documents instead of %zu%s: %s", got->count, wanted->count, same_set ? ", in another order" : "",
             command);
}

static void check_find(struct fixture *fixture, const struct random_query *query)
{
    struct answer wanted = {0};
    struct answer got = {0};
    char command[RANDOM_COMMAND_MAX];
    for (int coll = 0; coll < COLLECTIONS; coll++) {
        random_query_find(query, coll, command, sizeof command);
        run_find(fixture, command, coll, query->batch_size, coll == 0 ? &wanted : &got);
        /* A limit without a total order may give any documents. */
        if (coll > 0 && query->limit > 0 && !query->total_order)
            assert_int_equal(got.count, wanted.count);
        else if (coll > 0)
            expect_same(&got, &wanted, query->total_order, command);
    }
    answer_clear(&got);
    answer_clear(&wanted);
}

static void check_count(struct fixture *fixture, const struct random_query *query)
{
    int64_t wanted = 0;
    char command[RANDOM_COMMAND_MAX];
    for (int coll = 0; coll < COLLECTIONS; coll++) {
        snprintf(command, sizeof command, "{\"count\": \"c%d\", \"query\": %s%s}", coll, query->filter,
                 query->collation);
        bson_t *reply = run(fixture, command);
        int64_t n = fixture_i64(reply, "n");
        bson_destroy(reply);
        if (coll == 0)
            wanted = n;
        if (n != wanted)
            fail_msg("%lld instead of %lld: %s", (long long)n, (long long)wanted, command);
    }
}

/* The encoded values of a distinct, sorted, as one text. */
static void distinct_keys(const bson_t *reply, struct answer *out, const char *command)
{
    struct bval values;
    struct biter iter;
    struct belem elem;
    answer_clear(out);
    if (!bdoc_find(bdoc_of(reply), "values", &values))
        fail_msg("no values: %s", command);
    biter_init(&iter, bval_doc(&values));
    while (biter_next(&iter, &elem) && out->count < ANSWER_MAX) {
        struct buf key = BUF_INIT;
        keyenc_append(&key, &elem.val, false);
        char *text = bson_malloc(key.len * 2 + 1);
        for (size_t i = 0; i < key.len; i++)
            snprintf(text + 2 * i, 3, "%02x", key.data[i]);
        out->items[out->count++] = text;
        buf_deinit(&key);
    }
}

static void check_distinct(struct fixture *fixture, const struct random_query *query, const char *field)
{
    struct answer wanted = {0};
    struct answer got = {0};
    char command[RANDOM_COMMAND_MAX];
    for (int coll = 0; coll < COLLECTIONS; coll++) {
        snprintf(command, sizeof command, "{\"distinct\": \"c%d\", \"key\": \"%s\", \"query\": %s}", coll, field,
                 query->filter);
        bson_t *reply = run(fixture, command);
        distinct_keys(reply, coll == 0 ? &wanted : &got, command);
        bson_destroy(reply);
        if (coll > 0)
            expect_same(&got, &wanted, false, command);
    }
    answer_clear(&got);
    answer_clear(&wanted);
}

/* ---- set-up ---- */

static void run_ok(struct fixture *fixture, const char *command)
{
    bson_t *reply = run(fixture, command);
    struct bval val;
    if (!bdoc_find(bdoc_of(reply), "ok", &val) || !bval_truthy(&val)) {
        char *json = bson_as_relaxed_extended_json(reply, NULL);
        fail_msg("%s\n%s", json, command);
    }
    bson_destroy(reply);
}

static void add_index(struct fixture *fixture, int coll, const char *spec)
{
    char command[600];
    snprintf(command, sizeof command, "{\"createIndexes\": \"c%d\", \"indexes\": [%s]}", coll, spec);
    run_ok(fixture, command);
}

static void make_collections(struct fixture *fixture)
{
    char command[100];
    char spec[400];
    for (int coll = 0; coll < COLLECTIONS; coll++) {
        snprintf(command, sizeof command, "{\"create\": \"c%d\"}", coll);
        run_ok(fixture, command);
    }
    for (int i = 1; i < INDEXES; i++) {
        add_index(fixture, i, indexes[i]);
        const char *name = strstr(indexes[i], "\"i\"");
        snprintf(spec, sizeof spec, "%.*s\"i%d\"%s", (int)(name - indexes[i]), indexes[i], i, name + 3);
        add_index(fixture, COLLECTIONS - 1, spec);
    }
}

/* The same document everywhere; one that an index refuses (parallel arrays) is put nowhere. */
static void put_document(struct fixture *fixture, struct prng *prng, int id)
{
    char doc[2048];
    char command[RANDOM_COMMAND_MAX];
    random_document(prng, id, doc, sizeof doc);
    for (int coll = COLLECTIONS - 1; coll >= 0; coll--) {
        snprintf(command, sizeof command,
                 "{\"update\": \"c%d\", \"updates\": [{\"q\": {\"_id\": %d}, \"u\": %s, \"upsert\": true}]}", coll, id,
                 doc);
        bson_t *reply = run(fixture, command);
        struct bval val;
        bool refused = bdoc_find(bdoc_of(reply), "writeErrors", &val);
        bson_destroy(reply);
        if (refused && coll == COLLECTIONS - 1)
            return;
        assert_false(refused);
    }
}

static void run_seed(uint64_t seed)
{
    struct fixture fixture;
    struct prng prng = {.state = seed};
    static const char *const fields[] = {"a", "b", "d", "_id", "a.c"};
    fixture_open(&fixture);
    make_collections(&fixture);
    for (int i = 0; i < DOCUMENTS; i++)
        put_document(&fixture, &prng, i);
    for (int i = 0; i < QUERIES; i++) {
        struct random_query query;
        random_query_make(&prng, &query);
        check_find(&fixture, &query);
        if (prng_below(&prng, 3) == 0)
            check_count(&fixture, &query);
        if (prng_below(&prng, 4) == 0)
            check_distinct(&fixture, &query, fields[prng_below(&prng, sizeof fields / sizeof fields[0])]);
        for (int j = 0; i % 50 == 49 && j < CHANGES; j++)
            put_document(&fixture, &prng, (int)prng_below(&prng, DOCUMENTS));
    }
    fixture_close(&fixture);
}

static void random_queries_have_the_same_answer_with_every_index(void **state)
{
    (void)state;
    fixture_set_filter_hooks(node_filter_hooks());
    const char *one = getenv("SHERD_PLAN_SEED");
    const char *many = getenv("SHERD_PLAN_SEEDS");
    uint64_t count = many != NULL ? strtoull(many, NULL, 10) : SEEDS;
    if (one != NULL) {
        run_seed(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= count; seed++) {
        print_message("seed %llu\n", (unsigned long long)seed);
        run_seed(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_queries_have_the_same_answer_with_every_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
