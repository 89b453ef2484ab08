#include "rpc/client.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "rpc/client_impl.h"
#include "rpc/protocol.h"

#include <string.h>

static int64_t client_tick(void *arg, int64_t now_ms)
{
    struct rpc_client *client = arg;
    /* A process that was stopped for a while has heard nothing, which says nothing about the others. */
    bool late = now_ms - client->planned_ms > RPC_PING_AFTER_MS;
    int64_t next_ms = DEADLINE_NEVER;
    for (struct rpc_peer *peer = atomic_load(&client->peers); peer != NULL; peer = peer->next) {
        int64_t peer_ms = peer_tick(peer, now_ms, late);
        if (peer_ms < next_ms)
            next_ms = peer_ms;
    }
    client->planned_ms = next_ms;
    return next_ms;
}

struct rpc_client *rpc_client_new(const struct rpc_client_options *options)
{
    struct rpc_client *client = mem_alloc(sizeof *client);
    pthread_mutex_init(&client->mutex, NULL);
    client->options = *options;
    client->name = mem_copy_str(options->name != NULL ? options->name : "");
    client->options.name = client->name;
    if (options->max_calls_per_peer == 0)
        client->options.max_calls_per_peer = RPC_CLIENT_MAX_CALLS;
    if (options->max_bytes_per_peer == 0)
        client->options.max_bytes_per_peer = RPC_CLIENT_MAX_BYTES;
    atomic_init(&client->next_request_id, 1);
    client->planned_ms = clock_now_ms();
    client->ticker = ticker_start("rpc-ticker", client_tick, client);
    return client;
}

void rpc_client_free(struct rpc_client *client)
{
    if (client == NULL)
        return;
    for (struct rpc_peer *peer = atomic_load(&client->peers); peer != NULL;) {
        struct rpc_peer *next = peer->next;
        peer_stop(peer);
        peer = next;
    }
    ticker_stop(client->ticker);
    for (struct rpc_peer *peer = atomic_load(&client->peers); peer != NULL;) {
        struct rpc_peer *next = peer->next;
        peer_free(peer);
        peer = next;
    }
    map_deinit(&client->by_address);
    pthread_mutex_destroy(&client->mutex);
    mem_free(client->name);
    mem_free(client);
}

static struct rpc_peer *add_peer_locked(struct rpc_client *client, const char *address, size_t len)
{
    if (client->peer_count >= RPC_CLIENT_MAX_PEERS)
        return NULL;
    struct rpc_peer *peer = peer_new(client, address);
    if (peer == NULL)
        return NULL;
    client->peer_count++;
    map_put(&client->by_address, address, len, peer);
    peer->next = atomic_load(&client->peers);
    atomic_store(&client->peers, peer);
    return peer;
}

struct rpc_peer *client_peer(struct rpc_client *client, const char *address)
{
    size_t len = strlen(address);
    if (len == 0 || len >= RPC_ADDRESS_MAX || strchr(address, ':') == NULL || strchr(address, '/') != NULL)
        return NULL;
    pthread_mutex_lock(&client->mutex);
    struct rpc_peer *peer = map_get(&client->by_address, address, len);
    if (peer == NULL)
        peer = add_peer_locked(client, address, len);
    pthread_mutex_unlock(&client->mutex);
    return peer;
}

void rpc_client_stats_get(struct rpc_client *client, struct rpc_client_stats *out)
{
    *out = (struct rpc_client_stats){
        .connects = atomic_load(&client->connects),
        .requests = atomic_load(&client->requests),
        .replies = atomic_load(&client->replies),
    };
    for (struct rpc_peer *peer = atomic_load(&client->peers); peer != NULL; peer = peer->next) {
        pthread_mutex_lock(&peer->mutex);
        out->peers++;
        out->calls += peer->call_count;
        out->connected += peer->state.now == PEER_READY;
        pthread_mutex_unlock(&peer->mutex);
    }
}
