#include "document/cursors.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "document/cursor.h"
#include "document/engine.h"

#include <pthread.h>

enum {
    CURSOR_BUCKETS = 1024, /* a power of two */
    EXPIRE_EVERY_MS = 5000,
    EXHAUSTED_IDLE_MS = 15000, /* a used-up cursor stays so long, to give its last batch again */
};

struct document_cursors {
    pthread_mutex_t mutex; /* protects everything below and the cursors' table fields */
    struct document_cursor *buckets[CURSOR_BUCKETS];
    uint32_t count;
    size_t held_bytes; /* by all of them */
    int64_t next_expire_ms;
};

struct document_cursors *document_cursors_new(void)
{
    struct document_cursors *cursors = mem_alloc(sizeof *cursors);
    pthread_mutex_init(&cursors->mutex, NULL);
    return cursors;
}

void document_cursors_free(struct document_cursors *cursors)
{
    if (cursors == NULL)
        return;
    for (size_t i = 0; i < CURSOR_BUCKETS; i++) {
        while (cursors->buckets[i] != NULL) {
            struct document_cursor *cursor = cursors->buckets[i];
            cursors->buckets[i] = cursor->next;
            document_cursor_free(cursor);
        }
    }
    pthread_mutex_destroy(&cursors->mutex);
    mem_free(cursors);
}

static struct document_cursor **bucket_of(struct document_cursors *cursors, int64_t id)
{
    return &cursors->buckets[(uint64_t)id & (CURSOR_BUCKETS - 1)];
}

/* The place that points at the cursor; *place is NULL when there is none. */
static struct document_cursor **find_locked(struct document_cursors *cursors, int64_t id)
{
    struct document_cursor **place = bucket_of(cursors, id);
    while (*place != NULL && (*place)->id != id)
        place = &(*place)->next;
    return place;
}

static void unlink_locked(struct document_cursors *cursors, struct document_cursor **place)
{
    cursors->held_bytes -= (*place)->held_bytes;
    *place = (*place)->next;
    cursors->count--;
}

static bool too_much(struct err *err)
{
    return err_set(err, ERR_ExceededMemoryLimit,
                   "too many open cursors, or too much held by them: at most %d, %d bytes", DOCUMENT_CURSORS_MAX,
                   DOCUMENT_CURSORS_MAX_BYTES);
}

bool document_cursors_add(struct document_cursors *cursors, struct document_cursor *cursor, int64_t *id,
                          struct err *err)
{
    size_t bytes = document_cursor_memory(cursor);
    pthread_mutex_lock(&cursors->mutex);
    bool room = cursors->count < DOCUMENT_CURSORS_MAX && cursors->held_bytes + bytes <= DOCUMENT_CURSORS_MAX_BYTES;
    if (room) {
        cursor->held_bytes = bytes;
        cursors->held_bytes += bytes;
        do
            cursor->id = (int64_t)(random_u64() >> 1);
        while (cursor->id == 0 || *find_locked(cursors, cursor->id) != NULL);
        struct document_cursor **bucket = bucket_of(cursors, cursor->id);
        cursor->next = *bucket;
        cursor->last_used_ms = clock_now_ms();
        *bucket = cursor;
        cursors->count++;
        *id = cursor->id;
    }
    pthread_mutex_unlock(&cursors->mutex);
    return room || too_much(err);
}

bool document_cursors_may_keep(struct document_cursors *cursors, const struct document_cursor *cursor, struct err *err)
{
    size_t bytes = document_cursor_memory(cursor);
    pthread_mutex_lock(&cursors->mutex);
    bool room =
        bytes <= cursor->held_bytes || cursors->held_bytes - cursor->held_bytes + bytes <= DOCUMENT_CURSORS_MAX_BYTES;
    pthread_mutex_unlock(&cursors->mutex);
    return room || too_much(err);
}

bool document_cursors_take(struct document_cursors *cursors, int64_t id, struct document_cursor **out, struct err *err)
{
    pthread_mutex_lock(&cursors->mutex);
    struct document_cursor *cursor = *find_locked(cursors, id);
    bool found = cursor != NULL && !cursor->killed;
    bool free_to_use = found && !cursor->in_use;
    if (free_to_use) {
        cursor->in_use = true;
        *out = cursor;
    }
    pthread_mutex_unlock(&cursors->mutex);
    if (!found)
        return err_set(err, ERR_CursorNotFound, "cursor id %lld not found", (long long)id);
    return free_to_use || err_set(err, CURSOR_IN_USE, "cursor id %lld is already in use", (long long)id);
}

void document_cursors_give_back(struct document_cursors *cursors, struct document_cursor *cursor, bool close)
{
    size_t bytes = document_cursor_memory(cursor);
    pthread_mutex_lock(&cursors->mutex);
    cursors->held_bytes = cursors->held_bytes - cursor->held_bytes + bytes;
    cursor->held_bytes = bytes;
    CHECK(cursor->in_use);
    cursor->in_use = false;
    cursor->last_used_ms = clock_now_ms();
    close |= cursor->killed;
    if (close)
        unlink_locked(cursors, find_locked(cursors, cursor->id));
    pthread_mutex_unlock(&cursors->mutex);
    if (close)
        document_cursor_free(cursor);
}

bool document_cursors_kill(struct document_cursors *cursors, int64_t id)
{
    pthread_mutex_lock(&cursors->mutex);
    struct document_cursor **place = find_locked(cursors, id);
    struct document_cursor *cursor = *place;
    bool found = cursor != NULL && !cursor->killed;
    bool idle = found && !cursor->in_use;
    if (idle)
        unlink_locked(cursors, place);
    else if (found)
        cursor->killed = true;
    pthread_mutex_unlock(&cursors->mutex);
    if (idle)
        document_cursor_free(cursor);
    return found;
}

bool document_cursors_is_killed(struct document_cursors *cursors, const struct document_cursor *cursor)
{
    pthread_mutex_lock(&cursors->mutex);
    bool killed = cursor->killed;
    pthread_mutex_unlock(&cursors->mutex);
    return killed;
}

/* Takes the idle cursors of a bucket out and puts them before `idle`. */
static struct document_cursor *collect_idle_locked(struct document_cursors *cursors, struct document_cursor **place,
                                                   struct document_cursor *idle)
{
    int64_t now_ms = clock_now_ms();
    while (*place != NULL) {
        struct document_cursor *cursor = *place;
        int64_t idle_ms = cursor->exhausted ? EXHAUSTED_IDLE_MS : DOCUMENT_CURSOR_IDLE_MS;
        if (cursor->in_use || (cursor->no_timeout && !cursor->exhausted) || cursor->last_used_ms + idle_ms > now_ms) {
            place = &cursor->next;
            continue;
        }
        unlink_locked(cursors, place);
        cursor->next = idle;
        idle = cursor;
    }
    return idle;
}

void document_cursors_expire(struct document_cursors *cursors)
{
    struct document_cursor *idle = NULL;
    pthread_mutex_lock(&cursors->mutex);
    if (clock_now_ms() >= cursors->next_expire_ms) {
        cursors->next_expire_ms = clock_now_ms() + EXPIRE_EVERY_MS;
        for (size_t i = 0; i < CURSOR_BUCKETS; i++)
            idle = collect_idle_locked(cursors, &cursors->buckets[i], idle);
    }
    pthread_mutex_unlock(&cursors->mutex);
    while (idle != NULL) {
        struct document_cursor *cursor = idle;
        idle = cursor->next;
        document_cursor_free(cursor);
    }
}

uint32_t document_cursors_count(struct document_cursors *cursors)
{
    pthread_mutex_lock(&cursors->mutex);
    uint32_t count = cursors->count;
    pthread_mutex_unlock(&cursors->mutex);
    return count;
}
