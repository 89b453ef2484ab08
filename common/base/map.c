#include "base/map.h"

#include "base/check.h"
#include "base/mem.h"

#include <string.h>

uint64_t hash_bytes(const void *data, size_t len)
{
    const uint8_t *bytes = data;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    hash ^= hash >> 32;
    hash *= 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

void map_deinit(struct map *map)
{
    for (size_t i = 0; i < map->bucket_count; i++) {
        struct map_entry *entry = map->buckets[i];
        while (entry != NULL) {
            struct map_entry *next = entry->next;
            mem_free(entry);
            entry = next;
        }
    }
    mem_free(map->buckets);
    *map = MAP_INIT;
}

/* The link that points at the entry, or at the NULL where it would go. The map must have buckets. */
static struct map_entry **find_link(const struct map *map, uint64_t hash, const void *key, size_t key_len)
{
    struct map_entry **link = &map->buckets[hash & (map->bucket_count - 1)];
    while (*link != NULL) {
        struct map_entry *entry = *link;
        if (entry->hash == hash && entry->key_len == key_len && memcmp(entry->key, key, key_len) == 0)
            break;
        link = &entry->next;
    }
    return link;
}

void *map_get(const struct map *map, const void *key, size_t key_len)
{
    if (map->count == 0)
        return NULL;
    struct map_entry *entry = *find_link(map, hash_bytes(key, key_len), key, key_len);
    return entry == NULL ? NULL : entry->value;
}

static void rehash(struct map *map, size_t bucket_count)
{
    struct map_entry **buckets = mem_alloc_array(bucket_count, sizeof(struct map_entry *));
    for (size_t i = 0; i < map->bucket_count; i++) {
        struct map_entry *entry = map->buckets[i];
        while (entry != NULL) {
            struct map_entry *next = entry->next;
            struct map_entry **head = &buckets[entry->hash & (bucket_count - 1)];
            entry->next = *head;
            *head = entry;
            entry = next;
        }
    }
    mem_free(map->buckets);
    map->buckets = buckets;
    map->bucket_count = bucket_count;
}

void *map_put(struct map *map, const void *key, size_t key_len, void *value)
{
    CHECK(value != NULL);
    if (map->count >= map->bucket_count)
        rehash(map, map->bucket_count == 0 ? 16 : map->bucket_count * 2);
    uint64_t hash = hash_bytes(key, key_len);
    struct map_entry **link = find_link(map, hash, key, key_len);
    if (*link != NULL) {
        void *before = (*link)->value;
        (*link)->value = value;
        return before;
    }
    struct map_entry *entry = mem_alloc(sizeof *entry + key_len + 1);
    entry->hash = hash;
    entry->key_len = key_len;
    entry->value = value;
    if (key_len > 0)
        memcpy(entry->key, key, key_len);
    *link = entry;
    map->count++;
    return NULL;
}

void *map_remove(struct map *map, const void *key, size_t key_len)
{
    if (map->count == 0)
        return NULL;
    struct map_entry **link = find_link(map, hash_bytes(key, key_len), key, key_len);
    struct map_entry *entry = *link;
    if (entry == NULL)
        return NULL;
    void *value = entry->value;
    *link = entry->next;
    mem_free(entry);
    map->count--;
    return value;
}

struct map_entry *map_next(const struct map *map, const struct map_entry *after)
{
    size_t bucket = 0;
    if (after != NULL) {
        if (after->next != NULL)
            return after->next;
        bucket = (after->hash & (map->bucket_count - 1)) + 1;
    }
    for (; bucket < map->bucket_count; bucket++) {
        if (map->buckets[bucket] != NULL)
            return map->buckets[bucket];
    }
    return NULL;
}
