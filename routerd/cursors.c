#include "routerd/cursors.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/random.h"
#include "command/context.h"
#include "command/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct cursor_table {
    struct router *router;
    pthread_mutex_t lock; /* guards `cursors` and the marked fields of each */
    struct map cursors;   /* id (8 bytes) -> struct router_cursor * */
    size_t held_bytes;    /* guarded by `lock`: of all of them */
};

static void remove_locked(struct cursor_table *table, const struct router_cursor *cursor)
{
    map_remove(&table->cursors, &cursor->id, sizeof cursor->id);
    table->held_bytes -= cursor->held_bytes;
}

struct cursor_table *cursor_table_new(struct router *router)
{
    struct cursor_table *table = mem_alloc(sizeof *table);
    table->router = router;
    pthread_mutex_init(&table->lock, NULL);
    return table;
}

static void cursor_release(struct router_cursor *cursor)
{
    pipeline_run_free(cursor->run);
    pipeline_release(cursor->pipeline);
    remote_set_unref(cursor->set);
    buf_deinit(&cursor->made);
    arena_deinit(&cursor->arena);
    mem_free(cursor);
}

void router_cursor_abandon(struct router_cursor *cursor)
{
    cursor->abandoned = true;
    merge_abandon(cursor->merge);
    cursor_release(cursor);
}

void cursor_table_free(struct cursor_table *table)
{
    if (!table)
        return;
    for (struct map_entry *e = map_next(&table->cursors, NULL); e; e = map_next(&table->cursors, e)) {
        struct router_cursor *cursor = e->value;
        router_cursor_abandon(cursor);
    }
    map_deinit(&table->cursors);
    pthread_mutex_destroy(&table->lock);
    mem_free(table);
}

struct router_cursor *router_cursor_new(struct router *router, const char *ns)
{
    struct router_cursor *cursor = mem_alloc(sizeof *cursor);
    cursor->router = router;
    snprintf(cursor->ns, sizeof cursor->ns, "%s", ns);
    arena_init(&cursor->arena);
    cursor->limit = -1;
    return cursor;
}

void router_cursor_set_origin(struct router_cursor *cursor, const struct command_ctx *ctx)
{
    struct bdoc lsid = {0};
    const uint8_t *id = NULL;
    if (cursor->has_origin)
        return;
    cursor->has_origin = true;
    cursor->time_left_ms = ctx->max_time_ms > 0 ? deadline_remaining_ms(ctx->deadline_ms) : -1;
    if (!field_get_bool(ctx->body, "awaitData", &cursor->await_data, NULL))
        cursor->await_data = false;
    if (!field_get_doc(ctx->body, "lsid", &lsid, NULL) || !lsid.data || !field_get_uuid(lsid, "id", &id, NULL) || !id)
        return;
    memcpy(cursor->lsid, id, sizeof cursor->lsid);
    cursor->has_lsid = true;
}

void router_cursor_use(struct router_cursor *cursor, struct command_ctx *ctx)
{
    cursor->ctx = ctx;
    router_cursor_set_origin(cursor, ctx);
    cursor->fetch.deadline_ms = ctx->deadline_ms;
}

void router_cursor_close(struct router *router, struct router_cursor *cursor)
{
    if (!cursor)
        return;
    if (cursor->set && cursor->shard_id != 0) {
        char db[COMMAND_NS_MAX + 1];
        const char *dot = strchr(cursor->ns, '.');
        snprintf(db, sizeof db, "%.*s", (int)(dot - cursor->ns), cursor->ns);
        merge_kill_cursor(router, cursor->set, cursor->member, db, dot + 1, cursor->shard_id);
    }
    merge_close(cursor->merge);
    cursor_release(cursor);
}

bool cursor_table_add(struct cursor_table *table, struct router_cursor *cursor, struct err *err)
{
    cursor->busy = true;
    pthread_mutex_lock(&table->lock);
    bool full = table->cursors.count >= CURSORS_MAX;
    if (!full) {
        do
            cursor->id = (int64_t)(random_u64() >> 1);
        while (cursor->id == 0 || map_get(&table->cursors, &cursor->id, sizeof cursor->id));
        map_put(&table->cursors, &cursor->id, sizeof cursor->id, cursor);
    }
    pthread_mutex_unlock(&table->lock);
    return !full || err_set(err, ERR_ExceededMemoryLimit, "too many open cursors (%d)", CURSORS_MAX);
}

static size_t memory_bytes(const struct router_cursor *cursor)
{
    size_t bytes = sizeof *cursor + cursor->arena.used_bytes + cursor->made.cap;
    bytes += cursor->merge ? merge_memory_bytes(cursor->merge) : 0;
    return bytes + (cursor->run ? pipeline_run_memory_bytes(cursor->run) : 0);
}

bool cursor_table_may_keep(struct cursor_table *table, struct router_cursor *cursor, struct err *err)
{
    size_t bytes = memory_bytes(cursor);
    pthread_mutex_lock(&table->lock);
    size_t all = table->held_bytes - cursor->held_bytes + bytes;
    bool room = bytes <= cursor->held_bytes || all <= CURSORS_MAX_BYTES;
    if (room) {
        table->held_bytes = all;
        cursor->held_bytes = bytes;
    }
    pthread_mutex_unlock(&table->lock);
    return room ||
           err_set(err, ERR_ExceededMemoryLimit, "open cursors hold too much: at most %d bytes", CURSORS_MAX_BYTES);
}

bool cursor_table_take(struct cursor_table *table, const struct command_ctx *ctx, int64_t id, const char *ns,
                       struct router_cursor **out, struct err *err)
{
    enum { CURSOR_IN_USE = 12051 };
    bool ok = false;
    pthread_mutex_lock(&table->lock);
    struct router_cursor *cursor = map_get(&table->cursors, &id, sizeof id);
    if (!cursor || cursor->killed) {
        err_set(err, ERR_CursorNotFound, "cursor id %" PRId64 " not found", id);
    } else if (strcmp(cursor->ns, ns) != 0) {
        err_set(err, ERR_Unauthorized,
                "Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", ns, cursor->ns);
    } else if (cursor->busy) {
        err_set(err, CURSOR_IN_USE, "cursor id %" PRId64 " is already in use", id);
    } else {
        cursor->busy = true;
        cursor->op_id = ctx->op.id;
        *out = cursor;
        ok = true;
    }
    pthread_mutex_unlock(&table->lock);
    return ok;
}

void cursor_table_give(struct cursor_table *table, struct router_cursor *cursor, bool done)
{
    pthread_mutex_lock(&table->lock);
    bool close = done || cursor->killed;
    cursor->busy = false;
    cursor->op_id = 0;
    cursor->used_ms = clock_now_ms();
    if (close)
        remove_locked(table, cursor);
    pthread_mutex_unlock(&table->lock);
    if (close)
        router_cursor_close(table->router, cursor);
}

bool cursor_table_kill(struct cursor_table *table, int64_t id, const char *ns)
{
    pthread_mutex_lock(&table->lock);
    struct router_cursor *cursor = map_get(&table->cursors, &id, sizeof id);
    if (cursor && (cursor->killed || strcmp(cursor->ns, ns) != 0))
        cursor = NULL;
    bool busy = cursor && cursor->busy;
    int64_t op_id = busy ? cursor->op_id : 0;
    if (cursor && busy)
        cursor->killed = true;
    else if (cursor)
        remove_locked(table, cursor);
    pthread_mutex_unlock(&table->lock);
    if (cursor && !busy)
        router_cursor_close(table->router, cursor);
    if (op_id != 0)
        (void)op_kill_as(table->router->ops, op_id, ERR_CursorKilled);
    return cursor;
}

/* Takes one cursor of the session out, or marks one that is in use; NULL when there is none left to close. */
static struct router_cursor *take_of_session(struct cursor_table *table, const uint8_t *lsid)
{
    struct router_cursor *found = NULL;
    pthread_mutex_lock(&table->lock);
    for (struct map_entry *e = map_next(&table->cursors, NULL); e && !found; e = map_next(&table->cursors, e)) {
        struct router_cursor *cursor = e->value;
        if (!cursor->has_lsid || (lsid && memcmp(cursor->lsid, lsid, sizeof cursor->lsid) != 0))
            continue;
        if (cursor->busy)
            cursor->killed = true;
        else
            found = cursor;
    }
    if (found)
        remove_locked(table, found);
    pthread_mutex_unlock(&table->lock);
    return found;
}

void cursor_table_kill_session(struct cursor_table *table, const uint8_t *lsid)
{
    for (struct router_cursor *found = take_of_session(table, lsid); found; found = take_of_session(table, lsid))
        router_cursor_close(table->router, found);
}

/* Takes one cursor out that nobody has used for too long; NULL when there is none. */
static struct router_cursor *take_idle(struct cursor_table *table, int64_t now_ms)
{
    struct router_cursor *found = NULL;
    pthread_mutex_lock(&table->lock);
    for (struct map_entry *e = map_next(&table->cursors, NULL); e && !found; e = map_next(&table->cursors, e)) {
        struct router_cursor *cursor = e->value;
        if (!cursor->busy && !cursor->no_timeout && now_ms - cursor->used_ms > CURSORS_IDLE_MS)
            found = cursor;
    }
    if (found)
        remove_locked(table, found);
    pthread_mutex_unlock(&table->lock);
    return found;
}

void cursor_table_sweep(struct cursor_table *table)
{
    int64_t now_ms = clock_now_ms();
    for (struct router_cursor *idle = take_idle(table, now_ms); idle; idle = take_idle(table, now_ms))
        router_cursor_close(table->router, idle);
}

unsigned cursor_table_count(struct cursor_table *table)
{
    pthread_mutex_lock(&table->lock);
    unsigned count = (unsigned)table->cursors.count;
    pthread_mutex_unlock(&table->lock);
    return count;
}
