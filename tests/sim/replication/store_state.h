/* The store as a second state machine of a simulated member, beside the hash: every command becomes a change of a small
 * indexed collection, so that checkpoints, recovery and the apply path of the real storage run in the simulation. */
#ifndef SHERD_TESTS_SIM_REPLICATION_STORE_STATE_H
#define SHERD_TESTS_SIM_REPLICATION_STORE_STATE_H

#include "storage/store.h"

struct store_state {
    char dir[64];
    struct store *store;
    struct store_txn *txn; /* the write transaction, between begin and commit */
};

/* Makes a directory (in memory where there is one) and an empty store with its first checkpoint. */
void store_state_init(struct store_state *state);
/* Closes and removes everything. */
void store_state_deinit(struct store_state *state);
/* As after a crash: opens again at the newest checkpoint. */
void store_state_crash(struct store_state *state);
void store_state_begin(struct store_state *state);
void store_state_apply(struct store_state *state, const uint8_t *command, size_t len);
void store_state_commit(struct store_state *state, uint64_t index);
void store_state_checkpoint(struct store_state *state);
/* Over everything that is stored. */
uint64_t store_state_hash(struct store_state *state);

#endif
