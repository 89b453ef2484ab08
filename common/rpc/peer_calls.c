/* The calls of one peer: by request id, and by age. */
#include "base/clock.h"
#include "base/mem.h"
#include "rpc/client_impl.h"

static struct rpc_call **bucket_of(struct rpc_peer *peer, uint32_t request_id)
{
    return &peer->buckets[request_id % PEER_BUCKETS];
}

void calls_add_locked(struct rpc_peer *peer, struct rpc_call *call)
{
    struct rpc_call **bucket = bucket_of(peer, call->request_id);
    call->next = *bucket;
    *bucket = call;
    call->older = peer->newest;
    call->newer = NULL;
    if (peer->newest == NULL)
        peer->oldest = call;
    else
        peer->newest->newer = call;
    peer->newest = call;
    if (peer->call_count++ == 0)
        peer->busy_ms = clock_now_ms();
}

struct rpc_call *calls_find_locked(const struct rpc_peer *peer, uint32_t request_id)
{
    struct rpc_call *call = peer->buckets[request_id % PEER_BUCKETS];
    while (call != NULL && call->request_id != request_id)
        call = call->next;
    return call;
}

void calls_remove_locked(struct rpc_peer *peer, struct rpc_call *call)
{
    struct rpc_call **at = bucket_of(peer, call->request_id);
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    if (call->older == NULL)
        peer->oldest = call->newer;
    else
        call->older->newer = call->newer;
    if (call->newer == NULL)
        peer->newest = call->older;
    else
        call->newer->older = call->older;
    peer->call_count--;
    if (call->unsent != NULL) {
        outq_deinit(call->unsent);
        mem_free(call->unsent);
        call->unsent = NULL;
    }
}

static void move_to(struct rpc_peer *peer, struct rpc_call *call, struct rpc_call **over)
{
    calls_remove_locked(peer, call);
    call->next = *over;
    *over = call;
}

int64_t calls_expire_locked(struct rpc_peer *peer, int64_t now_ms, struct rpc_call **over)
{
    int64_t next_ms = DEADLINE_NEVER;
    struct rpc_call *newer;
    for (struct rpc_call *call = peer->oldest; call != NULL; call = newer) {
        newer = call->newer;
        if (call->deadline_ms > now_ms) {
            if (call->deadline_ms < next_ms)
                next_ms = call->deadline_ms;
            continue;
        }
        if (call->state == CALL_WAITING)
            call_fail(call, RPC_NOT_SENT, ERR_HostUnreachable, "no connection to %s in time", peer->address);
        else
            call_fail(call, RPC_UNKNOWN, ERR_NetworkTimeout, "no reply from %s in time", peer->address);
        move_to(peer, call, over);
    }
    return next_ms;
}

void calls_end_all_locked(struct rpc_peer *peer, struct link *link, int32_t code, const char *text,
                          struct rpc_call **over)
{
    while (peer->newest != NULL) {
        struct rpc_call *call = peer->newest;
        bool sent = call->state == CALL_QUEUED && (link == NULL || link_was_sent(link, call->position));
        call_fail(call, sent ? RPC_UNKNOWN : RPC_NOT_SENT, sent ? ERR_SocketException : code, "%s: %s", peer->address,
                  text);
        move_to(peer, call, over); /* newest first into the list: it comes out oldest first */
    }
}
