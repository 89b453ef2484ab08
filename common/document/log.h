/* How document commands reach the replicated log, and what comes back. The daemon (common/node) implements the log over
 * its replica; unit tests implement it by applying at once. A log command is one kind byte and a payload that only the
 * applier of that kind reads; it is the same on every member, so it holds no clock, no pointer and no random choice
 * that apply would have to make. */
#ifndef SHERD_DOCUMENT_LOG_H
#define SHERD_DOCUMENT_LOG_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first byte of a log command. Numbers are part of the log's format: never reused, never renumbered. */
enum document_kind {
    DOCUMENT_KIND_INSERT = 1,
    DOCUMENT_KIND_UPDATE = 2, /* update, delete and findAndModify of chosen candidates; also the insert of an upsert */
    DOCUMENT_KIND_CREATE = 3,
    DOCUMENT_KIND_DROP = 4,
    DOCUMENT_KIND_DROP_DATABASE = 5,
    DOCUMENT_KIND_CREATE_INDEXES = 6,
    DOCUMENT_KIND_BUILD_STEP = 7, /* a batch of record ids of an index that is being built */
    DOCUMENT_KIND_BUILD_END = 8,
    DOCUMENT_KIND_DROP_INDEXES = 9,
    DOCUMENT_KIND_COLL_MOD = 10,
    DOCUMENT_KIND_ERASE_STEP = 11, /* a throttled piece of a drop */
    DOCUMENT_KIND_RENAME = 12,
    DOCUMENT_KIND_CONVERT_TO_CAPPED = 13, /* and, repeated, a throttled piece of erasing what is too much */
    DOCUMENT_KIND_SET_PARAMETER = 14,
    DOCUMENT_KIND_LIMIT = 64,      /* kinds from here on belong to the daemon (shardd, configd) */
};

enum document_outcome {
    DOCUMENT_APPLIED,    /* executed in log order: `ok` and `result` or `err` say how */
    DOCUMENT_NOT_LEADER, /* not executed; `leader` may name who leads */
    DOCUMENT_BUSY,       /* not executed: the log's limits are reached or the disk is nearly full; err says which */
    DOCUMENT_UNKNOWN,    /* proposed, leadership lost: it may still be executed */
};

/* What a proposer gets. Valid only during the callback. */
struct document_result {
    enum document_outcome outcome;
    bool ok;             /* with DOCUMENT_APPLIED: the applier returned true */
    const uint8_t *data; /* what the applier appended to its result */
    size_t len;
    const char *leader; /* "host:port" or NULL; with DOCUMENT_NOT_LEADER */
    struct err err;     /* filled whenever ok is false, with the code that goes into a reply */
};

/* Called exactly once, on the apply thread or, when nothing was proposed, on the proposer's thread. Must not block. */
typedef void document_done_cb(void *arg, const struct document_result *result);

struct document_log {
    void *arg;
    /* Takes `command` (from buf_take or mem_alloc). Any thread; doesn't block. */
    void (*propose)(void *arg, uint8_t *command, size_t len, document_done_cb *done, void *done_arg);
    /* Runs `run(run_arg)` on a worker thread, which may block on LMDB. Any thread. */
    void (*submit)(void *arg, void (*run)(void *run_arg), void *run_arg);
    /* Runs it there after `delay_ms`: retries and idle time-outs. Any thread. */
    void (*submit_after)(void *arg, int64_t delay_ms, void (*run)(void *run_arg), void *run_arg);
    /* Calls `done` once: true when a read transaction opened from then on sees every write acknowledged before this
     * call (so "nothing matched" may be answered), false when this member doesn't lead. On any thread, also inside the
     * call. */
    void (*barrier)(void *arg, void (*done)(void *done_arg, bool ok), void *done_arg);
    /* False when this member doesn't lead: ERR_NotWritablePrimary with details {leader}. Cheap, any thread. */
    bool (*check_leader)(void *arg, struct err *err);
};

/* Proposes and waits for the end, at most until `deadline_ms` (base/clock.h); past it the outcome is DOCUMENT_UNKNOWN.
 * For threads that may block: background work and rare administrative commands. Appends the result's bytes to `result`
 * (may be NULL). False: not executed, failed or unknown; err->code says (10107, 11602, 112 or the applier's own). */
bool document_log_wait(const struct document_log *log, uint8_t *command, size_t len, int64_t deadline_ms,
                       struct buf *result, struct err *err) ERR_WARN_UNUSED;

/* ERR_LockBusy with details {notExecuted: true}: the router waits and sends the same again. Returns false. */
bool document_busy_set(struct err *err, const char *why);

/* What an applier's outcome looks like in the log's result bytes: written by whoever calls appliers, read by whoever
 * completes a proposal. `parse` borrows from `data`; false when the bytes are not such a result. */
void document_result_encode_err(struct buf *out, const struct err *err);
void document_result_encode_ok_header(struct buf *out);
bool document_result_parse(const uint8_t *data, size_t len, struct document_result *out);

#endif
