#include "document/wakeups.h"

#include "base/check.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

enum {
    WAKEUPS_SLOTS = 256, /* a power of two; collections share them by id */
};

struct document_wakeups {
    pthread_mutex_t mutex;                 /* protects the lists */
    _Atomic uint64_t grown[WAKEUPS_SLOTS]; /* rises with each commit that changed a collection of the slot */
    struct document_waiter *waiting[WAKEUPS_SLOTS];
    bool noted[WAKEUPS_SLOTS]; /* apply thread: since the last fire */
    bool any_noted;            /* apply thread */
};

static size_t slot_of(uint32_t collection_id)
{
    return collection_id & (WAKEUPS_SLOTS - 1);
}

struct document_wakeups *document_wakeups_new(void)
{
    struct document_wakeups *wakeups = mem_alloc(sizeof *wakeups);
    pthread_mutex_init(&wakeups->mutex, NULL);
    return wakeups;
}

void document_wakeups_free(struct document_wakeups *wakeups)
{
    if (wakeups == NULL)
        return;
    for (size_t i = 0; i < WAKEUPS_SLOTS; i++)
        CHECK(wakeups->waiting[i] == NULL);
    pthread_mutex_destroy(&wakeups->mutex);
    mem_free(wakeups);
}

uint64_t document_wakeups_seen(const struct document_wakeups *wakeups, uint32_t collection_id)
{
    return atomic_load(&wakeups->grown[slot_of(collection_id)]);
}

static void unlink_locked(struct document_waiter *waiter)
{
    *waiter->place = waiter->next;
    if (waiter->next != NULL)
        waiter->next->place = waiter->place;
    waiter->next = NULL;
    waiter->place = NULL;
}

bool document_wakeups_wait(struct document_wakeups *wakeups, struct document_waiter *waiter, uint64_t seen)
{
    size_t slot = slot_of(waiter->collection_id);
    waiter->next = NULL;
    waiter->place = NULL;
    pthread_mutex_lock(&wakeups->mutex);
    bool waits = atomic_load(&wakeups->grown[slot]) == seen;
    if (waits) {
        waiter->next = wakeups->waiting[slot];
        if (waiter->next != NULL)
            waiter->next->place = &waiter->next;
        waiter->place = &wakeups->waiting[slot];
        wakeups->waiting[slot] = waiter;
    }
    pthread_mutex_unlock(&wakeups->mutex);
    return waits;
}

bool document_wakeups_cancel(struct document_wakeups *wakeups, struct document_waiter *waiter)
{
    pthread_mutex_lock(&wakeups->mutex);
    bool waits = waiter->place != NULL;
    if (waits)
        unlink_locked(waiter);
    pthread_mutex_unlock(&wakeups->mutex);
    return waits;
}

void document_wakeups_note(struct document_wakeups *wakeups, uint32_t collection_id)
{
    wakeups->noted[slot_of(collection_id)] = true;
    wakeups->any_noted = true;
}

static struct document_waiter *take_first(struct document_wakeups *wakeups, struct document_waiter **list)
{
    pthread_mutex_lock(&wakeups->mutex);
    struct document_waiter *first = *list;
    if (first != NULL)
        unlink_locked(first);
    pthread_mutex_unlock(&wakeups->mutex);
    return first;
}

/* Woken outside the lock: a wake may wait for it, or wait again at once (the list is as it was taken, so not for ever).
 * Until its turn comes each may still take itself back, and wait anew elsewhere. */
static void fire_slot(struct document_wakeups *wakeups, size_t slot)
{
    pthread_mutex_lock(&wakeups->mutex);
    atomic_fetch_add(&wakeups->grown[slot], 1);
    struct document_waiter *list = wakeups->waiting[slot];
    wakeups->waiting[slot] = NULL;
    if (list != NULL)
        list->place = &list;
    pthread_mutex_unlock(&wakeups->mutex);
    for (struct document_waiter *next = take_first(wakeups, &list); next != NULL; next = take_first(wakeups, &list))
        next->wake(next->arg);
}

void document_wakeups_fire(struct document_wakeups *wakeups)
{
    if (!wakeups->any_noted)
        return;
    wakeups->any_noted = false;
    for (size_t i = 0; i < WAKEUPS_SLOTS; i++) {
        if (!wakeups->noted[i])
            continue;
        wakeups->noted[i] = false;
        fire_slot(wakeups, i);
    }
}
