#include "query/sort.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* One item: header, key bytes, document bytes, in one block. */
struct entry {
    uint64_t prefix;   /* first 8 key bytes, big-endian: most comparisons end here */
    uint64_t sequence; /* order of arrival */
    uint64_t tag;
    uint32_t key_len;
    uint32_t doc_len; /* 0: no document */
    uint8_t bytes[];
};

struct sorter {
    struct entry **items; /* a max-heap while `limit` is reached, a plain list before */
    size_t count;
    size_t capacity;
    uint64_t limit; /* 0: none */
    uint64_t sequence;
    size_t memory_bytes;
    size_t memory_limit_bytes;
    size_t next; /* position of sorter_next */
    bool heaped;
    bool finished;
};

struct sorter *sorter_new(uint64_t limit, size_t memory_limit_bytes)
{
    struct sorter *sorter = mem_alloc(sizeof *sorter);
    sorter->limit = limit;
    sorter->memory_limit_bytes = memory_limit_bytes;
    return sorter;
}

void sorter_free(struct sorter *sorter)
{
    if (sorter == NULL)
        return;
    for (size_t i = 0; i < sorter->count; i++)
        mem_free(sorter->items[i]);
    mem_free(sorter->items);
    mem_free(sorter);
}

static uint64_t prefix_of(const uint8_t *key, size_t len)
{
    if (len >= 8)
        return load_be64(key);
    uint8_t padded[8] = {0};
    if (len > 0)
        memcpy(padded, key, len);
    return load_be64(padded);
}

static int compare_keys(uint64_t a_prefix, const uint8_t *a, uint32_t a_len, const struct entry *b)
{
    if (a_prefix != b->prefix)
        return a_prefix < b->prefix ? -1 : 1;
    uint32_t common = a_len < b->key_len ? a_len : b->key_len;
    int order = common > 0 ? memcmp(a, b->bytes, common) : 0;
    return order != 0 ? order : (a_len > b->key_len) - (a_len < b->key_len);
}

static int compare_entries(const struct entry *a, const struct entry *b)
{
    int order = compare_keys(a->prefix, a->bytes, a->key_len, b);
    return order != 0 ? order : (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

static int compare_pointers(const void *a, const void *b)
{
    const struct entry *const *x = a;
    const struct entry *const *y = b;
    return compare_entries(*x, *y);
}

static void sift_down(struct entry **items, size_t count, size_t at)
{
    for (;;) {
        size_t child = at * 2 + 1;
        if (child >= count)
            return;
        if (child + 1 < count && compare_entries(items[child], items[child + 1]) < 0)
            child++;
        if (compare_entries(items[at], items[child]) >= 0)
            return;
        struct entry *other = items[at];
        items[at] = items[child];
        items[child] = other;
        at = child;
    }
}

static size_t entry_bytes(const struct entry *entry)
{
    return sizeof *entry + entry->key_len + entry->doc_len + sizeof(struct entry *);
}

/* A new entry takes the place of the greatest kept one. */
static void replace_greatest(struct sorter *sorter, struct entry *entry)
{
    sorter->memory_bytes -= entry_bytes(sorter->items[0]);
    mem_free(sorter->items[0]);
    sorter->items[0] = entry;
    sift_down(sorter->items, sorter->count, 0);
}

static void append(struct sorter *sorter, struct entry *entry)
{
    if (sorter->count == sorter->capacity) {
        sorter->capacity = sorter->capacity == 0 ? 64 : sorter->capacity * 2;
        sorter->items = mem_realloc(sorter->items, sorter->capacity * sizeof(struct entry *));
    }
    sorter->items[sorter->count++] = entry;
}

static void make_heap(struct sorter *sorter)
{
    for (size_t i = sorter->count / 2; i-- > 0;)
        sift_down(sorter->items, sorter->count, i);
    sorter->heaped = true;
}

bool sorter_add(struct sorter *sorter, const void *key, size_t key_len, struct bdoc doc, uint64_t tag, struct err *err)
{
    CHECK(!sorter->finished);
    uint64_t prefix = prefix_of(key, key_len);
    bool full = sorter->limit > 0 && sorter->count >= sorter->limit;
    if (full && !sorter->heaped)
        make_heap(sorter);
    /* Of equal keys the earlier one stays. */
    if (full && compare_keys(prefix, key, (uint32_t)key_len, sorter->items[0]) >= 0) {
        sorter->sequence++;
        return true;
    }
    uint32_t doc_len = doc.data != NULL ? doc.len : 0;
    struct entry *entry = mem_realloc(NULL, sizeof *entry + key_len + doc_len);
    *entry = (struct entry){.prefix = prefix, .sequence = sorter->sequence++, .tag = tag};
    entry->key_len = (uint32_t)key_len;
    entry->doc_len = doc_len;
    if (key_len > 0)
        memcpy(entry->bytes, key, key_len);
    if (doc_len > 0)
        memcpy(entry->bytes + key_len, doc.data, doc_len);
    sorter->memory_bytes += entry_bytes(entry);
    if (full)
        replace_greatest(sorter, entry);
    else
        append(sorter, entry);
    if (sorter->memory_bytes > sorter->memory_limit_bytes)
        return err_set(err, ERR_QueryExceededMemoryLimitNoDiskUseAllowed,
                       "Sort exceeded memory limit of %zu bytes, but did not opt in to external sorting.",
                       sorter->memory_limit_bytes);
    return true;
}

void sorter_finish(struct sorter *sorter)
{
    if (sorter->count > 1)
        qsort(sorter->items, sorter->count, sizeof(struct entry *), compare_pointers);
    sorter->finished = true;
}

bool sorter_next(struct sorter *sorter, struct sort_item *out)
{
    CHECK(sorter->finished);
    if (sorter->next == sorter->count)
        return false;
    const struct entry *entry = sorter->items[sorter->next++];
    *out = (struct sort_item){.key = entry->bytes, .key_len = entry->key_len, .tag = entry->tag};
    if (entry->doc_len > 0)
        out->doc = (struct bdoc){.data = entry->bytes + entry->key_len, .len = entry->doc_len};
    return true;
}

uint64_t sorter_count(const struct sorter *sorter)
{
    return sorter->count;
}

size_t sorter_memory_bytes(const struct sorter *sorter)
{
    return sorter->memory_bytes;
}
