/* The parts of a replica, as its own source files see them. Nothing outside common/replication includes this.
 *
 * Owner of each field: [raft] the raft thread alone, [apply] the apply thread alone, [lock] whoever holds the named
 * mutex, [const] written before the threads start. Lock order: none is taken while another is held. */
#ifndef SHERD_REPLICATION_INTERNAL_H
#define SHERD_REPLICATION_INTERNAL_H

#include "replication/applier.h"
#include "replication/log_bytes.h"
#include "replication/packer.h"
#include "replication/replica.h"
#include "replication/transport.h"

#include <pthread.h>
#include <raft.h>
#include <raft/uv.h>
#include <stdatomic.h>
#include <uv.h>

_Static_assert(RAFT_VERSION_NUMBER == 2201, "the rules that this code follows hold for libraft 0.22.1 only");

/* Work for the apply thread, in log order. */
struct apply_item {
    struct apply_item *next;
    uint64_t index;
    bool has_data;                  /* false: an entry of the group's own, only the index moves */
    enum replica_outcome failed;    /* not REPLICA_APPLIED: nothing to apply, end `proposals` with it */
    struct proposal_list proposals; /* those that wait for this entry, in the order of its commands */
    size_t len;
    uint8_t data[];
};

/* A read that waits until `index` is applied. */
struct waiter {
    struct waiter *next;
    uint64_t index;
    replica_read_cb done;
    void *arg;
};

struct apply_thread {
    pthread_t thread;
    bool started;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct apply_item *head;     /* [mutex] */
    struct apply_item *tail;     /* [mutex] */
    _Atomic size_t queued_bytes; /* of log data in the queue and in the batch under way */
    struct waiter *waiters;      /* [mutex] */
    bool stopping;               /* [mutex] ends when the queue is empty */
    bool ended;                  /* [mutex] no waiter will be served any more */
    _Atomic uint64_t applied;    /* fsm.commit was called with this index */
    struct applier applier;      /* [apply] */
};

/* An entry of ours in the log, not committed yet. */
struct inflight {
    struct raft_apply request;
    struct inflight *next;
    struct replica *replica;
    uint64_t sequence;
    size_t bytes;
    struct proposal_list proposals; /* moved to the apply item when it is committed */
};

enum put_state {
    PUT_NONE,
    PUT_WAIT_APPLIED, /* until the state has reached the marker's index */
    PUT_CHECKPOINT,   /* the worker makes the checkpoint */
    PUT_LIBRARY,      /* the library writes the marker and cuts the log */
};

/* The snapshot that is being stored. */
struct put_job {
    enum put_state state;
    uv_work_t work;
    bool failed; /* the checkpoint did, with `err`; from the worker to its end callback */
    struct err err;
    unsigned trailing;
    struct raft_io_snapshot_put *request;
    const struct raft_snapshot *snapshot;
    raft_io_snapshot_put_cb cb;
};

struct read {
    struct read *next;
    uint64_t commit_index; /* at arrival */
    replica_read_cb done;
    void *arg;
};

/* The leader check. At most one round is under way; reads that arrive meanwhile wait for the next. */
struct read_rounds {
    struct read *waiting;  /* [raft] not in a round yet, newest first */
    struct read *in_round; /* [raft] */
    uint64_t sequence;     /* [raft] of the last round */
    uint64_t term;         /* [raft] of the round */
    unsigned votes;        /* [raft] voters that confirmed, this member included */
    uint64_t answered;     /* [raft] bit i: members[i] confirmed this round */
};

enum handover_state {
    HANDOVER_NONE,
    HANDOVER_DRAIN,    /* entries of ours are in flight; nothing new is submitted */
    HANDOVER_MATCH,    /* until the successor has everything */
    HANDOVER_TRANSFER, /* the library asks it to stand for election */
};

struct handover {
    bool active;                  /* [raft] a begin whose end was not reported yet */
    enum handover_state state;    /* [raft] */
    int64_t deadline_ms;          /* [raft] */
    uint64_t target;              /* [raft] */
    struct raft_transfer request; /* [raft] */
};

struct replica {
    struct replica_options options; /* [const] strings are own copies */
    uint64_t start_applied;         /* [const] applied index of the state when it was opened */

    pthread_t raft_thread;
    uv_loop_t loop;
    uv_async_t async; /* wakes the loop: proposals, reads, progress of apply, stop */
    uv_check_t check; /* after every round of events */
    uv_timer_t timer; /* every heartbeat */
    uv_timer_t stop_timer;
    struct raft raft;           /* [raft] */
    struct raft_io io;          /* [raft] */
    struct raft_fsm fsm;        /* [raft] */
    struct transport transport; /* [raft] */

    /* The library's functions behind our wrappers. */
    int (*io_start)(struct raft_io *, unsigned, raft_io_tick_cb, raft_io_recv_cb);
    int (*io_append)(struct raft_io *, struct raft_io_append *, const struct raft_entry *, unsigned, raft_io_append_cb);
    int (*io_snapshot_put)(struct raft_io *, unsigned, struct raft_io_snapshot_put *, const struct raft_snapshot *,
                           raft_io_snapshot_put_cb);
    raft_io_recv_cb io_recv;

    /* [raft] what was seen at the last look, to notice changes */
    int seen_state;
    uint64_t seen_term;
    uint64_t seen_leader;
    bool settled;            /* a leader was known once */
    uint64_t queued_index;   /* last index handed to the apply thread */
    uint64_t fragment_index; /* last index that held a fragment which isn't the last of its command; 0: none */
    uint64_t barrier_term;   /* our barrier of this term was submitted */
    uint64_t barrier_index;  /* and committed at this index; 0: not yet */
    uint64_t restore_index;  /* highest snapshot marker restored */
    uint64_t stored_seen;    /* watchdog: raft.last_stored when it last moved */
    int64_t stored_moved_ms;

    struct packer packer;                           /* [raft] */
    struct inflight *inflight_head, *inflight_tail; /* [raft] in log order */
    unsigned inflight_count;                        /* [raft] */
    unsigned inflight_large;                        /* [raft] of PACKER_LARGE_ENTRY_BYTES and more */
    int64_t nospace_since_ms;                       /* [raft] the log has no room since then; 0: it has */
    struct log_bytes log_bytes;                     /* [raft] */
    uint64_t appended_bytes;                        /* [raft] since the last look of log_bytes */
    uint64_t snapshot_total;                        /* [raft] log_bytes.total at the last snapshot */
    uint64_t snapshot_index;                        /* [raft] of the last snapshot */
    struct put_job put;                             /* [raft] */
    struct read_rounds reads;                       /* [raft] */
    struct handover handover;                       /* [raft] */
    bool closing;                                   /* [raft] raft_close was called */
    int64_t stop_deadline_ms;                       /* [raft] 0: not stopping */

    struct apply_thread apply;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct proposal_list incoming;     /* [mutex] */
    struct read *incoming_reads;       /* [mutex] newest first */
    bool stop_requested;               /* [mutex] */
    int64_t stop_timeout_ms;           /* [mutex] */
    bool step_down_requested;          /* [mutex] */
    int64_t step_down_timeout_ms;      /* [mutex] */
    bool step_down_done, step_down_ok; /* [mutex] */
    bool wake_sent;                    /* [mutex] the loop will look at the above */
    bool closed;                       /* [mutex] wakes no more */
    struct replica_status status;      /* [mutex] the published one */

    _Atomic bool watches_apply; /* the raft thread waits for progress of the apply thread */
    _Atomic bool alone;         /* the only voter */
    _Atomic bool leading;
    _Atomic bool serving;
    _Atomic bool refusing; /* stopping: new proposals end at once */
    _Atomic size_t pending_count;
    _Atomic size_t pending_bytes;
};

/* replica.c */
_Noreturn void replica_die(struct replica *replica, enum replica_exit code, const char *what, const char *detail);
/* Makes the loop call replica_on_wake. Any thread. */
void replica_wake(struct replica *replica);
/* Publishes the state; calls on_change when role, term, leader or serving changed. [raft] */
void replica_publish(struct replica *replica, bool changed);

/* bridge.c: the library's state machine, [raft] */
void bridge_init(struct replica *replica);
/* Tells the apply thread about entries that came by without our callback (barriers, configurations). */
void bridge_queue_index(struct replica *replica);

/* propose.c, [raft] except replica_propose */
void propose_pump(struct replica *replica);
/* Ends what is not in the log. */
void propose_refuse(struct replica *replica, enum replica_outcome outcome);
/* Gives a command's share of the limits back. Any thread. */
void propose_finish(struct replica *replica, struct proposal_list *list, enum replica_outcome outcome);
struct proposal_list propose_committed(struct replica *replica, const uint8_t *data, size_t len);

/* apply.c */
void apply_init(struct replica *replica);
void apply_start(struct replica *replica);
/* Ends after what is queued; joins. */
void apply_stop(struct replica *replica);
void apply_deinit(struct replica *replica);
/* Log data that waits for the apply thread, or is being applied. */
size_t apply_queued_bytes(struct replica *replica);
/* Takes the item. */
void apply_push(struct replica *replica, struct apply_item *item);
struct apply_item *apply_item_new(uint64_t index, const uint8_t *data, size_t len);
/* Serves at once when the index is applied already. */
void apply_wait(struct replica *replica, uint64_t index, replica_read_cb done, void *arg);

/* snapshot.c, [raft] */
void snapshot_wrap(struct replica *replica);
/* Before the raft thread starts: how large the log is that was loaded. */
void snapshot_count_loaded(struct replica *replica);
/* fsm.snapshot: the marker, or RAFT_BUSY. */
int snapshot_take(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *count);
/* Goes on with a put that waits for the apply thread; keeps the log bounded by bytes. */
void snapshot_step(struct replica *replica);
/* Ends a waiting put before the library is closed. False: the worker still runs. */
bool snapshot_cancel(struct replica *replica);

/* leader.c, [raft] */
/* After every round of events: role changes, the barrier of a new leader. */
void leader_step(struct replica *replica);
/* Moves a handover on. True: none is under way any more. */
bool handover_step(struct replica *replica);
void handover_begin(struct replica *replica, int64_t deadline_ms);

/* reads.c, [raft] */
void reads_add(struct replica *replica, struct read *reads);
void reads_step(struct replica *replica, bool resend);
void reads_fail(struct replica *replica, enum replica_outcome outcome);
void reads_on_term(struct replica *replica, uint64_t peer, uint64_t sequence, uint64_t term);

#endif
