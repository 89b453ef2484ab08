/* Requests of the router to the leaders of sets: finds the leader, follows hints, holds a request while an election is
 * going on, repeats what was not carried out, and says plainly when the outcome is unknown. Called on workers; blocks
 * up to the deadline. */
#ifndef SHERD_ROUTERD_REMOTE_H
#define SHERD_ROUTERD_REMOTE_H

#include "routerd/remote_set.h"
#include "routerd/router.h"

#include <bson/bson.h>

/* In the caller's storage, from remote_request_init to remote_request_deinit. Fields up to `pinned` are the caller's to
 * set before remote_run. */
struct remote_request {
    struct remote_set *set;               /* a reference */
    bson_t body;                          /* the command; remote_run adds $sherdDeadlineMs */
    const struct rpc_sequence *sequences; /* borrowed */
    unsigned sequence_count;
    bool repeatable;              /* twice is as good as once: a read, an idempotent command */
    char pinned[RPC_ADDRESS_MAX]; /* the member to ask, whoever leads (cursors live on one); "": the leader */

    bool ok;           /* the reply says ok: 1 */
    bool unknown;      /* not ok, and it may or may not have been carried out */
    struct err err;    /* when not ok: as the shard or the network said it, not yet fit for a client */
    struct bdoc reply; /* views into `frame`; data NULL without an answer. Also there when the answer says ok: 0 */
    struct wire_frame *frame;     /* the reply's bytes, a reference; may be taken by setting it to NULL */
    char member[RPC_ADDRESS_MAX]; /* who was asked last */

    bool over;            /* internal from here: no further attempt */
    bool wait;            /* pause before the next attempt */
    bool hinted;          /* has followed a member's hint at the leader without a pause */
    struct rpc_call call; /* of the attempt under way */
};

/* Room for `count` requests, zeroed; freed with mem_free. */
struct remote_request *remote_requests_new(size_t count);
/* Takes a reference to `set` of its own. */
void remote_request_init(struct remote_request *request, struct remote_set *set, bool repeatable);
void remote_request_deinit(struct remote_request *request);
/* Runs all side by side and returns when all are over. The results are in the requests. */
void remote_run(struct router *router, struct remote_request *requests, size_t count, int64_t deadline_ms);
/* One request. Returns request->ok and copies request->err to `err` when it is not. */
bool remote_run_one(struct router *router, struct remote_request *request, int64_t deadline_ms,
                    struct err *err) ERR_WARN_UNUSED;

/* One attempt of a pinned request without a thread that waits: `done(call)`, with call->arg = arg, is called once when
 * it is over, on a thread of nng or rpc or inside start or cancel, and must not block. Then, on a worker,
 * remote_finish_pinned fills in the results. The request stays until then. */
void remote_start_pinned(struct router *router, struct remote_request *request, int64_t deadline_ms,
                         void (*done)(struct rpc_call *call), void *arg);
void remote_finish_pinned(struct remote_request *request);
/* Gives up the attempt, and tells the member to end the operation `key`. Not after remote_finish_pinned. */
void remote_cancel_pinned(struct router *router, struct remote_request *request, int64_t key);

/* A command to the config service: init, append fields to ->body, run. */
void remote_request_init_config(struct remote_request *request, struct router *router, bool repeatable);

#endif
