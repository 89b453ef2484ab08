/* Who waits for new documents of a collection: awaitData cursors. A waiter is data, not a thread. The apply thread
 * notes collections that grew and, after the commit, wakes whoever waits for them.
 *
 *     seen = document_wakeups_seen(w, coll->id);      BEFORE the read transaction is opened
 *     ... read; nothing new ...
 *     if (!document_wakeups_wait(w, &waiter, seen))   something came meanwhile: read again
 *
 * Wakes may come for nothing (another collection in the same slot, a drop): look, and wait again. */
#ifndef SHERD_DOCUMENT_WAKEUPS_H
#define SHERD_DOCUMENT_WAKEUPS_H

#include <stdbool.h>
#include <stdint.h>

struct document_wakeups;

/* Lives in the caller's memory until woken or taken back. Fields below `arg` belong to wakeups.c. */
struct document_waiter {
    uint32_t collection_id;
    void (*wake)(void *arg); /* on the apply thread; must not block. Called at most once */
    void *arg;
    struct document_waiter *next;
    struct document_waiter **place; /* NULL: not waiting */
};

struct document_wakeups *document_wakeups_new(void);
/* Nobody may be waiting. */
void document_wakeups_free(struct document_wakeups *wakeups);

/* Any thread. */
uint64_t document_wakeups_seen(const struct document_wakeups *wakeups, uint32_t collection_id);
/* False, and not waiting, when the collection has grown since `seen`. Any thread. */
bool document_wakeups_wait(struct document_wakeups *wakeups, struct document_waiter *waiter, uint64_t seen);
/* True: taken back, it will not be woken. False: it was woken, or is being woken now. Any thread. */
bool document_wakeups_cancel(struct document_wakeups *wakeups, struct document_waiter *waiter);

/* Apply thread: the collection has grown or is gone in this transaction. Cheap: a store when nobody waits. */
void document_wakeups_note(struct document_wakeups *wakeups, uint32_t collection_id);
/* Apply thread, after the commit. */
void document_wakeups_fire(struct document_wakeups *wakeups);

#endif
