/* A state machine for tests: registers and an order-dependent hash over everything that was applied, so that a lost, a
 * repeated or a reordered command shows. A command begins with a u64 id; the state counts how often each id was
 * applied. Checkpoints are files. The hooks bring their own lock: a checkpoint may run beside apply, and tests look at
 * it. */
#ifndef SHERD_TESTS_UNIT_REPLICATION_HASH_FSM_H
#define SHERD_TESTS_UNIT_REPLICATION_HASH_FSM_H

#include "replication/replica.h"

#include <pthread.h>

enum {
    HASH_FSM_REGISTERS = 64,
};

/* Ids are counted modulo this. */
#ifndef HASH_FSM_IDS
#define HASH_FSM_IDS 4096
#endif

/* What a checkpoint keeps. */
struct hash_state {
    uint64_t applied;
    uint64_t count; /* commands */
    uint64_t hash;
    uint64_t registers[HASH_FSM_REGISTERS];
    uint8_t times[HASH_FSM_IDS]; /* id -> number of times it was applied */
};

struct hash_fsm {
    pthread_mutex_t mutex;
    struct hash_state state; /* committed */
    struct hash_state next;  /* of the open transaction */
    bool open;
    char path[512];            /* of the checkpoint; "": none is made */
    unsigned checkpoints;      /* made so far */
    uint64_t loaded;           /* applied index of the checkpoint that was loaded */
    _Atomic unsigned delay_ms; /* each commit takes so long */
};

/* Loads the checkpoint at `path` when there is one. NULL: without checkpoints. */
void hash_fsm_open(struct hash_fsm *fsm, const char *path);
void hash_fsm_close(struct hash_fsm *fsm);
struct replica_fsm hash_fsm_hooks(struct hash_fsm *fsm);
/* A copy of the committed state. */
void hash_fsm_get(struct hash_fsm *fsm, struct hash_state *state);
uint64_t hash_fsm_count(struct hash_fsm *fsm);
unsigned hash_fsm_checkpoints(struct hash_fsm *fsm);
uint64_t hash_fsm_loaded(const struct hash_fsm *fsm);
void hash_fsm_set_delay(struct hash_fsm *fsm, unsigned delay_ms);
/* The step of one command, without any lock. */
void hash_state_apply(struct hash_state *state, uint64_t index, const uint8_t *command, size_t len);
/* A command of `len` bytes (8 or more) with this id; the rest depends on the id. From mem_alloc. */
uint8_t *hash_fsm_command(uint64_t id, size_t len);

#endif
