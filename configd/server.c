#include "configd/server.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "configd/commit.h"
#include "configd/plans.h"
#include "node/node.h"
#include "storage/store.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SERVER_PRUNE_EVERY_MS = 60 * 1000 };

struct config_server {
    struct node *node;
    pthread_mutex_t mutex; /* of `changing` */
    pthread_cond_t ended;  /* signalled when `changing` becomes false */
    bool changing;         /* the metadata lock: from planning a change until it is applied */
    atomic_bool leading;   /* as the node told */
    int64_t next_prune_ms; /* housekeeping thread only */
};

struct config_server *server_new(struct node *node)
{
    struct config_server *server = mem_alloc(sizeof *server);
    server->node = node;
    pthread_mutex_init(&server->mutex, NULL);
    thread_cond_init(&server->ended);
    return server;
}

void server_free(struct config_server *server)
{
    if (server != NULL) {
        pthread_cond_destroy(&server->ended);
        pthread_mutex_destroy(&server->mutex);
        mem_free(server);
    }
}

struct config_server *server_of(const struct command_ctx *ctx)
{
    return node_plugin(node_of(ctx));
}

/* The metadata lock, taken within a deadline: a change may wait for the log, so the next one must not wait for ever. */
static bool lock_metadata(struct config_server *server, int64_t deadline_ms, struct err *err)
{
    pthread_mutex_lock(&server->mutex);
    while (server->changing && !deadline_passed(deadline_ms)) {
        thread_cond_wait_until(&server->ended, &server->mutex, deadline_ms);
    }
    bool taken = !server->changing;
    server->changing = true;
    pthread_mutex_unlock(&server->mutex);
    return taken || err_set(err, ERR_LockBusy, "another change of the cluster's metadata takes long");
}

static void unlock_metadata(struct config_server *server)
{
    pthread_mutex_lock(&server->mutex);
    server->changing = false;
    pthread_cond_signal(&server->ended);
    pthread_mutex_unlock(&server->mutex);
}

static bool check_leader(struct config_server *server, struct err *err)
{
    const struct document_log *log = document_engine_log(node_engine(server->node));
    return log->check_leader(log->arg, err);
}

enum attempt {
    ATTEMPT_DONE,
    ATTEMPT_FAILED,
    ATTEMPT_AGAIN, /* another change was first */
};

struct change_job {
    change_plan_cb *plan;
    struct bdoc request;
    int64_t deadline_ms;
    bool guarded;
    bson_t *reply; /* may be NULL */
};

static bool plan_change(struct config_server *server, const struct change_job *job, struct change *change,
                        struct metadata_view *view, struct err *err)
{
    if (!store_read_begin(node_store(server->node), &view->txn, err)) {
        return false;
    }
    change_init(change, view, node_address(server->node), clock_wall_ms());
    bool ok = job->plan(change, job->request, err);
    store_read_end(view->txn);
    view->txn = NULL;
    if (!ok) {
        change_deinit(change);
    }
    return ok;
}

static enum attempt commit_change(struct config_server *server, const struct change_job *job, struct change *change,
                                  struct err *err)
{
    struct buf payload = BUF_INIT;
    enum attempt result = ATTEMPT_DONE;
    change_encode(change, job->guarded, &payload);
    if (payload.len > COMMIT_MAX_BYTES) {
        err_set(err, ERR_InvalidLength, "the change of metadata is too large");
        result = ATTEMPT_FAILED;
    } else if (!node_propose_wait(
                   server->node,
                   &(struct node_command){.kind = CONFIG_KIND_COMMIT, .payload = payload.data, .len = payload.len},
                   job->deadline_ms, NULL, err)) {
        result = err->code == ERR_ConflictingOperationInProgress ? ATTEMPT_AGAIN : ATTEMPT_FAILED;
    }
    buf_deinit(&payload);
    return result;
}

static enum attempt attempt_change(struct config_server *server, const struct change_job *job, struct err *err)
{
    struct arena arena;
    struct change change;
    enum attempt result = ATTEMPT_FAILED;
    arena_init(&arena);
    struct metadata_view view = {.arena = &arena};
    if (check_leader(server, err) && plan_change(server, job, &change, &view, err)) {
        if (change.write_count > 0) {
            result = commit_change(server, job, &change, err);
        } else {
            /* No log entry proves that this member still leads and the view was the newest: a round does. */
            result = node_read_barrier(server->node, job->deadline_ms, err) ? ATTEMPT_DONE : ATTEMPT_FAILED;
        }
        if (result == ATTEMPT_DONE && job->reply != NULL) {
            bson_concat(job->reply, &change.reply);
        }
        change_deinit(&change);
    }
    arena_deinit(&arena);
    return result;
}

bool server_change(struct config_server *server, change_plan_cb *plan, struct bdoc request, int64_t deadline_ms,
                   bson_t *reply, struct err *err)
{
    struct change_job job = {
        .plan = plan, .request = request, .deadline_ms = deadline_ms, .guarded = true, .reply = reply};
    if (!lock_metadata(server, deadline_ms, err)) {
        return false;
    }
    enum attempt result = ATTEMPT_AGAIN;
    for (int i = 0; i < SERVER_REPLANS && result == ATTEMPT_AGAIN; i++) {
        result = attempt_change(server, &job, err);
    }
    unlock_metadata(server);
    return result == ATTEMPT_DONE;
}

bool server_write_unguarded(struct config_server *server, change_plan_cb *plan, struct bdoc request,
                            int64_t deadline_ms, struct err *err)
{
    struct change_job job = {.plan = plan, .request = request, .deadline_ms = deadline_ms};
    return attempt_change(server, &job, err) == ATTEMPT_DONE;
}

static int64_t change_deadline(const struct command_ctx *ctx)
{
    int64_t limit = deadline_after_ms(SERVER_CHANGE_MS);
    return ctx->deadline_ms < limit ? ctx->deadline_ms : limit;
}

enum command_status server_run_change(struct command_ctx *ctx, change_plan_cb *plan, struct err *err)
{
    bool ok = server_change(server_of(ctx), plan, ctx->body, change_deadline(ctx), &ctx->reply, err);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

enum command_status server_run_read(struct command_ctx *ctx, server_read_cb *read, struct err *err)
{
    struct config_server *server = server_of(ctx);
    struct metadata_view view = {.arena = &ctx->arena};
    if (!node_read_barrier(server->node, change_deadline(ctx), err) ||
        !store_read_begin(node_store(server->node), &view.txn, err)) {
        return COMMAND_ERROR;
    }
    bool ok = read(&view, ctx->body, &ctx->reply, err);
    store_read_end(view.txn);
    return ok ? COMMAND_OK : COMMAND_ERROR;
}

/* Errors are left to the next tick: a member that leads will be told again. */
static void bootstrap_if_needed(struct config_server *server)
{
    struct arena arena;
    struct err err;
    arena_init(&arena);
    struct metadata_view view = {.arena = &arena};
    bool done = true;
    if (store_read_begin(node_store(server->node), &view.txn, &err)) {
        done = bootstrap_done(&view);
        store_read_end(view.txn);
    }
    arena_deinit(&arena);
    if (done) {
        return;
    }
    struct buf payload = BUF_INIT;
    bootstrap_encode(&payload);
    struct node_command command = {.kind = CONFIG_KIND_BOOTSTRAP, .payload = payload.data, .len = payload.len};
    if (node_propose_wait(server->node, &command, deadline_after_ms(SERVER_CHANGE_MS), NULL, &err)) {
        log_info("CONFIG", 7003, "Config database created", LOG_STR("server", node_address(server->node)));
    } else {
        log_warn("CONFIG", 7004, "Config database not created yet", LOG_STR("error", err.msg));
    }
    buf_deinit(&payload);
}

void server_lead(struct config_server *server, bool leading)
{
    server->leading = leading;
    if (leading) {
        bootstrap_if_needed(server);
    }
}

void server_tick(struct config_server *server)
{
    if (!server->leading) {
        return;
    }
    bootstrap_if_needed(server);
    int64_t now = clock_now_ms();
    if (now < server->next_prune_ms) {
        return;
    }
    struct err err;
    server->next_prune_ms = now + SERVER_PRUNE_EVERY_MS;
    if (!server_change(server, plan_prune, bdoc_empty(), deadline_after_ms(SERVER_CHANGE_MS), NULL, &err)) {
        log_warn("CONFIG", 7005, "Old operations not forgotten", LOG_STR("error", err.msg));
    }
}
