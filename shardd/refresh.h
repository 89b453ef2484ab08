/* Learning from the config service what this shard owns: on request (_shardsvrRefresh), when a request carries a newer
 * version than the shard knows, and for collections that were prepared for sharding and heard no more. The leader
 * reads, and logs what it has read. Workers and the housekeeping thread; blocks, with deadlines. */
#ifndef SHERD_SHARDD_REFRESH_H
#define SHERD_SHARDD_REFRESH_H

#include "base/err.h"
#include "command/context.h"
#include "rpc/client.h"

#include <pthread.h>

struct shard;
struct refresh;

enum {
    REFRESH_TIMEOUT_MS = 10000, /* for a request that has no deadline of its own */
    REFRESH_CALL_MS = 3000,     /* one try at one config member */
    REFRESH_RETRY_MS = 50,      /* between two rounds over the members */
    PREPARED_STALE_MS = 5000,   /* a preparation this old is asked for at the config service */
    REFRESH_TICK_MS = 5000,     /* what one tick takes at most: the housekeeping thread has other work */
};

struct refresher {
    pthread_mutex_t mutex; /* protects everything below */
    pthread_cond_t cond;
    struct refresh *running;             /* one for each namespace */
    char config_leader[RPC_ADDRESS_MAX]; /* who answered last; "": unknown */
    bool stopping;
};

void refresher_init(struct refresher *refresher);
/* Waiting refreshes give up. */
void refresher_stop(struct refresher *refresher);
void refresher_deinit(struct refresher *refresher);

/* Brings the ownership of `ns` ("db.coll", or a database's name) up to what the config service knows at some moment
 * after the call. Calls for the same namespace share the work. Errors: 6 or 89 when the config service can't be reached
 * in time, 20 when this set isn't part of a cluster. */
bool refresh_run(struct shard *shard, const char *ns, int64_t deadline_ms, struct err *err) ERR_WARN_UNUSED;
/* Before a command of a router: refreshes when its version is not known here. True: go on (the check of the version
 * itself comes later). */
bool refresh_admit(struct shard *shard, struct command_ctx *ctx, struct err *err) ERR_WARN_UNUSED;
/* Asks about old preparations and drives unfinished counts; about once a second on the leader. */
void refresh_tick(struct shard *shard);

#endif
