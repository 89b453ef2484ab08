/* The parts of a node, for the files of common/node only. */
#ifndef SHERD_NODE_NODE_INTERNAL_H
#define SHERD_NODE_NODE_INTERNAL_H

#include "async/loop.h"
#include "async/pool.h"
#include "command/table.h"
#include "node/delay.h"
#include "node/node.h"
#include "node/node_config.h"
#include "replication/replica.h"
#include "rpc/server.h"
#include "storage/store.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    NODE_WORKERS_MAX = 64,
    NODE_REQUESTS_MAX = 10000, /* under way, parked ones included; more are answered "busy" */
    NODE_QUEUE_MAX = 40000,    /* jobs of requests and of their continuations: never full */
    NODE_TICK_MS = 1000,
    NODE_STOP_TIMEOUT_MS = 5000,
};

/* One log command at a time; the apply thread's own. */
struct node_apply {
    struct store_txn *txn;
    struct arena arena;
};

struct node {
    struct document_host host; /* first: what the document commands find behind ctx->daemon */
    const struct node_program *program;
    void *plugin;
    struct node_config config;
    struct store *store;
    struct replica *replica;
    struct rpc_server *server;
    struct pool *pool;
    struct delay *delay;
    struct op_registry *ops; /* requests that run a command */
    struct temp_space *temp; /* DBPATH/_tmp */
    struct command_table *commands;
    struct loop *loop;
    char address[300]; /* "host:port", where routers find this member */
    struct node_apply apply;
    struct document_log log;
    const struct document_ownership *ownership;

    atomic_uint requests;      /* under way */
    atomic_uint continuations; /* jobs of parked requests and background work in the pool or delayed */
    atomic_bool stopping;

    pthread_t housekeeper;
    pthread_mutex_t tick_mutex; /* protects the two below */
    pthread_cond_t tick_cond;
    bool tick_stop;
    bool tick_now; /* something changed: don't wait for the second */
    bool led;      /* the housekeeper's: what the program was told */
};

/* node_fsm.c: the replica's state machine over the store. */
struct replica_fsm node_fsm(struct node *node);
/* node_log.c: the document log over the replica. */
void node_log_init(struct node *node);
bool node_check_leader(struct node *node, struct err *err);
/* Runs `run(arg)` on a worker. Never refused. */
void node_submit(struct node *node, void (*run)(void *arg), void *arg);
/* node_dispatch.c: called by the rpc server. */
void node_handle_request(void *arg, struct rpc_request *request);
/* node_housekeeping.c */
void node_housekeeping_start(struct node *node);
void node_housekeeping_stop(struct node *node);
void node_housekeeping_wake(struct node *node);
/* node_commands.c */
extern const struct command node_commands[];
extern const unsigned node_command_count;
/* node_ops.c */
extern const struct command node_op_commands[];
extern const unsigned node_op_command_count;
/* node_filter.c: partial index filters for the store. */
struct store_filter_hooks node_filter_hooks(void);

#endif
