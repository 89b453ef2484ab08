#include "tests/unit/cmocka_all.h"

#include "base/clock.h"
#include "rpc/ticker.h"

#include <stdatomic.h>

struct ticks {
    atomic_int count;
    int64_t step_ms; /* DEADLINE_NEVER: only when poked */
};

static int64_t on_tick(void *arg, int64_t now_ms)
{
    struct ticks *ticks = arg;
    atomic_fetch_add(&ticks->count, 1);
    return ticks->step_ms == DEADLINE_NEVER ? DEADLINE_NEVER : now_ms + ticks->step_ms;
}

static void wait_count(struct ticks *ticks, int count)
{
    for (int i = 0; i < 5000 && atomic_load(&ticks->count) < count; i++)
        clock_sleep_ms(1);
    assert_true(atomic_load(&ticks->count) >= count);
}

static void ticker_calls_again_when_asked(void **state)
{
    (void)state;
    struct ticks ticks = {.step_ms = 2};
    struct ticker *ticker = ticker_start("tick", on_tick, &ticks);
    wait_count(&ticks, 5);
    ticker_stop(ticker);
    int count = atomic_load(&ticks.count);
    clock_sleep_ms(20);
    assert_int_equal(atomic_load(&ticks.count), count);
    ticker_stop(NULL);
}

static void ticker_poke_brings_the_next_tick_forward(void **state)
{
    (void)state;
    struct ticks ticks = {.step_ms = DEADLINE_NEVER};
    struct ticker *ticker = ticker_start("tick", on_tick, &ticks);
    wait_count(&ticks, 1);
    for (int i = 2; i <= 10; i++) {
        int64_t start_ms = clock_now_ms();
        ticker_poke(ticker, start_ms + 100000);
        ticker_poke(ticker, start_ms + 5);
        wait_count(&ticks, i);
        assert_int_equal(atomic_load(&ticks.count), i);
    }
    ticker_stop(ticker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticker_calls_again_when_asked),
        cmocka_unit_test(ticker_poke_brings_the_next_tick_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
