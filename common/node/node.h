/* The common part of shardd and configd: a replica of a Raft group, its store, an rpc server and a table of commands.
 * A daemon's main() is node_main() with a struct node_program: its extra commands, the appliers of its own log
 * commands, its ownership rules and life-cycle hooks.
 *
 *   rpc (nng threads) -> worker pool: command table -> document engine -> replica_propose -> [Raft loop, main thread]
 *                                                                             |
 *   reply  <- completion, apply thread  <-  appliers, one write transaction <-+
 */
#ifndef SHERD_NODE_NODE_H
#define SHERD_NODE_NODE_H

#include "document/apply.h"
#include "document/engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct command;
struct command_ctx;
struct node;

/* How a log command of a daemon's own kind is applied: the contract of document_apply_command. `plugin` is what the
 * program's open hook returned. */
struct node_applier {
    uint8_t kind; /* DOCUMENT_KIND_LIMIT or more */
    bool (*apply)(void *plugin, struct document_apply *apply, const uint8_t *payload, size_t len, struct buf *result,
                  struct err *err);
};

struct node_program {
    const char *name;    /* "shardd"; also the role in hello and in node.json */
    const char *summary; /* for --help */
    int default_port;
    const struct command *commands; /* of its own; they win over the shared ones of the same name */
    size_t command_count;
    const struct node_applier *appliers;
    size_t applier_count;
    /* All hooks may be NULL. Called in this order: open (main thread; the store is open, nothing runs yet), start (the
     * rpc server answers), tick (about once a second on one housekeeping thread, may block), lead (housekeeping thread,
     * when this member begins or ceases to lead; a new leader has applied all of its predecessors' entries), stop (no
     * request comes any more; what tick waits for must end soon), close (frees the plugin). */
    bool (*open)(struct node *node, void **plugin, struct err *err);
    void (*start)(void *plugin);
    void (*tick)(void *plugin);
    void (*lead)(void *plugin, bool leading);
    void (*stop)(void *plugin);
    void (*close)(void *plugin);
    /* Asked after open; NULL or a NULL answer: everything is owned. */
    const struct document_ownership *(*ownership)(void *plugin);
    /* Called on a worker before a command runs on the leader, the message parsed; may block. False: the command is
     * answered with the error. Where a shard learns of a newer version that a request carries. */
    bool (*admit)(void *plugin, struct command_ctx *ctx, struct err *err);
    /* Appends fields to the answer of serverStatus and _sherdStatus. */
    void (*status)(void *plugin, bson_t *out);
};

/* The whole life of the daemon: options, --init, start, serve, clean stop on SIGTERM or SIGINT. Returns the exit
 * status; a failed start has written one line to stderr. */
int node_main(int argc, char **argv, const struct node_program *program);

/* From inside a command, an applier or a hook. */
struct node *node_of(const struct command_ctx *ctx);
void *node_plugin(const struct node *node);
struct document_engine *node_engine(const struct node *node);
struct store *node_store(const struct node *node);
/* "host:port" under which this member answers requests. */
const char *node_address(const struct node *node);
/* The set's name ("shard01"); empty for a node that runs alone without --set. */
const char *node_set_name(const struct node *node);
bool node_test_commands(const struct node *node);

struct node_state {
    bool leading; /* and past its own barrier */
    uint64_t term;
    int64_t member_id; /* this member */
    char leader[300];  /* "host:port" or empty when unknown */
    uint64_t applied;  /* index whose changes a new read transaction sees */
    uint64_t committed;
};
/* Any thread, cheap. */
void node_state_get(const struct node *node, struct node_state *out);

/* A command of one of the program's own kinds; `payload` is borrowed for the call. */
struct node_command {
    uint8_t kind;
    const void *payload;
    size_t len;
};

void node_propose(struct node *node, const struct node_command *command, document_done_cb *done, void *done_arg);
/* The same and waits; see document_log_wait. */
bool node_propose_wait(struct node *node, const struct node_command *command, int64_t deadline_ms, struct buf *result,
                       struct err *err) ERR_WARN_UNUSED;
/* Waits until this member may answer a linearizable read: it leads, and has applied everything that was committed when
 * the call came. */
bool node_read_barrier(struct node *node, int64_t deadline_ms, struct err *err) ERR_WARN_UNUSED;

#endif
