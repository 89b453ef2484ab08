/* One command on its way from message to reply. The daemon makes a context per request, command_run looks the command
 * up and runs it on the calling worker, and the reply leaves through the context's `respond`. One thread at a time. */
#ifndef SHERD_COMMAND_CONTEXT_H
#define SHERD_COMMAND_CONTEXT_H

#include "base/arena.h"
#include "base/err.h"
#include "bson/value.h"
#include "command/ops.h"
#include "wire/frame.h"
#include "wire/message.h"

#include <stdint.h>

struct command;
struct command_table;

enum {
    COMMAND_DB_MAX = 63,  /* bytes of a database's name */
    COMMAND_NS_MAX = 255, /* bytes of "db.collection" */
    COMMAND_REPLY_MAX_BYTES = WIRE_MAX_MESSAGE_BYTES - 64,
};

struct command_ctx {
    struct arena arena;            /* what lives as long as the command */
    struct wire_frame *frame;      /* the request's bytes; a reference of the context's own */
    struct wire_msg msg;           /* views into `frame` */
    struct bdoc body;              /* msg.body */
    const struct command *command; /* NULL until looked up */
    const char *name;              /* first field of the body, as the client spelled it */
    struct bval value;             /* and its value: mostly the collection's name */
    const char *db;                /* $db; never NULL once command_run has parsed it */
    int64_t deadline_ms;           /* from maxTimeMS and $sherdDeadlineMs; DEADLINE_NEVER when neither is there */
    int64_t max_time_ms;           /* maxTimeMS as given; 0: none */
    int64_t started_ms;            /* clock_now_ms() when the context was made */
    bool internal;                 /* comes from a daemon: fields that start with $sherd are allowed */
    void *daemon;                  /* the node or the router, set by the daemon */
    void *request;                 /* struct rpc_request or client_request, for `respond` */
    void *session;                 /* the daemon's own */
    struct op_registry *ops;       /* where command_run shows the operation; NULL: nowhere */
    struct op op;                  /* the operation for currentOp and killOp */

    bson_t reply;                 /* fields of the reply; command_run adds ok: 1 */
    struct wire_frame *raw_reply; /* instead: a complete reply that is passed through (see command_ctx_set_raw) */
    const char *labels[4];        /* errorLabels of an error reply; string constants */
    unsigned label_count;

    /* Sends the reply; takes the frame's reference. Called exactly once, from whatever thread ends the command; the
     * context is freed after it. */
    void (*respond)(struct command_ctx *ctx, struct wire_frame *reply);
};

/* A new context; takes a reference to `frame`, copies `msg`. It frees itself in command_finish. */
struct command_ctx *command_ctx_new(struct wire_frame *frame, const struct wire_msg *msg);
/* Only for a context that will not be finished (tests, shutdown): finishing frees it. Accepts NULL. */
void command_ctx_free(struct command_ctx *ctx);

/* Passes a complete reply message through untouched; takes the reference, which must be the caller's alone. */
void command_ctx_set_raw(struct command_ctx *ctx, struct wire_frame *reply);
/* Adds to errorLabels of the error reply, e.g. "RetryableWriteError". `label` is a string constant. */
void command_ctx_add_label(struct command_ctx *ctx, const char *label);
/* Another deadline than the command's fields ask for. By the thread that runs the command. */
void command_ctx_set_deadline(struct command_ctx *ctx, int64_t deadline_ms);
/* False once the deadline has passed (ERR_MaxTimeMSExpired) or the operation was killed (ERR_Interrupted). */
bool command_ctx_check_deadline(const struct command_ctx *ctx, struct err *err) ERR_WARN_UNUSED;

/* A parked command goes on: the calling thread works for it until command_ctx_leave. Returns what to give to that. */
struct interrupt *command_ctx_enter(struct command_ctx *ctx);
/* The context may be gone by now. */
void command_ctx_leave(struct interrupt *before);

/* Ends the command: builds the reply (err NULL: success), calls respond, frees the context. command_run does it for
 * commands that don't park; a parked one's completion calls it, from any thread. */
void command_finish(struct command_ctx *ctx, const struct err *err);

#endif
