/* A hash map from byte strings to pointers. Not thread-safe; grows, never shrinks. Keys are copied, values borrowed. */
#ifndef SHERD_BASE_MAP_H
#define SHERD_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_entry {
    struct map_entry *next; /* in its bucket */
    uint64_t hash;
    size_t key_len;
    void *value;
    char key[]; /* key_len bytes and a NUL */
};

struct map {
    struct map_entry **buckets; /* NULL while empty */
    size_t bucket_count;        /* a power of two */
    size_t count;
};

#define MAP_INIT ((struct map){0})

/* Frees the entries, not the values. */
void map_deinit(struct map *map);
/* NULL when absent. */
void *map_get(const struct map *map, const void *key, size_t key_len);
/* Returns the value that was there before, or NULL. `value` must not be NULL. */
void *map_put(struct map *map, const void *key, size_t key_len, void *value);
/* Returns the removed value, or NULL. */
void *map_remove(struct map *map, const void *key, size_t key_len);
/* Walks in no particular order: start with NULL; removing the returned entry before the next call is not allowed. */
struct map_entry *map_next(const struct map *map, const struct map_entry *after);

/* FNV-1a with a final mix; for hash tables, not for placement of data. */
uint64_t hash_bytes(const void *data, size_t len);

#endif
