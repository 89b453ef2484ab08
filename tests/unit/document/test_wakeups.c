#include "tests/unit/cmocka_all.h"

#include "base/thread.h"
#include "document/wakeups.h"

#include <sched.h>
#include <stdatomic.h>

static void count(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void wait_is_refused_when_something_came_meanwhile(void **state)
{
    (void)state;
    atomic_int woken = 0;
    struct document_wakeups *wakeups = document_wakeups_new();
    struct document_waiter waiter = {.collection_id = 7, .wake = count, .arg = &woken};
    uint64_t seen = document_wakeups_seen(wakeups, 7);
    document_wakeups_note(wakeups, 7);
    document_wakeups_fire(wakeups);
    assert_false(document_wakeups_wait(wakeups, &waiter, seen));
    assert_int_equal(atomic_load(&woken), 0);
    document_wakeups_free(wakeups);
}

static void fire_wakes_waiters_of_the_collection_once(void **state)
{
    (void)state;
    atomic_int woken = 0;
    struct document_wakeups *wakeups = document_wakeups_new();
    struct document_waiter one = {.collection_id = 7, .wake = count, .arg = &woken};
    struct document_waiter two = one;
    struct document_waiter other = {.collection_id = 8, .wake = count, .arg = &woken};
    assert_true(document_wakeups_wait(wakeups, &one, document_wakeups_seen(wakeups, 7)));
    assert_true(document_wakeups_wait(wakeups, &two, document_wakeups_seen(wakeups, 7)));
    assert_true(document_wakeups_wait(wakeups, &other, document_wakeups_seen(wakeups, 8)));
    document_wakeups_fire(wakeups);
    assert_int_equal(atomic_load(&woken), 0);
    document_wakeups_note(wakeups, 7);
    document_wakeups_fire(wakeups);
    document_wakeups_fire(wakeups);
    assert_int_equal(atomic_load(&woken), 2);
    assert_false(document_wakeups_cancel(wakeups, &one));
    assert_true(document_wakeups_cancel(wakeups, &other));
    document_wakeups_free(wakeups);
}

static void cancel_takes_one_out_of_the_middle(void **state)
{
    (void)state;
    atomic_int woken = 0;
    struct document_wakeups *wakeups = document_wakeups_new();
    struct document_waiter waiters[3];
    for (int i = 0; i < 3; i++) {
        waiters[i] = (struct document_waiter){.collection_id = 3, .wake = count, .arg = &woken};
        assert_true(document_wakeups_wait(wakeups, &waiters[i], document_wakeups_seen(wakeups, 3)));
    }
    assert_true(document_wakeups_cancel(wakeups, &waiters[1]));
    assert_false(document_wakeups_cancel(wakeups, &waiters[1]));
    document_wakeups_note(wakeups, 3);
    document_wakeups_fire(wakeups);
    assert_int_equal(atomic_load(&woken), 2);
    document_wakeups_free(wakeups);
}

/* What a wake does while others of its list are still to be woken: one of them gives up, as on its own time, and waits
 * anew. */
struct second_thought {
    struct document_wakeups *wakeups;
    struct document_waiter *other;
    bool taken_back;
};

static void wait_anew(void *arg)
{
    struct second_thought *thought = arg;
    thought->taken_back = document_wakeups_cancel(thought->wakeups, thought->other);
    assert_true(document_wakeups_wait(thought->wakeups, thought->other, document_wakeups_seen(thought->wakeups, 3)));
}

static void wait_anew_during_a_fire_loses_nobody_behind(void **state)
{
    (void)state;
    atomic_int first_woken = 0;
    atomic_int other_woken = 0;
    struct document_wakeups *wakeups = document_wakeups_new();
    struct document_waiter first = {.collection_id = 3, .wake = count, .arg = &first_woken};
    struct document_waiter other = {.collection_id = 3, .wake = count, .arg = &other_woken};
    struct second_thought thought = {.wakeups = wakeups, .other = &other};
    struct document_waiter last = {.collection_id = 3, .wake = wait_anew, .arg = &thought};
    struct document_waiter *all[] = {&first, &other, &last}; /* woken from the last to the first */
    for (int i = 0; i < 3; i++)
        assert_true(document_wakeups_wait(wakeups, all[i], document_wakeups_seen(wakeups, 3)));
    document_wakeups_note(wakeups, 3);
    document_wakeups_fire(wakeups);
    assert_int_equal(atomic_load(&first_woken), 1);
    assert_true(thought.taken_back);
    assert_int_equal(atomic_load(&other_woken), 0);
    assert_true(document_wakeups_cancel(wakeups, &other));
    document_wakeups_free(wakeups);
}

/* No wake-up is lost between a look and the wait. */
struct race {
    struct document_wakeups *wakeups;
    atomic_int produced;
    atomic_int woken;
};

enum {
    RACE_ROUNDS = 2000,
};

static void *produce(void *arg)
{
    struct race *race = arg;
    for (int i = 0; i < RACE_ROUNDS; i++) {
        atomic_fetch_add(&race->produced, 1);
        document_wakeups_note(race->wakeups, 1);
        document_wakeups_fire(race->wakeups);
    }
    return NULL;
}

static void no_wakeup_is_lost(void **state)
{
    (void)state;
    struct race race = {.wakeups = document_wakeups_new()};
    pthread_t thread;
    thread_start(&thread, "producer", produce, &race);
    for (;;) {
        uint64_t seen = document_wakeups_seen(race.wakeups, 1);
        if (atomic_load(&race.produced) == RACE_ROUNDS)
            break;
        int before = atomic_load(&race.woken);
        struct document_waiter waiter = {.collection_id = 1, .wake = count, .arg = &race.woken};
        if (!document_wakeups_wait(race.wakeups, &waiter, seen))
            continue;
        while (atomic_load(&race.woken) == before)
            sched_yield();
    }
    thread_join(thread);
    document_wakeups_free(race.wakeups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wait_is_refused_when_something_came_meanwhile),
        cmocka_unit_test(fire_wakes_waiters_of_the_collection_once),
        cmocka_unit_test(cancel_takes_one_out_of_the_middle),
        cmocka_unit_test(wait_anew_during_a_fire_loses_nobody_behind),
        cmocka_unit_test(no_wakeup_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
