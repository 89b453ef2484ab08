#include "tests/unit/aggregate/replay.h"

#include "bson/compare.h"

#include <math.h>
#include <string.h>

static bool equal_at(const struct bval *want, const struct bval *got, const struct replay_flags *flags,
                     const char *field);

static bool number_equal(const struct bval *want, const struct bval *got, const struct replay_flags *flags)
{
    double a;
    double b;
    if (bval_compare(want, got) == 0)
        return flags->numeric_classes || want->type == got->type;
    if (flags->tolerance <= 0 || !bval_to_f64(want, &a) || !bval_to_f64(got, &b))
        return false;
    if (!flags->numeric_classes && want->type != got->type)
        return false;
    return fabs(a - b) <= flags->tolerance * fmax(fabs(a), fabs(b));
}

static bool fields_equal(struct bdoc want, struct bdoc got, const struct replay_flags *flags)
{
    struct biter a;
    struct biter b;
    struct belem x;
    struct belem y;
    struct bval index;
    biter_init(&a, want);
    biter_init(&b, got);
    /* {index, fails: true}: refused, by whatever code. */
    if (bdoc_has(want, "fails") && bdoc_find(want, "index", &index))
        return bdoc_find(got, "index", &y.val) && bval_compare(&index, &y.val) == 0;
    if (bdoc_count(want) != bdoc_count(got))
        return false;
    while (biter_next(&a, &x)) {
        if (flags->unordered_fields) {
            if (!bdoc_find(got, x.key, &y.val))
                return false;
        } else if (!biter_next(&b, &y) || strcmp(x.key, y.key) != 0) {
            return false;
        }
        if (!equal_at(&x.val, &y.val, flags, x.key))
            return false;
    }
    return true;
}

/* Each wanted element takes a different one that was got. */
static bool elements_equal(struct bdoc want, struct bdoc got, const struct replay_flags *flags)
{
    bool taken[4096] = {false};
    struct biter a;
    struct belem x;
    if (bdoc_count(want) != bdoc_count(got) || bdoc_count(want) > sizeof taken)
        return false;
    biter_init(&a, want);
    while (biter_next(&a, &x)) {
        struct biter b;
        struct belem y;
        bool found = false;
        biter_init(&b, got);
        for (int i = 0; !found && biter_next(&b, &y); i++)
            if (!taken[i] && equal_at(&x.val, &y.val, flags, NULL))
                found = taken[i] = true;
        if (!found)
            return false;
    }
    return true;
}

static bool named(struct bdoc list, const char *field)
{
    struct biter iter;
    struct belem elem;
    if (list.data == NULL || field == NULL)
        return false;
    biter_init(&iter, list);
    while (biter_next(&iter, &elem))
        if (bval_is_str(&elem.val, field))
            return true;
    return false;
}

static bool equal_at(const struct bval *want, const struct bval *got, const struct replay_flags *flags,
                     const char *field)
{
    if (bval_is_number(want) && bval_is_number(got))
        return number_equal(want, got, flags);
    if (want->type != got->type)
        return false;
    if (want->type == BT_ARRAY && named(flags->unordered_arrays, field))
        return elements_equal(bval_doc(want), bval_doc(got), flags);
    if (want->type == BT_DOCUMENT || want->type == BT_ARRAY)
        return fields_equal(bval_doc(want), bval_doc(got), flags);
    return want->len == got->len && memcmp(want->data, got->data, want->len) == 0;
}

bool replay_equal(const struct bval *want, const struct bval *got, const struct replay_flags *flags)
{
    bool list = want->type == BT_ARRAY && got->type == BT_ARRAY;
    if (list && flags->unordered)
        return elements_equal(bval_doc(want), bval_doc(got), flags);
    return equal_at(want, got, flags, NULL);
}
