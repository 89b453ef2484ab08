/* What the load program did, as files that outlive it: one a thread and run, a line before each operation is sent and
 * one after its end. Lines are written with one write(2) each and never synced: the machine stays up, only daemons are
 * killed.
 *
 *   + insert|set|inc|delete|counter|shard|drop ID VALUE     about to be sent
 *   = ok|none|unknown|missing                    how the operation above ended
 *
 * ok: acknowledged. none: certainly never sent. unknown: no answer, or an error that doesn't exclude that it happened.
 * missing: acknowledged, but the document that had to be there was not found. A line before without one after counts as
 * unknown. Shared by the load program and the checker. */
#ifndef SHERD_TESTS_FAULT_CRASH_JOURNAL_H
#define SHERD_TESTS_FAULT_CRASH_JOURNAL_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { JOURNAL_ID_MAX = 63 };

enum op_kind {
    OP_INSERT, /* a document of its own: VALUE */
    OP_SET,    /* its value becomes VALUE */
    OP_INC,    /* a counter shared by all threads rises by VALUE, which is positive */
    OP_DELETE,
    OP_COUNTER, /* a counter is created with 0 */
    OP_SHARD,   /* the collection ID is sharded; its documents are named ID/... */
    OP_DROP,    /* the collection ID is dropped, with its documents */
};

enum op_outcome {
    OUTCOME_OK,
    OUTCOME_NONE,
    OUTCOME_UNKNOWN,
    OUTCOME_MISSING,
};

struct journal_entry {
    enum op_kind kind;
    char id[JOURNAL_ID_MAX + 1];
    int64_t value;
    enum op_outcome outcome;
};

/* The file is made or continued. Returns its descriptor, -1 with *err filled. */
int journal_open(const char *path, struct err *err);
void journal_begin(int file, enum op_kind kind, const char *id, int64_t value);
void journal_end(int file, enum op_outcome outcome);

/* Calls `visit` for each operation of one file in order. False for a line that can't be read (the last one may be cut
 * short). */
bool journal_read(const char *path, void (*visit)(void *arg, const struct journal_entry *entry), void *arg,
                  struct err *err) ERR_WARN_UNUSED;
/* The same from text, for tests. */
bool journal_parse(const char *text, void (*visit)(void *arg, const struct journal_entry *entry), void *arg,
                   struct err *err) ERR_WARN_UNUSED;

/* The text that a document carries beside its value, so that damage shows: depends on the id alone. `out` takes
 * PAD_BYTES and a NUL. */
enum { PAD_BYTES = 300 };
void journal_pad(const char *id, char out[PAD_BYTES + 1]);

#endif
