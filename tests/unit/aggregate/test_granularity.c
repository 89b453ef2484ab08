#include "aggregate/granularity.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>

static void granularity_rounds_to_the_neighbours_in_the_series(void **state)
{
    static const struct {
        const char *name;
        double value, down, up;
    } cases[] = {
        {"R5", 16, 10, 25},    {"R5", 63.5, 63, 100}, {"R10", 1000, 800, 1250}, {"1-2-5", 0.2, 0.1, 0.5},
        {"E6", 2.5, 2.2, 3.3}, {"E12", 1, 0.82, 1.2}, {"POWERSOF2", 8, 4, 16},  {"POWERSOF2", 0.3, 0.25, 0.5},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct granularity *g = granularity_find(cases[i].name);
        assert_non_null(g);
        double up = granularity_round_up(g, cases[i].value);
        double down = granularity_round_down(g, cases[i].value);
        if (fabs(up - cases[i].up) > 1e-9 || fabs(down - cases[i].down) > 1e-9)
            fail_msg("%s of %g: %g and %g", cases[i].name, cases[i].value, down, up);
    }
    assert_null(granularity_find("R6"));
}

/* Every value lies strictly between its neighbours, over many decades. */
static void granularity_neighbours_enclose_every_value(void **state)
{
    static const char *const names[] = {"R5", "R10", "R20", "R40", "R80", "1-2-5",
                                        "E6", "E12", "E24", "E48", "E96", "POWERSOF2"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct granularity *g = granularity_find(names[i]);
        for (double value = 1e-9; value < 1e12; value *= 1.0371) {
            assert_true(granularity_round_up(g, value) > value);
            assert_true(granularity_round_down(g, value) < value);
            assert_true(granularity_round_up(g, value) <= value * 2.6);
        }
        assert_true(granularity_round_up(g, 0) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(granularity_rounds_to_the_neighbours_in_the_series),
        cmocka_unit_test(granularity_neighbours_enclose_every_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
