/* One question to the config service: finds its leader among the members. Workers; blocks. */
#ifndef SHERD_SHARDD_CONFIG_CLIENT_H
#define SHERD_SHARDD_CONFIG_CLIENT_H

#include "rpc/client.h"
#include "shardd/shard.h"

/* Sends `body` to the config service named by `configdb` ("set/host:port,...") until one member answers as the leader
 * or the deadline passes; only for requests that may be repeated. True: `call` holds an answer that says ok; the caller
 * deinits it in every case. False: the service's own error, or ERR_HostUnreachable / ERR_NetworkTimeout. */
bool config_client_ask(struct shard *shard, const char *configdb, struct bdoc body, int64_t deadline_ms,
                       struct rpc_call *call, struct err *err) ERR_WARN_UNUSED;

#endif
