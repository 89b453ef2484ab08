#include "cluster/keyrange.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

int key_bytes_compare(struct key_bytes a, struct key_bytes b)
{
    uint32_t common = a.len < b.len ? a.len : b.len;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

struct key_bytes key_bytes_of(const struct buf *buf)
{
    CHECK(buf->len <= UINT32_MAX);
    return (struct key_bytes){.data = buf->data, .len = (uint32_t)buf->len};
}

bool key_range_is_empty(struct key_range range)
{
    return key_bytes_compare(range.min, range.max) >= 0;
}

bool key_range_contains(struct key_range range, struct key_bytes key)
{
    return key_bytes_compare(range.min, key) <= 0 && key_bytes_compare(key, range.max) < 0;
}

bool key_range_overlaps(struct key_range a, struct key_range b)
{
    return !key_range_is_empty(key_range_intersect(a, b));
}

struct key_range key_range_intersect(struct key_range a, struct key_range b)
{
    return (struct key_range){
        .min = key_bytes_compare(a.min, b.min) >= 0 ? a.min : b.min,
        .max = key_bytes_compare(a.max, b.max) <= 0 ? a.max : b.max,
    };
}

struct range_set {
    size_t count;
    uint8_t *bytes; /* all bounds, one after another */
    struct key_range ranges[];
};

static int by_min(const void *left, const void *right)
{
    const struct key_range *a = left;
    const struct key_range *b = right;
    return key_bytes_compare(a->min, b->min);
}

static bool check_disjoint(const struct range_set *set, struct err *err)
{
    for (size_t i = 0; i < set->count; i++) {
        if (key_range_is_empty(set->ranges[i])) {
            return err_set(err, ERR_BadValue, "a range is empty");
        }
        if (i > 0 && key_bytes_compare(set->ranges[i - 1].max, set->ranges[i].min) > 0) {
            return err_set(err, ERR_RangeOverlapConflict, "two ranges overlap");
        }
    }
    return true;
}

static uint8_t *copy_key(struct key_bytes *key, uint8_t *to)
{
    if (key->len > 0) {
        memcpy(to, key->data, key->len);
    }
    key->data = to;
    return to + key->len;
}

bool range_set_new(const struct key_range *ranges, size_t count, struct range_set **out, struct err *err)
{
    struct range_set *set = mem_alloc(sizeof *set + count * sizeof set->ranges[0]);
    set->count = count;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        set->ranges[i] = ranges[i];
        bytes += (size_t)ranges[i].min.len + ranges[i].max.len;
    }
    qsort(set->ranges, count, sizeof set->ranges[0], by_min);
    set->bytes = mem_alloc(bytes + 1);
    uint8_t *to = set->bytes;
    for (size_t i = 0; i < count; i++) {
        to = copy_key(&set->ranges[i].min, to);
        to = copy_key(&set->ranges[i].max, to);
    }
    if (!check_disjoint(set, err)) {
        range_set_free(set);
        return false;
    }
    *out = set;
    return true;
}

void range_set_free(struct range_set *set)
{
    if (set != NULL) {
        mem_free(set->bytes);
        mem_free(set);
    }
}

size_t range_set_count(const struct range_set *set)
{
    return set->count;
}

struct key_range range_set_at(const struct range_set *set, size_t index)
{
    CHECK(index < set->count);
    return set->ranges[index];
}

/* Number of ranges whose min is at or below `key`. */
static size_t ranges_up_to(const struct range_set *set, struct key_bytes key)
{
    size_t low = 0;
    size_t high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (key_bytes_compare(set->ranges[middle].min, key) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

size_t range_set_find(const struct range_set *set, struct key_bytes key)
{
    size_t index = ranges_up_to(set, key);
    if (index == 0 || key_bytes_compare(key, set->ranges[index - 1].max) >= 0) {
        return SIZE_MAX;
    }
    return index - 1;
}

bool range_set_contains(const struct range_set *set, struct key_bytes key)
{
    return range_set_find(set, key) != SIZE_MAX;
}

bool range_set_covers(const struct range_set *set, struct key_range range)
{
    if (key_range_is_empty(range)) {
        return true;
    }
    size_t index = range_set_find(set, range.min);
    if (index == SIZE_MAX) {
        return false;
    }
    while (key_bytes_compare(set->ranges[index].max, range.max) < 0) {
        if (index + 1 == set->count || key_bytes_compare(set->ranges[index].max, set->ranges[index + 1].min) != 0) {
            return false;
        }
        index++;
    }
    return true;
}

bool range_set_overlaps(const struct range_set *set, struct key_range range)
{
    size_t index = ranges_up_to(set, range.min);
    if (index > 0 && key_range_overlaps(set->ranges[index - 1], range)) {
        return true;
    }
    return index < set->count && key_range_overlaps(set->ranges[index], range);
}
