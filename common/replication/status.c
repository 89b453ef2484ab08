/* The published state of a member. */
#include "base/log.h"
#include "replication/internal.h"

#include <stdio.h>
#include <string.h>

static enum replica_role role_of(struct replica *replica)
{
    if (replica->closing)
        return REPLICA_UNAVAILABLE;
    switch (raft_state(&replica->raft)) {
    case RAFT_FOLLOWER:
        return REPLICA_FOLLOWER;
    case RAFT_CANDIDATE:
        return REPLICA_CANDIDATE;
    case RAFT_LEADER:
        return REPLICA_LEADER;
    default:
        return REPLICA_UNAVAILABLE;
    }
}

static void fill_members(struct replica *replica, struct replica_status *status)
{
    struct raft *raft = &replica->raft;
    unsigned count = raft->configuration.n;
    status->member_count = count < REPLICA_MEMBERS_MAX ? count : REPLICA_MEMBERS_MAX;
    for (unsigned i = 0; i < status->member_count; i++) {
        const struct raft_server *server = &raft->configuration.servers[i];
        struct replica_member_status *member = &status->members[i];
        raft_index match = 0;
        if (raft_state(raft) == RAFT_LEADER && raft_match_index(raft, server->id, &match) != 0)
            match = 0;
        member->id = server->id;
        member->voter = server->role == RAFT_VOTER;
        member->match_index = match;
        snprintf(member->address, sizeof member->address, "%s", server->address);
    }
}

void replica_publish(struct replica *replica, bool changed)
{
    struct replica_status status = {.id = replica->options.id};
    raft_id leader;
    const char *address;
    status.role = role_of(replica);
    status.serving = atomic_load(&replica->serving);
    status.term = raft_current_term(&replica->raft);
    raft_leader(&replica->raft, &leader, &address);
    status.leader_id = leader;
    if (leader != 0 && address != NULL)
        snprintf(status.leader_address, sizeof status.leader_address, "%s", address);
    status.last_index = raft_last_index(&replica->raft);
    status.commit_index = raft_commit_index(&replica->raft);
    status.applied_index = atomic_load(&replica->apply.applied);
    fill_members(replica, &status);
    unsigned voters = 0;
    for (unsigned i = 0; i < replica->raft.configuration.n; i++)
        voters += replica->raft.configuration.servers[i].role == RAFT_VOTER;
    atomic_store(&replica->alone, voters == 1 && raft_role(&replica->raft) == RAFT_VOTER);
    pthread_mutex_lock(&replica->mutex);
    replica->status = status;
    pthread_mutex_unlock(&replica->mutex);
    if (changed && replica->options.on_change != NULL)
        replica->options.on_change(replica->options.on_change_arg, &status);
}

void replica_get_status(struct replica *replica, struct replica_status *status)
{
    pthread_mutex_lock(&replica->mutex);
    *status = replica->status;
    pthread_mutex_unlock(&replica->mutex);
    status->applied_index = atomic_load(&replica->apply.applied);
}

uint64_t replica_applied_index(struct replica *replica)
{
    return atomic_load(&replica->apply.applied);
}

bool replica_is_serving(const struct replica *replica)
{
    return atomic_load(&replica->serving);
}
