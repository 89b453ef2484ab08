#include "plan/cache.h"

#include "base/map.h"
#include "base/mem.h"

#include <pthread.h>
#include <string.h>

/* In a list by last use, the newest first. */
struct cached {
    struct cached *newer;
    struct cached *older;
    struct plan_cache_value value;
    size_t key_len;
    uint8_t key[];
};

struct plan_cache {
    pthread_mutex_t mutex; /* protects everything below */
    struct map entries;
    struct cached *newest;
    struct cached *oldest;
};

struct plan_cache *plan_cache_new(void)
{
    struct plan_cache *cache = mem_alloc(sizeof *cache);
    pthread_mutex_init(&cache->mutex, NULL);
    return cache;
}

static void unlink_locked(struct plan_cache *cache, struct cached *entry)
{
    if (entry->newer != NULL)
        entry->newer->older = entry->older;
    else
        cache->newest = entry->older;
    if (entry->older != NULL)
        entry->older->newer = entry->newer;
    else
        cache->oldest = entry->newer;
}

static void link_newest_locked(struct plan_cache *cache, struct cached *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    if (cache->newest != NULL)
        cache->newest->newer = entry;
    else
        cache->oldest = entry;
    cache->newest = entry;
}

static void remove_locked(struct plan_cache *cache, struct cached *entry)
{
    unlink_locked(cache, entry);
    (void)map_remove(&cache->entries, entry->key, entry->key_len);
    mem_free(entry);
}

void plan_cache_free(struct plan_cache *cache)
{
    if (cache == NULL)
        return;
    while (cache->newest != NULL)
        remove_locked(cache, cache->newest);
    map_deinit(&cache->entries);
    pthread_mutex_destroy(&cache->mutex);
    mem_free(cache);
}

bool plan_cache_get(struct plan_cache *cache, const void *key, size_t key_len, uint64_t indexes,
                    struct plan_cache_value *value)
{
    pthread_mutex_lock(&cache->mutex);
    struct cached *entry = map_get(&cache->entries, key, key_len);
    bool found = entry != NULL && entry->value.indexes == indexes;
    if (found) {
        unlink_locked(cache, entry);
        link_newest_locked(cache, entry);
        *value = entry->value;
    } else if (entry != NULL) {
        remove_locked(cache, entry);
    }
    pthread_mutex_unlock(&cache->mutex);
    return found;
}

void plan_cache_put(struct plan_cache *cache, const void *key, size_t key_len, const struct plan_cache_value *value)
{
    if (key_len > PLAN_CACHE_KEY_MAX)
        return;
    pthread_mutex_lock(&cache->mutex);
    struct cached *entry = map_get(&cache->entries, key, key_len);
    if (entry != NULL)
        remove_locked(cache, entry);
    if (cache->entries.count >= PLAN_CACHE_ENTRIES_MAX)
        remove_locked(cache, cache->oldest);
    entry = mem_alloc(sizeof *entry + key_len);
    entry->value = *value;
    entry->key_len = key_len;
    memcpy(entry->key, key, key_len);
    map_put(&cache->entries, key, key_len, entry);
    link_newest_locked(cache, entry);
    pthread_mutex_unlock(&cache->mutex);
}

void plan_cache_drop(struct plan_cache *cache, const void *key, size_t key_len)
{
    pthread_mutex_lock(&cache->mutex);
    struct cached *entry = map_get(&cache->entries, key, key_len);
    if (entry != NULL)
        remove_locked(cache, entry);
    pthread_mutex_unlock(&cache->mutex);
}

void plan_cache_clear(struct plan_cache *cache, uint32_t collection_id)
{
    pthread_mutex_lock(&cache->mutex);
    for (struct cached *entry = cache->newest; entry != NULL;) {
        struct cached *older = entry->older;
        if (entry->value.collection_id == collection_id)
            remove_locked(cache, entry);
        entry = older;
    }
    pthread_mutex_unlock(&cache->mutex);
}

size_t plan_cache_count(struct plan_cache *cache)
{
    pthread_mutex_lock(&cache->mutex);
    size_t count = cache->entries.count;
    pthread_mutex_unlock(&cache->mutex);
    return count;
}

void plan_cache_each(struct plan_cache *cache, uint32_t collection_id,
                     void (*visit)(void *arg, const struct plan_cache_value *value), void *arg)
{
    pthread_mutex_lock(&cache->mutex);
    for (struct cached *entry = cache->newest; entry != NULL; entry = entry->older)
        if (entry->value.collection_id == collection_id)
            visit(arg, &entry->value);
    pthread_mutex_unlock(&cache->mutex);
}
