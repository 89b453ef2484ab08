/* A whole group in one process for tests: members with a hash_fsm each, on loopback ports. */
#ifndef SHERD_TESTS_UNIT_REPLICATION_GROUP_H
#define SHERD_TESTS_UNIT_REPLICATION_GROUP_H

#include "replication/replica.h"
#include "tests/unit/replication/hash_fsm.h"

#include <stdatomic.h>

enum {
    GROUP_MEMBERS_MAX = 5,
};

struct group_member {
    struct replica *replica; /* NULL: down */
    struct hash_fsm fsm;
    char address[64];
    atomic_uint changes; /* role changes seen */
};

struct group {
    char dir[128];
    unsigned count;
    unsigned snapshot_entries, trailing_entries; /* 0: the library's own */
    size_t pending_max, hold_bytes, apply_queue_bytes;
    const char *set_names[GROUP_MEMBERS_MAX]; /* NULL: "test" */
    struct group_member members[GROUP_MEMBERS_MAX];
};

/* As group_init, with another host in the addresses than 127.0.0.1. */
void group_init_host(struct group *group, unsigned count, unsigned port, const char *host);
/* Bootstraps `count` members in a new directory; member i (from 0) has id i + 1 and raft port `port` + i. */
void group_init(struct group *group, unsigned count, unsigned port);
/* Stops what runs, removes the directory. */
void group_deinit(struct group *group);
void group_start(struct group *group, unsigned member);
void group_start_all(struct group *group);
/* `timeout_ms` 0: as abruptly as it goes within one process. The state machine forgets what no checkpoint holds. */
void group_stop(struct group *group, unsigned member, int64_t timeout_ms);
/* Waits for a member that leads, serves and is named by all that run; its number. Fails the test after 20 s. */
unsigned group_wait_leader(struct group *group);

/* A proposal and its outcome. */
struct outcome {
    atomic_int done; /* 1 when the rest is valid */
    enum replica_outcome outcome;
    uint64_t index;
    uint64_t id, count; /* the hash_fsm's answer */
};

void group_propose(struct group *group, unsigned member, uint64_t id, size_t len, struct outcome *outcome);
/* False: no outcome within 20 s. */
bool outcome_wait(struct outcome *outcome);
/* Proposes to whoever leads until it is applied. */
void group_propose_wait(struct group *group, uint64_t id, size_t len);
/* Waits until all running members have applied the same index; true when their states are equal then. */
bool group_equal(struct group *group);
/* Runs the leader check on a member. */
enum replica_outcome group_read(struct group *group, unsigned member);

#endif
