/* The TTL monitor: one thread that, on the leader, deletes expired documents through the log in bounded batches. TTL
 * indexes, clustered collections and time series with expireAfterSeconds. */
#ifndef SHERD_DOCUMENT_TTL_H
#define SHERD_DOCUMENT_TTL_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct document_engine;
struct document_ttl;

enum {
    TTL_SLEEP_SECS = 60,    /* between two passes, unless set otherwise */
    TTL_BATCH_DOCS = 500,   /* deleted by one log command */
    TTL_BATCH_PAUSE_MS = 5, /* between two log commands: foreground writes go first */
};

struct document_ttl *document_ttl_new(struct document_engine *engine);
void document_ttl_free(struct document_ttl *ttl);
void document_ttl_start(struct document_ttl *ttl);
/* Waits for the batch under way. */
void document_ttl_stop(struct document_ttl *ttl);

/* One pass, as the thread does it; for tests and for the thread itself. False: it was given up (not the leader, the log
 * is busy); what is left is met by the next pass. */
bool document_ttl_pass(struct document_ttl *ttl, struct err *err);

/* Settings and counters. Any thread. */
bool document_ttl_enabled(const struct document_ttl *ttl);
void document_ttl_set_enabled(struct document_ttl *ttl, bool enabled);
int64_t document_ttl_sleep_secs(const struct document_ttl *ttl);
/* At least 1. Takes effect at once. */
void document_ttl_set_sleep_secs(struct document_ttl *ttl, int64_t secs);

struct document_ttl_counters {
    int64_t passes;
    int64_t sub_passes;
    int64_t deleted_documents;
};
void document_ttl_counters(const struct document_ttl *ttl, struct document_ttl_counters *out);

#endif
