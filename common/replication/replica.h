/* A member of a Raft group. Commands that a majority of the voters has on disk are applied, in one order, to the state
 * machine of every member; whoever proposed a command gets its result.
 *
 * Threads. replica_start makes two: `raft` runs the group's disk and network I/O on a loop of its own and never blocks,
 * `apply` is the only one that changes the state machine. Every function here may be called from any thread and does
 * not block unless it says so; callbacks must not block either. A callback may call every function but
 * replica_stop/replica_free.
 *
 *   replica_propose --> [pending] --> raft: pack, log, replicate --> [committed] --> apply: begin, apply.., commit
 *        done_cb <--------------------------------------------------------------------------'
 *
 * The state machine stores the index of the last log entry that it contains, in the same transaction as its data, and
 * is made durable only by checkpoints: the log is the redo log. The log is cut only behind a checkpoint.
 *
 * A member that cannot go on (disk error, damaged log, a stored state that doesn't fit its log) writes one line to the
 * log and ends the process with one of enum replica_exit; the supervisor starts it again. */
#ifndef SHERD_REPLICATION_REPLICA_H
#define SHERD_REPLICATION_REPLICA_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REPLICA_MEMBERS_MAX = 7,
    REPLICA_ADDRESS_MAX = 320,            /* bytes of "host:port:raftport", with the NUL */
    REPLICA_SET_NAME_MAX = 64,            /* with the NUL */
    REPLICA_COMMAND_MAX_BYTES = 64 << 20, /* a longer command is a bug of the caller */
    REPLICA_APPLY_BATCH_BYTES = 8 << 20,  /* one apply transaction takes at most this much (or one command) ... */
    REPLICA_APPLY_BATCH_MS = 10,          /* ... and ends after about this time */
    REPLICA_PENDING_MAX = 8192,           /* proposals without an outcome yet; beyond: REPLICA_BUSY */
    REPLICA_PENDING_MAX_BYTES = 48 << 20, /* the same in bytes (one command is always allowed); what they become in the
                                           * store must fit into the space that it keeps in reserve */
    REPLICA_TRAILING_ENTRIES = 65536,     /* the log keeps, behind a checkpoint, this many entries ... */
    REPLICA_TRAILING_BYTES = 64 << 20,    /* ... or this many bytes, whichever is less: what a member may miss */
    REPLICA_SNAPSHOT_ENTRIES = 16384,     /* a checkpoint and a cut after this many entries ... */
    REPLICA_SNAPSHOT_BYTES = 128 << 20,   /* ... or this many bytes */
    REPLICA_HOLD_BYTES = 256 << 20,       /* a leader keeps up to this much, or twice the trailing entries, for a member
                                             that lags */
    REPLICA_APPLY_QUEUE_BYTES = 64 << 20, /* a member whose apply thread is behind by this takes no more entries */
    REPLICA_ELECTION_TIMEOUT_MS = 500,    /* randomised between this and its double */
    REPLICA_HEARTBEAT_MS = 50,
};

/* How the process ends when the member cannot go on. */
enum replica_exit {
    REPLICA_EXIT_DISK = 80,  /* the disk failed or made no progress */
    REPLICA_EXIT_LOG = 81,   /* an entry of the log cannot be read */
    REPLICA_EXIT_COPY = 82,  /* lags behind the start of the others' logs: needs a copy of their data */
    REPLICA_EXIT_RAFT = 83,  /* the consensus library reports something that must not happen */
    REPLICA_EXIT_STATE = 84, /* the stored state is older than the start of the log */
};

/* The state machine. All of it is called on the apply thread, one call at a time, except `applied_index` (in
 * replica_start, on the caller's thread) and `checkpoint` (on a worker thread, at any time beside the others, so it
 * brings its own lock against them; never two at once). They cannot fail: what cannot go on ends the process. */
struct replica_fsm {
    void *arg; /* handed to each function; borrowed until replica_free */
    /* Opens a transaction. */
    void (*begin)(void *arg);
    /* Applies one command inside it. `command` is borrowed for the call. Appends the answer to `result` (empty at the
     * call) only for the proposer: on every other member and in replay the bytes are dropped. Deterministic. `index`
     * never decreases; commands of one log entry share it. */
    void (*apply)(void *arg, uint64_t index, const uint8_t *command, size_t len, struct buf *result);
    /* Commits it, together with `last_index` as the applied index. There may have been no command since begin: entries
     * of the group's own move the index too. */
    void (*commit)(void *arg, uint64_t last_index);
    /* The applied index of the state as it was opened; 0 for an empty one. */
    uint64_t (*applied_index)(void *arg);
    /* Makes the state durable, at an index of at least that of the last commit before the call. May take long. False:
     * the process ends. */
    bool (*checkpoint)(void *arg, struct err *err);
};

struct replica_member {
    uint64_t id;         /* never 0, never used again for another member */
    const char *address; /* "host:port:raftport"; see replication/address.h */
};

enum replica_role {
    REPLICA_FOLLOWER,
    REPLICA_CANDIDATE,
    REPLICA_LEADER,
    REPLICA_UNAVAILABLE, /* not started, or stopping */
};

struct replica_member_status {
    uint64_t id;
    char address[REPLICA_ADDRESS_MAX];
    uint64_t match_index; /* last entry known to be in its log; filled on the leader, else 0 */
    bool voter;
};

struct replica_status {
    enum replica_role role;
    bool serving; /* leader whose state contains all that was acknowledged before its term */
    uint64_t id;  /* this member */
    uint64_t term;
    uint64_t leader_id;                       /* 0: unknown */
    char leader_address[REPLICA_ADDRESS_MAX]; /* "" when unknown */
    uint64_t last_index;                      /* end of this member's log */
    uint64_t commit_index;
    uint64_t applied_index; /* committed by fsm.commit */
    uint32_t member_count;
    struct replica_member_status members[REPLICA_MEMBERS_MAX];
};

enum replica_outcome {
    REPLICA_APPLIED,       /* committed and applied here; the result is valid */
    REPLICA_NOT_LEADER,    /* not executed; ask the leader of replica_status */
    REPLICA_BUSY,          /* not executed: too much in flight, or no disk space; may be repeated later */
    REPLICA_SHUTTING_DOWN, /* not executed */
    REPLICA_UNKNOWN,       /* leadership was lost with the command in the log: it may or may not be executed */
};

/* Called exactly once per proposal: on the apply thread, or inside replica_propose when the outcome is known at once.
 * `result` is borrowed for the call, empty unless REPLICA_APPLIED. `index` is the entry's, 0 unless applied. */
typedef void (*replica_done_cb)(void *arg, enum replica_outcome outcome, uint64_t index, const uint8_t *result,
                                size_t len);
/* Called once per read: REPLICA_APPLIED when a read transaction opened from now on sees all that was acknowledged
 * before the call, or REPLICA_NOT_LEADER / REPLICA_SHUTTING_DOWN. On the raft or apply thread, or inside the call. */
typedef void (*replica_read_cb)(void *arg, enum replica_outcome outcome);
/* On the raft thread after role, term, leader or `serving` changed. `status` is borrowed for the call. */
typedef void (*replica_change_cb)(void *arg, const struct replica_status *status);

struct replica_options {
    const char *dir;       /* holds the log and the votes; made by replica_bootstrap. Copied. */
    const char *set_name;  /* connections of another set are refused. Copied. */
    uint64_t id;           /* this member */
    const char *address;   /* as in the group's member list. Copied. */
    const char *bind_host; /* where to listen for the other members (raft port of `address`); NULL: all. Copied. */
    struct replica_fsm fsm;
    replica_change_cb on_change; /* NULL: none */
    void *on_change_arg;
    /* 0 everywhere: the constants above. */
    unsigned election_timeout_ms;
    unsigned heartbeat_ms;
    unsigned snapshot_entries;
    unsigned trailing_entries; /* never less than 16 */
    size_t pending_max;
    size_t pending_max_bytes;
    size_t hold_bytes;
    size_t apply_queue_bytes;
};

struct replica;

/* Prepares `dir` (made unless it is there) as a first member of a new group: all first members call it with the same
 * list. Once only: ERR_AlreadyInitialized afterwards. A state machine must be empty and checkpointed before. Blocks on
 * the disk. */
bool replica_bootstrap(const char *dir, uint64_t id, const struct replica_member *members, size_t count,
                       struct err *err) ERR_WARN_UNUSED;

/* Loads the log and starts taking part; entries at or below fsm.applied_index are skipped, the others are applied once
 * they are known to be committed. Returns when the member listens. ERR_NotYetInitialized: never bootstrapped. Blocks.
 * The caller ends it by replica_stop and replica_free. */
bool replica_start(struct replica **replica, const struct replica_options *options, struct err *err) ERR_WARN_UNUSED;

/* Clean stop: refuses new proposals, finishes those in the log, hands leadership to a member that has everything,
 * closes the log, calls every outstanding callback. Blocks, at most about `timeout_ms` for the polite part. Once. */
void replica_stop(struct replica *replica, int64_t timeout_ms);
/* After replica_stop. Accepts NULL. */
void replica_free(struct replica *replica);

/* Proposes a command. `command` was allocated by mem_alloc or buf_take and is taken in every case. 1 to
 * REPLICA_COMMAND_MAX_BYTES long. Proposals of one thread are logged in the order of the calls. */
void replica_propose(struct replica *replica, uint8_t *command, size_t len, replica_done_cb done, void *arg);

/* Leader check for reads that must be linearizable: one round to a majority of the voters shared by all reads that
 * arrived before it started, then waits until this member has applied what was committed at arrival. */
void replica_read_index(struct replica *replica, replica_read_cb done, void *arg);

/* Calls `done` with REPLICA_APPLIED as soon as this member has applied `index` (on the apply thread, or at once), or
 * REPLICA_SHUTTING_DOWN. For afterClusterTime on any member. */
void replica_wait_applied(struct replica *replica, uint64_t index, replica_read_cb done, void *arg);

/* A copy of the present state; term, role and leader belong together, the indexes may be up to a heartbeat old (except
 * applied_index). */
void replica_get_status(struct replica *replica, struct replica_status *status);
uint64_t replica_applied_index(struct replica *replica);
/* Leader that serves, at this moment. Cheap. A hint only: see replica_read_index. */
bool replica_is_serving(const struct replica *replica);

/* Gives leadership up to the voter with the longest log. False when this member doesn't lead or nobody took over
 * within `timeout_ms`. Blocks. */
bool replica_step_down(struct replica *replica, int64_t timeout_ms, struct err *err) ERR_WARN_UNUSED;

#endif
