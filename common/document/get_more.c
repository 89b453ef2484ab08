/* getMore. One on a tailable cursor that awaits data is parked at the end of its collection: woken by the apply thread
 * when the collection has grown, by a kill, or when its time is over.
 *
 *        +--------------------- resume (worker) <---------------------+
 *        v                                                            |
 *   [step: worker] --empty batch, time left--> [parked: data] --wake--+
 *        |
 *        +--> command_finish
 */
#include "base/clock.h"
#include "base/mem.h"
#include "command/fields.h"
#include "document/commands.h"
#include "document/cursor_reply.h"
#include "document/cursors.h"
#include "document/wakeups.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    AWAIT_DEFAULT_MS = 1000, /* as MongoDB waits when the client names no time */
    AWAIT_SLICE_MS = 1000,   /* a parked getMore looks this often whether its cursor was closed */
};

struct get_more_request {
    struct ns ns;
    int64_t id;
    int64_t batch_size; /* -1: as many as fit */
    int64_t batch;      /* $sherdBatch: the router's number of the batch; -1: none */
    int64_t await_ms;   /* $sherdAwaitMs: how long to wait for data */
};

/* One getMore; freed by the last of its command and the timers that it has set. */
struct get_more {
    struct command_ctx *ctx; /* NULL once answered */
    struct get_more_request request;
    struct document_engine *engine;
    struct document_cursor *cursor;
    int64_t until_ms; /* when to answer an empty batch */
    struct document_waiter waiter;
    pthread_mutex_t mutex; /* guards those below */
    unsigned refs;
    bool parked;    /* whoever clears it submits `resume` */
    bool signalled; /* a wake came while it was not parked */
    bool timed;     /* a timer is set; there is one at most */
};

static bool parse(struct command_ctx *ctx, struct get_more_request *out, struct err *err)
{
    static const char *const known[] = {
        "getMore", "collection", "batchSize", "comment", "term", "lastKnownCommittedOpTime", NULL};
    const char *coll = NULL;
    *out = (struct get_more_request){.batch = -1, .await_ms = AWAIT_DEFAULT_MS};
    if (ctx->value.type != BT_INT64)
        return err_set(err, ERR_TypeMismatch,
                       "BSON field 'getMore.getMore' is the wrong type '%s', expected type 'long'",
                       bval_type_name(ctx->value.type));
    out->id = bval_i64(&ctx->value);
    if (!fields_check_known(ctx->body, "getMore", known, err) || !field_require(ctx->body, "collection", err) ||
        !field_get_str(ctx->body, "collection", &coll, err) ||
        !field_get_i64_in(ctx->body, "batchSize", 0, INT64_MAX, &out->batch_size, err) ||
        !field_get_i64(ctx->body, "$sherdBatch", &out->batch, err) ||
        !field_get_i64_in(ctx->body, "$sherdAwaitMs", 0, INT32_MAX, &out->await_ms, err))
        return false;
    if (out->batch_size == 0)
        out->batch_size = -1;
    int len = snprintf(out->ns.full, sizeof out->ns.full, "%s.%s", ctx->db, coll);
    return (len > 0 && (size_t)len < sizeof out->ns.full) ||
           err_set(err, ERR_InvalidNamespace, "namespace of getMore is too long");
}

/* One batch: the cursor is ours. *close says whether it is used up, *count what is in the batch. */
static struct wire_frame *next_batch(const struct get_more *more, bool *close, uint32_t *count, struct err *err)
{
    struct wire_frame *frame = NULL;
    struct read_txn read = {0};
    struct batch_reply reply;
    struct document_cursor *cursor = more->cursor;
    *close = true; /* a cursor that failed can't go on */
    *count = 0;
    if (!interrupt_check(err) || !read_txn_open(&read, more->engine, cursor->ns, (struct bdoc){0}, err))
        return NULL;
    batch_reply_begin(&reply, false);
    if (document_cursor_attach(cursor, &read, more->ctx->deadline_ms, err)) {
        bool ok = document_cursor_fill(cursor, &reply, more->request.batch_size, err);
        document_cursor_detach(cursor);
        if (ok) {
            *close = cursor->exhausted;
            *count = reply.count;
            frame = batch_reply_end(&reply, *close ? 0 : cursor->id, cursor->ns);
        }
    }
    batch_reply_deinit(&reply);
    read_txn_close(&read);
    return frame;
}

static void keep_for_repeat(struct document_cursor *cursor, int64_t batch, const struct wire_frame *frame)
{
    wire_frame_unref(cursor->last_batch);
    cursor->last_batch = cursor_reply_copy(frame);
    cursor->batch_number = batch;
}

/* ---- waiting ---- */

static void resume(void *arg);

static void unref(struct get_more *more)
{
    pthread_mutex_lock(&more->mutex);
    bool last = --more->refs == 0;
    pthread_mutex_unlock(&more->mutex);
    if (!last)
        return;
    pthread_mutex_destroy(&more->mutex);
    mem_free(more);
}

/* From any thread that holds a reference or keeps the getMore from being answered. */
static void wake(void *arg)
{
    struct get_more *more = arg;
    pthread_mutex_lock(&more->mutex);
    bool was_parked = more->parked;
    more->parked = false;
    more->signalled = !was_parked;
    pthread_mutex_unlock(&more->mutex);
    if (was_parked) {
        const struct document_log *log = document_engine_log(more->engine);
        log->submit(log->arg, resume, more);
    }
}

static void wake_waiter(void *arg)
{
    wake(arg);
    unref(arg);
}

static void time_over(void *arg)
{
    struct get_more *more = arg;
    pthread_mutex_lock(&more->mutex);
    more->timed = false;
    pthread_mutex_unlock(&more->mutex);
    wake(more);
    unref(more);
}

static void set_timer(struct get_more *more)
{
    const struct document_log *log = document_engine_log(more->engine);
    int64_t left_ms = deadline_remaining_ms(more->until_ms);
    pthread_mutex_lock(&more->mutex);
    bool set = !more->timed;
    more->timed = true;
    more->refs += set;
    pthread_mutex_unlock(&more->mutex);
    if (set)
        log->submit_after(log->arg, left_ms < AWAIT_SLICE_MS ? left_ms : AWAIT_SLICE_MS, time_over, more);
}

/* Takes the getMore out of every list that might wake it. */
static void end_wait(struct get_more *more)
{
    (void)op_set_waiting(more->ctx, NULL, NULL, NULL);
    if (document_wakeups_cancel(document_engine_wakeups(more->engine), &more->waiter))
        unref(more);
}

/* True: parked, somebody will wake it, and it may be gone already. False: something has happened meanwhile. */
static bool park(struct get_more *more, uint64_t seen)
{
    pthread_mutex_lock(&more->mutex);
    more->signalled = false;
    more->refs++; /* the waiter's */
    pthread_mutex_unlock(&more->mutex);
    bool alive = op_set_waiting(more->ctx, "waiting for more documents", wake, more);
    if (!alive || !document_wakeups_wait(document_engine_wakeups(more->engine), &more->waiter, seen)) {
        (void)op_set_waiting(more->ctx, NULL, NULL, NULL);
        unref(more);
        return false;
    }
    set_timer(more);
    pthread_mutex_lock(&more->mutex);
    bool parked = !more->signalled;
    more->parked = parked;
    pthread_mutex_unlock(&more->mutex);
    if (!parked)
        end_wait(more);
    return parked;
}

/* ---- the command ---- */

static void answer(struct get_more *more, struct wire_frame *frame, bool close, const struct err *err)
{
    struct command_ctx *ctx = more->ctx;
    struct document_cursors *cursors = document_engine_cursors(more->engine);
    struct err full;
    if (frame != NULL && !close && !document_cursors_may_keep(cursors, more->cursor, &full)) {
        wire_frame_unref(frame);
        frame = NULL;
        close = true;
        err = &full;
    }
    if (frame != NULL && more->request.batch >= 0) {
        /* The last batch may be asked for again: the cursor stays for a while. */
        keep_for_repeat(more->cursor, more->request.batch, frame);
        close = false;
    }
    document_cursors_give_back(cursors, more->cursor, close);
    if (frame != NULL)
        command_ctx_set_raw(ctx, frame);
    unref(more);
    command_finish(ctx, frame != NULL ? NULL : err);
}

static bool may_wait(const struct get_more *more)
{
    return more->cursor->tailable && more->cursor->await_data && !deadline_passed(more->until_ms) &&
           !document_cursors_is_killed(document_engine_cursors(more->engine), more->cursor);
}

static void step(struct get_more *more)
{
    struct document_wakeups *wakeups = document_engine_wakeups(more->engine);
    for (;;) {
        struct err err;
        bool close;
        uint32_t count;
        uint64_t seen = document_wakeups_seen(wakeups, more->cursor->collection_id);
        struct wire_frame *frame = next_batch(more, &close, &count, &err);
        if (frame == NULL || close || count > 0 || !may_wait(more)) {
            answer(more, frame, close, &err);
            return;
        }
        wire_frame_unref(frame);
        if (park(more, seen))
            return;
    }
}

static void resume(void *arg)
{
    struct get_more *more = arg;
    struct interrupt *before = command_ctx_enter(more->ctx);
    end_wait(more);
    step(more);
    command_ctx_leave(before);
}

static bool take_cursor(struct command_ctx *ctx, const struct get_more_request *request, struct document_cursor **out,
                        struct err *err)
{
    struct document_cursors *cursors = document_engine_cursors(document_engine_of(ctx));
    if (!document_cursors_take(cursors, request->id, out, err))
        return false;
    if (strcmp((*out)->ns, request->ns.full) == 0)
        return true;
    err_set(err, ERR_Unauthorized,
            "Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", request->ns.full,
            (*out)->ns);
    document_cursors_give_back(cursors, *out, false);
    return false;
}

enum command_status get_more_run(struct command_ctx *ctx, struct err *err)
{
    struct get_more_request request;
    struct document_cursor *cursor;
    if (!parse(ctx, &request, err) || !take_cursor(ctx, &request, &cursor, err))
        return COMMAND_ERROR;
    if (request.batch >= 0 && request.batch == cursor->batch_number) {
        command_ctx_set_raw(ctx, cursor_reply_copy(cursor->last_batch));
        document_cursors_give_back(document_engine_cursors(document_engine_of(ctx)), cursor, false);
        return COMMAND_OK;
    }
    struct get_more *more = mem_alloc(sizeof *more);
    *more = (struct get_more){
        .ctx = ctx,
        .request = request,
        .engine = document_engine_of(ctx),
        .cursor = cursor,
        .until_ms = deadline_after_ms(request.await_ms),
        .waiter = {.collection_id = cursor->collection_id, .wake = wake_waiter, .arg = more},
        .refs = 1,
    };
    pthread_mutex_init(&more->mutex, NULL);
    if (cursor->plan != NULL)
        op_set_plan(ctx, plan_summary(cursor->plan, &ctx->arena));
    step(more);
    return COMMAND_PARKED;
}
