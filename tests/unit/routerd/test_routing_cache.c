#include "support.h"

#include "base/clock.h"
#include "base/thread.h"
#include "routerd/routing_cache.h"

/* A config service that counts and, when told, waits or fails. */
struct service {
    pthread_mutex_t lock;
    unsigned fetches;     /* so far */
    unsigned incremental; /* of these with a known version */
    bool exists;
    bool sharded;
    bool fails;
    int64_t delay_ms;
    int64_t minor;
};

static bool fetch(void *arg, const char *ns, const struct chunk_version *known, int64_t deadline_ms, struct buf *reply,
                  struct err *err)
{
    (void)ns;
    (void)deadline_ms;
    struct service *service = arg;
    pthread_mutex_lock(&service->lock);
    service->fetches++;
    service->incremental += known != NULL;
    struct service now = *service;
    pthread_mutex_unlock(&service->lock);
    if (now.delay_ms)
        clock_sleep_ms(now.delay_ms);
    if (now.fails)
        return err_set(err, ERR_HostUnreachable, "the config service is away");
    struct arena arena;
    bson_t doc = BSON_INITIALIZER;
    arena_init(&arena);
    if (now.exists)
        support_reply(&arena, now.sharded, now.minor, &doc);
    else
        BSON_APPEND_NULL(&doc, "database"), BSON_APPEND_NULL(&doc, "collection");
    buf_append(reply, bson_get_data(&doc), doc.len);
    bson_destroy(&doc);
    arena_deinit(&arena);
    return true;
}

static struct routing *must_get(struct routing_cache *cache)
{
    struct routing *routing;
    struct err err;
    assert_true(routing_cache_get(cache, "db.c", deadline_after_ms(5000), &routing, &err));
    return routing;
}

static void routing_cache_get_reads_once(void **state)
{
    (void)state;
    struct service service = {.lock = PTHREAD_MUTEX_INITIALIZER, .exists = true, .sharded = true};
    struct routing_cache *cache = routing_cache_new(fetch, &service);
    for (int i = 0; i < 3; i++) {
        struct routing *routing = must_get(cache);
        assert_true(routing->exists);
        assert_non_null(routing->table);
        assert_string_equal(routing->db.primary, "s0");
        routing_unref(routing);
    }
    assert_int_equal(service.fetches, 1);
    routing_cache_free(cache);
}

static void routing_cache_stale_reads_what_changed(void **state)
{
    (void)state;
    struct service service = {.lock = PTHREAD_MUTEX_INITIALIZER, .exists = true, .sharded = true};
    struct routing_cache *cache = routing_cache_new(fetch, &service);
    struct routing *first = must_get(cache);
    service.minor = 10;
    routing_cache_stale(cache, "db.c", first);
    struct routing *second = must_get(cache);
    assert_int_equal(service.fetches, 2);
    assert_int_equal(service.incremental, 1);
    assert_int_equal(routing_table_version(second->table)->minor, 12);
    assert_int_equal(routing_table_version(first->table)->minor, 2);
    /* The same complaint about the old table doesn't make anybody read again. */
    routing_cache_stale(cache, "db.c", first);
    struct routing *third = must_get(cache);
    assert_int_equal(service.fetches, 2);
    routing_unref(first);
    routing_unref(second);
    routing_unref(third);
    routing_cache_free(cache);
}

static void routing_cache_missing_database_is_not_remembered(void **state)
{
    (void)state;
    struct service service = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct routing_cache *cache = routing_cache_new(fetch, &service);
    struct routing *routing = must_get(cache);
    assert_false(routing->exists);
    routing_unref(routing);
    service.exists = true;
    routing = must_get(cache);
    assert_true(routing->exists);
    assert_null(routing->table);
    routing_unref(routing);
    routing_cache_free(cache);
}

static void routing_cache_failed_read_keeps_nothing(void **state)
{
    (void)state;
    struct service service = {.lock = PTHREAD_MUTEX_INITIALIZER, .exists = true, .fails = true};
    struct routing_cache *cache = routing_cache_new(fetch, &service);
    struct routing *routing;
    struct err err;
    assert_false(routing_cache_get(cache, "db.c", deadline_after_ms(1000), &routing, &err));
    assert_int_equal(err.code, ERR_HostUnreachable);
    service.fails = false;
    routing_unref(must_get(cache));
    routing_cache_free(cache);
}

static void routing_cache_known_table_serves_while_the_service_is_away(void **state)
{
    (void)state;
    struct service service = {.lock = PTHREAD_MUTEX_INITIALIZER, .exists = true, .sharded = true};
    struct routing_cache *cache = routing_cache_new(fetch, &service);
    routing_unref(must_get(cache));
    service.fails = true;
    routing_unref(must_get(cache));
    assert_int_equal(service.fetches, 1);
    routing_cache_free(cache);
}

static void routing_cache_flush_covers_a_database(void **state)
{
    (void)state;
    struct service service = {.lock = PTHREAD_MUTEX_INITIALIZER, .exists = true, .sharded = true};
    struct routing_cache *cache = routing_cache_new(fetch, &service);
    routing_unref(must_get(cache));
    routing_cache_flush(cache, "d");
    routing_unref(must_get(cache));
    assert_int_equal(service.fetches, 1);
    routing_cache_flush(cache, "db");
    routing_unref(must_get(cache));
    assert_int_equal(service.fetches, 2);
    routing_cache_flush(cache, NULL);
    routing_unref(must_get(cache));
    assert_int_equal(service.fetches, 3);
    routing_cache_free(cache);
}

static void *get_in_thread(void *arg)
{
    struct routing *routing;
    struct err err;
    if (routing_cache_get(arg, "db.c", deadline_after_ms(10000), &routing, &err))
        routing_unref(routing);
    return NULL;
}

static void routing_cache_many_threads_make_one_request(void **state)
{
    (void)state;
    enum { THREADS = 8 };
    struct service service = {.lock = PTHREAD_MUTEX_INITIALIZER, .exists = true, .sharded = true, .delay_ms = 100};
    struct routing_cache *cache = routing_cache_new(fetch, &service);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        thread_start(&threads[i], "getter", get_in_thread, cache);
    for (int i = 0; i < THREADS; i++)
        thread_join(threads[i]);
    assert_int_equal(service.fetches, 1);
    routing_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routing_cache_get_reads_once),
        cmocka_unit_test(routing_cache_stale_reads_what_changed),
        cmocka_unit_test(routing_cache_missing_database_is_not_remembered),
        cmocka_unit_test(routing_cache_failed_read_keeps_nothing),
        cmocka_unit_test(routing_cache_known_table_serves_while_the_service_is_away),
        cmocka_unit_test(routing_cache_flush_covers_a_database),
        cmocka_unit_test(routing_cache_many_threads_make_one_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
