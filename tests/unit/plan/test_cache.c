/* The cache under several threads (the rest of its behaviour is in test_plan.c, where queries use it). */
#include "plan/cache.h"

#include "base/random.h"
#include "tests/unit/cmocka_all.h"

#include <pthread.h>

enum { THREADS = 4, STEPS = 20000, KEYS = 6000 };

struct user {
    struct plan_cache *cache;
    uint64_t seed;
    uint64_t wrong; /* values that were not those of their key */
};

static void count_one(void *arg, const struct plan_cache_value *value)
{
    uint64_t *count = arg;
    *count += value->works > 0;
}

static void *use(void *arg)
{
    struct user *user = arg;
    struct prng prng = {user->seed};
    for (int i = 0; i < STEPS; i++) {
        uint32_t key = (uint32_t)prng_below(&prng, KEYS);
        struct plan_cache_value value = {.choice = key, .works = 1, .collection_id = key % 7};
        uint64_t count = 0;
        switch (prng_below(&prng, 200)) {
        case 0:
            plan_cache_clear(user->cache, (uint32_t)prng_below(&prng, 7));
            break;
        case 1:
            plan_cache_each(user->cache, 3, count_one, &count);
            break;
        case 2:
            plan_cache_drop(user->cache, &key, sizeof key);
            break;
        default:
            if (prng_below(&prng, 2) == 0)
                plan_cache_put(user->cache, &key, sizeof key, &value);
            else if (plan_cache_get(user->cache, &key, sizeof key, 0, &value))
                user->wrong += value.choice != key;
        }
    }
    return NULL;
}

static void cache_serves_several_threads(void **state)
{
    struct user users[THREADS];
    pthread_t threads[THREADS];
    struct plan_cache *cache = plan_cache_new();
    (void)state;
    for (int i = 0; i < THREADS; i++) {
        users[i] = (struct user){.cache = cache, .seed = (uint64_t)i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(users[i].wrong, 0);
    }
    assert_in_range(plan_cache_count(cache), 1, PLAN_CACHE_ENTRIES_MAX);
    plan_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cache_serves_several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
