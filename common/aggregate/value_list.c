#include "aggregate/value_list.h"

#include "base/mem.h"

#include <stdlib.h>

enum {
    SLACK_ITEMS = 16, /* kept beyond twice the limit before the list is cut again */
};

void value_list_init(struct value_list *list, int64_t limit, bool by_key, enum value_list_end end)
{
    *list = (struct value_list){.limit = limit, .by_key = by_key, .end = end};
}

void value_list_deinit(struct value_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        mem_free(list->items[i]);
    mem_free(list->items);
    list->items = NULL;
    list->count = 0;
}

static int compare_items(const void *a, const void *b)
{
    const struct value_item *x = *(struct value_item *const *)a;
    const struct value_item *y = *(struct value_item *const *)b;
    size_t shared = x->key_len < y->key_len ? x->key_len : y->key_len;
    int order = shared > 0 ? memcmp(x->bytes, y->bytes, shared) : 0;
    if (order != 0)
        return order;
    if (x->key_len != y->key_len)
        return x->key_len < y->key_len ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

void value_list_settle(struct value_list *list)
{
    if (list->by_key && list->count > 1)
        qsort(list->items, list->count, sizeof *list->items, compare_items);
    if (list->count <= (uint64_t)list->limit)
        return;
    size_t keep = (size_t)list->limit;
    size_t from = list->end == VALUE_LIST_LAST ? list->count - keep : 0;
    for (size_t i = 0; i < list->count; i++) {
        struct value_item *item = list->items[i];
        if (i >= from && i < from + keep) {
            list->items[i - from] = item;
            continue;
        }
        list->bytes -= sizeof *item + item->key_len + item->len;
        mem_free(item);
    }
    list->count = keep;
}

void value_list_add(struct value_list *list, const struct buf *key, const struct bval *val)
{
    bool full = list->count >= (uint64_t)list->limit;
    list->arrived++;
    if (full && !list->by_key && list->end == VALUE_LIST_FIRST)
        return;
    uint32_t key_len = list->by_key ? (uint32_t)key->len : 0;
    size_t size = sizeof(struct value_item) + key_len + val->len;
    struct value_item *item = mem_alloc(size);
    *item = (struct value_item){.place = list->arrived, .key_len = key_len, .len = val->len, .type = val->type};
    if (key_len > 0)
        memcpy(item->bytes, key->data, key_len);
    if (val->len > 0)
        memcpy(item->bytes + key_len, val->data, val->len);
    if (list->count == list->capacity) {
        list->capacity = list->capacity == 0 ? 4 : list->capacity * 2;
        list->items = mem_realloc(list->items, list->capacity * sizeof *list->items);
    }
    list->items[list->count++] = item;
    list->bytes += size;
    if (list->count / 2 > (uint64_t)list->limit + SLACK_ITEMS)
        value_list_settle(list);
}

struct bval value_item_get(const struct value_item *item)
{
    return (struct bval){.type = item->type, .len = item->len, .data = item->bytes + item->key_len};
}

size_t value_list_bytes(const struct value_list *list)
{
    return list->bytes + list->capacity * sizeof *list->items;
}
