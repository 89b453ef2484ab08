/* getMore, killCursors. A getMore that waits for documents of a tailable cursor is parked while its shard waits: it
 * holds no worker. */
#include "async/pool.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "base/thread.h"
#include "command/fields.h"
#include "routerd/client_error.h"
#include "routerd/commands.h"
#include "routerd/cursor_batch.h"
#include "routerd/forward.h"
#include "routerd/request.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

enum {
    AWAIT_DEFAULT_MS = 1000, /* as MongoDB waits when the client names no time */
    AWAIT_SLICE_MS = 10000,  /* so often a long wait looks whether its client is still there */
};

/* The time that a getMore has: what the opening command's maxTimeMS has left. Its own maxTimeMS is how long to wait for
 * documents. */
static bool get_more_limit(struct command_ctx *ctx, const struct router_cursor *cursor, struct err *err)
{
    if (ctx->max_time_ms > 0 && !cursor->await_data)
        return err_set(err, ERR_BadValue, "cannot set maxTimeMS on getMore command for a non-awaitData cursor");
    command_ctx_set_deadline(ctx, cursor->time_left_ms < 0 ? DEADLINE_NEVER : deadline_after_ms(cursor->time_left_ms));
    /* What is late now is late by the limit that the first command was given. */
    if (cursor->time_left_ms >= 0)
        ctx->max_time_ms = cursor->time_left_ms > 0 ? cursor->time_left_ms : 1;
    return true;
}

static void count_time(struct router_cursor *cursor, int64_t begun_ms)
{
    if (cursor->time_left_ms < 0)
        return;
    int64_t left_ms = cursor->time_left_ms - (clock_now_ms() - begun_ms);
    cursor->time_left_ms = left_ms > 0 ? left_ms : 0;
}

/* ---- on one shard ---- */

/* The same request with the shard's id; `await_ms` as in $sherdAwaitMs, -1: none. */
static void single_prepare(const struct command_ctx *ctx, const struct router_cursor *cursor, int64_t await_ms,
                           struct remote_request *request)
{
    static const char *const own[] = {"getMore", NULL};
    remote_request_init(request, cursor->set, false);
    BSON_APPEND_INT64(&request->body, "getMore", cursor->shard_id);
    request_append_body(&request->body, ctx->body, own);
    if (await_ms >= 0)
        BSON_APPEND_INT64(&request->body, "$sherdAwaitMs", await_ms);
    snprintf(request->pinned, sizeof request->pinned, "%s", cursor->member);
}

/* Makes the client's answer of the shard's. *done: nothing is left. */
static enum command_status single_answer(struct command_ctx *ctx, struct router_cursor *cursor,
                                         struct remote_request *request, bool *done, struct err *err)
{
    struct cursor_reply reply;
    if (!request->ok) {
        /* The cursor went with the leadership of its member. */
        if (err_categories(request->err.code) & ERR_CAT_NOT_PRIMARY)
            err_set(err, ERR_CursorNotFound, "cursor id %" PRId64 " not found: its shard has a new leader", cursor->id);
        else
            (void)client_error_from(ctx, request, err);
        *done = true; /* also when time ran out: a batch may be on its way, and the next one would leave it out */
        if (request->err.code == ERR_CursorNotFound)
            cursor->shard_id = 0;
        return COMMAND_ERROR;
    }
    if (!cursor_reply_parse(request->reply, &reply, err))
        return COMMAND_ERROR;
    cursor->shard_id = reply.id;
    *done = reply.id == 0;
    if (!*done)
        store_le64(request->frame->data + (reply.id_at - request->frame->data), (uint64_t)cursor->id);
    return forward_reply(ctx, request);
}

static enum command_status get_more_single(struct command_ctx *ctx, struct router_cursor *cursor, bool *done,
                                           struct err *err)
{
    struct remote_request request;
    single_prepare(ctx, cursor, -1, &request);
    remote_run(router_of(ctx), &request, 1, ctx->deadline_ms);
    enum command_status status = single_answer(ctx, cursor, &request, done, err);
    remote_request_deinit(&request);
    return status;
}

/* ---- waiting for documents ----
 *
 *      +------- empty batch, time left -------+
 *      v                                      |
 *   [asked: no thread] --answer, kill--> [await_over: worker] --> command_finish
 */

struct awaiting {
    struct pool_job job; /* await_over */
    struct command_ctx *ctx;
    struct router_cursor *cursor; /* busy */
    struct remote_request request;
    int64_t begun_ms;
    int64_t until_ms;
    int64_t key;           /* of the operation, for its parts */
    pthread_mutex_t begin; /* held while the request is being started: its end waits for that */
};

static void await_over(struct pool_job *job);

static void *run_alone(void *arg)
{
    pthread_detach(pthread_self());
    await_over(arg);
    return NULL;
}

/* On a thread of nng, or of who kills the operation: only hands over. The pool takes more jobs than there are requests
 * as a rule. */
static void await_called(struct rpc_call *call)
{
    struct awaiting *awaiting = call->arg;
    pthread_t thread;
    if (!pool_submit(router_of(awaiting->ctx)->pool, &awaiting->job))
        thread_start(&thread, "await", run_alone, &awaiting->job);
}

/* Under the registry's lock, or the starter's. The call ends, and so does the wait. */
static void await_wake(void *arg)
{
    struct awaiting *awaiting = arg;
    remote_cancel_pinned(router_of(awaiting->ctx), &awaiting->request, awaiting->key);
}

static void await_ask(struct awaiting *awaiting)
{
    struct command_ctx *ctx = awaiting->ctx;
    int64_t left_ms = deadline_remaining_ms(awaiting->until_ms);
    single_prepare(ctx, awaiting->cursor, left_ms < AWAIT_SLICE_MS ? left_ms : AWAIT_SLICE_MS, &awaiting->request);
    pthread_mutex_lock(&awaiting->begin);
    remote_start_pinned(router_of(ctx), &awaiting->request, ctx->deadline_ms, await_called, awaiting);
    if (!op_set_waiting(ctx, "waiting for more documents", await_wake, awaiting))
        await_wake(awaiting);
    pthread_mutex_unlock(&awaiting->begin);
}

static bool is_empty_batch(const struct remote_request *request)
{
    struct cursor_reply reply;
    return request->ok && cursor_reply_parse(request->reply, &reply, NULL) && reply.id != 0 &&
           bdoc_is_empty(reply.batch);
}

static void await_answer(struct awaiting *awaiting, const struct err *killed)
{
    struct command_ctx *ctx = awaiting->ctx;
    struct router_cursor *cursor = awaiting->cursor;
    struct err err = *killed;
    bool done = true;
    enum command_status status = COMMAND_ERROR;
    if (killed->code == 0)
        status = single_answer(ctx, cursor, &awaiting->request, &done, &err);
    count_time(cursor, awaiting->begun_ms);
    cursor_table_give(router_of(ctx)->cursors, cursor, done);
    remote_request_deinit(&awaiting->request);
    pthread_mutex_destroy(&awaiting->begin);
    mem_free(awaiting);
    command_finish(ctx, status == COMMAND_OK ? NULL : &err);
}

/* The shard has answered, or the wait was given up. */
static void await_over(struct pool_job *job)
{
    struct awaiting *awaiting = (struct awaiting *)job;
    struct err killed = {0};
    pthread_mutex_lock(&awaiting->begin);
    pthread_mutex_unlock(&awaiting->begin);
    (void)op_set_waiting(awaiting->ctx, NULL, NULL, NULL);
    remote_finish_pinned(&awaiting->request);
    struct interrupt *before = command_ctx_enter(awaiting->ctx);
    bool alive = command_ctx_check_deadline(awaiting->ctx, &killed);
    if (alive && is_empty_batch(&awaiting->request) && !deadline_passed(awaiting->until_ms)) {
        remote_request_deinit(&awaiting->request);
        await_ask(awaiting);
    } else {
        await_answer(awaiting, &killed);
    }
    command_ctx_leave(before);
}

static enum command_status get_more_awaiting(struct command_ctx *ctx, struct router_cursor *cursor)
{
    struct awaiting *awaiting = mem_alloc_aligned(1, sizeof *awaiting, alignof(struct awaiting));
    awaiting->job.run = await_over;
    awaiting->ctx = ctx;
    awaiting->cursor = cursor;
    awaiting->begun_ms = clock_now_ms();
    awaiting->until_ms = deadline_after_ms(ctx->max_time_ms > 0 ? ctx->max_time_ms : AWAIT_DEFAULT_MS);
    awaiting->key = ctx->op.interrupt.key;
    pthread_mutex_init(&awaiting->begin, NULL);
    await_ask(awaiting);
    return COMMAND_PARKED;
}

/* ---- the commands ---- */

static bool collection_name(const struct command_ctx *ctx, const char *field, char ns[COMMAND_NS_MAX + 1],
                            struct err *err)
{
    const char *coll = NULL;
    if (!field_require(ctx->body, field, err) || !field_get_str(ctx->body, field, &coll, err))
        return false;
    if (!coll || !*coll || strlen(ctx->db) + 1 + strlen(coll) > COMMAND_NS_MAX)
        return err_set(err, ERR_InvalidNamespace, "Invalid collection name");
    char *at = stpcpy(ns, ctx->db);
    *at++ = '.';
    memcpy(at, coll, strlen(coll) + 1);
    return true;
}

static enum command_status run_get_more(struct command_ctx *ctx, struct err *err)
{
    char ns[COMMAND_NS_MAX + 1];
    struct router_cursor *cursor;
    int64_t batch_size = -1;
    static const char *const known[] = {"collection", "batchSize", "term", "lastKnownCommittedOpTime", NULL};
    atomic_fetch_add(&router_of(ctx)->counters.getmore, 1);
    if (ctx->value.type != BT_INT64) {
        err_set(err, ERR_TypeMismatch, "BSON field 'getMore.getMore' is the wrong type '%s', expected type 'long'",
                bval_type_name(ctx->value.type));
        return COMMAND_ERROR;
    }
    if (!fields_check_arguments(ctx->body, ctx->name, known, err) || !collection_name(ctx, "collection", ns, err) ||
        !field_get_i64_in(ctx->body, "batchSize", 0, INT64_MAX, &batch_size, err))
        return COMMAND_ERROR;
    struct cursor_table *cursors = router_of(ctx)->cursors;
    if (!cursor_table_take(cursors, ctx, bval_i64(&ctx->value), ns, &cursor, err))
        return COMMAND_ERROR;
    enum command_status status;
    bool done = false;
    int64_t begun_ms = clock_now_ms();
    if (!get_more_limit(ctx, cursor, err)) {
        status = COMMAND_ERROR;
    } else if (cursor->set && cursor->await_data) {
        return get_more_awaiting(ctx, cursor);
    } else if (cursor->set) {
        status = get_more_single(ctx, cursor, &done, err);
    } else {
        bool ok = cursor_batch_append(ctx, cursor, batch_size > 0 ? batch_size : -1, false, true, err);
        done = !ok || cursor->ended;
        status = ok ? COMMAND_OK : COMMAND_ERROR;
    }
    count_time(cursor, begun_ms);
    cursor_table_give(cursors, cursor, done);
    return status;
}

static bool check_ids(struct bdoc ids, struct err *err)
{
    struct biter iter;
    struct belem elem;
    for (biter_init(&iter, ids); biter_next(&iter, &elem);)
        if (elem.val.type != BT_INT64)
            return err_set(err, ERR_TypeMismatch,
                           "BSON field 'killCursors.cursors.%s' is the wrong type '%s', expected type 'long'", elem.key,
                           bval_type_name(elem.val.type));
    return true;
}

static enum command_status run_kill_cursors(struct command_ctx *ctx, struct err *err)
{
    char ns[COMMAND_NS_MAX + 1];
    struct bdoc ids = {0};
    static const char *const known[] = {"cursors", NULL};
    if (!collection_name(ctx, ctx->name, ns, err) || !fields_check_arguments(ctx->body, ctx->name, known, err) ||
        !field_require(ctx->body, "cursors", err) || !field_get_array(ctx->body, "cursors", &ids, err) ||
        !check_ids(ids, err))
        return COMMAND_ERROR;
    bson_t killed = BSON_INITIALIZER;
    bson_t missing = BSON_INITIALIZER;
    bson_t none = BSON_INITIALIZER;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, ids);
    while (biter_next(&iter, &elem)) {
        bool found = cursor_table_kill(router_of(ctx)->cursors, bval_i64(&elem.val), ns);
        bval_append(found ? &killed : &missing, elem.key, (int)elem.key_len, &elem.val);
    }
    BSON_APPEND_ARRAY(&ctx->reply, "cursorsKilled", &killed);
    BSON_APPEND_ARRAY(&ctx->reply, "cursorsNotFound", &missing);
    BSON_APPEND_ARRAY(&ctx->reply, "cursorsAlive", &none);
    BSON_APPEND_ARRAY(&ctx->reply, "cursorsUnknown", &none);
    bson_destroy(&killed);
    bson_destroy(&missing);
    bson_destroy(&none);
    return COMMAND_OK;
}

static const struct command commands[] = {
    {"getMore", NULL, 0, run_get_more},
    {"killCursors", NULL, 0, run_kill_cursors},
};

const struct command_family commands_cursors = COMMAND_FAMILY(commands);
