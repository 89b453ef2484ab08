/* One member of a simulated group: what replica.c does around the library, without its threads. The library's calls
 * come from raft_fixture in virtual time; entries wait in a queue as they do for the apply thread, and are applied in
 * batches whose bounds the seed decides. A crash throws the state away; the restart loads the last checkpoint and
 * replays the log. */
#ifndef SHERD_TESTS_SIM_REPLICATION_MEMBER_H
#define SHERD_TESTS_SIM_REPLICATION_MEMBER_H

#include "base/random.h"
#include "replication/applier.h"
#include "replication/packer.h"
#include "tests/sim/replication/store_state.h"
#include "tests/unit/replication/hash_fsm.h"

#include <raft.h>

enum {
    SIM_CHECKPOINTS_MAX = 16, /* kept for the replay check; the newest is the one that a restart loads */
    SIM_ENTRIES_MAX = 8192,
    SIM_FRAGMENT_BYTES = 512, /* so that cut commands are frequent and cheap */
};

/* An entry that the library handed out, or the index of one of the group's own (data NULL). */
struct sim_entry {
    uint64_t index;
    uint8_t *data;
    size_t len;
};

struct sim_inflight {
    struct raft_apply request;
    struct sim_member *member;
    struct sim_inflight *next;
    uint64_t sequence;
    struct proposal_list proposals;
};

struct sim_member {
    struct sim *sim;
    unsigned number;
    struct raft *raft;
    struct raft_fsm raft_fsm;
    struct applier applier;
    struct store_state store; /* follows `state` in seeds that have sim->with_store */
    struct hash_state state;  /* committed */
    struct hash_state next;   /* of the open transaction */
    bool open;
    bool down;
    bool ending;                               /* takes no snapshot any more */
    struct sim_entry entries[SIM_ENTRIES_MAX]; /* all that the library handed out since the beginning */
    size_t entry_count;
    size_t applied_count; /* of `entries`, given to the applier */
    uint64_t queued_index;
    uint64_t fragment_index;
    struct hash_state checkpoints[SIM_CHECKPOINTS_MAX];
    size_t checkpoint_count;
    struct packer packer;
    struct sim_inflight *inflight;
    unsigned inflight_count;
    uint64_t barrier_term;  /* our barrier of this term was submitted */
    uint64_t barrier_index; /* and is committed here; 0: not yet */
    /* The library's snapshot that waits for its checkpoint. */
    int (*io_put)(struct raft_io *, unsigned, struct raft_io_snapshot_put *, const struct raft_snapshot *,
                  raft_io_snapshot_put_cb);
    bool put_waits;
    unsigned put_trailing;
    struct raft_io_snapshot_put *put_request;
    const struct raft_snapshot *put_snapshot;
    raft_io_snapshot_put_cb put_cb;
};

/* A seed's whole world. */
struct sim {
    uint64_t seed;
    bool with_store; /* the real storage is part of the members' state */
    struct prng prng;
    unsigned count;
    struct sim_member *members;
    uint64_t digests[SIM_ENTRIES_MAX]; /* by log index: hash of the state behind that entry, from whoever came first */
    uint64_t next_id;                  /* of commands */
    uint8_t outcomes[HASH_FSM_IDS];    /* by id: 1 + enum replica_outcome; 0: none yet */
    unsigned failures;
};

/* Before raft_fixture_grow takes member->raft_fsm. */
void sim_member_init(struct sim_member *member, struct sim *sim, unsigned number);
/* When member->raft is known. */
void sim_member_attach(struct sim_member *member);
/* Before raft_fixture_close: hands what waits to the library, which frees it. */
void sim_member_end(struct sim_member *member);
void sim_member_deinit(struct sim_member *member);
/* After every few virtual milliseconds: barriers, proposals, some entries applied, a checkpoint that is due. */
void sim_member_step(struct sim_member *member);
void sim_member_propose(struct sim_member *member, size_t len);
/* Applies everything that is queued. */
void sim_member_drain(struct sim_member *member);
void sim_member_crash(struct sim_member *member);
void sim_member_restart(struct sim_member *member);
/* Replays the log on each checkpoint and on nothing; counts a failure for a state that differs. */
void sim_member_check_replay(struct sim_member *member);
/* With a store: crashes once more and replays; counts a failure when the store ends up different. */
void sim_member_check_store(struct sim_member *member);
/* Prints one line and counts. */
void sim_fail(struct sim *sim, const char *what, uint64_t a, uint64_t b);

#endif
