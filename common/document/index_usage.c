#include "document/index_usage.h"

#include "base/clock.h"
#include "base/mem.h"

#include <pthread.h>
#include <string.h>

enum {
    SLOTS_FIRST = 64,
    SLOTS_MAX = 1 << 20, /* beyond it no further index is counted */
};

struct slot {
    uint32_t index_id; /* 0: free */
    int64_t count;
};

struct index_usage {
    int64_t since_ms;
    pthread_mutex_t mutex; /* protects everything below; held for a look-up only */
    struct slot *slots;    /* open addressing, a power of two */
    uint32_t cap;
    uint32_t used;
};

struct index_usage *index_usage_new(void)
{
    struct index_usage *usage = mem_alloc(sizeof *usage);
    usage->since_ms = clock_wall_ms();
    pthread_mutex_init(&usage->mutex, NULL);
    usage->cap = SLOTS_FIRST;
    usage->slots = mem_alloc_array(usage->cap, sizeof *usage->slots);
    return usage;
}

void index_usage_free(struct index_usage *usage)
{
    if (usage == NULL)
        return;
    pthread_mutex_destroy(&usage->mutex);
    mem_free(usage->slots);
    mem_free(usage);
}

/* The index's slot, or the free one where it would be. */
static struct slot *place_locked(const struct index_usage *usage, uint32_t index_id)
{
    uint32_t at = index_id * UINT32_C(2654435769);
    for (;; at++) {
        struct slot *slot = &usage->slots[at & (usage->cap - 1)];
        if (slot->index_id == index_id || slot->index_id == 0)
            return slot;
    }
}

static void grow_locked(struct index_usage *usage)
{
    struct slot *old = usage->slots;
    uint32_t old_cap = usage->cap;
    usage->cap *= 2;
    usage->slots = mem_alloc_array(usage->cap, sizeof *usage->slots);
    for (uint32_t i = 0; i < old_cap; i++) {
        if (old[i].index_id != 0)
            *place_locked(usage, old[i].index_id) = old[i];
    }
    mem_free(old);
}

/* NULL: there are too many. */
static struct slot *slot_locked(struct index_usage *usage, uint32_t index_id)
{
    struct slot *slot = place_locked(usage, index_id);
    if (slot->index_id == index_id)
        return slot;
    if (usage->used >= usage->cap / 2) {
        if (usage->cap >= SLOTS_MAX)
            return NULL;
        grow_locked(usage);
        slot = place_locked(usage, index_id);
    }
    *slot = (struct slot){.index_id = index_id};
    usage->used++;
    return slot;
}

void index_usage_note(struct index_usage *usage, uint32_t index_id)
{
    pthread_mutex_lock(&usage->mutex);
    struct slot *slot = slot_locked(usage, index_id);
    if (slot != NULL)
        slot->count++;
    pthread_mutex_unlock(&usage->mutex);
}

int64_t index_usage_get(struct index_usage *usage, uint32_t index_id, int64_t *since_ms)
{
    pthread_mutex_lock(&usage->mutex);
    int64_t count = place_locked(usage, index_id)->count;
    *since_ms = usage->since_ms;
    pthread_mutex_unlock(&usage->mutex);
    return count;
}
