#include "tests/unit/cmocka_all.h"

#include "async/pool.h"
#include "base/clock.h"
#include "base/thread.h"

#include <stdatomic.h>

struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool open;
};

static struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};

struct job {
    struct pool_job job;
    atomic_uint *count;
    pthread_t ran_on;
};

static void gate_set(bool open)
{
    pthread_mutex_lock(&gate.mutex);
    gate.open = open;
    pthread_cond_broadcast(&gate.cond);
    pthread_mutex_unlock(&gate.mutex);
}

static void run_count(struct pool_job *job)
{
    struct job *self = (struct job *)job;
    self->ran_on = pthread_self();
    atomic_fetch_add(self->count, 1);
}

static void run_wait(struct pool_job *job)
{
    pthread_mutex_lock(&gate.mutex);
    while (!gate.open)
        pthread_cond_wait(&gate.cond, &gate.mutex);
    pthread_mutex_unlock(&gate.mutex);
    run_count(job);
}

static void wait_for(const atomic_uint *count, unsigned value)
{
    for (int i = 0; i < 5000 && atomic_load(count) < value; i++)
        clock_sleep_ms(1);
    assert_int_equal(atomic_load(count), value);
}

static struct pool *pool_make(unsigned max_threads, unsigned max_queued, int64_t idle_ms)
{
    return pool_new(&(struct pool_options){
        .name = "test", .max_threads = max_threads, .max_queued = max_queued, .idle_ms = idle_ms});
}

static void pool_submit_runs_every_job_once(void **state)
{
    (void)state;
    enum { JOBS = 2000 };
    static struct job jobs[JOBS];
    atomic_uint count = 0;
    struct pool *pool = pool_make(4, JOBS, 0);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.job.run = run_count, .count = &count};
        assert_true(pool_submit(pool, &jobs[i].job));
    }
    pool_stop(pool);
    assert_int_equal(atomic_load(&count), JOBS);
    struct pool_stats stats;
    pool_stats_get(pool, &stats);
    assert_int_equal(stats.done, JOBS);
    assert_int_equal(stats.threads, 0);
    pool_free(pool);
}

static void pool_submit_beyond_threads_and_queue_is_refused(void **state)
{
    (void)state;
    atomic_uint count = 0;
    struct job jobs[5];
    gate_set(false);
    struct pool *pool = pool_make(2, 2, 0);
    for (int i = 0; i < 5; i++) {
        jobs[i] = (struct job){.job.run = run_wait, .count = &count};
        assert_int_equal(pool_submit(pool, &jobs[i].job), i < 4);
    }
    struct pool_stats stats = {0};
    for (int i = 0; i < 5000 && (stats.threads != 2 || stats.queued != 2); i++) {
        pool_stats_get(pool, &stats);
        clock_sleep_ms(1);
    }
    assert_int_equal(stats.threads, 2);
    assert_int_equal(stats.queued, 2);
    assert_int_equal(stats.refused, 1);
    gate_set(true);
    pool_free(pool);
    assert_int_equal(atomic_load(&count), 4);
}

/* Jobs that block must not hold up those behind them as long as threads may be had. */
static void pool_blocked_jobs_get_a_thread_each(void **state)
{
    (void)state;
    enum { BLOCKED = 20 };
    atomic_uint count = 0;
    atomic_uint quick_count = 0;
    struct job jobs[BLOCKED];
    struct job quick = {.job.run = run_count, .count = &quick_count};
    gate_set(false);
    struct pool *pool = pool_make(BLOCKED + 1, 100, 0);
    for (int i = 0; i < BLOCKED; i++) {
        jobs[i] = (struct job){.job.run = run_wait, .count = &count};
        assert_true(pool_submit(pool, &jobs[i].job));
    }
    assert_true(pool_submit(pool, &quick.job));
    wait_for(&quick_count, 1);
    assert_int_equal(atomic_load(&count), 0);
    gate_set(true);
    pool_free(pool);
    assert_int_equal(atomic_load(&count), BLOCKED);
}

/* A burst of short jobs doesn't need a thread for each. */
static void pool_burst_of_short_jobs_takes_few_threads(void **state)
{
    (void)state;
    enum { JOBS = 500 };
    static struct job jobs[JOBS];
    atomic_uint count = 0;
    struct pool *pool = pool_make(200, JOBS, 0);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.job.run = run_count, .count = &count};
        assert_true(pool_submit(pool, &jobs[i].job));
    }
    wait_for(&count, JOBS);
    struct pool_stats stats;
    pool_stats_get(pool, &stats);
    pool_free(pool);
    assert_in_range(stats.threads, 1, 100);
}

static void pool_idle_thread_is_used_again(void **state)
{
    (void)state;
    atomic_uint count = 0;
    struct pool *pool = pool_make(8, 8, 0);
    struct pool_stats stats;
    for (unsigned i = 0; i < 20; i++) {
        struct job job = {.job.run = run_count, .count = &count};
        assert_true(pool_submit(pool, &job.job));
        do {
            pool_stats_get(pool, &stats);
        } while (stats.idle == 0 || stats.done <= i);
    }
    assert_int_equal(stats.threads, 1);
    pool_free(pool);
}

static void pool_warmest_idle_thread_is_used_first(void **state)
{
    (void)state;
    atomic_uint count = 0;
    struct job jobs[3];
    gate_set(false);
    struct pool *pool = pool_make(8, 8, 0);
    for (int i = 0; i < 3; i++) {
        jobs[i] = (struct job){.job.run = run_wait, .count = &count};
        assert_true(pool_submit(pool, &jobs[i].job));
    }
    struct pool_stats stats;
    do { /* each is blocked on a thread of its own */
        pool_stats_get(pool, &stats);
    } while (stats.threads < 3);
    gate_set(true);
    do {
        pool_stats_get(pool, &stats);
    } while (stats.idle < 3);
    struct job first = {.job.run = run_count, .count = &count};
    struct job second = {.job.run = run_count, .count = &count};
    assert_true(pool_submit(pool, &first.job));
    wait_for(&count, 4);
    do {
        pool_stats_get(pool, &stats);
    } while (stats.idle < 3);
    assert_true(pool_submit(pool, &second.job));
    pool_free(pool);
    assert_true(pthread_equal(first.ran_on, second.ran_on));
}

static void pool_idle_thread_ends(void **state)
{
    (void)state;
    atomic_uint count = 0;
    struct pool *pool = pool_make(4, 4, 30);
    struct pool_stats stats;
    for (unsigned round = 1; round <= 3; round++) {
        struct job job = {.job.run = run_count, .count = &count};
        assert_true(pool_submit(pool, &job.job));
        wait_for(&count, round);
        for (int i = 0; i < 3000; i++) {
            clock_sleep_ms(1);
            pool_stats_get(pool, &stats);
            if (stats.threads == 0)
                break;
        }
        assert_int_equal(stats.threads, 0);
    }
    pool_free(pool);
}

static void pool_stopped_refuses_jobs(void **state)
{
    (void)state;
    struct pool *pool = pool_make(1, 1, 0);
    pool_stop(pool);
    struct job job = {.job.run = run_count};
    assert_false(pool_submit(pool, &job.job));
    pool_free(pool);
    pool_free(NULL);
}

struct submitter {
    struct pool *pool;
    atomic_uint *count;
    struct job jobs[1000];
};

static void *submit_many(void *arg)
{
    struct submitter *self = arg;
    for (int i = 0; i < 1000; i++) {
        self->jobs[i] = (struct job){.job.run = run_count, .count = self->count};
        while (!pool_submit(self->pool, &self->jobs[i].job))
            clock_sleep_ms(1);
    }
    return NULL;
}

static void pool_many_submitters_lose_nothing(void **state)
{
    (void)state;
    static struct submitter submitters[4];
    atomic_uint count = 0;
    struct pool *pool = pool_make(3, 16, 1);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        submitters[i] = (struct submitter){.pool = pool, .count = &count};
        thread_start(&threads[i], "submit", submit_many, &submitters[i]);
    }
    for (int i = 0; i < 4; i++)
        thread_join(threads[i]);
    pool_free(pool);
    assert_int_equal(atomic_load(&count), 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pool_submit_runs_every_job_once),
        cmocka_unit_test(pool_submit_beyond_threads_and_queue_is_refused),
        cmocka_unit_test(pool_blocked_jobs_get_a_thread_each),
        cmocka_unit_test(pool_burst_of_short_jobs_takes_few_threads),
        cmocka_unit_test(pool_idle_thread_is_used_again),
        cmocka_unit_test(pool_warmest_idle_thread_is_used_first),
        cmocka_unit_test(pool_idle_thread_ends),
        cmocka_unit_test(pool_stopped_refuses_jobs),
        cmocka_unit_test(pool_many_submitters_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
