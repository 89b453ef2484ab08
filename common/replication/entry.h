/* What a log entry of the group contains: one or many commands, or a fragment of a large one. Pure; used by the raft
 * thread (building, first look) and the apply thread (reading).
 *
 * Version 1, little-endian, padded with zeros to a multiple of 8:
 *    0  u8   version, 1
 *    1  u8   kind: 1 commands, 2 fragment
 *    2  u16  number of commands; 1 for a fragment
 *    4  u32  payload bytes (neither header nor padding)
 *    8  u64  term of the leader that proposed it
 *   16  u64  origin: a random number of the proposing process's run
 *   24  u64  sequence: counts the entries of the origin
 *   32  payload: of kind 1: per command u32 length and the bytes;
 *       of kind 2: u32 fragment number, u32 number of fragments, u64 bytes of the whole command, then the bytes.
 * The fragments of a command follow each other in the log without anything between them; all but the last have the same
 * length, whole command / number of fragments, rounded up. The last one executes it. */
#ifndef SHERD_REPLICATION_ENTRY_H
#define SHERD_REPLICATION_ENTRY_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ENTRY_VERSION = 1,
    ENTRY_HEADER_BYTES = 32,
    ENTRY_FRAGMENT_HEADER_BYTES = 16,
    ENTRY_FRAGMENT_BYTES = 1 << 20, /* a command up to this size is logged in one piece */
    ENTRY_PADDING_MAX = 7,
};

enum entry_kind {
    ENTRY_COMMANDS = 1,
    ENTRY_FRAGMENT = 2,
};

/* A parsed entry; `payload` points into the entry's bytes. */
struct entry {
    enum entry_kind kind;
    uint16_t count;
    uint64_t term;
    uint64_t origin;
    uint64_t sequence;
    const uint8_t *payload; /* of a fragment: its bytes, behind the fragment header */
    size_t payload_len;
    uint32_t fragment_number; /* fragments only, from 0 */
    uint32_t fragment_count;
    uint64_t command_bytes; /* fragments only: the whole command */
};

/* Starts an entry of `kind` in an empty buffer; entry_finish writes count and sizes. */
void entry_begin(struct buf *out, enum entry_kind kind, uint64_t term, uint64_t origin, uint64_t sequence);
void entry_add_command(struct buf *out, const uint8_t *command, size_t len);
/* Fragment `number` (from 0) of `count`. */
void entry_add_fragment(struct buf *out, const uint8_t *command, size_t command_len, uint32_t number, uint32_t count);
/* Pads. `count` is the number of commands added (1 for a fragment). */
void entry_finish(struct buf *out, uint16_t count);
/* Checks every length. False: the bytes are not an entry of this version; `err` says what is wrong. */
bool entry_parse(const uint8_t *data, size_t len, struct entry *entry, struct err *err) ERR_WARN_UNUSED;
/* Walks the commands of an ENTRY_COMMANDS entry: `offset` starts at 0. False after the last. */
bool entry_next_command(const struct entry *entry, size_t *offset, const uint8_t **command, size_t *len);

/* The fragments of one command that have come so far. */
struct entry_assembly {
    struct buf bytes;
    uint64_t origin;
    uint64_t first_sequence; /* of fragment 0: the command's identity, with origin and term */
    uint64_t term;
    uint64_t first_index; /* log index of fragment 0; 0: nothing pending */
    uint64_t last_index;
    uint32_t next_number;
    uint32_t count;
    uint64_t command_bytes;
};

/* Adds a fragment that stands at `index`. True: the command is complete in assembly->bytes, and must be taken before
 * entry_assembly_reset. A fragment that doesn't continue what is there drops it; one without a beginning is ignored. */
bool entry_assembly_add(struct entry_assembly *assembly, const struct entry *entry, uint64_t index);
/* Drops what is pending and frees the bytes. */
void entry_assembly_reset(struct entry_assembly *assembly);

#endif
