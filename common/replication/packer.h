/* Proposals that wait for the log, and how they become entries: many small ones in one entry, a large one cut into
 * fragments that follow each other. Pure; owned by the raft thread. */
#ifndef SHERD_REPLICATION_PACKER_H
#define SHERD_REPLICATION_PACKER_H

#include "replication/replica.h"

enum {
    PACKER_ENTRY_COMMANDS = 256,          /* at most so many commands ... */
    PACKER_ENTRY_BYTES = 64 << 10,        /* ... or bytes (or one command) in an entry */
    PACKER_WINDOW_ENTRIES = 4,            /* entries in the log that are not committed yet ... */
    PACKER_LARGE_ENTRY_BYTES = 256 << 10, /* ... of this size only */
    PACKER_WINDOW_LARGE_ENTRIES = 2,      /* ... so many */
};

struct proposal {
    struct proposal *next;
    uint8_t *command; /* owned; NULL once it is in the log */
    size_t len;
    replica_done_cb done;
    void *arg;
    uint64_t index;    /* its entry's; set at apply */
    struct buf result; /* filled at apply */
};

/* A queue, first in first out. Owns its proposals. */
struct proposal_list {
    struct proposal *head;
    struct proposal *tail;
};

struct packer {
    struct proposal_list pending;
    uint32_t fragments_sent; /* of pending.head; 0 unless it is being cut */
    size_t fragment_bytes;   /* a longer command is cut; 0: ENTRY_FRAGMENT_BYTES */
    uint64_t origin;         /* of this run, in every entry */
    uint64_t sequence;       /* of the last entry built */
};

/* Takes `command`. */
struct proposal *proposal_new(uint8_t *command, size_t len, replica_done_cb done, void *arg);
/* Calls nobody. */
void proposal_free(struct proposal *proposal);
void proposal_list_push(struct proposal_list *list, struct proposal *proposal);
struct proposal *proposal_list_pop(struct proposal_list *list);
/* Moves all of `from` to the end of `to`. */
void proposal_list_append(struct proposal_list *to, struct proposal_list *from);
/* Calls every callback with `outcome` and frees the proposals. */
void proposal_list_finish(struct proposal_list *list, enum replica_outcome outcome);

/* Size that the next entry will have, about; 0 when nothing waits. */
size_t packer_next_bytes(const struct packer *packer);
/* Builds the next entry in the empty buffer `out` and appends to `logged` the proposals that it completes: none for a
 * fragment that is not the last. There must be something pending. */
void packer_next(struct packer *packer, uint64_t term, struct buf *out, struct proposal_list *logged);
/* Puts back what the last packer_next took: `before` is a copy of the packer from before, `logged` what it appended. */
void packer_undo(struct packer *packer, const struct packer *before, struct proposal_list *logged);
/* After loss of leadership: a command whose fragments were cut off starts from the beginning. */
void packer_restart(struct packer *packer);

#endif
