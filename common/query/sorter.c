#include "query/sorter.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "query/sort_runs.h"

#include <stdlib.h>
#include <string.h>

enum {
    SORT_SMALL = 8,                   /* so many items are sorted by insertion */
    SORT_BY_DIGITS = 64,              /* so many at least by the digits of their prefixes */
    SORT_UNCHECKED = 1024,            /* so many are sorted without a look at the clock */
    SORT_DIGITS = 8,                  /* bytes of a prefix */
    SORT_DEPTH_MAX = 64,              /* bytes of keys that are looked at by digits; recursion ends there */
    SORT_BLOCK_MIN_BYTES = 16 * 1024, /* of entries; each block is twice as large as the one before */
    SORT_BLOCK_MAX_BYTES = 1024 * 1024,
};

/* One item: header, key bytes, document bytes, in one block. */
struct entry {
    uint64_t sequence; /* order of arrival */
    uint64_t tag;
    uint32_t key_len;
    uint32_t doc_len; /* 0: no document */
    uint8_t bytes[];
};

/* Entries end to end. */
struct block {
    struct block *older;
    size_t used;
    size_t size;
    uint8_t bytes[] __attribute__((aligned(8)));
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
    struct block *blocks;   /* the newest first; with a limit entries come and go one by one instead */
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
    for (size_t i = 0; sorter->options.limit > 0 && i < sorter->count; i++)
        mem_free(sorter->items[i].entry);
    while (sorter->blocks != NULL) {
        struct block *block = sorter->blocks;
        sorter->blocks = block->older;
        mem_free(block);
    }
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

/* Compares keys; bottom-up, so that a long sort can be interrupted between two merges. `spare` has room for as many. */
static bool sort_by_merging(struct slot *items, size_t count, struct slot *spare, struct err *err)
{
    struct slot *from = items;
    struct slot *to = spare;
    bool ok = true;
    for (size_t at = 0; at < count; at += SORT_SMALL) {
        insertion_sort(from + at, count - at < SORT_SMALL ? count - at : SORT_SMALL);
        if (!interrupt_step(err))
            return false;
    }
    for (size_t width = SORT_SMALL; ok && width < count; width *= 2) {
        for (size_t at = 0; ok && at < count; at += width * 2) {
            size_t left = count - at;
            size_t both = left < width * 2 ? left : width * 2;
            merge_halves(from + at, width < both ? width : both, both, to + at);
            ok = both > SORT_UNCHECKED ? interrupt_check(err) : interrupt_step(err);
        }
        if (!ok)
            break; /* `from` is whole, `to` isn't */
        struct slot *other = from;
        from = to;
        to = other;
    }
    if (from != items)
        memcpy(items, from, count * sizeof *items);
    return ok;
}

/* One stable pass: by the byte of the prefix that begins at bit `shift`. `counts` is what the bytes' counts are. */
static void scatter(const struct slot *from, size_t count, unsigned shift, const uint32_t *counts, struct slot *to)
{
    uint32_t places[256];
    uint32_t place = 0;
    for (int digit = 0; digit < 256; digit++) {
        places[digit] = place;
        place += counts[digit];
    }
    for (size_t i = 0; i < count; i++)
        to[places[from[i].prefix >> shift & 0xff]++] = from[i];
}

/* Sorts by the prefixes alone, equal ones stay in their order. */
static bool sort_by_digits(struct slot *items, size_t count, struct slot *spare, struct err *err)
{
    uint32_t counts[SORT_DIGITS][256] = {{0}};
    struct slot *from = items;
    struct slot *to = spare;
    for (size_t i = 0; i < count; i++)
        for (unsigned digit = 0; digit < SORT_DIGITS; digit++)
            counts[digit][items[i].prefix >> (8 * digit) & 0xff]++;
    for (unsigned digit = 0; digit < SORT_DIGITS; digit++) {
        if (counts[digit][items[0].prefix >> (8 * digit) & 0xff] == count)
            continue; /* the same byte everywhere */
        scatter(from, count, 8 * digit, counts[digit], to);
        struct slot *other = from;
        from = to;
        to = other;
    }
    if (from != items)
        memcpy(items, from, count * sizeof *items);
    return count > SORT_UNCHECKED ? interrupt_check(err) : interrupt_step(err);
}

/* The next bytes of each key take the place of its prefix; false when some key has no such bytes. */
static bool take_next_prefixes(struct slot *items, size_t count, uint32_t at)
{
    for (size_t i = 0; i < count; i++)
        if (items[i].entry->key_len < at + SORT_DIGITS)
            return false;
    for (size_t i = 0; i < count; i++)
        items[i].prefix = load_be64(items[i].entry->bytes + at);
    return true;
}

/* Items whose keys agree in their first `at` bytes, of which the prefixes hold the next ones. */
static bool sort_slots(struct slot *items, size_t count, struct slot *spare, uint32_t at, struct err *err)
{
    if (count < SORT_BY_DIGITS)
        return sort_by_merging(items, count, spare, err);
    if (!sort_by_digits(items, count, spare, err))
        return false;
    for (size_t first = 0; first < count;) {
        size_t next = first + 1;
        while (next < count && items[next].prefix == items[first].prefix)
            next++;
        size_t same = next - first;
        bool deeper =
            same >= SORT_BY_DIGITS && at < SORT_DEPTH_MAX && take_next_prefixes(items + first, same, at + SORT_DIGITS);
        if (same > 1 && !(deeper ? sort_slots(items + first, same, spare, at + SORT_DIGITS, err)
                                 : sort_by_merging(items + first, same, spare, err)))
            return false;
        first = next;
    }
    return true;
}

static bool sort_items(struct sorter *sorter, struct err *err)
{
    if (sorter->count < 2)
        return true;
    if (sorter->count > UINT32_MAX)
        return err_set(err, ERR_ExceededMemoryLimit, "a sort has too many items in memory");
    struct slot *spare = mem_realloc(NULL, sorter->count * sizeof *spare);
    bool ok = sort_slots(sorter->items, sorter->count, spare, 0, err);
    mem_free(spare);
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

static void *take_room(struct sorter *sorter, size_t bytes)
{
    struct block *block = sorter->blocks;
    bytes = (bytes + 7) & ~(size_t)7;
    if (block == NULL || block->size - block->used < bytes) {
        size_t size = block == NULL ? SORT_BLOCK_MIN_BYTES : block->size * 2;
        size = size > SORT_BLOCK_MAX_BYTES ? SORT_BLOCK_MAX_BYTES : size;
        size = size < bytes ? bytes : size;
        struct block *fresh = mem_realloc(NULL, sizeof *fresh + size);
        *fresh = (struct block){.older = block, .size = size};
        sorter->blocks = fresh;
        block = fresh;
    }
    void *room = block->bytes + block->used;
    block->used += bytes;
    return room;
}

static struct entry *make_entry(struct sorter *sorter, const void *key, size_t key_len, struct bdoc doc, uint64_t tag)
{
    uint32_t doc_len = doc.data != NULL ? doc.len : 0;
    size_t bytes = sizeof(struct entry) + key_len + doc_len;
    struct entry *entry = sorter->options.limit > 0 ? mem_realloc(NULL, bytes) : take_room(sorter, bytes);
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
    slot.entry = make_entry(sorter, key, key_len, doc, tag);
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
