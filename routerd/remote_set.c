#include "routerd/remote_set.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

bool remote_set_new(const char *name, const char *host, struct remote_set **out, struct err *err)
{
    struct remote_set *set = mem_alloc(sizeof *set);
    if (!host_list_parse(host, &set->members, err)) {
        mem_free(set);
        return false;
    }
    atomic_init(&set->refs, 1);
    snprintf(set->name, sizeof set->name, "%s", name);
    snprintf(set->host, sizeof set->host, "%s", host);
    pthread_mutex_init(&set->lock, NULL);
    pthread_mutex_init(&set->probe_lock, NULL);
    *out = set;
    return true;
}

struct remote_set *remote_set_ref(struct remote_set *set)
{
    atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
    return set;
}

void remote_set_unref(struct remote_set *set)
{
    if (!set || atomic_fetch_sub_explicit(&set->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&set->lock);
    pthread_mutex_destroy(&set->probe_lock);
    mem_free(set);
}

bool remote_set_leader(struct remote_set *set, char address[RPC_ADDRESS_MAX])
{
    if (set->members.count == 1) {
        snprintf(address, RPC_ADDRESS_MAX, "%s", set->members.hosts[0]);
        return true;
    }
    pthread_mutex_lock(&set->lock);
    bool known = set->leader[0];
    if (known)
        memcpy(address, set->leader, RPC_ADDRESS_MAX);
    pthread_mutex_unlock(&set->lock);
    return known;
}

void remote_set_learn_leader(struct remote_set *set, const char *address)
{
    pthread_mutex_lock(&set->lock);
    snprintf(set->leader, sizeof set->leader, "%s", address);
    pthread_mutex_unlock(&set->lock);
}

void remote_set_forget_leader(struct remote_set *set, const char *address)
{
    pthread_mutex_lock(&set->lock);
    if (strcmp(set->leader, address) == 0)
        set->leader[0] = 0;
    pthread_mutex_unlock(&set->lock);
}

/* What one member says: itself, another's address, or nothing. */
static bool probe_answer(const struct rpc_call *call, const char *member, char address[RPC_ADDRESS_MAX])
{
    if (call->outcome != RPC_REPLY)
        return false;
    struct bval value;
    if (bdoc_find(call->reply.body, "leading", &value) && bval_truthy(&value)) {
        snprintf(address, RPC_ADDRESS_MAX, "%s", member);
        return true;
    }
    return false;
}

/* A follower's belief, when no member claims to lead. */
static bool probe_hint(const struct rpc_call *call, char address[RPC_ADDRESS_MAX])
{
    struct bval value;
    if (call->outcome != RPC_REPLY || !bdoc_find(call->reply.body, "leader", &value) || value.type != BT_STRING)
        return false;
    uint32_t len;
    const char *leader = bval_str(&value, &len);
    if (len == 0 || len >= RPC_ADDRESS_MAX)
        return false;
    snprintf(address, RPC_ADDRESS_MAX, "%s", leader);
    return true;
}

static bool probe_members(struct remote_set *set, struct rpc_client *rpc, int64_t deadline_ms,
                          char address[RPC_ADDRESS_MAX])
{
    struct rpc_call calls[sizeof set->members.hosts / sizeof set->members.hosts[0]];
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_INT32(&body, "_sherdStatus", 1);
    BSON_APPEND_UTF8(&body, "$db", "admin");
    struct rpc_body request = {.body = bdoc_of(&body)};
    struct rpc_waiter waiter;
    rpc_waiter_init(&waiter);
    size_t count = set->members.count;
    for (size_t i = 0; i < count; i++) {
        rpc_call_init(&calls[i], rpc, deadline_ms);
        calls[i].waiter = &waiter;
        rpc_call_start(&calls[i], set->members.hosts[i], &request);
    }
    bool found = false;
    unsigned seen = 0;
    while (!found && seen < count && !deadline_passed(deadline_ms)) {
        seen = rpc_waiter_wait_any(&waiter, seen, deadline_ms);
        for (size_t i = 0; i < count && !found; i++)
            found = rpc_call_is_over(&calls[i]) && probe_answer(&calls[i], set->members.hosts[i], address);
    }
    for (size_t i = 0; i < count; i++)
        rpc_call_cancel(&calls[i]);
    rpc_waiter_wait_all(&waiter);
    for (size_t i = 0; i < count && !found; i++)
        found = probe_hint(&calls[i], address);
    for (size_t i = 0; i < count; i++)
        rpc_call_deinit(&calls[i]);
    bson_destroy(&body);
    return found;
}

bool remote_set_probe(struct remote_set *set, struct rpc_client *rpc, int64_t deadline_ms,
                      char address[RPC_ADDRESS_MAX])
{
    pthread_mutex_lock(&set->probe_lock);
    bool found = remote_set_leader(set, address);
    if (!found) {
        int64_t limit_ms = deadline_after_ms(REMOTE_PROBE_MS);
        found = probe_members(set, rpc, deadline_ms < limit_ms ? deadline_ms : limit_ms, address);
        if (found)
            remote_set_learn_leader(set, address);
    }
    pthread_mutex_unlock(&set->probe_lock);
    return found;
}
