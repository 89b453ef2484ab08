/* The order in which log entries become state: skips what the state contains already, opens a transaction for the
 * first entry, applies each command, puts fragments together, and says which index the transaction may be committed
 * with. Pure but for the hooks that it calls: the apply thread and the simulation both drive it.
 *
 * While the fragments of a command are incomplete, the stored applied index stays below the first of them, so that a
 * restart reads all of them again. */
#ifndef SHERD_REPLICATION_APPLIER_H
#define SHERD_REPLICATION_APPLIER_H

#include "replication/entry.h"
#include "replication/replica.h"

struct applier {
    struct replica_fsm fsm;
    uint64_t applied;   /* last index that was committed */
    uint64_t seen;      /* last index that was added */
    bool open;          /* between begin and commit */
    struct buf scratch; /* results that nobody waits for */
    struct entry_assembly assembly;
};

/* Where the result of the n-th command of the entry (from 0) goes; NULL: nobody waits. */
typedef struct buf *(*applier_result_fn)(void *arg, size_t number);

void applier_init(struct applier *applier, const struct replica_fsm *fsm);
void applier_deinit(struct applier *applier);
/* An entry of the log. */
struct applier_entry {
    uint64_t index;
    const uint8_t *data; /* NULL: an entry of the group's own, which only moves the index */
    size_t len;
};

/* Indexes rise, with gaps. `result` may be NULL. False: the bytes are not an entry that this program can read. */
bool applier_add(struct applier *applier, const struct applier_entry *raw, applier_result_fn result, void *arg,
                 struct err *err) ERR_WARN_UNUSED;
/* Commits what was added. */
void applier_commit(struct applier *applier);

#endif
