/* What earlier trials found out: for a query's shape (its filter without the constants, its sort, projection and
 * collation) on a collection, which of the candidates won and in how many steps. One per node, in the engine; any
 * thread. Entries die with a change of the collection's indexes, when they turn out far worse than they were, and when
 * there are too many: those that were not used for longest go first. */
#ifndef SHERD_PLAN_CACHE_H
#define SHERD_PLAN_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PLAN_CACHE_ENTRIES_MAX = 5000,     /* of all collections together */
    PLAN_CACHE_KEY_MAX = 16 * 1024,    /* bytes of a key; a longer one is not remembered */
    PLAN_CACHE_REPLAN_FACTOR = 10,     /* as many times the steps of the trial make a choice stale */
    PLAN_CACHE_REPLAN_MIN_WORKS = 100, /* fewer steps never do */
};

struct plan_cache;

struct plan_cache *plan_cache_new(void);
/* Accepts NULL. */
void plan_cache_free(struct plan_cache *cache);

struct plan_cache_value {
    uint64_t choice;  /* the winner's signature among the candidates */
    uint64_t works;   /* steps that it took in its trial */
    uint64_t indexes; /* identifies the state of the collection's indexes */
    uint32_t collection_id;
    uint32_t shape_hash;
    uint32_t key_hash;
};

/* False: nothing is known, or it was found out with other indexes. `key` is what plan_make makes of the query. */
bool plan_cache_get(struct plan_cache *cache, const void *key, size_t key_len, uint64_t indexes,
                    struct plan_cache_value *value);
void plan_cache_put(struct plan_cache *cache, const void *key, size_t key_len, const struct plan_cache_value *value);
/* The choice was bad: the next query of the shape makes a trial. */
void plan_cache_drop(struct plan_cache *cache, const void *key, size_t key_len);
/* planCacheClear: of one collection. */
void plan_cache_clear(struct plan_cache *cache, uint32_t collection_id);
size_t plan_cache_count(struct plan_cache *cache);
/* $planCacheStats: calls `visit` for the entries of a collection, under the cache's lock. */
void plan_cache_each(struct plan_cache *cache, uint32_t collection_id,
                     void (*visit)(void *arg, const struct plan_cache_value *value), void *arg);

#endif
