#include "routerd/remote.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "command/reply.h"
#include "routerd/registry.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

enum {
    REMOTE_PAUSE_MIN_MS = 5,
    REMOTE_PAUSE_MAX_MS = 200,
    REMOTE_POLL_MS = 50, /* between two looks at whether the operation was killed */
    REMOTE_KILL_MS = 5000,
};

#define REMOTE_DEADLINE_FIELD "$sherdDeadlineMs"
#define REMOTE_OP_FIELD       "$sherdOp"

struct remote_request *remote_requests_new(size_t count)
{
    return mem_alloc_aligned(count, sizeof(struct remote_request), alignof(struct remote_request));
}

void remote_request_init(struct remote_request *request, struct remote_set *set, bool repeatable)
{
    *request = (struct remote_request){.repeatable = repeatable};
    request->set = remote_set_ref(set);
    bson_init(&request->body);
}

void remote_request_init_config(struct remote_request *request, struct router *router, bool repeatable)
{
    remote_request_init(request, registry_config(router->registry), repeatable);
}

void remote_request_deinit(struct remote_request *request)
{
    remote_set_unref(request->set);
    bson_destroy(&request->body);
    wire_frame_unref(request->frame);
    request->frame = NULL;
}

/* Starts one attempt. The body goes out as runs of bytes, so that the time left and the operation's key are added
 * without a copy by hand. */
static void attempt_start(struct remote_request *request, int64_t deadline_ms)
{
    static const char deadline_field[] = "\x12" REMOTE_DEADLINE_FIELD;
    static const char op_field[] = "\x12" REMOTE_OP_FIELD;
    const struct interrupt *interrupt = interrupt_current();
    uint8_t head[4];
    uint8_t tail[sizeof deadline_field + 8 + sizeof op_field + 8 + 1];
    uint8_t *at = tail;
    struct bdoc body = bdoc_of(&request->body);
    store_le32(head, body.len + (uint32_t)sizeof tail - 1);
    memcpy(at, deadline_field, sizeof deadline_field);
    at += sizeof deadline_field;
    store_le64(at, (uint64_t)deadline_remaining_ms(deadline_ms));
    memcpy(at + 8, op_field, sizeof op_field);
    at += 8 + sizeof op_field;
    store_le64(at, interrupt == NULL ? 0 : (uint64_t)interrupt->key);
    tail[sizeof tail - 1] = 0;
    struct wire_piece pieces[] = {
        {.data = head, .len = sizeof head},
        {.data = body.data + 4, .len = body.len - 5},
        {.data = tail, .len = sizeof tail},
    };
    struct rpc_body out = {
        .body_pieces = pieces,
        .body_piece_count = 3,
        .sequences = request->sequences,
        .sequence_count = request->sequence_count,
    };
    rpc_call_start(&request->call, request->member, &out);
}

/* An attempt that `waiter` learns the end of. */
static void attempt_wait(struct router *router, struct remote_request *request, struct rpc_waiter *waiter,
                         int64_t deadline_ms)
{
    rpc_call_init(&request->call, router->rpc, deadline_ms);
    request->call.waiter = waiter;
    attempt_start(request, deadline_ms);
}

/* The reply says that nothing was done, so the same request may be sent again. */
static bool reply_not_executed(const struct remote_request *request)
{
    if ((err_categories(request->err.code) & ERR_CAT_NOT_PRIMARY) || request->err.code == ERR_InterruptedAtShutdown ||
        request->err.code == ERR_LockBusy)
        return true;
    struct bval value;
    return bdoc_find(request->reply, "notExecuted", &value) && bval_truthy(&value);
}

static void learn_from_refusal(struct remote_request *request)
{
    struct bval value;
    uint32_t len;
    if (bdoc_find(request->reply, "leader", &value) && value.type == BT_STRING) {
        const char *leader = bval_str(&value, &len);
        if (len > 0 && len < RPC_ADDRESS_MAX && strcmp(leader, request->member) != 0) {
            remote_set_learn_leader(request->set, leader);
            /* During an election two members may each take the other for the leader. */
            request->wait = request->hinted;
            request->hinted = true;
            return;
        }
    }
    remote_set_forget_leader(request->set, request->member);
    request->wait = true;
}

/* Looks at an attempt that has ended: done, or to be tried again. */
static void attempt_end(struct remote_request *request)
{
    request->wait = false;
    request->unknown = false;
    wire_frame_unref(request->frame);
    request->frame = NULL;
    request->reply = (struct bdoc){0};
    if (!rpc_call_check(&request->call, &request->err)) {
        remote_set_forget_leader(request->set, request->member);
        request->unknown = request->call.outcome == RPC_UNKNOWN;
        request->over = request->pinned[0] || (request->unknown && !request->repeatable) ||
                        request->err.code == ERR_BSONObjectTooLarge;
        request->wait = true;
        rpc_call_deinit(&request->call);
        return;
    }
    request->frame = rpc_call_take_reply(&request->call);
    request->reply = request->call.reply.body;
    rpc_call_deinit(&request->call);
    request->ok = reply_check(request->reply, &request->err);
    if (request->ok) {
        request->over = true;
        return;
    }
    if (request->err.code == ERR_InterruptedDueToReplStateChange) {
        request->unknown = true;
        request->over = !request->repeatable || request->pinned[0];
        request->wait = true;
        remote_set_forget_leader(request->set, request->member);
    } else if (reply_not_executed(request)) {
        request->over = request->pinned[0];
        if (err_categories(request->err.code) & ERR_CAT_NOT_PRIMARY)
            learn_from_refusal(request);
        else
            request->wait = true;
    } else {
        request->over = true;
    }
}

/* Chooses whom to ask; false when nobody leads at the moment. */
static bool attempt_address(struct router *router, struct remote_request *request, int64_t deadline_ms)
{
    if (request->pinned[0]) {
        snprintf(request->member, sizeof request->member, "%s", request->pinned);
        return true;
    }
    if (remote_set_leader(request->set, request->member) ||
        remote_set_probe(request->set, router->rpc, deadline_ms, request->member))
        return true;
    if (!request->err.code || request->err.code == ERR_HostUnreachable)
        (void)err_set(&request->err, ERR_HostUnreachable, "no leader found in set %s", request->set->host);
    request->wait = true;
    return false;
}

/* False when the operation was killed or its client has gone first. Its deadline is that of the calls themselves. */
static bool wait_all(struct rpc_waiter *waiter, struct err *err)
{
    const struct interrupt *interrupt = interrupt_current();
    if (interrupt == NULL || waiter->started == 0) {
        rpc_waiter_wait_all(waiter);
        return true;
    }
    while (rpc_waiter_wait_any(waiter, waiter->started - 1, deadline_after_ms(REMOTE_POLL_MS)) < waiter->started) {
        if (!interrupt_check_one(interrupt, err) && err->code != ERR_MaxTimeMSExpired)
            return false;
        err->code = 0;
    }
    return true;
}

struct kill {
    struct rpc_call call;
    bson_t body;
};

static void kill_over(struct rpc_call *call)
{
    struct kill *kill = call->arg;
    rpc_call_deinit(call);
    bson_destroy(&kill->body);
    mem_free(kill);
}

/* Tells a member, without waiting, to end what it does for this operation. */
static void kill_parts(struct router *router, const char *member, int64_t key)
{
    struct kill *kill = mem_alloc_aligned(1, sizeof *kill, alignof(struct kill));
    bson_init(&kill->body);
    BSON_APPEND_INT64(&kill->body, "_sherdKillOp", key);
    BSON_APPEND_UTF8(&kill->body, "$db", "admin");
    rpc_call_init(&kill->call, router->rpc, deadline_after_ms(REMOTE_KILL_MS));
    kill->call.done = kill_over;
    kill->call.arg = kill;
    rpc_call_start(&kill->call, member, &(struct rpc_body){.body = bdoc_of(&kill->body)});
}

/* The operation ends here; so does its work elsewhere. */
static void give_up(struct router *router, struct remote_request *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct remote_request *request = &requests[i];
        if (request->over || !request->member[0] || rpc_call_is_over(&request->call))
            continue;
        kill_parts(router, request->member, interrupt_current()->key);
        rpc_call_cancel(&request->call);
    }
}

/* One round: an attempt of every request that is not over. Returns how many still are not, and whether to pause. */
static size_t run_round(struct router *router, struct remote_request *requests, size_t count, int64_t hold_ms,
                        int64_t deadline_ms, bool *pause)
{
    struct rpc_waiter waiter;
    struct err interrupted = {0};
    rpc_waiter_init(&waiter);
    for (size_t i = 0; i < count; i++) {
        struct remote_request *request = &requests[i];
        if (!request->over && attempt_address(router, request, hold_ms))
            attempt_wait(router, request, &waiter, deadline_ms);
        else
            request->member[0] = 0;
    }
    if (!wait_all(&waiter, &interrupted))
        give_up(router, requests, count);
    size_t left = 0;
    *pause = false;
    for (size_t i = 0; i < count; i++) {
        struct remote_request *request = &requests[i];
        if (!request->over && request->member[0])
            attempt_end(request);
        if (interrupted.code != 0 && !request->ok) {
            request->over = true;
            request->err = interrupted;
        }
        left += !request->over;
        *pause |= !request->over && request->wait;
    }
    return left;
}

void remote_run(struct router *router, struct remote_request *requests, size_t count, int64_t deadline_ms)
{
    int64_t hold_ms = deadline_after_ms(ROUTER_HOLD_MS);
    if (deadline_ms < hold_ms)
        hold_ms = deadline_ms;
    int64_t pause_ms = REMOTE_PAUSE_MIN_MS;
    bool pause;
    while (run_round(router, requests, count, hold_ms, deadline_ms, &pause) > 0 && !deadline_passed(hold_ms)) {
        if (!pause)
            continue;
        int64_t left_ms = deadline_remaining_ms(hold_ms);
        clock_sleep_ms(pause_ms < left_ms ? pause_ms : left_ms);
        pause_ms = pause_ms * 2 < REMOTE_PAUSE_MAX_MS ? pause_ms * 2 : REMOTE_PAUSE_MAX_MS;
    }
}

bool remote_run_one(struct router *router, struct remote_request *request, int64_t deadline_ms, struct err *err)
{
    remote_run(router, request, 1, deadline_ms);
    if (!request->ok && err)
        *err = request->err;
    return request->ok;
}

void remote_start_pinned(struct router *router, struct remote_request *request, int64_t deadline_ms,
                         void (*done)(struct rpc_call *call), void *arg)
{
    snprintf(request->member, sizeof request->member, "%s", request->pinned);
    rpc_call_init(&request->call, router->rpc, deadline_ms);
    request->call.done = done;
    request->call.arg = arg;
    attempt_start(request, deadline_ms);
}

void remote_finish_pinned(struct remote_request *request)
{
    attempt_end(request);
}

void remote_cancel_pinned(struct router *router, struct remote_request *request, int64_t key)
{
    kill_parts(router, request->member, key);
    rpc_call_cancel(&request->call);
}
