/* Random documents, indexes and queries: a plan with an index must give what a walk over all records gives, in every
 * order and batch size. */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include "base/mem.h"
#include "base/random.h"
#include "bson/value.h"
#include "storage/catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DOCUMENTS = 250,
    QUERIES = 400,
    IDS_MAX = 512,
};

static const char *pick(struct prng *prng, const char *const *from, size_t count)
{
    return from[prng_below(prng, count)];
}

/* The first SCALARS of them hold no array at their own level: `b` has only those, so that it may stand beside `a` in an
 * index. */
enum { SCALARS = 11 };

static const char *const values[] = {"0",
                                     "1",
                                     "2",
                                     "3",
                                     "4",
                                     "null",
                                     "\"x\"",
                                     "1.5",
                                     "true",
                                     "{\"c\": 2}",
                                     "\"y\"",
                                     "[1, 3]",
                                     "[]",
                                     "[2, [4]]",
                                     "[{\"c\": 1}, {\"c\": 3}]",
                                     "{\"c\": [0, 4]}"};

static void insert_random(struct fixture *fixture, struct prng *prng, int id)
{
    char command[400];
    int at = snprintf(command, sizeof command, "{\"insert\": \"c\", \"documents\": [{\"_id\": %d", id);
    static const char *const names[] = {"a", "b", "d"};
    for (size_t i = 0; i < 3; i++) {
        if (prng_below(prng, 4) > 0)
            at += snprintf(command + at, sizeof command - (size_t)at, ", \"%s\": %s", names[i],
                           pick(prng, values, i == 1 ? SCALARS : sizeof values / sizeof values[0]));
    }
    snprintf(command + at, sizeof command - (size_t)at, "}]}");
    bson_destroy(fixture_run(fixture, command));
}

static void random_predicate(struct prng *prng, char *out, size_t size)
{
    static const char *const fields[] = {"a", "b", "d", "a.c", "b.c", "_id"};
    static const char *const scalars[] = {"0",     "1",   "2",    "3",      "4",         "null",
                                          "\"x\"", "1.5", "true", "[1, 3]", "{\"c\": 2}"};
    const size_t scalar_count = sizeof scalars / sizeof scalars[0];
    const char *field = pick(prng, fields, sizeof fields / sizeof fields[0]);
    const char *one = pick(prng, scalars, scalar_count);
    const char *two = pick(prng, scalars, scalar_count);
    switch (prng_below(prng, 9)) {
    case 0:
        snprintf(out, size, "\"%s\": {\"$gt\": %s}", field, one);
        break;
    case 1:
        snprintf(out, size, "\"%s\": {\"$gte\": %s, \"$lt\": %s}", field, one, two);
        break;
    case 2:
        snprintf(out, size, "\"%s\": {\"$in\": [%s, %s]}", field, one, two);
        break;
    case 3:
        snprintf(out, size, "\"%s\": {\"$ne\": %s}", field, one);
        break;
    case 4:
        snprintf(out, size, "\"%s\": {\"$exists\": %s}", field, prng_below(prng, 2) ? "true" : "false");
        break;
    case 5:
        snprintf(out, size, "\"$or\": [{\"%s\": %s}, {\"b\": %s}]", field, one, two);
        break;
    case 6:
        snprintf(out, size, "\"%s\": {\"$not\": {\"$lte\": %s}}", field, one);
        break;
    case 7:
        snprintf(out, size, "\"%s\": {\"$elemMatch\": {\"$gt\": 1, \"$lt\": 4}}", field);
        break;
    default:
        snprintf(out, size, "\"%s\": %s", field, one);
        break;
    }
}

static void random_filter(struct prng *prng, char *out, size_t size)
{
    char first[160];
    char second[160];
    random_predicate(prng, first, sizeof first);
    random_predicate(prng, second, sizeof second);
    if (prng_below(prng, 2) == 0)
        snprintf(out, size, "{%s}", first);
    else
        snprintf(out, size, "{\"$and\": [{%s}, {%s}]}", first, second);
}

struct answer {
    int64_t ids[IDS_MAX];
    size_t count;
};

static void take_batch(struct answer *answer, const bson_t *reply)
{
    struct bval cursor;
    struct bval batch;
    struct biter iter;
    struct belem elem;
    if (!bdoc_find(bdoc_of(reply), "cursor", &cursor)) {
        char *json = bson_as_relaxed_extended_json(reply, NULL);
        fail_msg("%s", json);
    }
    if (!bdoc_find(bval_doc(&cursor), "firstBatch", &batch))
        assert_true(bdoc_find(bval_doc(&cursor), "nextBatch", &batch));
    biter_init(&iter, bval_doc(&batch));
    while (biter_next(&iter, &elem)) {
        struct bval id;
        assert_true(bdoc_find(bval_doc(&elem.val), "_id", &id));
        assert_true(answer->count < IDS_MAX);
        assert_true(bval_to_i64(&id, &answer->ids[answer->count++]));
    }
}

/* All ids of the query, over as many batches as it takes. */
static void run_query(struct fixture *fixture, const char *command, int batch_size, struct answer *answer)
{
    answer->count = 0;
    bson_t *reply = fixture_run(fixture, command);
    take_batch(answer, reply);
    int64_t id = fixture_i64(reply, "cursor.id");
    bson_destroy(reply);
    while (id != 0) {
        char more[160];
        snprintf(more, sizeof more,
                 "{\"getMore\": {\"$numberLong\": \"%lld\"}, \"collection\": \"c\", \"batchSize\": %d}", (long long)id,
                 batch_size);
        reply = fixture_run(fixture, more);
        take_batch(answer, reply);
        id = fixture_i64(reply, "cursor.id");
        bson_destroy(reply);
    }
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void expect_same(struct answer *a, struct answer *b, bool ordered, const char *command)
{
    if (!ordered) {
        qsort(a->ids, a->count, sizeof a->ids[0], compare_ids);
        qsort(b->ids, b->count, sizeof b->ids[0], compare_ids);
    }
    if (a->count != b->count || memcmp(a->ids, b->ids, a->count * sizeof a->ids[0]) != 0)
        fail_msg("%zu against %zu documents: %s", a->count, b->count, command);
}

static void check_query(struct fixture *fixture, struct prng *prng)
{
    static const char *const sorts[] = {"{\"a\": 1, \"_id\": 1}", "{\"a\": -1, \"_id\": -1}",
                                        "{\"b\": 1, \"a\": -1, \"_id\": 1}", "{\"_id\": -1}",
                                        "{\"d\": -1, \"_id\": 1}"};
    static const char *const hints[] = {"a_1", "a_1_b_-1", "b_1_a_1__id_1", "_id_", "a_1__id_1"};
    char filter[400];
    char plain[700];
    char command[700];
    struct answer wanted;
    struct answer got;
    random_filter(prng, filter, sizeof filter);
    int batch_size = (int)prng_below(prng, 20) + 1;
    const char *sort = prng_below(prng, 2) ? pick(prng, sorts, sizeof sorts / sizeof sorts[0]) : NULL;
    snprintf(plain, sizeof plain,
             "{\"aggregate\": \"c\", \"pipeline\": [{\"$match\": %s}, {\"$sort\": %s}], \"hint\": {\"$natural\": 1}, "
             "\"cursor\": {}}",
             filter, sort == NULL ? "{\"_id\": 1}" : sort);
    run_query(fixture, plain, 1000, &wanted);
    if (prng_below(prng, 3) == 0)
        snprintf(command, sizeof command,
                 "{\"find\": \"c\", \"filter\": %s, \"sort\": %s, \"batchSize\": %d, \"hint\": \"%s\"}", filter,
                 sort == NULL ? "{}" : sort, batch_size, pick(prng, hints, sizeof hints / sizeof hints[0]));
    else
        snprintf(command, sizeof command, "{\"find\": \"c\", \"filter\": %s, \"sort\": %s, \"batchSize\": %d}", filter,
                 sort == NULL ? "{}" : sort, batch_size);
    run_query(fixture, command, batch_size, &got);
    expect_same(&got, &wanted, sort != NULL, command);
    snprintf(command, sizeof command, "{\"count\": \"c\", \"query\": %s}", filter);
    bson_t *reply = fixture_run(fixture, command);
    assert_int_equal(fixture_i64(reply, "n"), wanted.count);
    bson_destroy(reply);
}

static void scan_by_index_gives_what_a_walk_gives(void **state)
{
    (void)state;
    struct fixture fixture;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct prng prng = {.state = seed};
        fixture_open(&fixture);
        for (int i = 0; i < DOCUMENTS; i++)
            insert_random(&fixture, &prng, i);
        fixture_expect(&fixture,
                       "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a_1'}, {'key': {'a': 1, 'b': "
                       "-1}, 'name': 'a_1_b_-1'},"
                       " {'key': {'a.c': 1}, 'name': 'a.c_1'}, {'key': {'d': 1}, 'name': 'd_1', 'sparse': true},"
                       " {'key': {'a': 1, '_id': 1}, 'name': 'a_1__id_1'}, {'key': {'b': 'hashed'}, 'name': 'bh'},"
                       " {'key': {'b': 1, 'a': 1, '_id': 1}, 'name': 'b_1_a_1__id_1'}]}",
                       "{'ok': 1.0}");
        bson_t *reply = fixture_run(
            &fixture,
            "{'createIndexes': 'c', 'indexes': [{'key': {'b': 1, 'a': 1, '_id': 1}, 'name': 'b_1_a_1__id_1'}]}");
        bson_destroy(reply);
        for (int i = 0; i < QUERIES; i++)
            check_query(&fixture, &prng);
        fixture_close(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scan_by_index_gives_what_a_walk_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
