#include "tests/unit/cmocka_all.h"

#include "base/clock.h"
#include "node/delay.h"

#include <stdatomic.h>

struct order {
    atomic_int next;
    int place[3];
};

struct late {
    struct order *order;
    int number;
};

static void note(void *arg)
{
    struct late *late = arg;
    /* The place first: whoever sees the count may read it. */
    late->order->place[late->number] = atomic_load(&late->order->next);
    atomic_fetch_add(&late->order->next, 1);
}

static void delay_runs_in_order_of_due_time(void **state)
{
    (void)state;
    struct order order = {0};
    struct late late[3] = {{&order, 0}, {&order, 1}, {&order, 2}};
    struct delay *delay = delay_start();
    delay_add(delay, 60, note, &late[0]);
    delay_add(delay, 20, note, &late[1]);
    delay_add(delay, 40, note, &late[2]);
    int64_t deadline_ms = deadline_after_ms(5000);
    while (atomic_load(&order.next) < 3 && !deadline_passed(deadline_ms))
        clock_sleep_ms(1);
    assert_int_equal(order.place[1], 0);
    assert_int_equal(order.place[2], 1);
    assert_int_equal(order.place[0], 2);
    delay_stop(delay);
    delay_free(delay);
}

static void delay_stop_runs_what_waits(void **state)
{
    (void)state;
    struct order order = {0};
    struct late late[2] = {{&order, 0}, {&order, 1}};
    struct delay *delay = delay_start();
    delay_add(delay, 3600000, note, &late[0]);
    delay_stop(delay);
    assert_int_equal(atomic_load(&order.next), 1);
    delay_add(delay, 3600000, note, &late[1]);
    assert_int_equal(atomic_load(&order.next), 2);
    delay_free(delay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delay_runs_in_order_of_due_time),
        cmocka_unit_test(delay_stop_runs_what_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
