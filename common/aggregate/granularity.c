#include "aggregate/granularity.h"

#include <math.h>
#include <string.h>

static const double r5[] = {10, 16, 25, 40, 63};
static const double r10[] = {100, 125, 160, 200, 250, 315, 400, 500, 630, 800};
static const double r20[] = {100, 112, 125, 140, 160, 180, 200, 224, 250, 280,
                             315, 355, 400, 450, 500, 560, 630, 710, 800, 900};
static const double r40[] = {100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212,
                             224, 236, 250, 265, 280, 300, 315, 335, 355, 375, 400, 425, 450, 475,
                             500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950};
static const double r80[] = {103, 109, 115, 122, 128, 136, 145, 155, 165, 175, 185, 195, 206, 218,
                             230, 243, 258, 272, 290, 307, 325, 345, 365, 387, 412, 437, 462, 487,
                             515, 545, 575, 615, 650, 690, 730, 775, 825, 875, 925, 975};
static const double one_two_five[] = {10, 20, 50};
static const double e6[] = {10, 15, 22, 33, 47, 68};
static const double e12[] = {10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82};
static const double e24[] = {10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30,
                             33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91};
static const double e48[] = {100, 105, 110, 115, 121, 127, 133, 140, 147, 154, 162, 169, 178, 187, 196, 205,
                             215, 226, 237, 249, 261, 274, 287, 301, 316, 332, 348, 365, 383, 402, 422, 442,
                             464, 487, 511, 536, 562, 590, 619, 649, 681, 715, 750, 787, 825, 866, 909, 953};
static const double e96[] = {100, 102, 105, 107, 110, 113, 115, 118, 121, 124, 127, 130, 133, 137, 140, 143,
                             147, 150, 154, 158, 162, 165, 169, 174, 178, 182, 187, 191, 196, 200, 205, 210,
                             215, 221, 226, 232, 237, 243, 249, 255, 261, 267, 274, 280, 287, 294, 301, 309,
                             316, 324, 332, 340, 348, 357, 365, 374, 383, 392, 402, 412, 422, 432, 442, 453,
                             464, 475, 487, 499, 511, 523, 536, 549, 562, 576, 590, 604, 619, 634, 649, 665,
                             681, 698, 715, 732, 750, 768, 787, 806, 825, 845, 866, 887, 909, 931, 953, 976};

#define SERIES(text, list)                                                                                             \
    {                                                                                                                  \
        text, list, sizeof(list) / sizeof *(list)                                                                      \
    }
static const struct granularity table[] = {
    SERIES("R5", r5),   SERIES("R10", r10), SERIES("R20", r20),
    SERIES("R40", r40), SERIES("R80", r80), SERIES("1-2-5", one_two_five),
    SERIES("E6", e6),   SERIES("E12", e12), SERIES("E24", e24),
    SERIES("E48", e48), SERIES("E96", e96), {"POWERSOF2", NULL, 0},
};

const struct granularity *granularity_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

/* The decade's factor is reached by repeated steps, as the recorded results show in their last digits. */
static double factor_for(const struct granularity *g, double value, bool up)
{
    double first = g->series[0];
    double end = first * 10;
    double factor = 1;
    while (up ? value >= end * factor : value > end * factor)
        factor *= 10;
    while (up ? value < first * factor : value <= first * factor)
        factor /= 10;
    return factor;
}

double granularity_round_up(const struct granularity *g, double value)
{
    if (value == 0 || !isfinite(value))
        return value;
    if (g->series == NULL)
        return exp2(floor(log2(value)) + 1);
    double factor = factor_for(g, value, true);
    for (size_t i = 0; i < g->count; i++)
        if (g->series[i] * factor > value)
            return g->series[i] * factor;
    return g->series[0] * 10 * factor;
}

double granularity_round_down(const struct granularity *g, double value)
{
    if (value == 0 || !isfinite(value))
        return value;
    if (g->series == NULL)
        return exp2(ceil(log2(value)) - 1);
    double factor = factor_for(g, value, false);
    for (size_t i = g->count; i > 0; i--)
        if (g->series[i - 1] * factor < value)
            return g->series[i - 1] * factor;
    return g->series[0] * factor;
}
