/* A replicated set that the router talks to: a shard, or the config service. Membership is immutable; a changed member
 * list makes a new object. Which member leads is learned on the way: from answers, from hints, from a probe of all
 * members side by side. Any thread. */
#ifndef SHERD_ROUTERD_REMOTE_SET_H
#define SHERD_ROUTERD_REMOTE_SET_H

#include "base/err.h"
#include "cluster/metadata.h"
#include "rpc/client.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    REMOTE_PROBE_MS = 1000, /* how long a member may take to say who leads */
};

struct remote_set {
    _Atomic uint32_t refs;
    char name[CLUSTER_SHARD_NAME_MAX + 1]; /* the shard's name, or "config" */
    char host[CLUSTER_HOST_MAX + 1];       /* "set/h:p,h:p" as registered */
    struct host_list members;
    pthread_mutex_t lock;         /* guards `leader`; never held over a wait */
    char leader[RPC_ADDRESS_MAX]; /* "" when unknown */
    pthread_mutex_t probe_lock;   /* one probe at a time; taken before `lock` */
};

/* `host` is "set/h:p,h:p" or "h:p". The caller ends with remote_set_unref. */
bool remote_set_new(const char *name, const char *host, struct remote_set **out, struct err *err) ERR_WARN_UNUSED;
struct remote_set *remote_set_ref(struct remote_set *set);
/* Accepts NULL. */
void remote_set_unref(struct remote_set *set);

/* False when the leader is unknown; a set of one member is led by it. */
bool remote_set_leader(struct remote_set *set, char address[RPC_ADDRESS_MAX]);
void remote_set_learn_leader(struct remote_set *set, const char *address);
/* Only if `address` is still taken for the leader. */
void remote_set_forget_leader(struct remote_set *set, const char *address);
/* Asks all members side by side; blocks up to REMOTE_PROBE_MS or the deadline. False when nobody knows a leader.
 * Threads that come while one asks wait for its answer. */
bool remote_set_probe(struct remote_set *set, struct rpc_client *rpc, int64_t deadline_ms,
                      char address[RPC_ADDRESS_MAX]);

#endif
