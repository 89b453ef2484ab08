/* The operations that a daemon has under way: what currentOp shows and killOp ends. An operation is part of its
 * command's context: command_run enters it, command_finish takes it out, so the list is as bounded as the requests
 * under way are. Any thread; operations of one registry never block each other for longer than a list step, but for
 * currentOp, which copies what it shows. */
#ifndef SHERD_COMMAND_OPS_H
#define SHERD_COMMAND_OPS_H

#include "base/interrupt.h"
#include "bson/value.h"

#include <bson/bson.h>
#include <stdint.h>

struct command_ctx;
struct op_registry;

enum {
    OP_PLAN_MAX = 128,             /* bytes of a plan's summary, with its NUL */
    OP_COMMAND_SHOWN_BYTES = 1024, /* of a command in currentOp; a longer one is cut to a string */
    OP_LIST_MAX_BYTES = 12 << 20,  /* of all operations in one answer; further ones are left out */
};

/* Inside a command_ctx; zeroed at first. */
struct op {
    struct interrupt interrupt;
    int64_t id;                     /* from 1; 0: not in a registry */
    int64_t router_key;             /* $sherdOp: the router's operation that this one is a part of; 0: none */
    const char *client;             /* "host:port" of the connection, which outlives the operation; NULL: internal */
    uint64_t connection_id;         /* 0: none */
    const char *app_name;           /* borrowed like client; NULL or "": unknown */
    struct op_registry *registry;   /* NULL: not in one */
    struct op *prev;                /* guarded by the registry */
    struct op *next;                /* guarded by the registry */
    char plan_summary[OP_PLAN_MAX]; /* guarded by the registry */
    const char *waiting_for;        /* guarded by the registry: string constant; NULL: it runs */
    /* Guarded by the registry: called when the operation is killed, under the registry's lock, to end a wait that no
     * thread looks after. Must only hand over. NULL: none. */
    void (*wake)(void *arg);
    void *wake_arg;
};

struct op_registry *op_registry_new(void);
/* No operation may be in it. Accepts NULL. */
void op_registry_free(struct op_registry *registry);
unsigned op_registry_count(struct op_registry *registry);

/* Gives the context's operation an id and shows it. */
void op_begin(struct op_registry *registry, struct command_ctx *ctx);
/* Does nothing for one that isn't in a registry. */
void op_end(struct command_ctx *ctx);
/* What currentOp shows of the plan; cut to OP_PLAN_MAX. */
void op_set_plan(struct command_ctx *ctx, const char *summary);
/* `what` (a string constant; NULL: no longer) is what no thread works on while the operation is parked; `wake` is
 * called once, when it is killed meanwhile. False: it was killed before, nothing will be called. */
bool op_set_waiting(struct command_ctx *ctx, const char *what, void (*wake)(void *arg), void *wake_arg);

/* Marks one as killed (11601). False when there is none of that id. */
bool op_kill(struct op_registry *registry, int64_t id);
/* The same with another code. */
bool op_kill_as(struct op_registry *registry, int64_t id, int32_t code);
/* Every operation, with that code. */
void op_kill_all(struct op_registry *registry, int32_t code);
/* All parts of a router's operation. Returns how many. */
unsigned op_kill_router_key(struct op_registry *registry, int64_t router_key);
/* All operations with that lsid.id (16 bytes; NULL: with any) but `except` (may be NULL). Returns how many. */
unsigned op_kill_session(struct op_registry *registry, const uint8_t *lsid, const struct command_ctx *except);

struct op_list_options {
    const char *host;      /* "host:port" of this daemon */
    bool client_is_router; /* a shard's list: the client is shown as client_s */
};

/* Gives a document per operation, as currentOp shows it, to `add`. */
void op_list(struct op_registry *registry, const struct op_list_options *options,
             void (*add)(void *arg, const bson_t *op), void *arg);

#endif
