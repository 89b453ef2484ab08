/* How many bytes of log lie between two indexes, about: a mark at every MiB. Says how many entries to keep behind a
 * snapshot so that they are at most so many bytes. Pure; owned by the raft thread. */
#ifndef SHERD_REPLICATION_LOG_BYTES_H
#define SHERD_REPLICATION_LOG_BYTES_H

#include <stddef.h>
#include <stdint.h>

enum {
    LOG_BYTES_MARK = 1 << 20,
    LOG_BYTES_MARKS = 256,      /* so it sees back at most this many MiB */
    LOG_BYTES_ENTRY_COST = 128, /* what an entry costs in memory beside its data */
};

struct log_bytes {
    uint64_t total;                  /* bytes appended since the start of the process */
    uint64_t next_total;             /* the next mark is due at this total */
    uint64_t marks[LOG_BYTES_MARKS]; /* the log's last index at each mark; a ring */
    size_t first;                    /* oldest mark */
    size_t count;
};

/* Appended `bytes` more, after which the log ends at `last_index` (which may be lower than before: a truncation). */
void log_bytes_add(struct log_bytes *log, uint64_t bytes, uint64_t last_index);
/* Number of entries before the end of the log whose bytes are about `bytes`; UINT64_MAX when all that it has seen is
 * less. */
uint64_t log_bytes_entries(const struct log_bytes *log, uint64_t bytes, uint64_t last_index);

#endif
