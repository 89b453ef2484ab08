#include "shardd/config_client.h"

#include "base/clock.h"
#include "command/reply.h"

#include <stdio.h>
#include <string.h>

static void remember_leader(struct refresher *refresher, const char *address)
{
    pthread_mutex_lock(&refresher->mutex);
    snprintf(refresher->config_leader, sizeof refresher->config_leader, "%s", address);
    pthread_mutex_unlock(&refresher->mutex);
}

static bool is_stopping(struct refresher *refresher)
{
    pthread_mutex_lock(&refresher->mutex);
    bool stopping = refresher->stopping;
    pthread_mutex_unlock(&refresher->mutex);
    return stopping;
}

/* Where a reply that isn't the leader's points to. */
static void follow_hint(struct refresher *refresher, const struct err *err)
{
    struct bval leader;
    uint32_t len;
    struct bdoc details = {.data = err->details, .len = err->details_len};
    bool known = err->details_len > 0 && bdoc_find(details, "leader", &leader) && leader.type == BT_STRING;
    remember_leader(refresher, known ? bval_str(&leader, &len) : "");
}

/* An error that says "ask again", not "no". */
static bool is_passing(int32_t code)
{
    return code == ERR_NotWritablePrimary || code == ERR_LockBusy || code == ERR_InterruptedAtShutdown ||
           code == ERR_InterruptedDueToReplStateChange;
}

/* One try of `call`. *again: somebody else, or the same a little later, may answer. */
static bool try_one(struct shard *shard, const char *address, struct bdoc body, struct rpc_call *call, bool *again,
                    struct err *err)
{
    int64_t deadline_ms = call->deadline_ms;
    int64_t limit_ms = deadline_after_ms(REFRESH_CALL_MS);
    rpc_call_deinit(call);
    *again = true;
    bool answered =
        rpc_call_run(call, shard->client, address, body, deadline_ms < limit_ms ? deadline_ms : limit_ms, err);
    call->deadline_ms = deadline_ms;
    if (!answered) {
        remember_leader(&shard->refresher, "");
        return false;
    }
    if (reply_check(call->reply.body, err)) {
        remember_leader(&shard->refresher, address);
        return true;
    }
    *again = is_passing(err->code);
    if (*again)
        follow_hint(&shard->refresher, err);
    return false;
}

bool config_client_ask(struct shard *shard, const char *configdb, struct bdoc body, int64_t deadline_ms,
                       struct rpc_call *call, struct err *err)
{
    struct host_list hosts;
    rpc_call_init(call, shard->client, deadline_ms);
    if (!host_list_parse(configdb, &hosts, err))
        return false;
    for (size_t turn = 0;; turn++) {
        char leader[RPC_ADDRESS_MAX];
        bool again;
        pthread_mutex_lock(&shard->refresher.mutex);
        memcpy(leader, shard->refresher.config_leader, sizeof leader);
        pthread_mutex_unlock(&shard->refresher.mutex);
        const char *address = leader[0] != '\0' ? leader : hosts.hosts[turn % hosts.count];
        if (try_one(shard, address, body, call, &again, err))
            return true;
        if (!again || deadline_passed(deadline_ms) || is_stopping(&shard->refresher))
            return false;
        if (turn % hosts.count == hosts.count - 1)
            clock_sleep_ms(REFRESH_RETRY_MS);
    }
}
