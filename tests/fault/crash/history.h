/* What must be true of the data after everything in the journals happened, and what was read back. Pure; one thread.
 *
 * Documents are written by one thread each and left alone after an operation of unknown outcome, so each is certainly
 * there, certainly not there, or either, and has one or two possible values. Counters are raised by everybody:
 * acknowledged sum <= value <= acknowledged + unknown sum. */
#ifndef SHERD_TESTS_FAULT_CRASH_HISTORY_H
#define SHERD_TESTS_FAULT_CRASH_HISTORY_H

#include "journal.h"

#include <stddef.h>

struct history;

enum violation {
    VIOLATION_LOST,        /* an acknowledged insert is not there, or an acknowledged change is not */
    VIOLATION_INVENTED,    /* nobody wrote it, or nobody wrote that value */
    VIOLATION_RESURRECTED, /* deleted, acknowledged, and there again */
    VIOLATION_DUPLICATE,   /* the same _id twice in one read of the whole collection */
    VIOLATION_COUNTER,     /* outside its bounds */
    VIOLATION_DAMAGED,     /* its other fields are not as written */
    VIOLATION_DURING,      /* found missing while the load ran */
    VIOLATION_COUNT,
};

struct history_report {
    size_t violations[VIOLATION_COUNT];
    size_t expected;    /* documents that must be there */
    size_t uncertain;   /* documents that may be there */
    size_t observed;    /* read back */
    size_t collections; /* sharded collections read back, those of the counters and documents left out */
    size_t counters;    /* counters read back */
    int64_t acked;      /* operations acknowledged */
    int64_t unknown;    /* operations of unknown outcome */
    int64_t slack;      /* sum over the counters of what unknown operations may have added */
};

struct history *history_new(void);
void history_free(struct history *history);
/* In the order of one journal file; files in any order. For journal_read: arg is the history. */
void history_add(void *history, const struct journal_entry *entry);
/* One document of a read of everything. `pad` is its text, NULL when it has none (counters). */
void history_observe(struct history *history, const char *id, int64_t value, const char *pad);
/* One sharded collection that was found. */
void history_observe_collection(struct history *history, const char *id);
/* After the last one. `explain` (may be NULL) is called for the first 100 violations. */
void history_finish(struct history *history, void (*explain)(void *arg, enum violation what, const char *text),
                    void *arg, struct history_report *report);
/* True when no violation was found. */
bool history_report_clean(const struct history_report *report);
const char *violation_name(enum violation what);

/* For a second way of reading: whether a point read of `id` with this result fits. `found` false: no document. */
bool history_allows(const struct history *history, const char *id, bool found, int64_t value);
/* Walks the ids of documents that must be there in the one big collection (no '/' in them): *position starts at NULL.
 * NULL at the end. */
const char *history_next_expected(const struct history *history, const void **position);

#endif
