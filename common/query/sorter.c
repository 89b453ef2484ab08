#include "query/sorter.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "query/sort_runs.h"

#include <stdlib.h>
#include <string.h>

enum {
    SORT_SMALL = 8, /* so many items are sorted by insertion */
};

/* One item: header, key bytes, document bytes, in one block. */
struct entry {
    uint64_t sequence; /* order of arrival */
    uint64_t tag;
    uint32_t key_len;
    uint32_t doc_len; /* 0: no document */
    uint8_t bytes[];
};

/* Most comparisons end at the prefix, without a look at the entry. */
struct slot {
    uint64_t prefix;
    struct entry *entry;
};

struct sorter {
    struct sorter_options options;
    struct slot *items; /* a max-heap while `limit` is reached, a plain list before */
    size_t count;
    size_t capacity;
    uint64_t sequence;
    uint64_t spilled; /* items in runs */
    int64_t added_bytes;
    size_t memory_bytes;
    size_t next;            /* position of sorter_next */
    struct sort_runs *runs; /* NULL: all in memory */
    uint64_t handed_out;
    bool heaped;
    bool finished;
};

struct sorter *sorter_new(const struct sorter_options *options)
{
    struct sorter *sorter = mem_alloc(sizeof *sorter);
    sorter->options = *options;
    return sorter;
}

static void drop_items(struct sorter *sorter)
{
    for (size_t i = 0; i < sorter->count; i++)
        mem_free(sorter->items[i].entry);
    sorter->count = 0;
    sorter->memory_bytes = 0;
    sorter->heaped = false;
}

void sorter_free(struct sorter *sorter)
{
    if (sorter == NULL)
        return;
    drop_items(sorter);
    sort_runs_free(sorter->runs);
    mem_free(sorter->items);
    mem_free(sorter);
}

static int compare_slots(const struct slot *a, const struct slot *b)
{
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix ? -1 : 1;
    const struct entry *x = a->entry;
    const struct entry *y = b->entry;
    int order = sort_key_compare(0, x->bytes, x->key_len, 0, y->bytes, y->key_len);
    return order != 0 ? order : (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static void sift_down(struct slot *items, size_t count, size_t at)
{
    for (;;) {
        size_t child = at * 2 + 1;
        if (child >= count)
            return;
        if (child + 1 < count && compare_slots(&items[child], &items[child + 1]) < 0)
            child++;
        if (compare_slots(&items[at], &items[child]) >= 0)
            return;
        struct slot other = items[at];
        items[at] = items[child];
        items[child] = other;
        at = child;
    }
}

static size_t entry_bytes(const struct entry *entry)
{
    return sizeof *entry + entry->key_len + entry->doc_len + sizeof(struct slot);
}

/* A new entry takes the place of the greatest kept one. */
static void replace_greatest(struct sorter *sorter, const struct slot *slot)
{
    sorter->memory_bytes -= entry_bytes(sorter->items[0].entry);
    mem_free(sorter->items[0].entry);
    sorter->items[0] = *slot;
    sift_down(sorter->items, sorter->count, 0);
}

static void append(struct sorter *sorter, const struct slot *slot)
{
    if (sorter->count == sorter->capacity) {
        sorter->capacity = sorter->capacity == 0 ? 64 : sorter->capacity * 2;
        sorter->items = mem_realloc(sorter->items, sorter->capacity * sizeof *sorter->items);
    }
    sorter->items[sorter->count++] = *slot;
}

static void make_heap(struct sorter *sorter)
{
    for (size_t i = sorter->count / 2; i-- > 0;)
        sift_down(sorter->items, sorter->count, i);
    sorter->heaped = true;
}

static void insertion_sort(struct slot *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct slot slot = items[i];
        size_t at = i;
        for (; at > 0 && compare_slots(&items[at - 1], &slot) > 0; at--)
            items[at] = items[at - 1];
        items[at] = slot;
    }
}

/* [0, middle) and [middle, count) of `from` are sorted. */
static void merge_halves(const struct slot *from, size_t middle, size_t count, struct slot *to)
{
    size_t left = 0;
    size_t right = middle;
    for (size_t at = 0; at < count; at++) {
        bool take_left = left < middle && (right == count || compare_slots(&from[left], &from[right]) <= 0);
        to[at] = take_left ? from[left++] : from[right++];
    }
}

/* Bottom-up, so that a long sort can be interrupted between two merges. */
static bool sort_items(struct sorter *sorter, struct err *err)
{
    size_t count = sorter->count;
    struct slot *from = sorter->items;
    for (size_t at = 0; at < count; at += SORT_SMALL) {
        insertion_sort(from + at, count - at < SORT_SMALL ? count - at : SORT_SMALL);
        if (!interrupt_step(err))
            return false;
    }
    if (count <= SORT_SMALL)
        return true;
    struct slot *to = mem_alloc_array(sorter->capacity, sizeof *to);
    bool ok = true;
    for (size_t width = SORT_SMALL; ok && width < count; width *= 2) {
        for (size_t at = 0; ok && at < count; at += width * 2) {
            size_t left = count - at;
            size_t both = left < width * 2 ? left : width * 2;
            merge_halves(from + at, width < both ? width : both, both, to + at);
            ok = both > 1024 ? interrupt_check(err) : interrupt_step(err);
        }
        if (!ok)
            break; /* `from` is whole, `to` isn't */
        struct slot *other = from;
        from = to;
        to = other;
    }
    sorter->items = from;
    mem_free(to);
    return ok;
}

static struct sort_item item_of(const struct entry *entry)
{
    struct sort_item item = {.key = entry->bytes, .key_len = entry->key_len, .tag = entry->tag};
    if (entry->doc_len > 0)
        item.doc = (struct bdoc){.data = entry->bytes + entry->key_len, .len = entry->doc_len};
    return item;
}

/* What is in memory becomes a run. */
static bool spill(struct sorter *sorter, struct err *err)
{
    if (sorter->options.space == NULL)
        return err_set(err, ERR_QueryExceededMemoryLimitNoDiskUseAllowed,
                       "Sort exceeded memory limit of %zu bytes, but did not opt in to external sorting.",
                       sorter->options.memory_limit_bytes);
    if (sorter->runs == NULL)
        sorter->runs = sort_runs_new(sorter->options.space);
    if (!sort_items(sorter, err) || !sort_runs_begin(sorter->runs, err))
        return false;
    for (size_t i = 0; i < sorter->count; i++) {
        struct sort_item item = item_of(sorter->items[i].entry);
        if (!interrupt_step(err) || !sort_runs_append(sorter->runs, &item, err))
            return false;
    }
    if (!sort_runs_end(sorter->runs, err))
        return false;
    sorter->spilled += sorter->count;
    drop_items(sorter);
    return true;
}

static struct entry *make_entry(const void *key, size_t key_len, struct bdoc doc, uint64_t tag)
{
    uint32_t doc_len = doc.data != NULL ? doc.len : 0;
    struct entry *entry = mem_realloc(NULL, sizeof *entry + key_len + doc_len);
    *entry = (struct entry){.tag = tag, .key_len = (uint32_t)key_len, .doc_len = doc_len};
    if (key_len > 0)
        memcpy(entry->bytes, key, key_len);
    if (doc_len > 0)
        memcpy(entry->bytes + key_len, doc.data, doc_len);
    return entry;
}

bool sorter_add(struct sorter *sorter, const void *key, size_t key_len, struct bdoc doc, uint64_t tag, struct err *err)
{
    CHECK(!sorter->finished);
    struct slot slot = {.prefix = sort_key_prefix(key, key_len)};
    bool full = sorter->options.limit > 0 && sorter->count >= sorter->options.limit;
    if (!interrupt_step(err))
        return false;
    if (full && !sorter->heaped)
        make_heap(sorter);
    /* Of equal keys the earlier one stays. */
    if (full && sort_key_compare(slot.prefix, key, (uint32_t)key_len, sorter->items[0].prefix,
                                 sorter->items[0].entry->bytes, sorter->items[0].entry->key_len) >= 0) {
        sorter->sequence++;
        return true;
    }
    slot.entry = make_entry(key, key_len, doc, tag);
    slot.entry->sequence = sorter->sequence++;
    sorter->memory_bytes += entry_bytes(slot.entry);
    sorter->added_bytes += (int64_t)entry_bytes(slot.entry);
    if (full)
        replace_greatest(sorter, &slot);
    else
        append(sorter, &slot);
    return sorter->memory_bytes <= sorter->options.memory_limit_bytes || spill(sorter, err);
}

bool sorter_finish(struct sorter *sorter, struct err *err)
{
    sorter->finished = true;
    if (sorter->runs == NULL)
        return sort_items(sorter, err);
    return (sorter->count == 0 || spill(sorter, err)) && sort_runs_merge(sorter->runs, err);
}

bool sorter_next(struct sorter *sorter, struct sort_item *out, bool *found, struct err *err)
{
    CHECK(sorter->finished);
    *found = sorter->handed_out < sorter_count(sorter);
    if (!*found)
        return true;
    sorter->handed_out++;
    if (sorter->runs != NULL)
        return sort_runs_next(sorter->runs, out, found, err);
    *out = item_of(sorter->items[sorter->next++].entry);
    return true;
}

uint64_t sorter_count(const struct sorter *sorter)
{
    uint64_t count = sorter->spilled + sorter->count;
    return sorter->options.limit > 0 && sorter->options.limit < count ? sorter->options.limit : count;
}

size_t sorter_memory_bytes(const struct sorter *sorter)
{
    return sorter->memory_bytes + (sorter->runs == NULL ? 0 : sort_runs_memory_bytes(sorter->runs));
}

void sorter_stats_get(const struct sorter *sorter, struct sorter_stats *out)
{
    *out = (struct sorter_stats){0};
    if (sorter->runs != NULL)
        sort_runs_stats(sorter->runs, out);
    out->items = sorter->sequence;
    out->bytes = sorter->added_bytes;
}
