/* Random writes, many of them in the log at a time: a second store that applies the same log is equal, and both are
 * sound. */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/document/fixture.h"

#include "base/random.h"

#include <stdio.h>
#include <string.h>

enum {
    ROUNDS = 60,
    CALLS = 24,
};

static void random_write(struct prng *prng, char *out, size_t size)
{
    int id = (int)prng_below(prng, 40);
    int number = (int)prng_below(prng, 6);
    const char *flag = prng_below(prng, 2) ? "true" : "false";
    switch (prng_below(prng, 11)) {
    case 0:
        snprintf(out, size,
                 "{'insert': 'c', 'ordered': %s, 'documents': [{'_id': %d, 'a': %d}, {'a': [%d, 7]}, {'_id': %d}]}",
                 flag, id, number, number, id + 1);
        break;
    case 1:
        snprintf(out, size, "{'update': 'c', 'updates': [{'q': {'_id': %d}, 'u': {'$inc': {'a': 1}}, 'upsert': %s}]}",
                 id, flag);
        break;
    case 2:
        snprintf(
            out, size,
            "{'update': 'c', 'updates': [{'q': {'a': %d}, 'u': {'$set': {'b': %d}}, 'multi': true, 'upsert': %s}]}",
            number, id, flag);
        break;
    case 3:
        snprintf(out, size, "{'update': 'c', 'updates': [{'q': {'a': {'$gte': %d}}, 'u': {'$push': {'t': %d}}}]}",
                 number, id);
        break;
    case 4:
        snprintf(out, size, "{'delete': 'c', 'deletes': [{'q': {'a': {'$lt': %d}}, 'limit': %d}]}", number,
                 (int)prng_below(prng, 2));
        break;
    case 5:
        snprintf(out, size,
                 "{'findAndModify': 'c', 'query': {'a': {'$exists': true}}, 'sort': {'a': -1, '_id': 1}, 'update': "
                 "{'$set': {'a': %d}}, 'new': %s}",
                 number, flag);
        break;
    case 6:
        snprintf(out, size, "{'findAndModify': 'c', 'query': {'a': %d}, 'remove': true}", number);
        break;
    case 7:
        snprintf(out, size,
                 "{'update': 'c', 'updates': [{'q': {'a': {'$type': 'int'}}, 'u': [{'$set': {'p': {'$add': ['$a', "
                 "%d]}}}], 'multi': %s}]}",
                 number, flag);
        break;
    case 8:
        snprintf(out, size, "{'update': 'c', 'updates': [{'q': {'u': %d}, 'u': {'$inc': {'n': 1}}, 'upsert': true}]}",
                 number);
        break;
    case 9:
        snprintf(out, size,
                 "{'update': 'c', 'ordered': %s, 'updates': [{'q': {'_id': %d}, 'u': {'x': %d}}, {'q': {'x': %d}, 'u': "
                 "{'$set': {'_id': 5}}},"
                 " {'q': {'_id': %d}, 'u': {'$unset': {'a': 1}}}]}",
                 flag, id, number, number, id + 2);
        break;
    default:
        snprintf(out, size, "{'delete': 'c', 'deletes': [{'q': {'_id': %d}, 'limit': 1}]}", id);
        break;
    }
}

static void run_round(struct fixture *fixture, struct prng *prng)
{
    struct fixture_call calls[CALLS];
    fixture->hold = true;
    for (int i = 0; i < CALLS; i++) {
        char command[512];
        random_write(prng, command, sizeof command);
        fixture_start(fixture, &calls[i], command);
    }
    fixture_apply(fixture);
    fixture->hold = false;
    for (int i = 0; i < CALLS; i++) {
        assert_true(calls[i].done);
        bson_destroy(calls[i].reply);
    }
}

static void apply_random_log_gives_equal_and_sound_stores(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct fixture fixture;
        struct fixture copy;
        struct prng prng = {.state = seed};
        fixture_open(&fixture);
        fixture_open(&copy);
        fixture_expect(&fixture,
                       "{'createIndexes': 'c', 'indexes': [{'key': {'a': 1}, 'name': 'a'}, {'key': {'u': 1}, 'name': "
                       "'u', 'unique': true, 'sparse': true},"
                       " {'key': {'t': -1, 'a': 1}, 'name': 'ta', 'sparse': true}]}",
                       "{'ok': 1.0}");
        for (int round = 0; round < ROUNDS; round++)
            run_round(&fixture, &prng);
        fixture_replay(&fixture, &copy);
        assert_int_equal(fixture_hash(&fixture), fixture_hash(&copy));
        fixture_expect(&fixture, "{'validate': 'c'}", "{'valid': true, 'errors': []}");
        fixture_close(&fixture);
        fixture_close(&copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(apply_random_log_gives_equal_and_sound_stores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
