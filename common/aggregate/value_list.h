/* The bounded list behind $firstN, $lastN, $minN, $maxN, $top, $bottom and their like: values with an optional sort
 * key, of which only the first or the last n are kept. One user at a time. */
#ifndef SHERD_AGGREGATE_VALUE_LIST_H
#define SHERD_AGGREGATE_VALUE_LIST_H

#include "base/buf.h"
#include "bson/value.h"

enum value_list_end {
    VALUE_LIST_FIRST,
    VALUE_LIST_LAST,
};

/* One value; its key bytes and its payload follow. */
struct value_item {
    uint64_t place; /* order of arrival, among equal keys */
    uint32_t key_len;
    uint32_t len;
    uint8_t type; /* of the value */
    uint8_t bytes[];
};

struct value_list {
    struct value_item **items;
    size_t count;
    size_t capacity;
    uint64_t arrived;
    int64_t limit; /* n */
    size_t bytes;  /* held by the items */
    bool by_key;   /* sorted by the keys; else by arrival */
    enum value_list_end end;
};

void value_list_init(struct value_list *list, int64_t limit, bool by_key, enum value_list_end end);
void value_list_deinit(struct value_list *list);
/* `key` is ignored when the list isn't sorted by keys. */
void value_list_add(struct value_list *list, const struct buf *key, const struct bval *val);
/* Sorts, and drops what is over the limit. */
void value_list_settle(struct value_list *list);
struct bval value_item_get(const struct value_item *item);
/* Heap bytes. */
size_t value_list_bytes(const struct value_list *list);

#endif
